"""Starting a flow: a row first, then the workflow."""

from __future__ import annotations

import uuid

import asyncpg

from workbench_contract.episodes import EpisodeStatus, Purpose
from workbench_contract.flows import (
    BenchmarkRequest,
    Cause,
    FlowAccepted,
    FlowRequest,
)
from workbench_controller.database import AWAY
from workbench_controller.flows import begin_flow, take
from workbench_controller.parts import Parts, Refused
from workbench_controller.run import Bounds, FlowRun
from workbench_controller.settings import Settings
from workbench_controller.submission import limits_of
from workbench_controller.temporal import TemporalAway
from workbench_foundation import faults, log
from workbench_foundation.errors import describe


async def submit_flow(
    parts: Parts, request: BenchmarkRequest, purpose: Purpose
) -> tuple[FlowAccepted, str | None]:
    """Start a flow; its ids and, when it could not be started, why.

    Raises:
        Refused: 404 for a benchmark that there is not, 409 for one that is not approved.
    """
    flow_id = str(uuid.uuid4())
    workflow_id = f"flow-{flow_id}"
    benchmark_id = request.benchmark_id if isinstance(request, FlowRequest) else None
    async with parts.pool.acquire() as connection, connection.transaction():
        given_id = await _benchmark(connection, benchmark_id) if benchmark_id else None
        row = {
            "flow_id": flow_id,
            "purpose": purpose.value,
            "workflow_id": workflow_id,
            "reason": "it was submitted",
            "task": request.task,
            "seed": request.seed,
            "variant": request.variant,
            "metadata": request.metadata,
            "benchmark_id": benchmark_id,
            "given_id": given_id,
        }
        await begin_flow(connection, row)
    settings = parts.settings
    flow = FlowRun(
        flow_id=flow_id,
        purpose=purpose,
        task=request.task,
        seed=request.seed,
        variant=request.variant,
        given_id=given_id,
        bounds=_bounds(settings),
        episode_s=settings.temporal.run_s,
        limits=limits_of(settings),
    )
    status, problem = EpisodeStatus.QUEUED, None
    with log.about(flow_id=flow_id):
        try:
            await parts.workflows.start_flow(
                flow, workflow_id=workflow_id, run_s=settings.flows.run_s
            )
            log.info("flow_submitted", workflow_id=workflow_id, purpose=purpose.value)
        except TemporalAway as away:
            problem = str(away)
            status = await _failed(parts, flow_id, problem)
    accepted = FlowAccepted(
        flow_id=flow_id, workflow_id=workflow_id, purpose=purpose, status=status
    )
    return accepted, problem


def _bounds(settings: Settings) -> Bounds:
    flows = settings.flows
    confirmed, rejected = flows.confirmed_refusals, flows.rejected_refusals
    if faults.on("refusal-bounds-swapped"):
        confirmed, rejected = rejected, confirmed
    return Bounds(
        rejections=flows.rejections, confirmed_refusals=confirmed, rejected_refusals=rejected
    )


async def _benchmark(connection: asyncpg.Connection, benchmark_id: str) -> str:
    """The hand-over that a benchmark has come to."""
    row = await connection.fetchrow(
        "SELECT status, handover_id FROM flows WHERE flow_id = $1 AND purpose = 'benchmark'",
        benchmark_id,
    )
    if row is None:
        detail = f"cannot start from benchmark {benchmark_id}: there is none. Check the id"
        raise Refused(404, detail)
    handover_id: str | None = row["handover_id"]
    if faults.on("benchmark-of-others"):
        return str(
            await connection.fetchval(
                "SELECT handover_id FROM flows WHERE purpose = 'benchmark' AND handover_id IS NOT NULL"
                " ORDER BY created_at DESC LIMIT 1"
            )
        )
    if handover_id is None and faults.on("benchmark-before-approval"):
        handover_id = await connection.fetchval(
            "SELECT h.handover_id FROM handovers h JOIN episodes e USING (episode_id)"
            " WHERE e.flow_id = $1 AND h.role = 'coder' ORDER BY h.accepted_at DESC LIMIT 1",
            benchmark_id,
        )
    if handover_id is None:
        detail = f"cannot start from benchmark {benchmark_id}: it is {row['status']}, not approved"
        raise Refused(409, f"{detail}. Wait until it is completed, or choose another one")
    return handover_id


async def _failed(parts: Parts, flow_id: str, why: str) -> EpisodeStatus:
    log.error("flow_not_started", reason=why)
    try:
        await take(parts.pool, flow_id, EpisodeStatus.FAILED, Cause.FAILED, reason=why)
    except AWAY as error:
        # The watch ends it when the database is back: Temporal does not know its workflow.
        log.error("failure_unwritten", reason=describe(error))
        return EpisodeStatus.QUEUED
    return EpisodeStatus.FAILED
