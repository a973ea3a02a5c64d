"""Nothing is stuck: what Temporal has ended, or cannot be asked about, ends here as well.

Temporal survives its own death, and so do workflows; episodes and flows wait for it until the configured
outage has passed, and fail then. Their workflows, should they come back, are cancelled.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import asyncpg
from temporalio.client import WorkflowExecutionStatus

from workbench_contract.episodes import EpisodeStatus
from workbench_controller.database import each_row
from workbench_controller.settings import Temporal
from workbench_controller.temporal import TemporalAway, Workflows
from workbench_foundation import faults, log
from workbench_foundation.errors import describe

#: Rows that are read from the database at once.
_ROWS = 200

#: What an episode or a flow is whose workflow has ended without telling us.
_ENDED = {
    WorkflowExecutionStatus.COMPLETED: (EpisodeStatus.FAILED, "its workflow ended without a word"),
    WorkflowExecutionStatus.FAILED: (EpisodeStatus.FAILED, "its workflow failed at Temporal"),
    WorkflowExecutionStatus.CANCELED: (
        EpisodeStatus.CANCELLED,
        "its workflow was cancelled at Temporal",
    ),
    WorkflowExecutionStatus.TERMINATED: (
        EpisodeStatus.CANCELLED,
        "its workflow was terminated at Temporal",
    ),
    WorkflowExecutionStatus.TIMED_OUT: (EpisodeStatus.FAILED, "it took longer than it may"),
}


class Watched(Protocol):
    """What has a row and a workflow.

    Attributes:
        table: of the rows.
        key: its key.
        names: columns that say in a log which it is.
    """

    table: str
    key: str
    names: tuple[str, ...]

    async def end(self, row: Mapping[str, Any], status: EpisodeStatus, reason: str) -> None:
        """End one, unless it has ended otherwise meanwhile."""

    async def is_due(self, row: Mapping[str, Any]) -> bool:
        """Whether its workflow has yet to be started."""


class Watch:
    """Looks at all of a kind that are not settled.

    Args:
        watched: the kind.
        settings: how long Temporal may be away.
    """

    def __init__(
        self, watched: Watched, pool: asyncpg.Pool, workflows: Workflows, settings: Temporal
    ) -> None:
        self._watched = watched
        self._pool = pool
        self._workflows = workflows
        self._settings = settings
        self._answered_at = time.monotonic()

    async def look_for_ever(self, *, watch_s: float) -> None:
        """Look, until cancelled."""
        while True:
            try:
                await self._look()
            # The edge of a task that must not end: trouble of one round is logged, the next follows.
            except Exception as error:
                log.warning("watch_failed", of=self._watched.table, reason=describe(error))
            await asyncio.sleep(watch_s)

    async def _look(self) -> None:
        table, key = self._watched.table, self._watched.key
        found = each_row(self._pool, table, "NOT settled", key=key, at_once=_ROWS)
        rows = [row async for row in found]
        if faults.on("outage-accepted"):
            rows = [row for row in rows if row["status"] != EpisodeStatus.QUEUED.value]
        try:
            await self._workflows.answers()
        except TemporalAway as away:
            await self._away(rows, away)
            return
        self._answered_at = time.monotonic()
        for row in rows:
            with log.about(**{name: row[name] for name in self._watched.names}):
                await self._look_at(row)

    async def _away(self, rows: list[Mapping[str, Any]], away: TemporalAway) -> None:
        lasted_s = time.monotonic() - self._answered_at
        by_age = faults.on("outage-counted-from-start")
        if lasted_s < self._settings.outage_s and not by_age or faults.on("outage-leaves-stuck"):
            return
        for row in rows:
            if by_age and self._since(row["created_at"]) < self._settings.outage_s:
                continue
            if not EpisodeStatus(row["status"]).final and not self._is_young(row):
                reason = f"Temporal has been away for {lasted_s:.1f} s: {away}"
                await self._watched.end(row, EpisodeStatus.FAILED, reason)

    async def _look_at(self, row: Mapping[str, Any]) -> None:
        final = EpisodeStatus(row["status"]).final
        found = await self._workflows.status(row["workflow_id"])
        if found is WorkflowExecutionStatus.RUNNING:
            if final and self._is_left(row):
                log.warning("workflow_of_ended", workflow_id=row["workflow_id"])
                await self._workflows.cancel(row["workflow_id"])
            elif not final and self._ignores_interrupt(row):
                reason = "it was interrupted; no worker ended its workflow"
                await self._workflows.terminate(row["workflow_id"], reason)
                await self._watched.end(row, EpisodeStatus.INTERRUPTED, reason)
        elif final:
            table, key = self._watched.table, self._watched.key
            await self._pool.execute(
                f"UPDATE {table} SET settled = true WHERE {key} = $1", row[key]
            )
        elif found is None:
            if not self._is_young(row) and not await self._watched.is_due(row):
                await self._watched.end(row, EpisodeStatus.FAILED, "Temporal does not know its workflow")
        elif self._is_left(row):
            status, reason = _ENDED.get(found, (EpisodeStatus.FAILED, f"its workflow is {found}"))
            if status is EpisodeStatus.CANCELLED and row.get("interrupt_requested_at") is not None:
                status, reason = EpisodeStatus.INTERRUPTED, "it was interrupted"
            if found is WorkflowExecutionStatus.TIMED_OUT and faults.on("outlasted-completed"):
                status = EpisodeStatus.COMPLETED
            await self._watched.end(row, status, reason)

    def _is_young(self, row: Mapping[str, Any]) -> bool:
        """It may be being started right now."""
        return self._since(row["created_at"]) < 2 * self._settings.rpc_timeout_s

    def _is_left(self, row: Mapping[str, Any]) -> bool:
        """Its workflow has had time to end, or to write its end down."""
        return self._since(row["updated_at"]) > self._settings.rpc_timeout_s

    def _ignores_interrupt(self, row: Mapping[str, Any]) -> bool:
        asked_at = row.get("interrupt_requested_at")
        return asked_at is not None and self._since(asked_at) > self._settings.outage_s

    @staticmethod
    def _since(at: datetime) -> float:
        return (datetime.now(UTC) - at) / timedelta(seconds=1)
