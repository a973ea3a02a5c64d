"""How it is seen that a server serves: by a round trip in its own protocol."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import trio

from harness_core.base.errors import HarnessError


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

    async def look(self, address: str) -> str:
        """Why it does not serve yet; empty when it does."""
        try:
            await self.probe(address)
        except HarnessError as error:
            return error.observed
        except OSError as error:
            return str(error)
        return ""


def split_address(address: str) -> tuple[str, int]:
    """Host, without brackets, and port of ``host:port``."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


async def connect(address: str) -> trio.SocketStream:
    """One TCP connection to a server that may not be there.

    Args:
        address: ``host:port``, an IPv6 host in brackets.

    Raises:
        OSError: nobody listens; of a host with several addresses, the reason of the first.
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
