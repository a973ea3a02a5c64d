"""What every service's handle does in the same words, whoever provides the server."""

from __future__ import annotations

from harness_core.services._service import Service

__all__ = ["ServiceHandle"]


class ServiceHandle:
    """Passes the operations of a :class:`Service` on to the server of its provider.

    Attributes:
        name: kind of server.
        provider: ``"local"``, ``"container"`` or ``"external"``.
    """

    def __init__(self, service: Service, *, provider: str) -> None:
        self._service = service
        self.name = service.name
        self.provider = provider

    @property
    def address(self) -> str:
        """``host:port``."""
        return self._service.address

    async def start(self) -> None:
        """Bring it back after stop or kill; see :meth:`Service.start`."""
        await self._service.start()

    async def stop(self) -> None:
        """Shut it down in order; see :meth:`Service.stop`."""
        await self._service.stop()

    async def kill(self) -> None:
        """End it as a crash would; see :meth:`Service.kill`."""
        await self._service.kill()

    async def pause(self) -> None:
        """Freeze it with its connections open; see :meth:`Service.pause`."""
        await self._service.pause()

    async def resume(self) -> None:
        """Undo :meth:`pause`."""
        await self._service.resume()

    async def restart(self) -> None:
        """Stop and start; address and data stay, connections do not."""
        await self.stop()
        await self.start()
