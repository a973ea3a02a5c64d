"""No flow is stuck: what Temporal has ended, or cannot be asked about, ends here as well."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
from temporalio.client import WorkflowExecutionStatus

from workbench_contract.episodes import EpisodeStatus
from workbench_contract.flows import Cause
from workbench_controller.database import each_row
from workbench_controller.flows import take
from workbench_controller.settings import Temporal
from workbench_controller.temporal import TemporalAway, Workflows
from workbench_controller.watch import ENDED
from workbench_foundation import log
from workbench_foundation.errors import describe

#: Flows that are read from the database at once.
_FLOWS = 200


class FlowWatch:
    """Looks at every flow that is not settled.

    Args:
        settings: how long Temporal may be away.
    """

    def __init__(self, pool: asyncpg.Pool, workflows: Workflows, settings: Temporal) -> None:
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
                log.warning("flow_watch_failed", reason=describe(error))
            await asyncio.sleep(watch_s)

    async def _look(self) -> None:
        rows = [
            row async for row in each_row(self._pool, "flows", "NOT settled", at_once=_FLOWS)
        ]
        try:
            await self._workflows.answers()
        except TemporalAway as away:
            lasted_s = time.monotonic() - self._answered_at
            if lasted_s > self._settings.outage_s:
                for row in rows:
                    if not EpisodeStatus(row["status"]).final and not self._is_young(row):
                        reason = f"Temporal has been away for {lasted_s:.1f} s: {away}"
                        await self._end(row, EpisodeStatus.FAILED, reason)
            return
        self._answered_at = time.monotonic()
        for row in rows:
            with log.about(flow_id=row["flow_id"]):
                await self._look_at(row)

    async def _look_at(self, row: Mapping[str, Any]) -> None:
        final = EpisodeStatus(row["status"]).final
        found = await self._workflows.status(row["workflow_id"])
        if found is WorkflowExecutionStatus.RUNNING:
            if final and self._is_left(row):
                log.warning("workflow_of_ended_flow", workflow_id=row["workflow_id"])
                await self._workflows.cancel(row["workflow_id"])
            elif not final and self._ignores_interrupt(row):
                reason = "it was interrupted; no worker ended its workflow"
                await self._workflows.terminate(row["workflow_id"], reason)
                await self._end(row, EpisodeStatus.INTERRUPTED, reason)
        elif final:
            await self._pool.execute(
                "UPDATE flows SET settled = true WHERE flow_id = $1", row["flow_id"]
            )
        elif found is None:
            if not self._is_young(row):
                await self._end(row, EpisodeStatus.FAILED, "Temporal does not know its workflow")
        elif self._is_left(row):
            status, reason = ENDED.get(found, (EpisodeStatus.FAILED, f"its workflow is {found}"))
            if status is EpisodeStatus.CANCELLED and row["interrupt_requested_at"] is not None:
                status, reason = EpisodeStatus.INTERRUPTED, "it was interrupted"
            await self._end(row, status, reason)

    async def _end(self, row: Mapping[str, Any], status: EpisodeStatus, reason: str) -> None:
        cause = Cause.FAILED if status is EpisodeStatus.FAILED else Cause.INTERRUPTED
        await take(self._pool, row["flow_id"], status, cause, reason=reason)

    def _is_young(self, row: Mapping[str, Any]) -> bool:
        """It may be being started right now."""
        return self._since(row["created_at"]) < 2 * self._settings.rpc_timeout_s

    def _is_left(self, row: Mapping[str, Any]) -> bool:
        """Its workflow has had time to end, or to write its end down."""
        return self._since(row["updated_at"]) > self._settings.rpc_timeout_s

    def _ignores_interrupt(self, row: Mapping[str, Any]) -> bool:
        asked_at = row["interrupt_requested_at"]
        return asked_at is not None and self._since(asked_at) > self._settings.outage_s

    @staticmethod
    def _since(at: datetime) -> float:
        return (datetime.now(UTC) - at) / timedelta(seconds=1)
