"""The handle of a butler: it can be taken away in three ways, and always comes back."""

from __future__ import annotations

import pytest
import trio

from suites.e2e.ecosystem.handle import Butler, Ecosystem
from suites.e2e.ecosystem.mcp import CannotReach
from suites.e2e.worlds.chaos import expect_ended_well, expect_soon

pytestmark = [pytest.mark.covers("E2E-LIFECYCLE"), pytest.mark.disturbs]

#: A paused process answers nothing; a healthy one answers `status` in some 20 ms.
NO_ANSWER_S = 1.5

#: A butler that serves registers at once.
REGISTERS_S = 20.0


async def test_a_killed_butler_comes_back_at_its_address(ecosystem: Ecosystem) -> None:
    """After SIGKILL no process answers; restarted, a new process serves the same port and data."""
    general = ecosystem["general"]
    registry = ecosystem.switchboard.database
    for value in ([1, "two", None], {"ü": "x" * 70_000}):
        await general.call("state_set", key="survives", value=value)
        first = general.pid
        await general.kill()
        killed = await registry.one("SELECT clock_timestamp() AS at")
        try:
            with pytest.raises(CannotReach):
                await general.status()
        finally:
            await general.restart()

        assert not general.process.outlived, (
            f"nothing outlives its owner: {general.process.outlived} went on without general"
        )
        assert first != general.pid, f"a restarted butler is another process than {first}"
        await expect_own_name(general)
        await general.database.expect_row(
            "state", where={"key": "survives"}, columns={"value": value}
        )

        async def registered(since: object = killed["at"]) -> bool:
            rows = await registry.rows(
                "SELECT 1 FROM butler_registry WHERE name = 'general'"
                " AND eligibility_state = 'active' AND last_seen_at > %s",
                (since,),
            )
            return bool(rows)

        await expect_soon("general is registered again", registered, seconds=REGISTERS_S)


async def test_a_paused_butler_hangs_and_goes_on(ecosystem: Ecosystem) -> None:
    """SIGSTOP leaves the port open and every call unanswered; SIGCONT undoes it, same process."""
    general = ecosystem["general"]
    first = general.pid
    await general.pause()
    try:
        with trio.move_on_after(NO_ANSWER_S) as waiting:
            await general.try_call("status")
    finally:
        await general.resume()

    assert waiting.cancelled_caught, "a paused process answered"
    await expect_own_name(general)
    assert first == general.pid, f"a butler that was paused is process {general.pid}, not {first}"


async def test_a_stopped_butler_ends_by_itself(ecosystem: Ecosystem) -> None:
    """Asked to stop, an idle butler leaves at once with status 0, and nothing of it stays."""
    general = ecosystem["general"]
    child = general.child
    await general.stop()
    try:
        expect_ended_well("general", child.stop_report)
    finally:
        await general.start()
    await expect_own_name(general)


async def expect_own_name(butler: Butler) -> None:
    """A butler that serves answers by its name, and is as well as its modules are."""
    status = await butler.status()

    assert status["name"] == butler.name, f"{butler.name} calls itself {status['name']!r}"
    assert status["health"] in {"ok", "degraded"}, f"health is ok or degraded, found {status}"
