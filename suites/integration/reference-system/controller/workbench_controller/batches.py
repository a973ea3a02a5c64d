"""Batches: rows first, then one workflow that has so many of them run at once as it may."""

from __future__ import annotations

import math
import uuid
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from workbench_contract.batches import (
    Batch,
    BatchAccepted,
    BatchInterruptAccepted,
    BatchRequest,
    BatchStatus,
)
from workbench_contract.episodes import EpisodeStatus
from workbench_controller import records
from workbench_controller.interruption import interrupt
from workbench_controller.parts import Parts, Refused
from workbench_controller.run import BatchRun
from workbench_controller.submission import accepted, begin_run, limits_of, not_started, run_of
from workbench_controller.temporal import TemporalAway
from workbench_foundation import faults, log, tracing


async def submit_batch(parts: Parts, request: BatchRequest) -> tuple[BatchAccepted, str | None]:
    """Start a batch; the ids of all and, when it could not be started, why.

    Rows are written all or none: what is refused is not there.

    Raises:
        Refused: 404 when one would start from a hand-over that there is not.
    """
    settings = parts.settings
    batch_id = str(uuid.uuid4())
    workflow_id = f"batch-{batch_id}"
    concurrency = request.concurrency or settings.batch_concurrency
    if request.concurrency is None and faults.on("batch-limit-of-its-size"):
        concurrency = len(request.episodes)
    runs = [run_of(each, settings) for each in request.episodes]
    async with parts.pool.acquire() as connection, connection.transaction():
        await connection.execute(
            "INSERT INTO batches (batch_id, workflow_id, concurrency, created_at)"
            " VALUES ($1, $2, $3, clock_timestamp())",
            *(batch_id, workflow_id, concurrency),
        )
        for place, (run, each) in enumerate(zip(runs, request.episodes, strict=True)):
            await begin_run(connection, run, each.metadata, batch_id=batch_id, batch_place=place)
    for run in runs:
        with tracing.episode(run.trace_id, episode_id=run.episode_id, batch_id=batch_id):
            log.info("queued", batch_id=batch_id, episode_id=run.episode_id, trace_id=run.trace_id)
    batch = BatchRun(
        batch_id=batch_id,
        episode_ids=[run.episode_id for run in runs],
        concurrency=len(runs) if faults.on("batch-limit-ignored") else concurrency,
        episode_s=settings.temporal.run_s,
        limits=limits_of(settings),
    )
    statuses, problem = [EpisodeStatus.QUEUED] * len(runs), None
    # As long as all of them take, one group after the other.
    groups = 0 if faults.on("batch-as-short-as-one") else math.ceil(len(runs) / concurrency)
    run_s = settings.temporal.run_s * (groups + 1)
    with log.about(batch_id=batch_id):
        try:
            await parts.workflows.start_batch(batch, workflow_id=workflow_id, run_s=run_s)
            log.info("batch_submitted", workflow_id=workflow_id, episodes=len(runs))
        except TemporalAway as away:
            ends = [await not_started(parts, run.episode_id, str(away)) for run in runs]
            statuses = [status for status, _ in ends]
            problem = next((why for _, why in ends if why is not None), None)
    answer = BatchAccepted(
        batch_id=batch_id,
        concurrency=concurrency,
        episodes=[accepted(run, status) for run, status in zip(runs, statuses, strict=True)],
    )
    return answer, problem


async def batch_of(parts: Parts, batch_id: str) -> Batch:
    """A batch, as of one moment.

    Raises:
        Refused: 404 when there is none.
    """
    async with parts.pool.acquire() as connection, connection.transaction(
        isolation="repeatable_read", readonly=True
    ):
        row = await connection.fetchrow("SELECT * FROM batches WHERE batch_id = $1", batch_id)
        if row is None:
            raise Refused(404, f"cannot find batch {batch_id}: there is none. Check the id")
        members = await connection.fetch(
            "SELECT * FROM episodes WHERE batch_id = $1 ORDER BY batch_place", batch_id
        )
    return _told(row, members)


def _told(row: Mapping[str, Any], members: list[Mapping[str, Any]]) -> Batch:
    found = Counter(EpisodeStatus(member["status"]) for member in members)
    ended = all(status.final for status in found)
    status = BatchStatus.ENDED if ended else BatchStatus.RUNNING
    if set(found) == {EpisodeStatus.QUEUED}:
        status = BatchStatus.QUEUED
    if faults.on("batch-ends-with-first") and any(each.final for each in found):
        status = BatchStatus.ENDED
    return Batch(
        batch_id=row["batch_id"],
        status=status,
        concurrency=row["concurrency"],
        counts={each: found[each] for each in EpisodeStatus},
        episodes=[records.summary(member) for member in members],
        interrupt_requested_at=row["interrupt_requested_at"],
        created_at=row["created_at"],
        ended_at=max(member["updated_at"] for member in members) if ended else None,
    )


async def interrupt_batch(parts: Parts, batch_id: str) -> BatchInterruptAccepted:
    """Have all episodes ended that have not; those that have not begun first, the last one before all.

    Raises:
        Refused: 404 when there is none, 409 when all have ended, 503 when Temporal does not answer.
    """
    batch = await batch_of(parts, batch_id)
    if batch.status is BatchStatus.ENDED:
        detail = f"cannot interrupt batch {batch_id}: all its episodes have ended"
        raise Refused(409, f"{detail}. Start another one")
    left = [each for each in batch.episodes if not each.status.final]
    # A place that becomes free would be taken by the next one else.
    left.sort(key=lambda each: each.status is not EpisodeStatus.QUEUED)
    asked_at: datetime = await parts.pool.fetchval(
        "UPDATE batches SET interrupt_requested_at ="
        " coalesce(interrupt_requested_at, clock_timestamp())"
        " WHERE batch_id = $1 RETURNING interrupt_requested_at",
        batch_id,
    )
    if faults.on("batch-interrupt-leaves-queued"):
        left = [each for each in left if each.status is not EpisodeStatus.QUEUED]
    done = []
    for each in left:
        try:
            await interrupt(parts, each.episode_id)
        except Refused as refused:
            if refused.status != 409:
                raise
            continue  # it has ended meanwhile
        done.append(each.episode_id)
    log.info("batch_interrupt_requested", batch_id=batch_id, episodes=len(done))
    return BatchInterruptAccepted(
        batch_id=batch_id, interrupt_requested_at=asked_at, episode_ids=done
    )
