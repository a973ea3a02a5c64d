"""A way from a network of containers to a server of this process: bytes, both ways."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import trio

from harness_core.base.errors import Unavailable
from harness_core.base.groups import lone_error

__all__ = ["open_relay"]

_READ_BYTES = 65_536


@asynccontextmanager
async def open_relay(host: str, port: int, *, to: int, name: str) -> AsyncIterator[None]:
    """Pass on every connection to ``host:port`` to a port of 127.0.0.1.

    Args:
        host: an address of this machine that containers reach: the gateway of their network.
        port: on which they expect the service.
        to: where it listens; while nothing does, connections are closed at once.
        name: of the service, for messages.

    Raises:
        Unavailable: this machine does not have that address, since the engine is somewhere else;
            or its port is taken.
    """
    try:
        listeners = await trio.open_tcp_listeners(port, host=host)
    except OSError as error:
        raise Unavailable(
            f"serve {name} to containers on {host}:{port}",
            observed=error.strerror or str(error),
            next_step=f"End what listens on port {port} of all addresses"
            if error.errno == errno.EADDRINUSE
            else "A stack with a model gateway or a recorder needs an engine on this machine",
        ) from error
    async with lone_error(), trio.open_nursery() as nursery:
        nursery.start_soon(partial(trio.serve_listeners, partial(_pass_on, to), listeners))
        try:
            yield
        finally:
            nursery.cancel_scope.cancel()


async def _pass_on(to: int, theirs: trio.SocketStream) -> None:
    async with theirs:
        try:
            ours = await trio.open_tcp_stream("127.0.0.1", to)
        except OSError:
            return
        async with ours, trio.open_nursery() as nursery:
            nursery.start_soon(_pump, theirs, ours)
            nursery.start_soon(_pump, ours, theirs)


async def _pump(source: trio.SocketStream, target: trio.SocketStream) -> None:
    try:
        while data := await source.receive_some(_READ_BYTES):
            await target.send_all(data)
        await target.send_eof()
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        await trio.aclose_forcefully(target)
