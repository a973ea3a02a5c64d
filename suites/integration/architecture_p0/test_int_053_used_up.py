"""INT-053: an agent that does not come to its end by itself comes to none that looks like it."""

from __future__ import annotations

from typing import Final

import pytest

from harness_core.doubles.turns import use
from suites.integration.comparing import expect_same
from suites.integration.episodes import Episodes, new_token
from suites.integration.temporal_view import closed_workflow

pytestmark = [pytest.mark.covers("INT-053"), pytest.mark.integration_p0]

#: More turns than an agent may have in most stacks.
_TURNS: Final = 60


async def test_int_053_turns_that_are_used_up_are_no_success(episodes: Episodes) -> None:
    """An agent that is stopped before its end has failed, says why, and so does Temporal; what it did is there.

    One that is let do all of it has completed. The model provider is a stand-in: the gateway does the turns.
    """
    token = new_token()
    await episodes.rehearse(
        token,
        *(use("fs_write", path=f"{turn}.txt", content=f"{turn}") for turn in range(_TURNS)),
    )
    accepted = await episodes.submit(token)
    episode = await episodes.until(accepted["episode_id"], "completed", "failed")
    done = [trace for trace in episode["traces"] if trace["kind"] == "tool"]
    wanted = "completed" if len(done) == _TURNS else "failed"
    expect_same(wanted, episode["status"], what=f"the end after {len(done)} of {_TURNS} calls")
    assert wanted == "completed" or "turn" in episode["reason"].lower(), (
        f"an agent whose turns are used up: expected that reason, found {episode['reason']!r}"
    )
    closed = await closed_workflow(episodes.stack, episode["workflow_id"])
    expect_same(wanted, closed.status, what="the end of its workflow at Temporal")
    left = await episodes.session(accepted["session_id"]).files()
    lost = [turn for turn in range(len(done)) if f"{turn}.txt" not in left]
    assert not lost, f"what an agent did before it was stopped is there: expected all, lost {lost}"
