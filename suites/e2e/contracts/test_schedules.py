"""Schedules: what is due runs once at the next tick, is armed again, and is lost by nothing.

A test does not wait for the clock: it moves ``next_run_at`` of its own task, a column of the
contract, into the past. Others may tick the butler meanwhile, so what counts is which sessions
ran, not which tick ran them.

A run that fails is one whose model refuses: the gateway is a stand-in for the model provider, which
does not refuse on request.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from harness_core.base.bridge import Loop
from harness_core.base.evidence import Evidence
from harness_core.base.wait import deadline, until
from harness_core.doubles.model import Fault
from harness_core.process import Run
from harness_core.system.subject import Subject
from suites.e2e.ecosystem.boot import open_ecosystem, roster_directory
from suites.e2e.ecosystem.butler import Butler
from suites.e2e.ecosystem.conversation import Conversation, open_conversation
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.observe.journey import Row
from suites.e2e.worlds.schedules import fall_due, put_off, schedule_row, sessions_of

pytestmark = [pytest.mark.covers("E2E-SCHEDULES"), pytest.mark.capability("schedules")]

#: Once a day: never due by itself while a test runs.
DAILY: Final = "17 3 * * *"
DAILY_HOUR: Final = 3
DAILY_MINUTE: Final = 17

#: Ticks that come at the same moment; so many that some read the task before another has claimed it.
TICKS: Final = 8

#: A tick that runs one session answers when it ended; slowest seen on 2 loaded cores: 6 s.
TICK_S: Final = 60.0

NO_CRON: Final = {
    "words": "every day at nine",
    "empty": "",
    "four-fields": "0 9 * *",
    "minute-61": "61 * * * *",
    "hour-24": "0 24 * * *",
    "month-13": "0 0 1 13 *",
    "backwards": "0 9-5 * * *",
    "step-zero": "*/0 * * * *",
    "never-comes": "0 0 31 2 *",
    "sql": "0 9 * * *'; DROP TABLE scheduled_tasks; --",
}


@asynccontextmanager
async def scheduled(
    butler: Butler, token: str, *, client: Conversation | None = None
) -> AsyncIterator[str]:
    """A task of the test's own; yields its name."""
    name = f"task-{token}"
    prompt = f'Put "tea {token}" on the shopping list'
    caller = client or butler
    await caller.call("schedule_create", name=name, cron=DAILY, prompt=prompt)
    try:
        yield name
    finally:
        for task in await _tasks(butler, name):
            own_id = {await _id_argument(butler): str(task["id"])}
            await caller.call("schedule_delete", **own_id)


async def test_what_is_due_runs_once_and_is_armed_again(ecosystem: Ecosystem, token: str) -> None:
    """Many ticks at once run a due task once; it is due next at the time its cron line says."""
    general = ecosystem["general"]
    async with scheduled(general, token) as name:
        before = await schedule_row(general, name)

        assert "db" == before["source"]
        assert before["enabled"] is True
        assert before["last_run_at"] is None
        expect_daily(before["next_run_at"])
        await fall_due(general, name)
        await _tick(general, times=TICKS)
        ran = await sessions_of(general, name)

        assert 1 == len(ran), f"a task that was due once ran {len(ran)} times"
        assert ran[0]["success"] is True, ran[0]["error"]
        assert token in ran[0]["prompt"]
        after = await schedule_row(general, name)

        assert after["last_run_at"] is not None
        assert after["last_result"], "nothing is written about how it went"
        expect_daily(after["next_run_at"])
        await _tick(general)

        assert ran == await sessions_of(general, name), "it ran again without being due"


@pytest.mark.slow
async def test_all_that_is_due_runs_at_one_tick(ecosystem: Ecosystem, token: str) -> None:
    """Two tasks that fell due both run at the next tick, each once."""
    general = ecosystem["general"]
    async with scheduled(general, f"{token}a") as first, scheduled(general, f"{token}b") as second:
        for name in (first, second):
            await fall_due(general, name)
        await _tick(general)
        ran = {name: len(await sessions_of(general, name)) for name in (first, second)}

        assert {first: 1, second: 1} == ran


async def test_what_is_not_due_does_not_run(ecosystem: Ecosystem, token: str) -> None:
    """A tick runs neither what is due later nor what is disabled; enabled again, it is not lost."""
    general = ecosystem["general"]
    async with scheduled(general, token) as name:
        await _tick(general)

        assert [] == await sessions_of(general, name), "it ran before it was due"
        await _change(general, name, "schedule_update", enabled=False)
        await fall_due(general, name)
        await _tick(general)

        assert [] == await sessions_of(general, name), "it ran although it is disabled"
        # Due once from here on, also when another tick comes between.
        await put_off(general, name)
        await _change(general, name, "schedule_update", enabled=True)
        await fall_due(general, name)
        await _tick(general)

        assert 1 == len(await sessions_of(general, name)), "enabled again, it did not run"


@pytest.mark.disturbs
@pytest.mark.slow
async def test_a_restart_loses_no_task(ecosystem: Ecosystem, token: str) -> None:
    """What fell due while a butler was down runs once at the first tick of its new life."""
    general = ecosystem["general"]
    async with scheduled(general, token) as name:
        armed = (await schedule_row(general, name))["next_run_at"]
        await general.stop()
        try:
            await fall_due(general, name)
            due = (await schedule_row(general, name))["next_run_at"]
        finally:
            await general.start()
        rows = await _tasks(general, name)

        assert 1 == len(rows), "the task did not survive the restart"
        await _tick(general)

        assert 1 == len(await sessions_of(general, name)), f"due at {due}, it never ran"
        assert armed <= (await schedule_row(general, name))["next_run_at"]


async def test_a_failed_run_is_written_down_and_comes_again(
    ecosystem: Ecosystem, token: str
) -> None:
    """When the model refuses the session, the task says that it failed, and runs at its next time."""
    general = ecosystem["general"]
    async with scheduled(general, token) as name:
        await fall_due(general, name)
        fault = Fault(kind="status", status=403, contains=token, times=20)
        async with ecosystem.gateway.client.fault(fault):
            await _tick(general)
        (session,) = await sessions_of(general, name)
        task = await schedule_row(general, name)

        assert session["success"] is False
        assert session["error"], "the failed session has no reason"
        assert task["next_run_at"] > datetime.now(UTC)
        assert task["last_result"], "nothing is written about how it went"
        assert "403" in str(task["last_result"]) or "success" not in str(task["last_result"]), (
            f"the failed run is recorded as {task['last_result']}"
        )
        await fall_due(general, name)
        await _tick(general)
        ran = [row["success"] for row in await sessions_of(general, name)]

        assert [False, True] == ran, "it did not come again"


@pytest.mark.parametrize("line", NO_CRON.values(), ids=NO_CRON)
async def test_what_is_no_cron_line_is_refused(ecosystem: Ecosystem, token: str, line: str) -> None:
    """Such a task is not made, and a task that stands is not changed to it."""
    general = ecosystem["general"]
    async with (
        open_conversation(general) as client,
        scheduled(general, token, client=client) as name,
    ):
        made = await client.try_call(
            "schedule_create", name=f"none-{token}", cron=line, prompt="tea"
        )

        assert made.is_error, f"made: {made.text}"
        assert [] == await _tasks(general, f"none-{token}")
        before = await schedule_row(general, name)
        own_id = {await _id_argument(general): str(before["id"])}
        changed = await client.try_call("schedule_update", **own_id, cron=line)

        assert changed.is_error, f"changed: {changed.text}"
        assert before == await schedule_row(general, name)


async def test_a_name_is_taken_once(ecosystem: Ecosystem, token: str) -> None:
    """A second task of the same name is refused, and the first one stands as it was."""
    general = ecosystem["general"]
    async with scheduled(general, token) as name:
        before = await schedule_row(general, name)
        again = await general.try_call(
            "schedule_create", {"name": name, "cron": "0 0 1 1 *", "prompt": "another"}
        )

        assert again.is_error, f"made: {again.text}"
        assert before == await schedule_row(general, name)


async def test_what_is_deleted_never_runs(ecosystem: Ecosystem, token: str) -> None:
    """A task that was deleted while it was due is gone from the table and from the list."""
    general = ecosystem["general"]
    async with scheduled(general, token) as name:
        await fall_due(general, name)
        # Another tick may have come between.
        ran = await sessions_of(general, name)
        await _change(general, name, "schedule_delete")
        await _tick(general)

        assert [] == await _tasks(general, name)
        assert name not in str(await general.call("schedule_list"))
        assert len(ran) == len(await sessions_of(general, name)), "it ran although it was deleted"


ALMANAC: Final = """
[butler]
name = "almanac"
port = 8178
description = "Almanac: keeps an eye on the calendar."
capabilities = ["almanac"]

{schedules}
"""

FIRST: Final = """
[[butler.schedule]]
name = "{token}-daily"
cron = "17 3 * * *"
prompt = "look at the day {token}"

[[butler.schedule]]
name = "{token}-weekly"
cron = "23 4 * * 1"
prompt = "look at the week {token}"
{kept}"""

KEPT: Final = """
[[butler.schedule]]
name = "{token}-yearly"
cron = "0 0 29 2 *"
prompt = 'Put "cake {token}" on the shopping list'
"""

LATER: Final = """
[[butler.schedule]]
name = "{token}-daily"
cron = "41 5 * * *"
prompt = "look at the new day {token}"
{kept}"""


@pytest.mark.corpus
def test_the_file_rules_its_own_tasks_alone(
    harness_loop: Loop,
    harness_run: Run,
    subject: Subject,
    evidence: Evidence,
    tmp_path: Path,
    token: str,
    progress: Callable[[str], None],
) -> None:
    """At a start the tasks of ``butler.toml`` are made, changed and removed; the others stay.

    One that the file left as it was keeps its time: what fell due meanwhile runs, once.
    """
    roster = tmp_path / "roster"
    shutil.copytree(roster_directory(subject) / "switchboard", roster / "switchboard")
    file = roster / "almanac" / "butler.toml"
    file.parent.mkdir()
    kept = KEPT.format(token=token)
    file.write_text(
        ALMANAC.format(schedules=FIRST.format(token=token, kept=kept)), encoding="utf-8"
    )
    manager = open_ecosystem(harness_run, subject, evidence=evidence, roster=roster, say=progress)

    yearly = f"{token}-yearly"

    async def judge(ecosystem: Ecosystem) -> None:
        almanac = ecosystem["almanac"]
        async with scheduled(almanac, token) as own:
            first = await _all(almanac)

            assert {yearly, f"{token}-daily", f"{token}-weekly", own} == first.keys()
            assert {"toml", "db"} == {row["source"] for row in first.values()}
            assert "db" == first[own]["source"]
            expect_daily(first[f"{token}-daily"]["next_run_at"])
            schedules = LATER.format(token=token, kept=kept)
            file.write_text(ALMANAC.format(schedules=schedules), encoding="utf-8")
            await almanac.stop()
            await fall_due(almanac, yearly)
            await almanac.start()
            later = await _all(almanac)

            assert {yearly, f"{token}-daily", own} == later.keys()
            assert first[own] == later[own], "a task made at run time was changed by the file"
            daily = later[f"{token}-daily"]

            assert ("41 5 * * *", 41) == (daily["cron"], daily["next_run_at"].minute)
            assert "new day" in daily["prompt"]
            assert first[f"{token}-daily"]["id"] == daily["id"], "the task was made anew"
            await _tick(almanac)

            assert 1 == len(await sessions_of(almanac, yearly)), "due while it was down, and lost"

    with harness_loop.hold(manager) as ecosystem:
        harness_loop.run(lambda: judge(ecosystem))


def expect_daily(moment: datetime) -> None:
    """The next 03:17, by the world's clock or by the clock of this place."""
    assert datetime.now(UTC) < moment <= datetime.now(UTC) + timedelta(days=1), moment
    assert DAILY_MINUTE == moment.minute, moment
    assert DAILY_HOUR in {moment.astimezone(UTC).hour, moment.astimezone().hour}, moment


async def _tasks(butler: Butler, name: str) -> list[Row]:
    rows = await butler.database.rows("SELECT * FROM scheduled_tasks WHERE name = %s", (name,))
    return list(rows)


async def _all(butler: Butler) -> dict[str, Row]:
    rows = await butler.database.rows("SELECT * FROM scheduled_tasks")
    return {row["name"]: row for row in rows}


async def _tick(butler: Butler, *, times: int = 1) -> None:
    """Tick it, several times at once, and wait until nothing that a tick started runs on."""
    async with AsyncExitStack() as open_ones:
        # Connected before, so that the ticks come together.
        callers = [
            await open_ones.enter_async_context(open_conversation(butler, seconds=TICK_S))
            for _ in range(times)
        ]
        async with trio.open_nursery() as nursery:
            for caller in callers:
                nursery.start_soon(lambda one=caller: one.call("tick"))

    async def settled() -> bool:
        rows = await butler.database.rows(
            "SELECT id FROM sessions WHERE completed_at IS NULL AND trigger_source LIKE 'schedule:%'"
        )
        return not rows

    with deadline(f"see the scheduled sessions of {butler.name} end", seconds=TICK_S):
        await until(settled)


async def _change(butler: Butler, name: str, tool: str, **changes: Any) -> None:
    task = await schedule_row(butler, name)
    await butler.call(tool, **{await _id_argument(butler): str(task["id"])}, **changes)


async def _id_argument(butler: Butler) -> str:
    """What this product calls the argument that names a task; the contract leaves it open."""
    if butler.url not in _ID_ARGUMENTS:
        properties = (await butler.tools())["schedule_update"]["properties"]
        _ID_ARGUMENTS[butler.url] = next(
            name for name in properties if name == "id" or name.endswith("_id")
        )
    return _ID_ARGUMENTS[butler.url]


#: What was found so far, by the address of the butler.
_ID_ARGUMENTS: Final[dict[str, str]] = {}
