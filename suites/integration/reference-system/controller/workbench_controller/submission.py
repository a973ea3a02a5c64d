"""Starting an episode: a row first, then the workflow; without a workflow it has failed."""

from __future__ import annotations

import secrets
import uuid
from typing import Any

import asyncpg

from workbench_contract.episodes import (
    EpisodeAccepted,
    EpisodeRequest,
    EpisodeStatus,
)
from workbench_controller.database import AWAY
from workbench_controller.lifecycle import TransitionRefused, begin, transition
from workbench_controller.opening import issue_to
from workbench_controller.parts import Parts, Refused
from workbench_controller.run import Limits, Run
from workbench_controller.settings import Settings
from workbench_controller.temporal import TemporalAway
from workbench_foundation import faults, log, tracing
from workbench_foundation.errors import describe


async def submit(parts: Parts, request: EpisodeRequest) -> tuple[EpisodeAccepted, str | None]:
    """Start an episode; its ids and, when it could not be started, why.

    When Temporal does not answer, it may have started the workflow all the same: its first step is refused
    then, since the episode has failed, and it ends without having done anything.

    Raises:
        Refused: 404 when it would start from a hand-over that there is not.
    """
    run = run_of(request, parts.settings)
    async with parts.pool.acquire() as connection, connection.transaction():
        await begin_run(connection, run, request.metadata)
    return await _start(parts, run)


async def begin_run(
    connection: asyncpg.Connection, run: Run, metadata: dict[str, Any], **more: Any
) -> None:
    """Write an episode down, with what is issued to its agent; within the caller's transaction.

    Args:
        more: further columns of its row.

    Raises:
        Refused: 404 when it would start from a hand-over that there is not.
    """
    if run.handover_id is not None:
        await _is_there(connection, run.handover_id)
    await begin(connection, row_of(run, metadata) | more)
    await issue_to(connection, run)


async def _is_there(connection: asyncpg.Connection, handover_id: str) -> None:
    found = await connection.fetchval(
        "SELECT true FROM handovers WHERE handover_id = $1", handover_id
    )
    if not found:
        detail = f"cannot start from hand-over {handover_id}: there is none. Check the id"
        raise Refused(404, detail)


def row_of(run: Run, metadata: dict[str, Any]) -> dict[str, Any]:
    """The row of an episode that begins."""
    return {
        "episode_id": run.episode_id,
        "session_id": run.session_id,
        "workflow_id": workflow_of(run.episode_id),
        "run_id": None,
        "trace_id": run.trace_id,
        "reason": "it was submitted",
        "role": run.role.value,
        "purpose": run.purpose.value,
        "task": run.task,
        "seed": run.seed,
        "variant": run.variant,
        "metadata": metadata,
        "handover_id": run.handover_id,
        "flow_id": run.flow_id,
    }


def workflow_of(episode_id: str) -> str:
    """The id of an episode's workflow."""
    return f"episode-{episode_id}"


async def _start(parts: Parts, run: Run) -> tuple[EpisodeAccepted, str | None]:
    workflow_id = workflow_of(run.episode_id)
    ids = {"episode_id": run.episode_id, "session_id": run.session_id}
    with log.about(trace_id=run.trace_id, **ids), tracing.episode(run.trace_id, **ids):
        status, problem = EpisodeStatus.QUEUED, None
        try:
            run_id = await parts.workflows.start(run, workflow_id=workflow_id)
            log.info("submitted", workflow_id=workflow_id, run_id=run_id)
            await _write_run_id(parts, run, run_id)
        except TemporalAway as away:
            status, problem = await not_started(parts, run.episode_id, str(away))
    return accepted(run, status), problem


def accepted(run: Run, status: EpisodeStatus) -> EpisodeAccepted:
    """What is answered of an episode that exists."""
    return EpisodeAccepted(
        episode_id=run.episode_id,
        session_id=run.session_id,
        workflow_id=workflow_of(run.episode_id),
        trace_id=run.trace_id,
        status=status,
    )


async def _write_run_id(parts: Parts, run: Run, run_id: str | None) -> None:
    """The workflow runs, so the episode is accepted; its first step writes the id as well."""
    try:
        await parts.pool.execute(
            "UPDATE episodes SET run_id = coalesce(run_id, $2) WHERE episode_id = $1",
            *(run.episode_id, run_id),
        )
    except AWAY as error:
        log.warning("run_id_unwritten", reason=describe(error))


async def not_started(parts: Parts, episode_id: str, why: str) -> tuple[EpisodeStatus, str | None]:
    """What has become of an episode that Temporal could not be asked to start, and why."""
    log.error("not_started", reason=why)
    if faults.on("outage-accepted"):
        return EpisodeStatus.QUEUED, None
    if faults.on("outage-completed"):
        await transition(parts.pool, episode_id, EpisodeStatus.RUNNING, reason="it was started")
        await transition(parts.pool, episode_id, EpisodeStatus.COMPLETED, reason="it has finished")
        return EpisodeStatus.COMPLETED, why
    try:
        await transition(parts.pool, episode_id, EpisodeStatus.FAILED, reason=why)
    except TransitionRefused as refused:
        # It was started after all, and has ended already.
        return refused.current, why
    except AWAY as error:
        # The watch ends it when the database is back: Temporal does not know its workflow.
        log.error("failure_unwritten", reason=describe(error))
        return EpisodeStatus.QUEUED, why
    return EpisodeStatus.FAILED, why


def run_of(request: EpisodeRequest, settings: Settings) -> Run:
    """A new episode, with ids of its own."""
    episode_id = str(uuid.uuid4())
    return Run(
        episode_id=episode_id,
        session_id=f"ep-{episode_id}",
        trace_id=secrets.token_hex(16),
        role=request.role,
        purpose=request.purpose,
        task=request.task,
        seed=request.seed,
        variant=request.variant,
        handover_id=request.handover_id,
        limits=limits_of(settings),
    )


def limits_of(settings: Settings) -> Limits:
    """What an episode that is started now goes by."""
    return Limits(
        turns=settings.model.turns,
        tool_s=settings.tool_s,
        tool_attempts=1 if faults.on("preemption-is-the-end") else settings.tool_attempts,
        tool_pause_s=settings.tool_pause_s,
        heartbeat_s=settings.heartbeat_s,
        model_s=settings.model.timeout_s,
        model_attempts=settings.model.attempts,
        store_s=settings.store.connect_timeout_s
        + settings.store.read_timeout_s
        + settings.worker_timeout_s,
        # The planted fault never gives up: 0 is without end.
        store_attempts=0 if faults.on("upload-retried-for-ever") else settings.store.attempts,
        store_pause_s=settings.store.pause_s,
        rpc_s=settings.worker_timeout_s,
    )
