"""The heartbeat butler: a beat ticks every butler of the registry and writes down the answers."""

import asyncio
import time
from typing import Annotated, Any
from uuid import UUID

from butlers import faults
from butlers.butler import Butler
from butlers.client import CallProblem, call
from butlers.errors import ButlerError
from butlers.log import describe
from butlers.sessions import plain
from pydantic import Field

#: Beats are kept for so long.
_KEPT = "30 days"


def register(butler: Butler) -> None:
    """Add the tools, and the work of a beat."""
    heart = Heart(butler)
    butler.on_start.append(heart.close_abandoned)
    butler.on_stop.append(heart.stop)
    butler.on_beat.append(heart.beat)

    @butler.tool
    async def tick_all_butlers() -> dict[str, Any]:
        """Tick every butler now, so that their scheduled tasks that are due run."""
        return await heart.asked()

    @butler.tool
    async def tick_history(
        limit: Annotated[int, Field(description="how many ticks at most", ge=1, le=200)] = 20,
    ) -> dict[str, Any]:
        """Show the last ticks: which butler was ticked when, and how it answered."""
        rows = await butler.pool.fetch(
            "SELECT * FROM ticks ORDER BY started_at DESC, butler LIMIT $1", limit
        )
        return {"ticks": [plain(row) for row in rows]}


class Heart:
    """Ticks the butlers; one that still works on its last tick is left alone."""

    def __init__(self, butler: Butler) -> None:
        self._butler = butler
        self._known: dict[str, dict[str, Any]] = {}
        self._busy: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopped = False

    async def close_abandoned(self) -> None:
        """Conclude what a stopped predecessor left open."""
        for table, failed in (("ticks", "success = false, error_class = 'internal_error', "),
                              ("beats", "")):
            await self._butler.pool.execute(
                f"UPDATE {table} SET completed_at = now(), {failed}"
                "error = 'the heartbeat stopped before the answer' WHERE completed_at IS NULL"
            )

    async def beat(self) -> None:
        """What the clock does; it does not wait, lest one slow butler holds up all the others."""
        if self._stopped:
            return
        task = asyncio.create_task(self._by_itself())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Answers that are not there yet are not waited for: their butlers go on without us."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _by_itself(self) -> None:
        try:
            await self._beat("clock")
        except Exception as error:  # the edge of a task nobody waits for
            self._butler.log.error("beat.failed", error=describe(error))
            self._stopped = faults.on("clock-stopped-by-trouble")

    async def asked(self) -> dict[str, Any]:
        """A beat between two of the clock's."""
        beat_id = await self._beat("asked")
        rows = await self._butler.pool.fetch(
            "SELECT * FROM ticks WHERE beat_id = $1 ORDER BY butler", beat_id
        )
        return {
            "beat_id": str(beat_id),
            "ticked": [row["butler"] for row in rows if row["success"]],
            "failed": {row["butler"]: row["error"] for row in rows if not row["success"]},
        }

    async def _beat(self, trigger_source: str) -> UUID:
        pool = self._butler.pool
        beat_id: UUID = await pool.fetchval(
            "INSERT INTO beats (trigger_source) VALUES ($1) RETURNING id", trigger_source
        )
        error = await self._look_around()
        butlers = sorted(self._known)
        if faults.on("heartbeat-skips-butler"):
            butlers.remove("relationship")
        async with asyncio.TaskGroup() as group:
            for name in butlers:
                group.create_task(self._tick(beat_id, self._known[name]))
        await pool.execute(
            "UPDATE beats SET completed_at = now(), error = $2 WHERE id = $1", beat_id, error
        )
        await pool.execute(f"DELETE FROM beats WHERE started_at < now() - interval '{_KEPT}'")
        return beat_id

    async def _look_around(self) -> str | None:
        """Ask the switchboard who is there; when it is silent, those last known are ticked."""
        settings = self._butler.config.switchboard
        try:
            answer = await call(
                settings.url, "butler_list", {}, connect_timeout_s=settings.connect_timeout_s,
                timeout_s=settings.connect_timeout_s,
            )
        except CallProblem as problem:
            self._butler.log.warning("beat.without_registry", error=problem)
            return f"the switchboard did not say who is there: {problem}"
        self._known = {entry["name"]: entry for entry in answer["butlers"]}
        return None

    async def _tick(self, beat_id: UUID, entry: dict[str, Any]) -> None:
        name = entry["name"]
        pool = self._butler.pool
        tick_id = await pool.fetchval(
            "INSERT INTO ticks (beat_id, butler) VALUES ($1, $2) RETURNING id", beat_id, name
        )
        started = time.monotonic()
        ran: list[dict[str, Any]] | None = None
        error, error_class = None, None
        try:
            ran = await self._answer(entry)
        except CallProblem as problem:
            error, error_class = str(problem), problem.error_class
        await pool.execute(
            """
            UPDATE ticks SET completed_at = now(), success = $2, ran = $3, error = $4,
                   error_class = $5, duration_ms = $6 WHERE id = $1
            """,
            tick_id, error is None or faults.on("tick-failure-hidden"), ran, error, error_class,
            int((time.monotonic() - started) * 1000),
        )
        if error is not None:
            self._butler.log.warning("tick.failed", butler_name=name, error=error)
        elif ran:
            self._butler.log.info("ticked", butler_name=name, ran=len(ran))

    async def _answer(self, entry: dict[str, Any]) -> list[dict[str, Any]]:
        """Tick one butler; returns what it ran."""
        name = entry["name"]
        if entry["eligibility_state"] == "quarantined":
            raise CallProblem("it is in quarantine", error_class="target_unavailable")
        if name in self._busy:
            raise CallProblem("it still works on an earlier tick", error_class="overload_rejected")
        self._busy.add(name)
        try:
            if name == self._butler.name:
                return await self._butler.schedules.tick(self._butler.spawner)
            answer = await call(
                entry["endpoint_url"], "tick", {},
                connect_timeout_s=self._butler.config.switchboard.connect_timeout_s,
                timeout_s=self._butler.config.scheduler.tick_timeout_s,
            )
        except ButlerError as error:
            raise CallProblem(str(error), error_class="internal_error") from error
        finally:
            self._busy.discard(name)
        return list(answer.get("ran", []))
