"""What is written down about a session is what happened, above all when it failed."""

from __future__ import annotations

from harness_core.llm import Fault
from suites.e2e.chain import expect_finished
from suites.e2e.ecosystem import Ecosystem
from suites.e2e.journey import follow

#: The Claude Code CLI gives up at once on this status; others it retries for minutes.
REFUSED = 403


async def test_a_failed_session_is_recorded_as_a_failure(ecosystem: Ecosystem, token: str) -> None:
    """When the model refuses the target's session, no row anywhere calls that a success.

    The refusal is made by the gateway, for calls that offer health's tools alone, so that the
    classification before it succeeds.
    """
    client = ecosystem.gateway.client
    await client.add_fault(
        Fault(kind="status", status=REFUSED, times=20, contains="mcp__health__symptom_log")
    )
    try:
        sent = await ecosystem.send(f"I have a headache, severity 6 ({token})")
        journey = await follow(ecosystem, sent)
    finally:
        await client.clear()
    story = journey.text()
    sessions = journey.of_message("health")

    assert not journey.unfinished, story
    assert 1 == len(sessions), story
    expect_finished(sessions[0], butler="health", story=story)
    assert sessions[0]["success"] is False, f"a failed session is recorded as success\n{story}"
    assert sessions[0]["error"], f"the failure has no reason\n{story}"
    assert 1 == len(journey.routing), story
    assert journey.routing[0]["success"] is False, f"a failed hop is recorded as success\n{story}"
    assert journey.routing[0]["error"], f"the failed hop has no reason\n{story}"
    outcomes = str(journey.inbox[0]["dispatch_outcomes"])

    assert "success" not in outcomes.replace("'success': False", ""), (
        f"dispatch_outcomes call it a success: {outcomes}\n{story}"
    )
    await ecosystem["health"].database.expect_no_row("symptoms", where={"severity": 6})


async def test_the_next_session_works_after_a_failed_one(ecosystem: Ecosystem, token: str) -> None:
    """A failure leaves nothing behind: the next message to the same butler succeeds."""
    sent = await ecosystem.send(f"I have a headache, severity 2 ({token})")
    journey = await follow(ecosystem, sent)

    assert [True] == [row["success"] for row in journey.of_message("health")], journey.text()
