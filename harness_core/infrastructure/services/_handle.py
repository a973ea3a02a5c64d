"""What every service's handle does alike, whoever provides the server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from harness_core.base.bridge import Loop
from harness_core.infrastructure.services._service import Place, Service


class ServiceHandle:
    """Passes the operations of a :class:`Service` on to the server of its provider.

    They may be awaited in any event loop, and run on the one that opened the service.

    Attributes:
        name: kind of server.
        provider: ``"local"``, ``"container"`` or ``"external"``.
    """

    def __init__(self, service: Service, *, provider: str) -> None:
        self._service = service
        self._loop: Loop | None = None
        self.name = service.name
        self.provider = provider

    @property
    def address(self) -> str:
        """``host:port``."""
        return self._service.address

    @property
    def place(self) -> Place:
        """Where it runs now."""
        return self._service.place

    async def start(self) -> None:
        """Bring it back after stop or kill; see :meth:`Service.start`."""
        await self._do(self._service.start)

    async def stop(self) -> None:
        """Shut it down in order; see :meth:`Service.stop`."""
        await self._do(self._service.stop)

    async def kill(self) -> None:
        """End it as a crash would; see :meth:`Service.kill`."""
        await self._do(self._service.kill)

    async def pause(self) -> None:
        """Freeze it with its connections open; see :meth:`Service.pause`."""
        await self._do(self._service.pause)

    async def resume(self) -> None:
        """Undo :meth:`pause`."""
        await self._do(self._service.resume)

    async def restart(self) -> None:
        """Stop and start; address and data stay, connections do not."""
        await self.stop()
        await self.start()

    async def _do(self, call: Callable[[], Awaitable[None]]) -> None:
        await (call() if self._loop is None else self._loop.call(call))
