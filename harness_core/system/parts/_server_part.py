"""A part that is a server of the harness: PostgreSQL, S3 or Temporal, by one of its providers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import trio

from harness_core.base.errors import HarnessError
from harness_core.infrastructure.services import Place
from harness_core.system.parts._part import Part, State

if TYPE_CHECKING:
    from harness_core.base.evidence import Evidence
    from harness_core.infrastructure.services import Service

__all__ = ["ServerPart"]

S = TypeVar("S", bound="Service")


class ServerPart(Part, Generic[S]):
    """A server of ``harness_core.infrastructure.services``.

    Args:
        name: unique in its system.
        kind: which server: ``postgres``, ``s3`` or ``temporal``; also the name of its log.
        opener: opens it; entered once, when it is first started, and left at the end.
        prepare: what a fresh server is given before anybody may use it.
        probe: one round trip.
        evidence: where its log is.
    """

    def __init__(
        self,
        name: str,
        *,
        kind: str,
        opener: Callable[[], AbstractAsyncContextManager[S]],
        prepare: Callable[[S], Awaitable[None]] | None = None,
        probe: Callable[[S], Awaitable[object]],
        evidence: Evidence,
    ) -> None:
        super().__init__(name, kind=kind, evidence=evidence, log=kind)
        self._opener = opener
        self._prepare = prepare
        self._probe = probe
        self._server: S | None = None
        self._ending = trio.Event()
        self._left = trio.Event()

    @property
    def server(self) -> S:
        """The server itself.

        Raises:
            HarnessError: it was never started.
        """
        if self._server is None:
            raise HarnessError(f"use {self.name}", observed="it was never started")
        return self._server

    @property
    def address(self) -> str:
        """``host:port``; empty before the first start."""
        return self._server.address if self._server else ""

    @property
    def place(self) -> Place:
        """Where its provider runs it."""
        return self._server.place if self._server else Place()

    async def _look(self) -> str:
        """One round trip in its protocol."""
        try:
            await self._probe(self.server)
        except HarnessError as error:
            return error.observed
        except OSError as error:
            return str(error)
        return ""

    async def _start(self) -> None:
        if self._server is not None:
            await self._server.start()
            return
        assert self.nursery is not None, "a part is started by the parts it belongs to"
        self._server = await self.nursery.start(self._keep)
        self.stage = "prepare"
        if self._prepare is not None:
            await self._prepare(self.server)

    async def _keep(self, *, task_status: trio.TaskStatus[S]) -> None:
        """Keep it open in one task, since its opener may hold nurseries of its own."""
        try:
            async with self._opener() as server:
                task_status.started(server)
                await self._ending.wait()
        finally:
            self._left.set()

    async def close(self) -> None:
        """Leave its opener, which stops it and removes what it made."""
        self._ending.set()
        if self._server is not None:
            await self._left.wait()
        self._state = State.STOPPED

    async def _stop(self) -> None:
        await self._do("stop")

    async def _kill(self) -> Sequence[str]:
        await self._do("kill")
        return ()

    async def _pause(self) -> None:
        await self._do("pause")

    async def _resume(self) -> None:
        await self._do("resume")

    async def _do(self, verb: str) -> None:
        operation: Any = getattr(self.server, verb)
        await operation()
