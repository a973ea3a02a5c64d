"""Tasks outlive their butler's restart, its death at work, and whoever ticks it.

The gateway is a stand-in for the model provider.
"""

from __future__ import annotations

from contextlib import suppress

import pytest
import trio

from harness_core.doubles.model import Fault
from suites.e2e.contracts.tasks import (
    ANSWERS,
    TICK_S,
    change_task,
    expect_unchanged,
    listed_tasks,
    scheduled,
    tick_butler,
    values_inside,
)
from suites.e2e.ecosystem.butler import Butler
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.ecosystem.mcp import CannotReach
from suites.e2e.observe.sentences import expect_same
from suites.e2e.worlds.chaos import expect_soon
from suites.e2e.worlds.schedules import (
    fall_due,
    schedule_row,
    sessions_of,
)

pytestmark = [pytest.mark.covers("E2E-SCHEDULES"), pytest.mark.capability("schedules")]


@pytest.mark.disturbs
@pytest.mark.slow
async def test_a_restart_loses_no_task(ecosystem: Ecosystem, token: str) -> None:
    """What fell due while a butler was down runs once at the first tick of its new life.

    Its state, its disabled tasks and its sessions are what they were, after a second restart too.
    One that is killed at a task says afterwards that the task does not run.
    """
    general = ecosystem["general"]
    async with scheduled(general, f"{token}off") as off, scheduled(general, token) as name:
        await change_task(general, off, "schedule_update", enabled=False)
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
        await tick_butler(general)
        ran = await sessions_of(general, name)

        assert 1 == len(ran), f"due at {due['next_run_at']}, it ran {len(ran)} times"
        after = await schedule_row(general, name)

        assert armed <= after["next_run_at"], f"armed for {after['next_run_at']} instead of {armed}"
        await general.restart()
        await tick_butler(general)
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

        assert {"kept": [token, None, 0.1]} in (kept, *values_inside(kept)), (
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
        ("the list", (await listed_tasks(general))[name].get("last_result")),
    ):
        assert "running" not in str(shown).casefold(), (
            f"a row says what happened: the butler was killed at the task's work, nothing of it runs "
            f"any more, and {where} says {shown}"
        )
    await fall_due(general, name)
    await tick_butler(general)
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
            await tick_butler(general)
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
