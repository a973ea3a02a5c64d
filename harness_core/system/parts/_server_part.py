"""A part that is a server of the harness: PostgreSQL, S3, Temporal, Valkey or NATS, by one of its providers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, TypeVar

from harness_core.base.errors import HarnessError
from harness_core.infrastructure.services import Place
from harness_core.system.parts._held_part import HeldPart
from harness_core.system.parts._part import State

if TYPE_CHECKING:
    from harness_core.base.evidence import Evidence
    from harness_core.infrastructure.services import Service

__all__ = ["ServerPart"]

S = TypeVar("S", bound="Service")


class ServerPart(HeldPart[S]):
    """A server of ``harness_core.infrastructure.services``.

    Args:
        name: unique in its system.
        kind: which server: ``postgres``, ``s3``, ``temporal``, ``valkey`` or ``nats``; also the name of its log.
        opener: opens it; entered once, when it is first started, and left at the end.
        prepare: what a fresh server is given before it serves.
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
        self._had_process = False

    @property
    def state(self) -> State:
        """Whether it runs; one of this machine may have been ended by its own handle, or by itself."""
        running = self._state in {State.RUNNING, State.PAUSED}
        if running and self._had_process and self.place.pid is None:
            return State.ENDED
        return self._state

    @property
    def address(self) -> str:
        """``host:port``; empty before the first start."""
        return self._held.address if self._held else ""

    @property
    def place(self) -> Place:
        """Where its provider runs it."""
        return self._held.place if self._held else Place()

    async def _check(self) -> str:
        """One round trip in its protocol."""
        try:
            await self._probe(self.held)
        except HarnessError as error:
            return error.observed
        except OSError as error:
            return str(error)
        return ""

    async def _start(self) -> None:
        if self._held is not None:
            await self._held.start()
        else:
            await self._open(self._opener())
            self.stage = "prepare"
            if self._prepare is not None:
                await self._prepare(self.held)
        self._had_process = self.place.pid is not None

    async def close(self) -> None:
        """Leave its opener, which stops it and removes what it made."""
        await self._leave()
        self._state = State.STOPPED

    async def _stop(self) -> None:
        await self.held.stop()

    async def _kill(self) -> Sequence[str]:
        await self.held.kill()
        return ()

    async def _pause(self) -> None:
        await self.held.pause()

    async def _resume(self) -> None:
        await self.held.resume()
