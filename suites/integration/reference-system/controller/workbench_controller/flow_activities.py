"""What a flow's workflow does outside of Temporal: its steps, the turns of its roles, what comes of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import asyncpg
import httpx
from temporalio import activity
from temporalio.exceptions import ApplicationError

from workbench_contract.benchmark import ReviewDecision
from workbench_contract.episodes import EpisodeStatus
from workbench_controller import flows
from workbench_controller.handovers import BytesDiffer, content_of
from workbench_controller.ingest import GapError, pull_and_store
from workbench_controller.run import FlowStep, Run, StageEnd, StageToBegin
from workbench_controller.worker_client import WorkerClient
from workbench_foundation import log
from workbench_foundation.errors import describe
from workbench_planning import refusal_md


#: Of comments and reasons in the steps of a flow; decisions have all of them.
_SAID_CHARS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowActivities:
    """Activities, with what they need."""

    pool: asyncpg.Pool
    worker: WorkerClient

    def all(self) -> list[Callable[..., Any]]:
        """The activities."""
        return [self.flow_step, self.begin_stage, self.stage_end]

    @activity.defn(name="flow_step")
    async def flow_step(self, step: FlowStep) -> bool:
        """Take a step of a flow; false when it has ended otherwise already."""
        with log.about(flow_id=step.flow.flow_id):
            return await flows.step(self.pool, step, run_id=activity.info().workflow_run_id)

    @activity.defn(name="begin_stage")
    async def begin_stage(self, stage: StageToBegin) -> Run | None:
        """Begin the turn of a role; none when the flow has ended otherwise already."""
        return await flows.begin_stage(self.pool, stage)

    @activity.defn(name="stage_end")
    async def stage_end(self, run: Run) -> StageEnd:
        """What has come of a turn whose workflow is over.

        Raises:
            ApplicationError: not all of it is stored yet; it is asked for again.
        """
        ids = {"episode_id": run.episode_id, "trace_id": run.trace_id, "session_id": run.session_id}
        with log.about(flow_id=run.flow_id or "", **ids):
            row = await self.pool.fetchrow(
                "SELECT status, reason FROM episodes WHERE episode_id = $1", run.episode_id
            )
            status = EpisodeStatus(row["status"])
            if not status.final:
                raise ApplicationError(f"cannot go on: episode {run.episode_id} is {status}")
            if status is EpisodeStatus.COMPLETED:
                try:
                    await pull_and_store(self.pool, self.worker, run.session_id)
                except (httpx.HTTPError, GapError, BytesDiffer) as error:
                    raise ApplicationError(f"cannot go on: {describe(error)}") from error
            return await self._end(run, status, row["reason"])

    async def _end(self, run: Run, status: EpisodeStatus, reason: str) -> StageEnd:
        last = await self.pool.fetchrow(
            "SELECT h.handover_id, h.refuses_plan, d.decision, d.comments FROM handovers h"
            " LEFT JOIN decisions d ON d.decision_id = h.handover_id"
            " WHERE h.episode_id = $1 ORDER BY h.event_seq DESC LIMIT 1",
            run.episode_id,
        )
        if last is None:
            return StageEnd(
                status=status, reason=reason, handover_id=None, refuses_plan=False, decision=None,
                said="",
            )  # fmt: skip
        said = " / ".join(last["comments"] or [])
        if last["refuses_plan"]:
            data = await content_of(self.pool, last["handover_id"], refusal_md.FILE)
            refusal, _ = refusal_md.read_refusal(data or b"")
            said = refusal.reason if refusal else ""
        return StageEnd(
            status=status,
            reason=reason,
            handover_id=last["handover_id"],
            refuses_plan=last["refuses_plan"],
            decision=ReviewDecision(last["decision"]) if last["decision"] else None,
            said=said if len(said) <= _SAID_CHARS else f"{said[:_SAID_CHARS]}…",
        )
