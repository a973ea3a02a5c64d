"""How it is seen that a server serves: by a round trip in its own protocol."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from harness_core.base import limits
from harness_core.base.errors import HarnessError, NotReady, Unavailable
from harness_core.base.wait import deadline

__all__ = ["Readiness", "reach"]

#: A server that runs answers its first message in milliseconds, across a network in tens.
_REACH_S = limits.MCP_CALL_S / 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """How it is seen that a server serves.

    Args:
        probe: one round trip, given ``host:port``. Raises OSError while nobody answers,
            HarnessError while what answers cannot serve.
        seconds: how long a start may take.
    """

    probe: Callable[[str], Awaitable[object]]
    seconds: float


async def reach(name: str, address: str, readiness: Readiness) -> None:
    """Make sure that the server of somebody else is there.

    Raises:
        Unavailable: nobody answers there, or not as such a server does.
    """
    action = f"reach the external {name} on {address}"
    advice = "Start it, or correct its address, or run with --services local"
    try:
        with deadline(action, seconds=_REACH_S):
            await readiness.probe(address)
    except (OSError, NotReady) as error:
        observed = error.observed if isinstance(error, NotReady) else str(error)
        raise Unavailable(action, observed=observed, next_step=advice) from error
    except HarnessError as error:
        raise Unavailable(action, observed=error.observed, next_step=advice) from error
