"""Tasks of a butler: made for one test, seen by tool and row, made due, and ticked until they have run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast
from zoneinfo import ZoneInfo

import trio

from harness_core.base.wait import deadline, until
from suites.e2e.contracts.almanac import next_times
from suites.e2e.ecosystem.butler import Butler
from suites.e2e.ecosystem.conversation import Conversation, open_conversation
from suites.e2e.ecosystem.mcp import ToolResult
from suites.e2e.observe.journey import Row
from suites.e2e.observe.sentences import expect_moment, expect_same
from suites.e2e.worlds.schedules import (
    hold_row,
    schedule_row,
    until_they_meet,
)
from suites.e2e.worlds.zones import zone_of_environment

__all__ = [
    "ANSWERS",
    "DAILY",
    "DAILY_HOUR",
    "DAILY_MINUTE",
    "LINES",
    "MINUTE",
    "NO_CRON",
    "TICKS",
    "TICK_S",
    "UTC_ZONE",
    "all_rows",
    "armed_for",
    "change_task",
    "database_now",
    "expect_armed",
    "expect_daily",
    "expect_listed",
    "expect_unchanged",
    "id_argument",
    "listed_tasks",
    "prompt_of",
    "rows_named",
    "scheduled",
    "tick_butler",
    "tick_together",
    "values_inside",
]


#: Once a day: never due by itself while a test runs.
DAILY: Final = "17 3 * * *"


DAILY_HOUR: Final = 3


DAILY_MINUTE: Final = 17


#: Ticks that come at the same moment.
TICKS: Final = 8


#: A tick that runs one session answers when it ended; slowest seen on 2 loaded cores: 6 s.
TICK_S: Final = 60.0


#: Answers to others, after which a butler has noticed that a caller hung up.
ANSWERS: Final = 5


UTC_ZONE: Final = ZoneInfo("UTC")


MINUTE: Final = timedelta(minutes=1)


#: Lines whose next time is easily missed: ends of months, leap days, both Sundays, lists, ranges and
#: steps, and the hours at which clocks change, of the world's clock and of the butlers' own zones.
LINES: Final = {
    "each-minute": "* * * * *",
    "steps": "*/7 * * * *",
    "late-in-the-hour": "59 23 * * *",
    "midnight": "0 0 * * *",
    "last-of-the-long-months": "0 12 31 * *",
    "the-thirtieth": "15 6 30 * *",
    "leap-day": "30 5 29 2 *",
    "new-year": "0 0 1 1 *",
    "end-of-the-year": "59 23 31 12 *",
    "sunday-is-0": "5 4 * * 0",
    "sunday-is-7": "5 4 * * 7",
    "workdays": "45 7 * * 1-5",
    "weekend": "45 7 * * 6,0",
    "ranges-and-steps": "10-40/15 8-18/5 * * *",
    "lists": "3,33 0,12,23 2,28 2,5,11 *",
    "quarters": "0 3 1 */3 *",
    "spring-forward": "30 2 14 3 *",
    "fall-back": "30 1 7 11 *",
    "spring-forward-in-europe": "30 1 28 3 *",
    "half-hour-back": "45 1 4 4 *",
}


NO_CRON: Final = {
    "words": "every day at nine",
    "empty": "",
    "four-fields": "0 9 * *",
    "minute-61": "61 * * * *",
    "hour-24": "0 24 * * *",
    "month-13": "0 0 1 13 *",
    "backwards": "0 9-5 * * *",
    "step-zero": "*/0 * * * *",
    "minute-60": "60 * * * *",
    "day-0": "0 9 0 * *",
    "day-32": "0 9 32 * *",
    "weekday-9": "0 9 * * 9",
    "negative": "-1 9 * * *",
    "fraction": "1.5 9 * * *",
    "april-has-30": "0 0 31 4 *",
    "never-comes": "0 0 31 2 *",
    "sql": "0 9 * * *'; DROP TABLE scheduled_tasks; --",
}


@asynccontextmanager
async def scheduled(
    butler: Butler, token: str, *, client: Conversation | None = None
) -> AsyncIterator[str]:
    """A task of the test's own; yields its name, which a pattern or a shell would read otherwise."""
    name = f"task {token}: Ünï%_ 'q'"
    caller = client or butler
    await caller.call("schedule_create", name=name, cron=DAILY, prompt=prompt_of(token))
    try:
        yield name
    finally:
        for task in await rows_named(butler, name):
            own_id = {await id_argument(butler): str(task["id"])}
            await caller.call("schedule_delete", **own_id)


def prompt_of(token: str) -> str:
    """What the tasks of these tests ask for."""
    return f'Put "tea {token}" on the shopping list'


def expect_daily(butler: Butler, moment: datetime) -> None:
    """The next 03:17, by the world's clock or by the clock of the butler's place."""
    now = datetime.now(UTC)

    assert now < moment <= now + timedelta(days=1, hours=2), (
        f"a daily task is due within a day: it is {now}, and it is armed for {moment}"
    )
    clocks = [moment.astimezone(zone) for zone in (UTC, zone_of_environment(butler.environment))]
    shown = [(clock.hour, clock.minute) for clock in clocks]

    assert (DAILY_HOUR, DAILY_MINUTE) in shown, (
        f"a task of {DAILY!r} is armed for {DAILY_HOUR}:{DAILY_MINUTE} of the world's clock or of "
        f"the butler's; found {' and '.join(map(str, clocks))}"
    )


def expect_armed(butler: Butler, row: Row, asked: datetime) -> None:
    """A row is armed for the first time that its cron line names after a moment."""
    zone = zone_of_environment(butler.environment)
    expected = armed_for(row["cron"], asked, zone=UTC_ZONE) | armed_for(
        row["cron"], asked, zone=zone
    )

    assert row["next_run_at"] in expected, (
        f"{row['cron']!r} is due next at {' or '.join(sorted(map(str, expected)))} (the world's "
        f"clock, or {zone.key}); {butler.name} armed it for {row['next_run_at']}"
    )


def armed_for(line: str, asked: datetime, *, zone: ZoneInfo) -> set[datetime]:
    """When a line fires next by the clock of a zone, armed in some minute from ``asked`` to now."""
    now = datetime.now(UTC)
    minutes = range(int((now - asked) / MINUTE) + 1)
    moments = [*(asked + number * MINUTE for number in minutes), now]
    return {found for moment in moments for found in next_times(line, moment, zone=zone)}


def expect_unchanged(what: str, before: Row, after: Row, *, but: Sequence[str] = ()) -> None:
    """Nothing but the named columns of a task has changed.

    Args:
        what: what was done, which must leave the rest alone.
        before: the row before it.
        after: the row after it.
        but: columns that may have changed.
    """
    changed = {
        column: (before[column], after.get(column))
        for column in before
        if column not in but and before[column] != after.get(column)
    }

    assert not changed, f"{what} changes nothing else; found {changed} of {before['name']!r}"


async def expect_listed(butler: Butler, name: str, row: Row) -> None:
    """The list shows a task as its row has it."""
    listed = await listed_tasks(butler)

    assert name in listed, f"{butler.name} does not list {name!r}: {sorted(listed)}"
    for column in ("cron", "prompt", "source", "enabled"):
        expect_same(
            f"the list agrees with the row ({column})",
            expected=row[column],
            found=listed[name].get(column, row[column]),
        )
    shown = listed[name].get("next_run_at")

    assert shown is None or expect_moment("a time shown", shown) == row["next_run_at"], (
        f"the list says that it is due at {shown}, its row {row['next_run_at']}"
    )


async def listed_tasks(butler: Butler) -> dict[str, Row]:
    """What the butler lists, by name."""
    answer = await butler.call("schedule_list")
    return {str(entry["name"]): entry for entry in values_inside(answer) if "name" in entry}


def values_inside(value: Any) -> list[Any]:
    """Every object inside an answer, however it is wrapped."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    found = [one for one in inner if isinstance(one, dict)]
    return [*found, *(deeper for one in inner for deeper in values_inside(one))]


async def database_now(butler: Butler) -> datetime:
    """The clock of its database."""
    row = await butler.database.one("SELECT clock_timestamp() AS now")
    return cast("datetime", row["now"])


async def rows_named(butler: Butler, name: str) -> list[Row]:
    """Rows of tasks of that name."""
    rows = await butler.database.rows("SELECT * FROM scheduled_tasks WHERE name = %s", (name,))
    return list(rows)


async def all_rows(butler: Butler) -> dict[str, Row]:
    """Every task that it has a row of, by name."""
    rows = await butler.database.rows("SELECT * FROM scheduled_tasks")
    return {row["name"]: row for row in rows}


async def tick_together(butler: Butler, name: str) -> None:
    """Tick it many times at once: all that will, read a task before one of them has claimed it.

    Its row is held until they wait for it, and they go on together. A tick that passes over a row that is
    held, or is refused for it, leaves the task due: so there is one more.
    """
    answers: list[ToolResult] = []
    async with AsyncExitStack() as open_ones:
        callers = [
            await open_ones.enter_async_context(open_conversation(butler, seconds=TICK_S))
            for _ in range(TICKS)
        ]

        async def tick(caller: Conversation) -> None:
            answers.append(await caller.try_call("tick"))

        async with trio.open_nursery() as nursery, hold_row(butler, name):
            for caller in callers:
                nursery.start_soon(tick, caller)
            await until_they_meet(butler, answered=lambda: len(answers) == TICKS)
    await tick_butler(butler)


async def tick_butler(butler: Butler) -> None:
    """Tick it, and wait until nothing that a tick started runs on."""
    async with open_conversation(butler, seconds=TICK_S) as caller:
        await caller.call("tick")

    async def settled() -> bool:
        rows = await butler.database.rows(
            "SELECT id FROM sessions WHERE completed_at IS NULL AND trigger_source LIKE 'schedule:%'"
        )
        return not rows

    with deadline(f"see the scheduled sessions of {butler.name} end", seconds=TICK_S):
        await until(settled)


async def change_task(butler: Butler, name: str, tool: str, **changes: Any) -> None:
    """Call a tool on a task, by its id, with these changes."""
    task = await schedule_row(butler, name)
    await butler.call(tool, **{await id_argument(butler): str(task["id"])}, **changes)


async def id_argument(butler: Butler) -> str:
    """What this product calls the argument that names a task; the contract leaves it open."""
    if butler.url not in _ID_ARGUMENTS:
        properties = (await butler.tools())["schedule_update"]["properties"]
        _ID_ARGUMENTS[butler.url] = next(
            name for name in properties if name == "id" or name.endswith("_id")
        )
    return _ID_ARGUMENTS[butler.url]


#: What was found so far, by the address of the butler.
_ID_ARGUMENTS: Final[dict[str, str]] = {}
