"""Attempts on record: of one whose process is gone the next attempt says that it was preempted."""

from __future__ import annotations

import asyncio
import os
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import asyncpg
from temporalio import activity
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from workbench_contract.events import EventKind
from workbench_controller.database import AWAY
from workbench_controller.eventstore import record_event
from workbench_controller.run import Run
from workbench_foundation import faults, log, tracing
from workbench_foundation.errors import describe

#: This process, and no other that may get its number.
_LIFE = secrets.token_hex(8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempts(Interceptor):
    """Has every attempt at a step of an episode on record.

    Attributes:
        write_s: how long it may take to write one down; shorter than Temporal waits for a heartbeat.
    """

    pool: asyncpg.Pool
    write_s: float

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """As Temporal asks for it."""
        return _Recorded(next, self.pool, self.write_s)


class _Recorded(ActivityInboundInterceptor):
    def __init__(
        self, following: ActivityInboundInterceptor, pool: asyncpg.Pool, write_s: float
    ) -> None:
        super().__init__(following)
        self._pool = pool
        self._write_s = write_s

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        """Carry out an attempt; without a database it is none on record."""
        run, job_id = _about(input.args)
        if run is None:
            return await self.next.execute_activity(input)
        ending = "failed"
        with log.about(episode_id=run.episode_id, trace_id=run.trace_id, session_id=run.session_id):
            await self._insisting(self._begin(run, job_id))
            try:
                if faults.on("spans-of-retries-apart") and activity.info().attempt > 1:
                    with tracing.outside():
                        result = await self.next.execute_activity(input)
                else:
                    result = await self.next.execute_activity(input)
                ending = "completed"
                return result
            except asyncio.CancelledError:
                ending = "cancelled"
                raise
            finally:
                await asyncio.shield(self._insisting(self._end(ending)))

    async def _insisting(self, writing: Any) -> None:
        try:
            async with asyncio.timeout(self._write_s):
                await writing
        except AWAY as error:
            log.warning("attempt_unwritten", reason=describe(error))

    async def _begin(self, run: Run, job_id: str | None) -> None:
        info = activity.info()
        async with self._pool.acquire() as connection, connection.transaction():
            if info.attempt == 2 or (info.attempt > 2 and not faults.on("preemption-told-once")):
                await self._preempted(connection, run, info)
            await connection.execute(
                "INSERT INTO attempts (run_id, activity_id, attempt, episode_id, activity, job_id,"
                " pid, life, began_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, clock_timestamp())"
                " ON CONFLICT DO NOTHING",
                *(info.workflow_run_id, info.activity_id, info.attempt, run.episode_id),
                *(info.activity_type, job_id, os.getpid(), _LIFE),
            )

    async def _preempted(
        self, connection: asyncpg.Connection, run: Run, info: activity.Info
    ) -> None:
        """Earlier attempts of other processes that have no end: Temporal has given them up."""
        episode = await connection.fetchrow(
            "SELECT * FROM episodes WHERE episode_id = $1 FOR UPDATE", run.episode_id
        )
        rows = await connection.fetch(
            "UPDATE attempts SET ended_at = clock_timestamp(),"
            " termination_reason = CASE WHEN life = $4 THEN 'failed' ELSE 'preempted' END"
            " WHERE run_id = $1 AND activity_id = $2 AND attempt < $3 AND ended_at IS NULL"
            " RETURNING *",
            *(info.workflow_run_id, info.activity_id, info.attempt, _LIFE),
        )
        for row in rows:
            if row["termination_reason"] == "preempted" and not faults.on("preemption-untold"):
                payload = {
                    "activity": row["activity"],
                    "job_id": row["job_id"],
                    "pid": os.getpid() if faults.on("preemption-of-survivor") else row["pid"],
                    "attempt": row["attempt"],
                    "began_at": row["began_at"].isoformat(),
                    "termination_reason": "preempted",
                }
                await record_event(
                    connection, episode, EventKind.JOB_PREEMPTED, payload, at=datetime.now(UTC)
                )
                log.warning("attempt_preempted", **payload)

    async def _end(self, ending: str) -> None:
        info = activity.info()
        await self._pool.execute(
            "UPDATE attempts SET ended_at = clock_timestamp(), termination_reason = $4"
            " WHERE run_id = $1 AND activity_id = $2 AND attempt = $3 AND ended_at IS NULL",
            *(info.workflow_run_id, info.activity_id, info.attempt, ending),
        )


def _about(arguments: Any) -> tuple[Run | None, str | None]:
    """The episode that an activity is for, and the job that it asks for."""
    for each in arguments:
        run = each if isinstance(each, Run) else getattr(each, "run", None)
        if isinstance(run, Run):
            return run, getattr(each, "job", None)
    return None, None
