"""SIGTERM in the middle of a scheduled task: its session is cut off, and its row says what became of it.

To act in the middle of a session, its model call is held by the gateway: a stand-in for the model
provider, whose calls cannot be held.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import pytest
import trio

from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.ecosystem.mcp import CannotReach
from suites.e2e.observe.expect_broken_journey import expect_failed_session, expect_no_open_session
from suites.e2e.worlds.canned import to_health
from suites.e2e.worlds.chaos import Chaos
from suites.e2e.worlds.schedules import fall_due, schedule, schedule_row, sessions_of

pytestmark = [
    pytest.mark.covers("E2E-LIFECYCLE", "E2E-SCHEDULES"),
    pytest.mark.capability("schedules", "own-process"),
    pytest.mark.disturbs,
]

#: A tick whose butler stops in the middle of it.
TICK_S: Final = 60.0


@pytest.mark.knob("shutdown_s")
async def test_a_task_that_a_shutdown_cut_off(fragile: Ecosystem, chaos: Chaos, token: str) -> None:
    """Its session has failed, with a reason, and the task says neither that it runs nor that it is done.

    It comes again at its next time, as after any failure.
    """
    health = fragile["health"]
    name, message = f"cut {token}", to_health()
    await schedule(health, name, message.text)
    await fall_due(health, name)
    held = await chaos.hold(message.token)

    async def tick() -> None:
        with suppress(CannotReach):
            await health.try_call("tick", seconds=TICK_S)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(tick)
        await chaos.until_met(held)
        await chaos.stop_well("health")
        nursery.cancel_scope.cancel()
    # It is down: what stands there was written by the shutdown.
    await expect_no_open_session(health)
    task = await schedule_row(health, name)
    sessions = await sessions_of(health, name)

    assert len(sessions) == 1, f"a task that was due once is one session, found {sessions}"
    expect_failed_session(sessions[0], butler="health", story=str(dict(task)))
    assert task["last_result"], f"nothing is written about how the task went: {dict(task)}"
    assert "running" not in str(task["last_result"]), (
        f"its butler is down, nothing of the task runs, and its row says {task['last_result']}"
    )
    assert sessions[0]["error"] in str(task["last_result"]) or "success" not in str(
        task["last_result"]
    ), f"a task that was cut off is not done; its row says {task['last_result']}"
    assert task["next_run_at"] is not None, f"the task is not armed again: {dict(task)}"
    await chaos.release(held)
    await chaos.start("health")
    await chaos.expect_back("health")
    after = await schedule_row(health, name)

    assert str(after["last_result"]) == str(task["last_result"]), (
        f"a start leaves what was written of a task: {task['last_result']}, found {after['last_result']}"
    )
    await fall_due(health, name)
    await health.call("tick", seconds=TICK_S)
    ran = [row["success"] for row in await sessions_of(health, name)]

    assert ran == [False, True], f"what was cut off is done at its next time, found {ran}"
    await health.call("schedule_delete", schedule_id=str(task["id"]))
