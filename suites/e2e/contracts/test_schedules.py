"""Schedules: what is due runs once at the next tick, is armed again, and is lost by nothing.

A test does not wait for the clock: it moves ``next_run_at`` of its own task, a column of the
contract, into the past. Others may tick the butler meanwhile, so what counts is which sessions
ran, not which tick ran them.

A run that fails is one whose model refuses: the gateway is a stand-in for the model provider, which
does not refuse on request.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, cast
from zoneinfo import ZoneInfo

import pytest
import trio

from harness_core.base.bridge import Loop
from harness_core.base.errors import HarnessError
from harness_core.base.evidence import Evidence
from harness_core.base.wait import deadline, until
from harness_core.doubles.model import Fault
from harness_core.process import Run
from harness_core.system.subject import Subject
from suites.e2e.contracts.almanac import next_times
from suites.e2e.ecosystem.boot import link_butlers, open_ecosystem
from suites.e2e.ecosystem.butler import Butler
from suites.e2e.ecosystem.conversation import Conversation, open_conversation
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.ecosystem.mcp import CannotReach, ToolResult
from suites.e2e.observe.journey import Row
from suites.e2e.observe.sentences import expect_columns, expect_moment, expect_same
from suites.e2e.worlds.chaos import expect_soon
from suites.e2e.worlds.schedules import (
    fall_due,
    hold_row,
    oversleep,
    put_off,
    schedule_row,
    sessions_of,
    until_they_meet,
)
from suites.e2e.worlds.zones import zone_of_environment

pytestmark = [pytest.mark.covers("E2E-SCHEDULES"), pytest.mark.capability("schedules")]

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

UTC_ZONE: Final = ZoneInfo("UTC")
MINUTE: Final = timedelta(minutes=1)

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
        for task in await _tasks(butler, name):
            own_id = {await _id_argument(butler): str(task["id"])}
            await caller.call("schedule_delete", **own_id)


def prompt_of(token: str) -> str:
    """What the tasks of these tests ask for."""
    return f'Put "tea {token}" on the shopping list'


async def test_what_is_due_runs_once_and_is_armed_again(ecosystem: Ecosystem, token: str) -> None:
    """Many ticks at once run a due task once; it is due next at the time its cron line says."""
    general = ecosystem["general"]
    async with scheduled(general, token) as name:
        before = await schedule_row(general, name)

        expect_columns(
            "a new task is armed, enabled, of this source, and has not run", before,
            cron=DAILY, prompt=prompt_of(token), source="db", enabled=True, last_run_at=None,
            last_result=None,
        )  # fmt: skip
        expect_daily(general, before["next_run_at"])
        await expect_listed(general, name, before)
        began = await _now(general)
        await fall_due(general, name)
        await _tick_together(general, name)
        ran = await sessions_of(general, name)

        assert 1 == len(ran), f"a task that was due once ran {len(ran)} times"
        assert prompt_of(token) in ran[0]["prompt"], (
            f"the session of a task is asked {prompt_of(token)!r}; found {ran[0]['prompt']!r}"
        )
        assert ran[0]["success"] is True, f"the session of the task failed: {ran[0]['error']}"
        after = await schedule_row(general, name)
        last = after["last_run_at"]

        assert last is not None, f"a task that ran has no last_run_at: {dict(after)}"
        assert began <= last <= await _now(general), f"it ran since {began}, and says {last}"
        assert after["last_result"], f"nothing is written about how it went: {dict(after)}"
        expect_daily(general, after["next_run_at"])
        expect_unchanged("a run", before, after, but=("next_run_at", "last_run_at", "last_result"))
        await expect_listed(general, name, after)
        await _tick(general)
        again = await sessions_of(general, name)

        assert len(again) == 1, f"it ran again without being due: {len(again)} sessions"
        expect_unchanged("a tick that finds nothing due", after, await schedule_row(general, name))
        later = f" another {token}\n\t茶 "
        await _change(general, name, "schedule_update", prompt=later)
        changed = await schedule_row(general, name)

        expect_columns("an update is kept, blanks and all", changed, prompt=later)
        expect_unchanged("an update of the prompt after a run", after, changed, but=["prompt"])
        await _change(general, name, "schedule_update", enabled=False)
        disabled = await schedule_row(general, name)
        expect_unchanged("to disable it after a run", changed, disabled, but=["enabled"])


@pytest.mark.slow
async def test_all_that_is_due_runs_at_one_tick(ecosystem: Ecosystem, token: str) -> None:
    """Two tasks that fell due both run at the next tick, each once, however often one was missed."""
    general = ecosystem["general"]
    async with scheduled(general, f"{token}a") as first, scheduled(general, f"{token}b") as second:
        await fall_due(general, first)
        await oversleep(general, second)
        await _tick(general)
        ran = {name: len(await sessions_of(general, name)) for name in (first, second)}

        expect_same(
            "what is due runs once at the next tick, also after a long absence",
            expected={first: 1, second: 1},
            found=ran,
        )
        for name in (first, second):
            expect_daily(general, (await schedule_row(general, name))["next_run_at"])


@pytest.mark.slow
async def test_a_task_that_runs_can_be_changed(ecosystem: Ecosystem, token: str) -> None:
    """While its session runs, a tick does not run it again, and what is changed stays changed."""
    general = ecosystem["general"]
    client = ecosystem.gateway.client
    async with scheduled(general, token) as name:
        await fall_due(general, name)
        async with (
            trio.open_nursery() as nursery,
            client.fault(Fault(kind="hold", contains=token, times=20)) as number,
        ):
            nursery.start_soon(_tick, general)

            async def held() -> bool:
                return await client.fault_met(number) > 0

            with deadline("see the session of the task ask its model", seconds=TICK_S):
                await until(held)
            nursery.start_soon(_tick, general)
            await _change(general, name, "schedule_update", prompt=f"{prompt_of(token)} at once")
            await _change(general, name, "schedule_update", enabled=False)
        after = await schedule_row(general, name)

        ran = await sessions_of(general, name)

        assert 1 == len(ran), f"a task that runs was run again: {len(ran)} sessions"
        expect_columns(
            "a change that was acknowledged while the task ran is kept", after,
            cron=DAILY, enabled=False, prompt=f"{prompt_of(token)} at once",
        )  # fmt: skip
        assert after["last_result"], f"nothing is written about how it went: {dict(after)}"
        expect_daily(general, after["next_run_at"])


async def test_an_update_changes_what_it_is_given(ecosystem: Ecosystem, token: str) -> None:
    """Of cron line, prompt and ``enabled`` each can be changed alone; the answer is the new row."""
    general = ecosystem["general"]
    own = await _id_argument(general)
    async with (
        open_conversation(general) as client,
        scheduled(general, f"{token}n", client=client) as neighbour,
        scheduled(general, token, client=client) as name,
    ):
        beside = await schedule_row(general, neighbour)
        # With a time of its own, which no cron line gave it.
        await put_off(general, name)
        for changes in (
            {"prompt": f"another {token} 茶"},
            {"enabled": False},
            {"prompt": f"a third {token}"},
            {"enabled": True},
            {"cron": "41 5 * * *"},
            {"cron": "0 0 29 2 *", "prompt": f"a fourth {token}", "enabled": False},
        ):
            before = await schedule_row(general, name)
            asked = await _now(general)
            await client.call("schedule_update", **{own: str(before["id"])}, **changes)
            after = await schedule_row(general, name)
            given = f"an update of {' and '.join(changes)}"

            expect_columns(f"{given} is kept", after, **changes)
            armed = ("next_run_at",) if "cron" in changes else ()
            expect_unchanged(given, before, after, but=(*changes, *armed))
            if armed:
                expect_armed(general, after, asked)
            await expect_listed(general, name, after)

        expect_unchanged(
            "an update of another task", beside, await schedule_row(general, neighbour)
        )


@pytest.mark.parametrize("name", ["general", "health"])
async def test_a_cron_line_says_when_it_is_due(ecosystem: Ecosystem, token: str, name: str) -> None:
    """A task is armed for the first time its line names; by one clock, the world's or the place's.

    Two butlers, in two zones, one of which has clocks that change.
    """
    butler = ecosystem[name]
    zone = zone_of_environment(butler.environment)
    clocks = {"UTC": set(LINES), zone.key: set(LINES)}
    async with (
        open_conversation(butler) as client,
        scheduled(butler, token, client=client) as task,
    ):
        own_id = {await _id_argument(butler): str((await schedule_row(butler, task))["id"])}
        for kind, line in LINES.items():
            asked = await _now(butler)
            await client.call("schedule_update", **own_id, cron=line)
            row = await schedule_row(butler, task)
            expect_armed(butler, row, asked)
            for key, kinds in clocks.items():
                if row["next_run_at"] not in armed_for(line, asked, zone=ZoneInfo(key)):
                    kinds.discard(kind)

    assert set(LINES) in clocks.values(), (
        "all lines are read by one clock; by the world's are due only "
        f"{sorted(clocks['UTC'])}, by that of {zone.key} only {sorted(clocks[zone.key])}"
    )


async def test_what_does_not_exist_is_refused(ecosystem: Ecosystem, token: str) -> None:
    """An id that names no task, or one that was deleted, is refused; no other task is touched."""
    general = ecosystem["general"]
    own = await _id_argument(general)
    async with open_conversation(general) as client:
        async with scheduled(general, f"{token}x", client=client) as gone:
            old = str((await schedule_row(general, gone))["id"])
        async with scheduled(general, token, client=client) as name:
            before = await schedule_row(general, name)
            for number in (old, "00000000-0000-4000-8000-000000000000", "x", ""):
                for tool, changes in (
                    ("schedule_update", {"enabled": False}),
                    ("schedule_delete", {}),
                ):
                    answer = await client.try_call(tool, **{own: number}, **changes)

                    assert answer.is_error, (
                        f"{tool} of a task that does not exist is refused; {number!r} was answered "
                        f"with {answer.text}"
                    )
            expect_unchanged(
                "a refused call for another task", before, await schedule_row(general, name)
            )


async def test_what_is_not_due_does_not_run(ecosystem: Ecosystem, token: str) -> None:
    """A tick runs neither what is due later nor what is disabled; enabled again, it is not lost."""
    general = ecosystem["general"]
    async with scheduled(general, token) as name:
        await _tick(general)
        ran = await sessions_of(general, name)

        assert not ran, f"it ran before it was due: {len(ran)} sessions"
        await _change(general, name, "schedule_update", enabled=False)
        await fall_due(general, name)
        due = await schedule_row(general, name)
        await _tick(general)
        ran = await sessions_of(general, name)

        assert not ran, f"it ran although it is disabled: {len(ran)} sessions"
        expect_unchanged(
            "a tick of a disabled task", due, await schedule_row(general, name), but=["next_run_at"]
        )
        # Due once from here on, also when another tick comes between.
        await put_off(general, name)
        await _change(general, name, "schedule_update", enabled=True)
        await fall_due(general, name)
        await _tick(general)
        ran = await sessions_of(general, name)

        assert 1 == len(ran), f"enabled again and due, it ran {len(ran)} times"


@pytest.mark.disturbs
@pytest.mark.slow
async def test_a_restart_loses_no_task(ecosystem: Ecosystem, token: str) -> None:
    """What fell due while a butler was down runs once at the first tick of its new life.

    Its state, its disabled tasks and its sessions are what they were, after a second restart too.
    One that is killed at a task says afterwards that the task does not run.
    """
    general = ecosystem["general"]
    async with scheduled(general, f"{token}off") as off, scheduled(general, token) as name:
        await _change(general, off, "schedule_update", enabled=False)
        await fall_due(general, off)
        await general.call("state_set", key=token, value={"kept": [token, None, 0.1]})
        armed = (await schedule_row(general, name))["next_run_at"]
        disabled = await schedule_row(general, off)
        await general.stop()
        try:
            await fall_due(general, name)
            due = await schedule_row(general, name)
        finally:
            await general.start()
        expect_unchanged("a restart", due, await schedule_row(general, name))
        await _tick(general)
        ran = await sessions_of(general, name)

        assert 1 == len(ran), f"due at {due['next_run_at']}, it ran {len(ran)} times"
        after = await schedule_row(general, name)

        assert armed <= after["next_run_at"], f"armed for {after['next_run_at']} instead of {armed}"
        await general.restart()
        await _tick(general)
        again = await sessions_of(general, name)

        assert ran == again, f"after a second restart {len(again)} sessions instead of the one"
        expect_unchanged("a second restart", after, await schedule_row(general, name))
        expect_unchanged(
            "two restarts of a disabled task",
            disabled,
            await schedule_row(general, off),
            but=["next_run_at"],
        )
        kept = await general.call("state_get", key=token)

        assert {"kept": [token, None, 0.1]} in (kept, *_inside(kept)), (
            f"what state_set acknowledged is there after two restarts; found {kept}"
        )
        await general.call("state_delete", key=token)
        await _killed_at_work(ecosystem, general, name, token)


async def _killed_at_work(ecosystem: Ecosystem, general: Butler, name: str, token: str) -> None:
    """A task whose butler is killed in its session does not count as running for ever."""
    before = await sessions_of(general, name)
    client = ecosystem.gateway.client
    async with (
        trio.open_nursery() as nursery,
        client.fault(Fault(kind="hold", contains=token, times=20)) as number,
    ):
        await fall_due(general, name)

        async def tick() -> None:
            with suppress(CannotReach):
                await general.try_call("tick", seconds=TICK_S)

        async def held() -> bool:
            return await client.fault_met(number) > 0

        nursery.start_soon(tick)
        await expect_soon("the session of a task asks its model", held, seconds=TICK_S)
        await general.kill()
    await general.start()
    task = await schedule_row(general, name)
    cut = [row for row in await sessions_of(general, name) if row not in before]

    expect_same(
        "a session that was killed is closed as failed",
        expected=[(False, True)],
        found=[(row["success"], row["completed_at"] is not None) for row in cut],
    )
    for where, shown in (
        ("its row", task["last_result"]),
        ("the list", (await _listed(general))[name].get("last_result")),
    ):
        assert "running" not in str(shown).casefold(), (
            f"a row says what happened: the butler was killed at the task's work, nothing of it runs "
            f"any more, and {where} says {shown}"
        )
    await fall_due(general, name)
    await _tick(general)
    ran = [row["success"] for row in await sessions_of(general, name) if row not in before + cut]

    assert ran == [True], f"what was killed once runs at its next time, once; found {ran}"


@pytest.mark.slow
async def test_who_ticks_may_go_away(ecosystem: Ecosystem, token: str) -> None:
    """Two tasks are due, and whoever ticks is gone before the first is done: each is done, once.

    By the next tick at the latest.
    """
    general = ecosystem["general"]
    client = ecosystem.gateway.client
    async with scheduled(general, token) as first, scheduled(general, f"{token}two") as second:
        for name in (first, second):
            await fall_due(general, name)
        async with client.fault(Fault(kind="hold", contains=token, times=20)) as number:

            async def tick() -> None:
                with suppress(CannotReach):
                    await general.try_call("tick", seconds=TICK_S)

            async def held() -> bool:
                return await client.fault_met(number) > 0

            async with trio.open_nursery() as nursery:
                nursery.start_soon(tick)
                await expect_soon("the session of a task asks its model", held, seconds=TICK_S)
                nursery.cancel_scope.cancel()
            # Once it has answered others, a butler knows that a caller has hung up.
            for _ in range(ANSWERS):
                await general.status()

        async def done() -> dict[str, int]:
            await _tick(general)
            return {
                name: sum(row["success"] is True for row in await sessions_of(general, name))
                for name in (first, second)
            }

        found = await done()
        for _ in range(2):
            found = found if all(found.values()) else await done()
        expect_same(
            "a task that is due is done once, whether or not who ticked waits for it",
            expected={first: 1, second: 1},
            found=found,
            story=str([await schedule_row(general, name) for name in (first, second)]),
        )


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
        failed = await sessions_of(general, name)
        task = await schedule_row(general, name)

        assert 1 == len(failed), f"a task that was due once ran {len(failed)} times"
        assert failed[0]["success"] is False, f"a failed run is a success on record: {failed[0]}"
        assert failed[0]["error"], f"the failed session has no reason: {failed[0]}"
        expect_daily(general, task["next_run_at"])
        assert task["last_result"], f"nothing is written about how it went: {dict(task)}"
        assert "403" in str(task["last_result"]) or "success" not in str(task["last_result"]), (
            f"the failed run is recorded as {task['last_result']}"
        )
        await fall_due(general, name)
        await _tick(general)
        ran = [row["success"] for row in await sessions_of(general, name)]

        expect_same("a failed run comes again at its time", expected=[False, True], found=ran)
        good = await schedule_row(general, name)

        assert good["last_result"] != task["last_result"], (
            f"a good run after a failed one is recorded as {good['last_result']}"
        )
        assert good["last_run_at"] > task["last_run_at"], (
            f"the second run is dated {good['last_run_at']}, the first one {task['last_run_at']}"
        )


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

        assert made.is_error, f"{line!r} is no cron line, and a task was made: {made.text}"
        left = await _tasks(general, f"none-{token}")

        assert not left, f"what was refused leaves nothing; found {left}"
        before = await schedule_row(general, name)
        own_id = {await _id_argument(general): str(before["id"])}
        changed = await client.try_call("schedule_update", **own_id, cron=line, prompt="coffee")

        assert changed.is_error, f"{line!r} is no cron line, and a task was changed: {changed.text}"
        expect_unchanged("a refused update", before, await schedule_row(general, name))


async def test_a_name_is_taken_once(ecosystem: Ecosystem, token: str) -> None:
    """A second task of the same name is refused, and the first one stands as it was.

    A name that people read alike is another one.
    """
    general = ecosystem["general"]
    async with scheduled(general, token) as name, open_conversation(general) as client:
        before = await schedule_row(general, name)
        again = await client.try_call(
            "schedule_create", name=name, cron="0 0 1 1 *", prompt="another"
        )

        assert again.is_error, f"a name is taken once; a second task was made: {again.text}"
        expect_unchanged("a refused second task", before, await schedule_row(general, name))
        alike = [name.upper(), f"{name} ", f" {name}", name.replace("ï", "i\u0308"), name[:-1]]
        expected = {}
        for other in alike:
            made = await client.try_call(
                "schedule_create", name=other, cron="0 0 1 1 *", prompt="another"
            )
            # A name with blanks around it may be refused, in words; it is no other name.
            expected[other] = 0 if made.is_error and other.strip() != other else 1
        found = {other: len(await _tasks(general, other)) for other in alike}
        own = await _id_argument(general)
        for other in alike:
            for task in await _tasks(general, other):
                await client.call("schedule_delete", **{own: str(task["id"])})

        expect_same("names are compared letter by letter", expected=expected, found=found)
        expect_unchanged("tasks of other names", before, await schedule_row(general, name))


async def test_what_is_deleted_never_runs(ecosystem: Ecosystem, token: str) -> None:
    """A task that was deleted while it was due is gone from the table and from the list."""
    general = ecosystem["general"]
    async with scheduled(general, token) as name, scheduled(general, f"{token}n") as neighbour:
        beside = await schedule_row(general, neighbour)
        await fall_due(general, name)
        # Another tick may have come between.
        ran = await sessions_of(general, name)
        await _change(general, name, "schedule_delete")
        await _tick(general)
        left = await _tasks(general, name)

        assert not left, f"a deleted task is gone; found {left}"
        listed = await _listed(general)

        assert name not in listed, f"a deleted task is listed: {listed[name]}"
        again = await sessions_of(general, name)

        assert len(ran) == len(again), "it ran although it was deleted"
        expect_unchanged("a neighbour's deletion", beside, await schedule_row(general, neighbour))


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

TAKEN: Final = """
[[butler.schedule]]
name = "{token}-taken"
cron = "7 7 7 7 *"
prompt = "take the name {token}"
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

    One that the file left as it was keeps its time: what fell due meanwhile runs, once. A task that
    was made at run time stays as it was acknowledged, also when the file has its name: such a file
    is refused, or does without that task.
    """
    roster = tmp_path / "roster"
    link_butlers(subject, roster, ["switchboard"])
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

            expect_same(
                "the tasks are those of the file and those made at run time",
                expected={
                    f"{token}-yearly": ("toml", "0 0 29 2 *", True),
                    f"{token}-daily": ("toml", "17 3 * * *", True),
                    f"{token}-weekly": ("toml", "23 4 * * 1", True),
                    own: ("db", DAILY, True),
                },
                found={
                    name: (row["source"], row["cron"], row["enabled"])
                    for name, row in first.items()
                },
            )
            expect_daily(almanac, first[f"{token}-daily"]["next_run_at"])
            # What an operator switched off stays off: the file says nothing about it.
            await _change(almanac, f"{token}-daily", "schedule_update", enabled=False)
            schedules = LATER.format(token=token, kept=kept)
            file.write_text(ALMANAC.format(schedules=schedules), encoding="utf-8")
            await almanac.stop()
            await fall_due(almanac, yearly)
            await almanac.start()
            later = await _all(almanac)

            expect_same(
                "a task that is no more in the file is gone, others are not",
                expected={yearly, f"{token}-daily", own},
                found=set(later),
            )
            expect_unchanged("a file that does not name it", first[own], later[own])
            daily = later[f"{token}-daily"]

            expect_columns(
                "a task of the file follows the file, and stays the one it was", daily,
                cron="41 5 * * *", prompt=f"look at the new day {token}", source="toml",
                enabled=False, id=first[f"{token}-daily"]["id"],
            )  # fmt: skip
            expect_armed(almanac, daily, await _now(almanac))
            await _tick(almanac)
            ran = await sessions_of(almanac, yearly)

            assert 1 == len(ran), f"due while it was down, and lost: it ran {len(ran)} times"
            settled = await _all(almanac)
            await almanac.restart()
            await _tick(almanac)
            again = await _all(almanac)

            expect_same(
                "a second start changes no set of tasks", expected=set(settled), found=set(again)
            )
            for name, row in settled.items():
                expect_unchanged("a second start with the same file", row, again[name])
            ran = await sessions_of(almanac, yearly)

            assert 1 == len(ran), (
                f"after a second start it has run {len(ran)} times instead of once"
            )
            await expect_name_kept(almanac, file, token, schedules=schedules)

    with harness_loop.hold(manager) as ecosystem:
        harness_loop.run(lambda: judge(ecosystem))


async def expect_name_kept(almanac: Butler, file: Path, token: str, *, schedules: str) -> None:
    """A task that was made at run time keeps its name, whatever the file says and said.

    Args:
        almanac: a butler.
        file: its ``butler.toml``.
        token: of the test.
        schedules: the schedules of the file, to which one is added and taken away again.
    """
    name = f"{token}-taken"
    await almanac.call("schedule_create", name=name, cron=DAILY, prompt=prompt_of(token))
    made = await schedule_row(almanac, name)
    for more in (TAKEN.format(token=token), ""):
        file.write_text(ALMANAC.format(schedules=schedules + more), encoding="utf-8")
        await almanac.stop()
        # A butler that refuses the file says why, and starts without it.
        with suppress(HarnessError):
            await almanac.start()
        found = await _tasks(almanac, name)

        assert 1 == len(found), (
            f"acknowledged means kept: a task that was made at run time is gone when the file "
            f"{'has' if more else 'had'} one of its name; expected it once, found {found}"
        )
        expect_unchanged("a file with a task of its name", made, found[0])
    await _change(almanac, name, "schedule_delete")


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
    listed = await _listed(butler)

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


async def _listed(butler: Butler) -> dict[str, Row]:
    answer = await butler.call("schedule_list")
    return {str(entry["name"]): entry for entry in _inside(answer) if "name" in entry}


def _inside(value: Any) -> list[Any]:
    """Every object inside an answer, however it is wrapped."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    found = [one for one in inner if isinstance(one, dict)]
    return [*found, *(deeper for one in inner for deeper in _inside(one))]


async def _now(butler: Butler) -> datetime:
    row = await butler.database.one("SELECT clock_timestamp() AS now")
    return cast("datetime", row["now"])


async def _tasks(butler: Butler, name: str) -> list[Row]:
    rows = await butler.database.rows("SELECT * FROM scheduled_tasks WHERE name = %s", (name,))
    return list(rows)


async def _all(butler: Butler) -> dict[str, Row]:
    rows = await butler.database.rows("SELECT * FROM scheduled_tasks")
    return {row["name"]: row for row in rows}


async def _tick_together(butler: Butler, name: str) -> None:
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
    await _tick(butler)


async def _tick(butler: Butler) -> None:
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
