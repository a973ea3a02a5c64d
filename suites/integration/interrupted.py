"""An episode that was interrupted at work, as its rows, events and Temporal have it (INT-030, INT-043)."""

from __future__ import annotations

from typing import Any

from suites.integration.comparing import expect_same, utc
from suites.integration.episodes import Episodes, calls
from suites.integration.temporal_view import closed_workflow

__all__ = ["expect_interrupted"]


async def expect_interrupted(episodes: Episodes, episode: dict[str, Any]) -> None:
    """Rows, events and Temporal of one that had begun say that it was interrupted, once, and why.

    Raises:
        AssertionError: one of them says otherwise.
    """
    steps = [step["to_status"] for step in episode["transitions"]]
    expect_same(["queued", "running", "interrupted"], steps, what="steps of an interrupted episode")
    last = episode["transitions"][-1]
    assert last["reason"], f"an interruption without a reason: {last}"
    assert last["reason"] == episode["reason"], f"its reason is {episode['reason']!r}, not {last}"
    asked = utc(episode["interrupt_requested_at"], what="interrupt_requested_at")
    at = utc(last["at"], what="time of the last step")
    assert asked <= at, f"it was interrupted at {at}, before that was asked for at {asked}"
    events = calls(await episodes.events(episode["episode_id"]), "workflow_transition")
    recorded = [event["payload"]["to_status"] for event in events]
    expect_same(steps, recorded, what="events of the steps of an interrupted episode")
    seen = await closed_workflow(episodes.stack, episode["workflow_id"])
    assert "canceled" == seen.status, f"Temporal has {seen}, the episode is interrupted"
