"""A TCP relay of ours between two parts of a system: passes everything on; cuts and holds when told to.

What goes up has the relay's address in its ``Host`` replaced by the target's, since an endpoint
refuses a host that is not its own.
"""

from __future__ import annotations

import socket  # lint: allow driver: the relay stands between two parts, as a network does
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

import trio

from harness_core.base.groups import lone_error

__all__ = ["Relay", "open_relay"]

_CHUNK_BYTES: Final = 65_536

#: Close sends a reset: what the other side has not read yet is lost as well.
_RESET: Final = struct.pack("ii", 1, 0)

_GONE: Final = (trio.BrokenResourceError, trio.ClosedResourceError)


class Relay:
    """Connections that can be cut; built by :func:`open_relay`.

    Attributes:
        port: where it listens, on 127.0.0.1.
        opened: connections that were made so far.
        cuts: connections that it has cut so far.
        calls: calls of tools that it has passed on.
        held: event streams that :meth:`hold_next` was for.
    """

    def __init__(self, port: int, target: int) -> None:
        self.port = port
        self.opened = 0
        self.cuts = 0
        self.calls = 0
        self.held = 0
        self._target = target
        self._refusing = False
        self._halving = False
        self._holding = trio.Event()
        self._holding.set()
        #: What the next event stream waits for, and what was waited for so far.
        self._next: trio.Event | None = None
        self._released: list[trio.Event] = []
        self._pairs: list[tuple[trio.SocketStream, trio.SocketStream]] = []

    @property
    def url(self) -> str:
        """The event stream of the target, by way of the relay."""
        return f"http://127.0.0.1:{self.port}/sse"

    def cut(self) -> int:
        """Cut every connection, in both directions, with a reset; returns how many there were."""
        pairs, self._pairs = self._pairs, []
        for pair in pairs:
            self._reset(*pair)
        return len(pairs)

    def refuse(self) -> None:
        """From now on, cut every new connection before anything is passed on."""
        self._refusing = True

    def accept(self) -> None:
        """Undo :meth:`refuse`."""
        self._refusing = False

    def cut_in_answer(self) -> None:
        """Pass on one half of the next event that goes down, then cut every connection."""
        self._halving = True

    def hold(self) -> None:
        """Read nothing more of event streams: a caller that asks, and reads no answers."""
        self._holding = trio.Event()

    def hold_next(self) -> None:
        """Read nothing of the next event stream that is opened; those after it are passed on."""
        self._next = trio.Event()
        self._released.append(self._next)

    def release(self) -> None:
        """Undo :meth:`hold` and :meth:`hold_next`: what waits is passed on."""
        self._holding.set()
        for event in self._released:
            event.set()

    async def serve(self, near: trio.SocketStream) -> None:
        """One connection, to its end."""
        self.opened += 1
        if self._refusing:
            self._reset(near)
            return
        try:
            far = await trio.open_tcp_stream("127.0.0.1", self._target)
        except OSError:
            self._reset(near)
            return
        pair = (near, far)
        self._pairs.append(pair)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._up, near, far)
            await self._down(far, near)
            nursery.cancel_scope.cancel()
        if pair in self._pairs:
            self._pairs.remove(pair)
        for stream in pair:
            with suppress(*_GONE):
                await stream.aclose()

    async def _up(self, near: trio.SocketStream, far: trio.SocketStream) -> None:
        ours, theirs = (f"127.0.0.1:{port}".encode() for port in (self.port, self._target))
        with suppress(*_GONE):
            while data := await near.receive_some(_CHUNK_BYTES):
                self.calls += data.count(b'"tools/call"')
                await far.send_all(data.replace(ours, theirs))
            await far.send_eof()
            await trio.sleep_forever()

    async def _down(self, far: trio.SocketStream, near: trio.SocketStream) -> None:
        is_stream = False
        own: trio.Event | None = None
        with suppress(*_GONE):
            while data := await far.receive_some(_CHUNK_BYTES):
                if not is_stream and b"text/event-stream" in data:
                    is_stream = True
                    own, self._next = self._next, None
                    self.held += own is not None
                if self._halving and b"data:" in data:
                    self._halving = False
                    await near.send_all(data[: len(data) // 2])
                    self.cut()
                    return
                if is_stream:
                    await self._holding.wait()
                if own is not None:
                    await own.wait()
                await near.send_all(data)

    def _reset(self, *streams: trio.SocketStream) -> None:
        self.cuts += 1
        for stream in streams:
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            stream.socket.close()


@asynccontextmanager
async def open_relay(target: int) -> AsyncIterator[Relay]:
    """Relay to a port of this machine, on a free port.

    Args:
        target: the port that everything is passed on to.
    """
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    relay = Relay(listener.socket.getsockname()[1], target)
    async with lone_error(), trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, relay.serve, [listener])
        yield relay
        nursery.cancel_scope.cancel()
