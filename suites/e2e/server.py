"""The database server as tests may take it away: from any event loop, and only when alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from harness_core.bridge import Loop
from harness_core.services import Place, PostgresService, Service, parse_postgres_url
from suites.e2e.visit import Visit

__all__ = ["Guarded", "guarded"]

#: Verb → what the server is after it.
_AFTER: Final = {
    "start": "running",
    "stop": "down",
    "kill": "down",
    "pause": "paused",
    "resume": "running",
}


class Guarded:
    """A service whose operations may be called from any loop by a test that is alone.

    Attributes:
        state: ``running``, ``down`` or ``paused``.
    """

    name: Final = "postgres"

    def __init__(self, service: Service, *, loop: Loop | None, visit: Visit) -> None:
        self._service = service
        self._loop = loop
        self._visit = visit
        self.state = "running"

    @property
    def address(self) -> str:
        """``host:port``."""
        return self._service.address

    @property
    def place(self) -> Place:
        """Where it runs now."""
        return self._service.place

    async def start(self) -> None:
        """See :class:`Service`."""
        await self._do("start")

    async def stop(self) -> None:
        """See :class:`Service`."""
        await self._do("stop")

    async def kill(self) -> None:
        """See :class:`Service`."""
        await self._do("kill")

    async def pause(self) -> None:
        """See :class:`Service`."""
        await self._do("pause")

    async def resume(self) -> None:
        """See :class:`Service`."""
        await self._do("resume")

    async def mend_here(self) -> str:
        """Bring it back when a test left it paused or down; says what was found."""
        found = self.state
        if found == "running":
            return ""
        await getattr(self._service, "resume" if found == "paused" else "start")()
        self.state = "running"
        return f"postgres was {found}"

    async def _do(self, verb: str) -> None:
        if verb not in {"start", "resume"}:
            self._visit.check_alone(f"{verb} postgres")
        call: Callable[[], Awaitable[None]] = getattr(self._service, verb)
        if self._loop is None:
            await call()
        else:
            await self._loop.call(call)
        self.state = _AFTER[verb]


def guarded(
    postgres: PostgresService, *, loop: Loop | None, visit: Visit
) -> tuple[PostgresService, Guarded]:
    """A handle on the same server whose operations are guarded, and what guards them."""
    service = Guarded(postgres, loop=loop, visit=visit)
    url = parse_postgres_url(postgres.url(), where="the run's own server")
    handle = PostgresService(service, url, provider=postgres.provider, in_memory=postgres.in_memory)
    return handle, service
