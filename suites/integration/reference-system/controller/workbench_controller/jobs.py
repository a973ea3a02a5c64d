"""Jobs: given to the worker, and moved on by what it calls back with."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import asyncpg
import httpx

from workbench_contract.jobs import (
    Callback,
    CallbackTaken,
    Job,
    JobList,
    JobOffer,
    JobRequest,
    JobStatus,
    JobStep,
    JobSummary,
    Operation,
)
from workbench_controller.parts import Parts, Refused
from workbench_controller.worker_client import Whose
from workbench_foundation import faults, log
from workbench_foundation.errors import describe

_NEXT = {
    JobStatus.QUEUED: (JobStatus.RUNNING, JobStatus.FAILED),
    JobStatus.RUNNING: (JobStatus.COMPLETED, JobStatus.FAILED),
}


async def submit(parts: Parts, episode_id: str, wanted: JobRequest) -> tuple[Job, str | None]:
    """Write a job down and give it to the worker; with it why the worker has not got it.

    Raises:
        Refused: there is no such episode, or the worker refuses the work.
    """
    row = await parts.pool.fetchrow("SELECT * FROM episodes WHERE episode_id = $1", episode_id)
    if row is None:
        raise Refused(404, f"cannot find episode {episode_id}: there is none. Check the id")
    job_id = str(uuid.uuid4())
    async with parts.pool.acquire() as connection, connection.transaction():
        await connection.execute(
            "INSERT INTO jobs (job_id, episode_id, operation, arguments, status, reason, created_at,"
            " updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $7)",
            *(job_id, episode_id, wanted.operation.value, wanted.arguments),
            *(JobStatus.QUEUED.value, "accepted", datetime.now(UTC)),
        )
        first = Callback.model_construct(
            sequence=0, status=JobStatus.QUEUED, reason="accepted", at=datetime.now(UTC)
        )
        await _step(connection, job_id, first, sha256=None)
    offer = JobOffer(job_id=job_id, operation=wanted.operation, arguments=wanted.arguments)
    whose = Whose(
        episode_id=episode_id, session_id=row["session_id"], trace_id=row["trace_id"]
    )
    problem: str | None = None
    try:
        answer = await parts.worker.post(whose, "/jobs", offer.model_dump(mode="json"))
        answer.raise_for_status()
    except httpx.HTTPStatusError as error:
        problem = f"the worker refuses the job: {error.response.text[:500]}"
    except httpx.HTTPError as error:
        problem = f"the worker does not answer ({describe(error)})"
    if problem is not None:
        await _fail(parts.pool, job_id, problem)
    return await job_of(parts.pool, job_id), problem


async def job_of(pool: asyncpg.Pool, job_id: str) -> Job:
    """A job with its steps, as of one moment.

    Raises:
        Refused: there is none.
    """
    async with pool.acquire() as connection, connection.transaction(
        isolation="repeatable_read", readonly=True
    ):
        row = await connection.fetchrow(
            "SELECT jobs.*, session_id, trace_id FROM jobs JOIN episodes USING (episode_id)"
            " WHERE job_id = $1",
            job_id,
        )
        if row is None:
            raise Refused(404, f"cannot find job {job_id}: there is none. Check the id")
        steps = await connection.fetch(
            "SELECT * FROM job_steps WHERE job_id = $1 ORDER BY sequence", job_id
        )
    shown = _shown(row)
    if faults.on("job-of-first-episode"):
        _first.update({name: shown[name] for name in _WHOSE if name not in _first})
        shown |= _first
    return Job(
        **shown,
        result=row["result"],
        steps=[
            JobStep(
                sequence=step["sequence"],
                status=JobStatus(step["status"]),
                reason=step["reason"],
                at=step["at"],
            )
            for step in steps
        ],
    )


_WHOSE = ("episode_id", "session_id", "trace_id")
_SHOWN = ("job_id", *_WHOSE, "reason", "created_at", "updated_at")

#: For the planted fault `job-of-first-episode` alone.
_first: dict[str, Any] = {}


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in _SHOWN} | {
        "operation": Operation(row["operation"]),
        "status": JobStatus(row["status"]),
    }


async def jobs_of(pool: asyncpg.Pool, episode_id: str, *, limit: int, offset: int) -> JobList:
    """Jobs of an episode, latest first.

    Raises:
        Refused: there is no such episode.
    """
    episode = await pool.fetchrow(
        "SELECT session_id, trace_id FROM episodes WHERE episode_id = $1", episode_id
    )
    if episode is None:
        raise Refused(404, f"cannot find episode {episode_id}: there is none. Check the id")
    wanted = "episode_id = $1"
    if faults.on("failed-jobs-unlisted"):
        wanted += f" AND status <> '{JobStatus.FAILED.value}'"
    rows = await pool.fetch(
        f"SELECT * FROM jobs WHERE {wanted} ORDER BY created_at DESC, job_id LIMIT $2 OFFSET $3",
        *(episode_id, limit, offset),
    )
    if faults.on("jobs-of-all-counted"):
        wanted = "$1::text IS NOT NULL"
    total = await pool.fetchval(f"SELECT count(*) FROM jobs WHERE {wanted}", episode_id)
    found = [JobSummary(**_shown({**episode, **row})) for row in rows]
    return JobList(jobs=found, total=total)


async def take(pool: asyncpg.Pool, job_id: str, body: bytes, said: Callback) -> CallbackTaken:
    """Move a job on by a callback; one that was taken before changes nothing.

    Raises:
        Refused: there is no such job, or the callback does not follow what was taken last.
    """
    sha256 = hashlib.sha256(body).hexdigest()
    async with pool.acquire() as connection, connection.transaction():
        row = await connection.fetchrow("SELECT * FROM jobs WHERE job_id = $1 FOR UPDATE", job_id)
        if row is None:
            raise Refused(404, f"cannot take the callback: there is no job {job_id}. Check the id")
        status = JobStatus(row["status"])
        steps = await connection.fetch("SELECT * FROM job_steps WHERE job_id = $1", job_id)
        known = {step["sequence"]: step["sha256"] for step in steps}
        if known.get(said.sequence) == sha256:
            return CallbackTaken(job_id=job_id, status=status, repeated=True)
        _refuse_what_does_not_follow(said, status, known)
        await _step(connection, job_id, said, sha256=sha256)
        await connection.execute(
            "UPDATE jobs SET status = $2, reason = $3, result = $4, updated_at = $5 WHERE job_id = $1",
            *(job_id, said.status.value, said.reason, said.result, datetime.now(UTC)),
        )
    log.info("job_step", job_id=job_id, status=said.status.value, sequence=said.sequence)
    return CallbackTaken(job_id=job_id, status=said.status, repeated=False)


def _refuse_what_does_not_follow(
    said: Callback, status: JobStatus, known: Mapping[int, Any]
) -> None:
    last = max(known)
    if status.final and not faults.on("callback-after-the-end"):
        raise Refused(409, f"cannot take callback {said.sequence}: the job has {status.value} already")
    if said.sequence in known:
        raise Refused(409, f"cannot take callback {said.sequence}: another one had that number")
    if said.sequence != last + 1 and not faults.on("callback-out-of-order"):
        raise Refused(
            409, f"cannot take callback {said.sequence}: {last + 1} comes before. Send that first"
        )
    if said.status not in _NEXT.get(status, tuple(JobStatus)):
        raise Refused(409, f"cannot make the job {said.status.value}: it is {status.value}")


async def _step(
    connection: asyncpg.Connection, job_id: str, said: Callback, *, sha256: str | None
) -> None:
    await connection.execute(
        "INSERT INTO job_steps (job_id, sequence, status, reason, sha256, at)"
        " VALUES ($1, $2, $3, $4, $5, $6)",
        *(job_id, said.sequence, said.status.value, said.reason, sha256, said.at),
    )


async def _fail(pool: asyncpg.Pool, job_id: str, reason: str) -> None:
    """A job that the worker has not got; one that it has after all has been called back of."""
    async with pool.acquire() as connection, connection.transaction():
        row = await connection.fetchrow("SELECT * FROM jobs WHERE job_id = $1 FOR UPDATE", job_id)
        if JobStatus(row["status"]) is not JobStatus.QUEUED:
            return
        said = Callback(
            sequence=1, status=JobStatus.FAILED, reason=reason, at=datetime.now(UTC)
        )
        await _step(connection, job_id, said, sha256=None)
        await connection.execute(
            "UPDATE jobs SET status = $2, reason = $3, updated_at = $4 WHERE job_id = $1",
            *(job_id, said.status.value, reason, said.at),
        )
