"""What a service is to the harness: how it is taken away and given back.

How a particular server is started is left to the provider modules.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

#: Gets a line for what takes long while a service is opened, e.g. a build of its image.
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a service runs now; nowhere when it is down, or not ours.

    Attributes:
        pid: of its main process on this machine.
        container: id of its container, as the engine shows it.
    """

    pid: int | None = None
    container: str = ""


class Service(Protocol):
    """A disposable server with an address; opened by its provider's async context manager.

    The opener starts it and, at the end of its block, stops it and removes what it made. In
    between a test may take it away and give it back. A provider that cannot do an operation
    (an external server is never paused) raises :class:`~harness_core.base.errors.Unavailable`
    and leaves the server as it was.

    What a provider opens belongs to the event loop that opened it; the handles that tests get
    (``PostgresService`` and the others) take every call there.
    """

    @property
    def name(self) -> str:
        """Kind of server, e.g. ``"postgres"``; stable across providers."""

    @property
    def address(self) -> str:
        """``host:port``, the same for the whole life of the service."""

    @property
    def place(self) -> Place:
        """Where it runs now."""

    async def start(self) -> None:
        """Bring a stopped or killed service back, with its data, and wait until it answers.

        Raises:
            HarnessError: it is running already.
        """

    async def stop(self) -> None:
        """Shut down in order; when this returns no server listens on the address."""

    async def kill(self) -> None:
        """End it as a crash would, without any goodbye; when this returns connections fail."""

    async def pause(self) -> None:
        """Freeze it: connections stay open and nothing answers."""

    async def resume(self) -> None:
        """Undo :meth:`pause`."""
