"""One simulation at a time, over all sessions, in the order they were asked for."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from workbench_foundation import faults
from workbench_worker.jobs import Job


@dataclass(slots=True, kw_only=True)
class Turn:
    """A place in the queue."""

    queued_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    started_at: datetime = datetime.min
    finished_at: datetime | None = None

    def finish(self) -> None:
        """The simulation has ended; called while its turn lasts."""
        self.finished_at = datetime.now(UTC)


class Simulations:
    """The queue of simulations."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._busy = False
        self._locks: dict[str, asyncio.Lock] = {}

    @contextlib.asynccontextmanager
    async def turn(self, job: Job) -> AsyncIterator[Turn]:
        """Wait for the turn of a job; no other has it during the block.

        Raises:
            Refused: the job was cancelled while it waited.
        """
        turn = Turn()
        if faults.on("simulation-lock-ignored"):
            turn.started_at = datetime.now(UTC)
            yield turn
            return
        if faults.on("simulation-lock-per-session"):
            async with self._locks.setdefault(job.session.id, asyncio.Lock()):
                turn.started_at = datetime.now(UTC)
                yield turn
            return
        await self._take(job)
        try:
            job.refuse_if_cancelled()
            turn.started_at = datetime.now(UTC)
            if faults.on("queue-times-invented"):
                turn.started_at = turn.queued_at
            yield turn
        finally:
            self._release()

    async def _take(self, job: Job) -> None:
        if not self._busy:
            self._busy = True
            return
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if faults.on("simulation-last-first"):
            self._waiting.appendleft(mine)
        else:
            self._waiting.append(mine)
        cancelled = asyncio.ensure_future(job.cancelled.wait())
        try:
            await asyncio.wait({mine, cancelled}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._leave(mine)
            raise
        finally:
            cancelled.cancel()
        if not mine.done():
            self._leave(mine)
            job.refuse_if_cancelled()

    def _leave(self, mine: asyncio.Future[None]) -> None:
        if mine.done():
            self._release()
        else:
            self._waiting.remove(mine)

    def _release(self) -> None:
        if self._waiting:
            self._waiting.popleft().set_result(None)
        else:
            self._busy = False
