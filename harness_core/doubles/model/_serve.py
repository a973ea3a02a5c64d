"""The gateway as a process: its socket, and serving until it is stopped."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Sequence
from typing import Final

import trio

from harness_core.base.bridge import blocking
from harness_core.base.errors import HarnessError
from harness_core.doubles.http import OwnHosts
from harness_core.doubles.model._app import gateway_app
from harness_core.doubles.model._desk import Desk
from harness_core.doubles.model._prices import price_usd
from harness_core.doubles.model._reply import Usage
from harness_core.doubles.serving import serve_http

#: The only address a gateway serves: a key-holding proxy must not be reachable from elsewhere.
_LOOPBACK: Final = "127.0.0.1"

#: Connections that may wait to be accepted.
_BACKLOG: Final = 256

_ANY_MODEL: Final = "claude-haiku-4-5"


def listen(*, port: int = 0, descriptor: int | None = None) -> socket.socket:
    """A socket that listens on 127.0.0.1.

    Args:
        port: 0 for any. Unused with ``descriptor``.
        descriptor: an inherited listening socket.

    Raises:
        HarnessError: the port is taken, or the descriptor is no socket on that address.
    """
    place = f"{_LOOPBACK}:{port}" if descriptor is None else f"descriptor {descriptor}"
    try:
        if descriptor is None:
            return socket.create_server((_LOOPBACK, port), backlog=_BACKLOG)
        listener = socket.socket(fileno=descriptor)
    except OSError as error:
        raise HarnessError(
            f"listen on {place}",
            observed=os.strerror(error.errno or 0),
            next_step="Use --port 0 for any free one, or hand over a listening TCP socket",
        ) from error
    address = listener.getsockname()
    if listener.family != socket.AF_INET or address[0] != _LOOPBACK:
        listener.close()
        step = f"The gateway serves {_LOOPBACK} only; bind the socket there"
        raise HarnessError(
            f"listen on {place}", observed=f"it is bound to {address}", next_step=step
        )
    return listener


async def serve(
    desk: Desk,
    listener: socket.socket,
    *,
    control_token: str,
    hosts: Sequence[str] = (),
    ready: Callable[[], None] = lambda: None,
) -> None:
    """Serve until SIGTERM or SIGINT.

    Args:
        desk: answers the calls.
        listener: of :func:`listen`; taken over. A connection made before the server runs waits.
        control_token: opens the control API.
        hosts: ``HOST:PORT`` that callers know it by, besides ``127.0.0.1`` and ``localhost``.
        ready: called once a signal ends the process as it should.

    Raises:
        BadInput: one of ``hosts`` has no port.
    """
    desk.redactor.add(desk.api_key, control_token)
    own = OwnHosts(listener.getsockname()[1], further=hosts)
    app = gateway_app(desk, control_token=control_token, own=own)
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:

        async def stopped() -> None:
            await anext(signals)

        async with trio.open_nursery() as nursery:
            # So that the first call does not pay for reading the table.
            nursery.start_soon(blocking, price_usd, _ANY_MODEL, Usage(input_tokens=1))
            ready()
            await serve_http(app, listener.detach(), until=stopped)
