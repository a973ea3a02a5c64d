"""One TCP connection to a server that may not be there."""

from __future__ import annotations

import trio

__all__ = ["connect"]


async def connect(address: str) -> trio.SocketStream:
    """Connect.

    Args:
        address: ``host:port``, an IPv6 host in brackets.

    Raises:
        OSError: nobody listens; of a host with several addresses, the reason of the first.
    """
    host, _, port = address.rpartition(":")
    try:
        return await trio.open_tcp_stream(host.strip("[]"), int(port))
    except OSError as error:
        raise _reason(error) from error


def _reason(error: OSError) -> OSError:
    """Why the first address refused; trio wraps the reasons, one for each address of a host."""
    cause = error.__cause__
    if isinstance(cause, BaseExceptionGroup):
        return next((each for each in cause.exceptions if isinstance(each, OSError)), error)
    return cause if isinstance(cause, OSError) else error
