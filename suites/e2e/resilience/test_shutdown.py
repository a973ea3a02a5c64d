"""SIGTERM in the middle of a session: drained when it fits, else recorded as what it is.

To act in the middle of a session, its model call is held by the gateway: a stand-in for the model
provider, whose calls cannot be held.
"""

from __future__ import annotations

from typing import Any

import pytest
import trio

from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.observe.expect_broken_journey import (
    expect_carried_out,
    expect_failed_session,
    expect_no_open_session,
    expect_outcome,
)
from suites.e2e.observe.journey import follow
from suites.e2e.worlds.canned import TOOL_OF, to_health, to_relationship
from suites.e2e.worlds.chaos import Chaos, expect_in_time, expect_soon, refuses

pytestmark = [
    pytest.mark.covers("E2E-LIFECYCLE"),
    pytest.mark.capability("ingest.v1", "own-process"),
    pytest.mark.disturbs,
]

#: What health's sessions get to end (see conftest), and what the rest of a shutdown may take.
SHUTDOWN_S = 1.0
SLACK_S = 10.0

#: From SIGTERM to the first refusal.
REFUSES_S = 10.0


async def test_a_session_that_ends_in_time_is_drained(fragile: Ecosystem, chaos: Chaos) -> None:
    """New work is refused, the running session ends as a success, and the process after it."""
    held = await chaos.hold(TOOL_OF["relationship"])
    message = to_relationship()
    sent = await fragile.send(message.text)
    await chaos.until_met(held)
    reports: list[Any] = []

    async def stop() -> None:
        reports.append(await chaos.stop("relationship"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(stop)
        await expect_soon(
            "a butler that shuts down refuses work",
            lambda: refuses(fragile["relationship"]),
            seconds=REFUSES_S,
        )
        assert [] == reports, "it did not wait for its running session"
        await chaos.release(held)
    (report,) = reports

    assert not report.killed, "it did not end by itself"
    assert 0 == report.returncode
    assert () == report.strays
    await expect_carried_out(fragile, sent, "relationship")
    await message.expect_row(fragile, "relationship")
    await expect_no_open_session(fragile["relationship"])


@pytest.mark.knob("shutdown_s")
async def test_a_session_that_does_not_end_is_cut_off(fragile: Ecosystem, chaos: Chaos) -> None:
    """When the time is up the session is cancelled and closed as failed, with the reason."""
    held = await chaos.hold(TOOL_OF["health"])
    message = to_health()
    sent = await fragile.send(message.text)
    await chaos.until_met(held)
    report = await chaos.stop("health")

    assert not report.killed, "it did not end by itself"
    expect_in_time("the shutdown", report.waited_s, deadline_s=SHUTDOWN_S, slack_s=SLACK_S)
    assert () == report.strays
    journey = await follow(fragile, sent)
    story = journey.text()

    expect_outcome(journey, "health", {"internal_error", "target_unavailable"})
    (session,) = journey.of_message("health")
    # It is down: only the shutdown itself can have closed the row.
    expect_failed_session(session, butler="health", story=story)
    await expect_no_open_session(fragile["health"])

    await chaos.release(held)
    await chaos.start("health")
    await chaos.expect_back("health")
    await expect_carried_out(fragile, await fragile.send(to_health().text), "health")
    assert not await message.left_its_row(fragile, "health"), story
