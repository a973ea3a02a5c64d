"""The clock of a daemon: sets its butler to work every so often, from inside.

Only a butler that says so in `[butler.scheduler]` has one. A beat that takes longer than the
interval is not overtaken: the next one starts when its time has come and the last has ended.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from butlers import cron
from butlers.log import describe

if TYPE_CHECKING:
    from butlers.config import Scheduler
    from butlers.log import Log


class Beats:
    """Calls what was registered, at each beat.

    Args:
        settings: interval or cron line; without both nothing beats.
        work: what a beat does; an error is logged and the clock goes on.
    """

    def __init__(
        self, settings: Scheduler, *, work: list[Callable[[], Awaitable[None]]], log: Log
    ) -> None:
        self._settings = settings
        self._work = work
        self._log = log
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._work and (self._settings.interval_s or self._settings.cron):
            self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """No beat after this; one under way is cut short."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            if self._settings.cron:
                now = datetime.now(UTC)
                next_at = cron.next_after(self._settings.cron, now)
                await asyncio.sleep((next_at - now).total_seconds())
            else:
                due = max(due + self._settings.interval_s, loop.time())
                await asyncio.sleep(due - loop.time())
            for work in self._work:
                try:
                    await work()
                except Exception as error:
                    self._log.error("beat.failed", error=describe(error))
