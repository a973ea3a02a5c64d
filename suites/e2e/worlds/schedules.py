"""Scheduled tasks as an operator sees them: made by a tool, read in the table the contract fixes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import trio

from harness_core.base.slowness import patience
from harness_core.base.wait import until
from harness_core.infrastructure.databases import Database
from suites.e2e.ecosystem.butler import Butler

__all__ = [
    "fall_due",
    "hold_row",
    "oversleep",
    "put_off",
    "schedule",
    "schedule_row",
    "sessions_of",
    "until_they_meet",
]

#: How long callers may take to meet at a row that is held. Less than a butler gives a statement.
MEET_S: Final = 5.0

#: Looks in a row that found the same callers waiting: whoever comes has come.
LOOKS: Final = 6

#: Once a year: whatever runs such a task within a test did not wait for its time.
FAR_AWAY = "0 0 29 2 *"


async def schedule(butler: Butler, name: str, prompt: str, *, cron: str = FAR_AWAY) -> None:
    """Have a butler schedule a prompt; the task must then stand in its table, armed."""
    await butler.call("schedule_create", name=name, cron=cron, prompt=prompt)
    row = await schedule_row(butler, name)

    assert row["next_run_at"] is not None, f"{butler.name} did not arm the task {name}: {row}"
    assert row["enabled"] is True, f"a new task is enabled, found {row}"


async def fall_due(butler: Butler, name: str) -> None:
    """Let the time of a task come, by moving it instead of waiting for it.

    The one thing a suite writes into a product's database: cron's finest step is a minute, and the
    column that says when a task is due is part of the contract.
    """
    await _move(butler, name, "-1 second")


async def oversleep(butler: Butler, name: str) -> None:
    """Let the time of a task have come so long ago that it was missed many times since."""
    await _move(butler, name, "-400 days")


async def put_off(butler: Butler, name: str) -> None:
    """Let the time of a task be far away again: no tick meanwhile runs it."""
    await _move(butler, name, "1 day")


async def _move(butler: Butler, name: str, offset: str) -> None:
    await butler.database.execute(  # lint: allow writes-rows: cron's finest step is a minute
        "UPDATE scheduled_tasks SET next_run_at = now() + %s::interval WHERE name = %s",
        (offset, name),
    )


@asynccontextmanager
async def hold_row(butler: Butler, name: str) -> AsyncIterator[None]:
    """Hold the row of a task: who reads it finds it as it is, who changes it waits until the end."""
    async with Database(butler.database.url) as own:
        await own.execute("BEGIN")
        await own.execute("SELECT 1 FROM scheduled_tasks WHERE name = %s FOR UPDATE", (name,))
        yield
        await own.execute("ROLLBACK")


async def until_they_meet(butler: Butler, *, answered: Callable[[], bool]) -> None:
    """Wait until some statements of a butler wait for locks, and no more come.

    A butler that lets in one caller at a time, or passes over a row that is held, has none that meet:
    so this ends after a while, and says nothing about the butler.

    Args:
        butler: whose database it is.
        answered: whether all callers have gone already.
    """
    looks: list[int] = []

    async def meet() -> bool:
        row = await butler.database.one(
            "SELECT count(*) AS waiting FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        looks.append(row["waiting"])
        return answered() or (looks[-1] > 1 and {looks[-1]} == set(looks[-LOOKS:]))

    with trio.move_on_after(patience(MEET_S)):
        await until(meet)


async def schedule_row(butler: Butler, name: str) -> Mapping[str, Any]:
    """The row of a task."""
    return await butler.database.one("SELECT * FROM scheduled_tasks WHERE name = %s", (name,))


async def sessions_of(butler: Butler, name: str) -> list[Mapping[str, Any]]:
    """The sessions that a task caused, oldest first."""
    rows = await butler.database.rows(
        "SELECT * FROM sessions WHERE trigger_source = %s ORDER BY started_at",
        (f"schedule:{name}",),
    )
    return list(rows)
