"""Flows as rows: each step of one, with the episode that it begins, or neither."""

from __future__ import annotations

import hashlib
import uuid
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import asyncpg

from workbench_contract.episodes import EpisodeStatus
from workbench_contract.events import EventKind
from workbench_contract.flows import Cause
from workbench_controller.eventstore import record_event
from workbench_controller.lifecycle import begin
from workbench_controller.opening import issue_to
from workbench_controller.rounds import told_by
from workbench_controller.run import FlowStep, Run, StageToBegin
from workbench_controller.submission import row_of
from workbench_foundation import faults, log, tracing


#: For the planted fault `flow-rounds-in-memory` alone.
_begun: Counter[tuple[str, str]] = Counter()


async def begin_flow(connection: asyncpg.Connection, row: dict[str, Any]) -> None:
    """Insert a flow with its first step; within the caller's transaction."""
    now = datetime.now(UTC)
    whole = row | {"status": EpisodeStatus.QUEUED.value, "created_at": now, "updated_at": now}
    names = ", ".join(whole)
    places = ", ".join(f"${i}" for i in range(1, len(whole) + 1))
    await connection.execute(f"INSERT INTO flows ({names}) VALUES ({places})", *whole.values())
    step = _step(1, EpisodeStatus.QUEUED, Cause.SUBMITTED, whole["reason"])
    await _write(connection, whole["flow_id"], step, at=now)


async def begin_stage(pool: asyncpg.Pool, stage: StageToBegin) -> Run | None:
    """The episode of a role's turn, begun now or before; none for a flow that is over."""
    run = await _run_of(pool, stage)
    flow = stage.flow
    async with pool.acquire() as connection, connection.transaction():
        row = await _locked(connection, flow.flow_id)
        if await connection.fetchval(
            "SELECT true FROM episodes WHERE episode_id = $1", run.episode_id
        ):
            return run
        if EpisodeStatus(row["status"]).final:
            return None
        await begin(connection, row_of(run, row["metadata"]))
        await issue_to(connection, run)
        step = _step(stage.ordinal, EpisodeStatus.RUNNING, stage.cause, stage.reason) | {
            "role": stage.role.value,
            "round": _round(stage),
            "episode_id": run.episode_id,
        }
        await _write(connection, flow.flow_id, step, of=row_of(run, {}))
    ids = {"episode_id": run.episode_id, "flow_id": flow.flow_id}
    with log.about(trace_id=run.trace_id, **ids), tracing.episode(run.trace_id, **ids):
        log.info("stage_begun", role=stage.role.value, round=stage.round, cause=stage.cause.value)
    return run


async def take(
    pool: asyncpg.Pool,
    flow_id: str,
    status: EpisodeStatus,
    cause: Cause,
    *,
    reason: str,
    handover_id: str | None = None,
    run_id: str | None = None,
) -> bool:
    """Take a step that is no turn of a role; false for a flow that is over otherwise."""
    async with pool.acquire() as connection, connection.transaction():
        row = await _locked(connection, flow_id)
        current = EpisodeStatus(row["status"])
        if current.final or current is status:
            return current is status
        reason = reason.replace("\0", "\ufffd")
        await connection.execute(
            "UPDATE flows SET status = $2, reason = $3, handover_id = $4, updated_at = $5,"
            " run_id = coalesce($6, run_id) WHERE flow_id = $1",
            *(flow_id, status.value, reason, handover_id, datetime.now(UTC), run_id),
        )
        last = await connection.fetchrow(
            "SELECT e.* FROM episodes e JOIN flow_transitions t USING (episode_id)"
            " WHERE t.flow_id = $1 ORDER BY t.ordinal DESC LIMIT 1 FOR UPDATE OF e",
            flow_id,
        )
        step = _step(await _count(connection, flow_id) + 1, status, cause, reason)
        await _write(connection, flow_id, step, of=last)
    log.info("flow_transition", flow_id=flow_id, status=status.value, cause=cause.value, reason=reason)
    return True


async def step(pool: asyncpg.Pool, wanted: FlowStep, *, run_id: str) -> bool:
    """Take a step of a flow's workflow; one that was cancelled on request is interrupted."""
    flow_id, status, cause, reason = (
        wanted.flow.flow_id, wanted.status, wanted.cause, wanted.reason,
    )  # fmt: skip
    if status is EpisodeStatus.CANCELLED and await pool.fetchval(
        "SELECT interrupt_requested_at IS NOT NULL FROM flows WHERE flow_id = $1", flow_id
    ):
        status, reason = EpisodeStatus.INTERRUPTED, "it was interrupted"
    return await take(
        pool, flow_id, status, cause, reason=reason, handover_id=wanted.handover_id, run_id=run_id
    )


async def _run_of(pool: asyncpg.Pool, stage: StageToBegin) -> Run:
    """The same for every attempt: its ids follow from the flow and the step."""
    flow = stage.flow
    name = f"{flow.flow_id}/{stage.ordinal}"
    episode_id = str(uuid.uuid5(uuid.NAMESPACE_URL, f"workbench:{name}"))
    context = stage.context_ids
    if faults.on("flow-context-of-others") and context:
        context = [await _latest_review(pool)]
    return Run(
        episode_id=episode_id,
        session_id=f"ep-{episode_id}",
        trace_id=hashlib.sha256(name.encode()).hexdigest()[:32],
        role=stage.role,
        purpose=flow.purpose,
        task=flow.task,
        seed=flow.seed,
        variant=flow.variant,
        handover_id=stage.given_id,
        flow_id=flow.flow_id,
        resumed_id=stage.resumed_id,
        context_ids=context,
        told=await told_by(pool, context),
        limits=flow.limits,
    )


def _round(stage: StageToBegin) -> int:
    if faults.on("flow-rounds-in-memory"):
        _begun[stage.flow.flow_id, stage.role] += 1
        return _begun[stage.flow.flow_id, stage.role]
    return stage.round


async def _latest_review(pool: asyncpg.Pool) -> str:
    """Only for the planted fault `flow-context-of-others`."""
    found: str = await pool.fetchval(
        "SELECT handover_id FROM handovers WHERE role = 'reviewer' ORDER BY stored_at DESC LIMIT 1"
    )
    return found


async def _locked(connection: asyncpg.Connection, flow_id: str) -> Mapping[str, Any]:
    row = await connection.fetchrow("SELECT * FROM flows WHERE flow_id = $1 FOR UPDATE", flow_id)
    if row is None:
        raise LookupError(f"no flow {flow_id}")
    found: Mapping[str, Any] = row
    return found


async def _count(connection: asyncpg.Connection, flow_id: str) -> int:
    found: int = await connection.fetchval(
        "SELECT coalesce(max(ordinal), 0) FROM flow_transitions WHERE flow_id = $1", flow_id
    )
    return found


def _step(ordinal: int, status: EpisodeStatus, cause: Cause, reason: str) -> dict[str, Any]:
    return {
        "ordinal": ordinal,
        "status": status.value,
        "cause": cause.value,
        "role": None,
        "round": None,
        "episode_id": None,
        "reason": reason.replace("\0", "\ufffd"),
    }


async def _write(
    connection: asyncpg.Connection,
    flow_id: str,
    step: dict[str, Any],
    *,
    at: datetime | None = None,
    of: Mapping[str, Any] | None = None,
) -> None:
    """A step as a row, and as an event of the episode that it is about."""
    at = at or datetime.now(UTC)
    await connection.execute(
        "INSERT INTO flow_transitions (flow_id, ordinal, status, cause, role, round, episode_id,"
        " reason, at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        *(flow_id, *step.values(), at),
    )
    if of is not None and not faults.on("flow-step-without-event"):
        payload = {"flow_id": flow_id, **step}
        await record_event(connection, of, EventKind.FLOW_TRANSITION, payload, at=at)
