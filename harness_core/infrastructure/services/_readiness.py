"""When a server serves: once it answers in its own protocol."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import trio

from harness_core.base.errors import HarnessError
from harness_core.base.slowness import patience

#: A server that serves answers in milliseconds, across a network in tens. A connection that a port
#: forwarder took for a server which was not there yet may stay open and never be answered.
_ANSWER_S: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """When a server serves.

    Args:
        probe: one round trip, given ``host:port``. Raises OSError while no server listens,
            HarnessError while what answers cannot serve.
        seconds: how long a start may take.
    """

    probe: Callable[[str], Awaitable[object]]
    seconds: float

    async def check(self, address: str) -> str:
        """Why it does not serve yet, found by one round trip of bounded time; empty when it does."""
        bound_s = patience(_ANSWER_S)
        with trio.move_on_after(bound_s):
            try:
                await self.probe(address)
            except HarnessError as error:
                return error.observed
            except OSError as error:
                return str(error)
            return ""
        return f"no answer within {bound_s:g} s"


def split_address(address: str) -> tuple[str, int]:
    """Host, without brackets, and port of ``host:port``."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


async def connect(address: str) -> trio.SocketStream:
    """One TCP connection to a server that may not be there.

    Args:
        address: ``host:port``, an IPv6 host in brackets.

    Raises:
        OSError: no server listens; of a host with several addresses, the reason of the first.
    """
    try:
        return await trio.open_tcp_stream(*split_address(address))
    except OSError as error:
        raise _reason(error) from error


def _reason(error: OSError) -> OSError:
    """Why the first address refused; trio wraps the reasons, one for each address of a host."""
    cause = error.__cause__
    if isinstance(cause, BaseExceptionGroup):
        return next((each for each in cause.exceptions if isinstance(each, OSError)), error)
    return cause if isinstance(cause, OSError) else error
