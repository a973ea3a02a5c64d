"""The handle of a butler: it can be taken away in three ways, and always comes back."""

from __future__ import annotations

import pytest
import trio

from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.ecosystem.mcp import CannotReach
from suites.e2e.worlds.chaos import expect_soon

pytestmark = [pytest.mark.covers("E2E-LIFECYCLE"), pytest.mark.disturbs]

#: A paused process answers nothing; a healthy one answers `status` in some 20 ms.
NO_ANSWER_S = 1.5

#: A butler that serves registers at once.
REGISTERS_S = 20.0


async def test_a_killed_butler_comes_back_at_its_address(ecosystem: Ecosystem) -> None:
    """After SIGKILL no process answers; restarted, a new process serves the same port and data."""
    general = ecosystem["general"]
    await general.call("state_set", key="survives", value=[1, "two", None])
    first = general.pid
    registry = ecosystem.switchboard.database
    await general.kill()
    killed = await registry.one("SELECT clock_timestamp() AS at")
    try:
        with pytest.raises(CannotReach):
            await general.status()
    finally:
        await general.restart()

    assert first != general.pid
    assert "general" == (await general.status())["name"]
    await general.database.expect_row(
        "state", where={"key": "survives"}, columns={"value": [1, "two", None]}
    )

    async def registered() -> bool:
        rows = await registry.rows(
            "SELECT 1 FROM butler_registry WHERE name = 'general'"
            " AND eligibility_state = 'active' AND last_seen_at > %s",
            (killed["at"],),
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
    assert "general" == (await general.status())["name"]
    assert first == general.pid


async def test_a_stopped_butler_ends_by_itself(ecosystem: Ecosystem) -> None:
    """Asked to stop, an idle butler leaves at once with status 0, and nothing of it stays."""
    general = ecosystem["general"]
    child = general.child
    await general.stop()
    try:
        report = child.stop_report

        assert report is not None
        assert 0 == report.returncode
        assert not report.killed
        assert () == report.strays
    finally:
        await general.start()
