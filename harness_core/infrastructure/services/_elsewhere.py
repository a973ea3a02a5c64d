"""A server that somebody else looks after: used, never taken away."""

from __future__ import annotations

from typing import NoReturn

from harness_core.base.errors import HarnessError, Unavailable
from harness_core.infrastructure.services._service import Place

__all__ = ["ExternalServer"]


class ExternalServer:
    """A server of somebody else; built by the openers of the provider *external*.

    Attributes:
        name: kind of server.
        address: ``host:port``.
        place: unknown.
    """

    def __init__(self, *, name: str, address: str) -> None:
        self.name = name
        self.address = address
        self.place = Place()

    async def start(self) -> None:
        """Refused: it runs already."""
        raise HarnessError(
            f"start {self.name} on {self.address}",
            observed="it is running already, and it is not ours to start",
        )

    async def stop(self) -> None:
        """Refused: see :meth:`kill`."""
        self._refuse("stop")

    async def kill(self) -> None:
        """Refused: the server belongs to somebody else, and others may use it."""
        self._refuse("kill")

    async def pause(self) -> None:
        """Refused: see :meth:`kill`."""
        self._refuse("pause")

    async def resume(self) -> None:
        """Refused: see :meth:`kill`."""
        self._refuse("resume")

    def _refuse(self, verb: str) -> NoReturn:
        raise Unavailable(
            f"{verb} {self.name} on {self.address}",
            observed="it is an external server, which the harness only connects to",
            next_step="Run with --services local to test outages",
        )
