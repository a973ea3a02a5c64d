"""Schedules: what is due runs once at the next tick, is armed again, and is lost by nothing.

A test does not wait for the clock: it moves ``next_run_at`` of its own task, a column of the
contract, into the past. Others may tick the butler meanwhile, so what counts is which sessions
ran, not which tick ran them.

A run that fails is one whose model refuses: the gateway is a stand-in for the model provider, which
does not refuse on request.
"""

from __future__ import annotations

import pytest
import trio

from harness_core.base.wait import deadline, until
from harness_core.doubles.model import Fault
from suites.e2e.contracts.tasks import (
    DAILY,
    TICK_S,
    change_task,
    database_now,
    expect_daily,
    expect_listed,
    expect_unchanged,
    listed_tasks,
    prompt_of,
    rows_named,
    scheduled,
    tick_butler,
    tick_together,
)
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.observe.sentences import expect_columns, expect_same
from suites.e2e.worlds.schedules import (
    fall_due,
    oversleep,
    put_off,
    schedule_row,
    sessions_of,
)

pytestmark = [pytest.mark.covers("E2E-SCHEDULES"), pytest.mark.capability("schedules")]


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [{"enabled": False}, {"prompt": "say something else"}],
    ids=["switched-off", "prompt"],
)
async def test_a_task_that_waits_for_another_is_done_as_it_is_then(
    ecosystem: Ecosystem, token: str, changes: dict[str, object]
) -> None:
    """Of two due tasks the second is changed while the first runs: what is done is the task as it is then."""
    general, client = ecosystem["general"], ecosystem.gateway.client
    async with (
        scheduled(general, f"{token}one") as first,
        scheduled(general, f"{token}two") as second,
    ):
        for name in (first, second):  # the first is due first
            await fall_due(general, name)
        hold = Fault(kind="hold", contains=f"{token}one", times=20)
        async with trio.open_nursery() as nursery, client.fault(hold) as number:
            nursery.start_soon(tick_butler, general)

            async def is_held() -> bool:
                return await client.fault_met(number) > 0

            with deadline("see the first task ask its model", seconds=TICK_S):
                await until(is_held)
            await change_task(general, second, "schedule_update", **changes)
        ran = [row["prompt"] for row in await sessions_of(general, second)]
    if "enabled" in changes:
        assert not ran, f"it was switched off before its turn, and ran: {ran}"
    else:
        assert 1 == len(ran), f"a due task is done once, however it was changed: found {ran}"
        assert str(changes["prompt"]) in ran[0], f"done as it was, and not as it is: {ran}"


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
        began = await database_now(general)
        await fall_due(general, name)
        await tick_together(general, name)
        ran = await sessions_of(general, name)

        assert 1 == len(ran), f"a task that was due once ran {len(ran)} times"
        assert prompt_of(token) in ran[0]["prompt"], (
            f"the session of a task is asked {prompt_of(token)!r}; found {ran[0]['prompt']!r}"
        )
        assert ran[0]["success"] is True, f"the session of the task failed: {ran[0]['error']}"
        after = await schedule_row(general, name)
        last = after["last_run_at"]

        assert last is not None, f"a task that ran has no last_run_at: {dict(after)}"
        assert began <= last <= await database_now(general), (
            f"it ran since {began}, and says {last}"
        )
        assert after["last_result"], f"nothing is written about how it went: {dict(after)}"
        expect_daily(general, after["next_run_at"])
        expect_unchanged("a run", before, after, but=("next_run_at", "last_run_at", "last_result"))
        await expect_listed(general, name, after)
        await tick_butler(general)
        again = await sessions_of(general, name)

        assert len(again) == 1, f"it ran again without being due: {len(again)} sessions"
        expect_unchanged("a tick that finds nothing due", after, await schedule_row(general, name))
        later = f" another {token}\n\t茶 "
        await change_task(general, name, "schedule_update", prompt=later)
        changed = await schedule_row(general, name)

        expect_columns("an update is kept, blanks and all", changed, prompt=later)
        expect_unchanged("an update of the prompt after a run", after, changed, but=["prompt"])
        await change_task(general, name, "schedule_update", enabled=False)
        disabled = await schedule_row(general, name)
        expect_unchanged("to disable it after a run", changed, disabled, but=["enabled"])


@pytest.mark.slow
async def test_all_that_is_due_runs_at_one_tick(ecosystem: Ecosystem, token: str) -> None:
    """Two tasks that fell due both run at the next tick, each once, however often one was missed."""
    general = ecosystem["general"]
    async with scheduled(general, f"{token}a") as first, scheduled(general, f"{token}b") as second:
        await fall_due(general, first)
        await oversleep(general, second)
        await tick_butler(general)
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
            nursery.start_soon(tick_butler, general)

            async def held() -> bool:
                return await client.fault_met(number) > 0

            with deadline("see the session of the task ask its model", seconds=TICK_S):
                await until(held)
            nursery.start_soon(tick_butler, general)
            await change_task(
                general, name, "schedule_update", prompt=f"{prompt_of(token)} at once"
            )
            await change_task(general, name, "schedule_update", enabled=False)
        after = await schedule_row(general, name)

        ran = await sessions_of(general, name)

        assert 1 == len(ran), f"a task that runs was run again: {len(ran)} sessions"
        expect_columns(
            "a change that was acknowledged while the task ran is kept", after,
            cron=DAILY, enabled=False, prompt=f"{prompt_of(token)} at once",
        )  # fmt: skip
        assert after["last_result"], f"nothing is written about how it went: {dict(after)}"
        expect_daily(general, after["next_run_at"])


async def test_what_is_not_due_does_not_run(ecosystem: Ecosystem, token: str) -> None:
    """A tick runs neither what is due later nor what is disabled; enabled again, it is not lost."""
    general = ecosystem["general"]
    async with scheduled(general, token) as name:
        await tick_butler(general)
        ran = await sessions_of(general, name)

        assert not ran, f"it ran before it was due: {len(ran)} sessions"
        await change_task(general, name, "schedule_update", enabled=False)
        await fall_due(general, name)
        due = await schedule_row(general, name)
        await tick_butler(general)
        ran = await sessions_of(general, name)

        assert not ran, f"it ran although it is disabled: {len(ran)} sessions"
        expect_unchanged(
            "a tick of a disabled task", due, await schedule_row(general, name), but=["next_run_at"]
        )
        # Due once from here on, also when another tick comes between.
        await put_off(general, name)
        await change_task(general, name, "schedule_update", enabled=True)
        await fall_due(general, name)
        await tick_butler(general)
        ran = await sessions_of(general, name)

        assert 1 == len(ran), f"enabled again and due, it ran {len(ran)} times"


async def test_a_failed_run_is_written_down_and_comes_again(
    ecosystem: Ecosystem, token: str
) -> None:
    """When the model refuses the session, the task says that it failed, and runs at its next time."""
    general = ecosystem["general"]
    async with scheduled(general, token) as name:
        await fall_due(general, name)
        fault = Fault(kind="status", status=403, contains=token, times=20)
        async with ecosystem.gateway.client.fault(fault):
            await tick_butler(general)
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
        await tick_butler(general)
        ran = [row["success"] for row in await sessions_of(general, name)]

        expect_same("a failed run comes again at its time", expected=[False, True], found=ran)
        good = await schedule_row(general, name)

        assert good["last_result"] != task["last_result"], (
            f"a good run after a failed one is recorded as {good['last_result']}"
        )
        assert good["last_run_at"] > task["last_run_at"], (
            f"the second run is dated {good['last_run_at']}, the first one {task['last_run_at']}"
        )


async def test_what_is_deleted_never_runs(ecosystem: Ecosystem, token: str) -> None:
    """A task that was deleted while it was due is gone from the table and from the list."""
    general = ecosystem["general"]
    async with scheduled(general, token) as name, scheduled(general, f"{token}n") as neighbour:
        beside = await schedule_row(general, neighbour)
        await fall_due(general, name)
        # Another tick may have come between.
        ran = await sessions_of(general, name)
        await change_task(general, name, "schedule_delete")
        await tick_butler(general)
        left = await rows_named(general, name)

        assert not left, f"a deleted task is gone; found {left}"
        listed = await listed_tasks(general)

        assert name not in listed, f"a deleted task is listed: {listed[name]}"
        again = await sessions_of(general, name)

        assert len(ran) == len(again), "it ran although it was deleted"
        expect_unchanged("a neighbour's deletion", beside, await schedule_row(general, neighbour))
