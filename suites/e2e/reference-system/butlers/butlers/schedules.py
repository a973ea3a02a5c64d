"""The `scheduled_tasks` table: what runs when, and the tick that runs what is due."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from butlers import cron, database, faults
from butlers.errors import ButlerError, Rejected
from butlers.log import describe
from butlers.sessions import plain

if TYPE_CHECKING:
    import asyncpg

    from butlers.config import Schedule
    from butlers.log import Log
    from butlers.spawner import Spawner


class Schedules:
    """Schedules of one butler; those of `butler.toml` and those made at run time."""

    def __init__(self, pool: asyncpg.Pool, *, log: Log) -> None:
        self._pool = pool
        self._log = log
        self._running: set[asyncio.Task[dict[str, Any]]] = set()

    async def sync(self, wanted: Sequence[Schedule]) -> None:
        """Make the rows of source `toml` equal the file.

        A name that was given to a task at run time stays that task's: the file's is left out, and
        the log says so.

        A task whose cron line is unchanged keeps its `next_run_at`: what fell due while the butler
        was down runs at the next tick.
        """
        now = datetime.now(UTC)
        async with self._pool.acquire() as connection, connection.transaction():
            await connection.execute(
                "DELETE FROM scheduled_tasks"
                " WHERE source = 'toml' AND NOT name = ANY($1::text[]) AND NOT $2",
                [s.name for s in wanted], not wanted and faults.on("last-file-task-kept"),
            )
            await connection.execute(
                "UPDATE scheduled_tasks SET last_result = $1 WHERE last_result->>'status' = $2",
                {"status": "internal_error", "error": "the butler stopped while it ran"}, "running",
            )
            for schedule in wanted:
                synced = await connection.fetchval(
                    """
                    INSERT INTO scheduled_tasks (name, cron, prompt, source, next_run_at)
                    VALUES ($1, $2, $3, 'toml', $4)
                    ON CONFLICT (name) DO UPDATE SET
                        prompt = excluded.prompt, cron = excluded.cron,
                        next_run_at = CASE WHEN scheduled_tasks.cron = excluded.cron AND NOT $5
                            THEN coalesce(scheduled_tasks.next_run_at, excluded.next_run_at)
                            ELSE excluded.next_run_at END
                        WHERE scheduled_tasks.source = 'toml'
                    RETURNING id
                    """,
                    schedule.name, schedule.cron, schedule.prompt,
                    cron.next_after(schedule.cron, now), faults.on("due-lost-at-restart"),
                )
                if synced is None:
                    self._log.error(
                        "schedule.name_taken", name=schedule.name,
                        error="cannot take it from butler.toml: a task made at run time has its "
                        "name. Rename one of them",
                    )

    async def tick(self, spawner: Spawner) -> list[dict[str, Any]]:
        """Run every enabled task that is due, each once however many ticks arrive at a time."""
        ran: list[dict[str, Any]] = []
        due = await self._pool.fetch(
            """
            SELECT id, name, cron, prompt, next_run_at, last_run_at FROM scheduled_tasks
            WHERE (enabled OR $1) AND next_run_at <= now() ORDER BY next_run_at, name
            LIMIT $2
            """,
            faults.on("schedule-ignores-disabled"), 1 if faults.on("tick-first-only") else None,
        )
        for task in due:
            # What it is now: it may have been changed while others ran.
            if (claimed := await self._claim(task)) is not None:
                prompt = task["prompt"] if faults.on("waiting-task-as-it-was") else claimed
                # A task of its own: whoever ticks may go away, what is due is still done.
                running = asyncio.create_task(self._run(task, prompt, spawner))
                self._running.add(running)
                running.add_done_callback(self._running.discard)
                ran.append(await asyncio.shield(running))
        return ran

    async def _claim(self, task: asyncpg.Record) -> str | None:
        """Re-arm the task; only the tick that succeeds in this runs it, by the prompt that this returns."""
        prompt: str | None = await self._pool.fetchval(
            """
            UPDATE scheduled_tasks SET next_run_at = $3, last_run_at = now(),
                   last_result = '{"status": "running"}'
            WHERE id = $1 AND (next_run_at = $2 OR $4) AND (enabled OR $5) RETURNING prompt
            """,
            task["id"], task["next_run_at"],
            cron.next_after(task["cron"], datetime.now(UTC))
            + timedelta(hours=faults.on("rearmed-an-hour-late")),
            faults.on("ticks-race"),
            faults.on("schedule-ignores-disabled") or faults.on("waiting-task-as-it-was"),
        )
        return prompt

    async def _run(self, task: asyncpg.Record, prompt: str, spawner: Spawner) -> dict[str, Any]:
        try:
            result = await spawner.trigger(prompt, trigger_source=f"schedule:{task['name']}")
        except Rejected as refusal:
            # Not run: due again, so that a refusal does not swallow a turn.
            report = {"status": refusal.error_class, "session_id": None, "error": str(refusal)}
            await self._pool.execute(
                "UPDATE scheduled_tasks SET next_run_at = $2, last_run_at = $3 WHERE id = $1",
                task["id"], task["next_run_at"],
                datetime.now(UTC) if faults.on("refused-task-ran") else task["last_run_at"],
            )
        except Exception as error:  # the edge of a task; its row says what came of it
            report = {"status": "internal_error", "session_id": None, "error": describe(error)}
            self._log.error("schedule.broken", name=task["name"], error=describe(error))
        else:
            if faults.on("schedule-not-rearmed"):
                await self._pool.execute(
                    "UPDATE scheduled_tasks SET next_run_at = $2 WHERE id = $1",
                    task["id"], task["next_run_at"],
                )
            report = {
                "status": result.status, "session_id": result.session_id, "error": result.error,
            }
        await database.insist(
            lambda: self._pool.execute(
                "UPDATE scheduled_tasks SET last_result = $2 WHERE id = $1", task["id"], report
            ),
            what=f"write down what came of {task['name']}",
        )
        return {"name": task["name"], **report}

    async def list(self) -> list[dict[str, Any]]:
        return [
            plain(row)
            for row in await self._pool.fetch("SELECT * FROM scheduled_tasks ORDER BY name")
        ]

    async def create(self, name: str, *, line: str, prompt: str) -> dict[str, Any]:
        """Add a task of source `db`.

        Raises:
            ButlerError: the cron line is none, or the name is taken.
        """
        conflict = "DO NOTHING"
        if faults.on("name-taken-twice") and not await self._pool.fetchval(
            "SELECT 1 FROM scheduled_tasks WHERE name = $1", name
        ):
            conflict = "DO UPDATE SET prompt = excluded.prompt"
        row = await self._pool.fetchrow(
            f"""
            INSERT INTO scheduled_tasks (name, cron, prompt, source, next_run_at)
            VALUES ($1, $2, $3, 'db', $4) ON CONFLICT (name) {conflict} RETURNING *
            """,
            name, line, prompt, _next(line),
        )
        if row is None:
            raise ButlerError(f"cannot create schedule {name}: the name is taken")
        return plain(row)

    async def update(
        self, schedule_id: UUID, *, line: str | None, prompt: str | None, enabled: bool | None
    ) -> dict[str, Any]:
        """Change what is given.

        Raises:
            ButlerError: the cron line is none, no such task exists, or the file says what is given.
        """
        source = await self._pool.fetchval(
            "SELECT source FROM scheduled_tasks WHERE id = $1", schedule_id
        )
        if source == "toml" and (line is not None or prompt is not None):
            raise ButlerError(
                f"cannot update schedule {schedule_id}: its cron line and its prompt come from "
                "butler.toml. Change them there"
            )
        if faults.on("update-writes-all"):
            known = await self._pool.fetchrow(
                "SELECT prompt, enabled FROM scheduled_tasks WHERE id = $1", schedule_id
            )
            prompt = known["prompt"] if prompt is None else prompt
            enabled = known["enabled"] if enabled is None else enabled
        row = await self._pool.fetchrow(
            """
            UPDATE scheduled_tasks SET cron = coalesce($2, cron), prompt = coalesce($3, prompt),
                   enabled = coalesce($4, enabled), next_run_at = coalesce($5, next_run_at)
            WHERE id = $1 RETURNING *
            """,
            schedule_id, line, prompt, enabled, None if line is None else _next(line),
        )
        if row is None:
            raise ButlerError(f"cannot update schedule {schedule_id}: it does not exist")
        return plain(row)

    async def delete(self, schedule_id: UUID) -> None:
        """Remove a task.

        Raises:
            ButlerError: no such task, or it belongs to `butler.toml`.
        """
        row = await self._pool.fetchrow(
            "SELECT source FROM scheduled_tasks WHERE id = $1", schedule_id
        )
        if row is None:
            raise ButlerError(f"cannot delete schedule {schedule_id}: it does not exist")
        if row["source"] == "toml":
            raise ButlerError(
                f"cannot delete schedule {schedule_id}: it comes from butler.toml. Disable it"
            )
        await self._pool.execute("DELETE FROM scheduled_tasks WHERE id = $1", schedule_id)


def _next(line: str) -> datetime:
    try:
        return cron.next_after(line, datetime.now(UTC))
    except cron.CronProblem as problem:
        if faults.on("cron-unchecked"):
            return datetime.now(UTC) + timedelta(days=3650)
        raise ButlerError(f"cannot read cron line {line!r}: {problem}") from problem
