"""Without Temporal nothing claims success, and nothing is stuck."""

from __future__ import annotations

from typing import Any

import pytest

from harness_core.doubles.http import Response
from harness_core.doubles.turns import use
from suites.integration.episodes import Episodes, calls, new_token
from suites.integration.health import payload, unwell
from suites.integration.patience import COMMAND_S, SOON_S, eventually
from suites.integration.refusals import expect_refused
from suites.integration.temporal_view import closed_workflow


@pytest.mark.covers("INT-054")
@pytest.mark.integration_p0
@pytest.mark.parametrize("how", ["kill", "pause"])
async def test_int_054_an_outage_of_temporal_is_no_success(breakable: Episodes, how: str) -> None:
    """What runs, and what is submitted, while Temporal is away fails: with state, reason and event.

    It stays failed when Temporal is back and still knows of the workflow, its work has ended, and
    new episodes run. The model provider is a stand-in: the gateway does the turns.
    """
    running, late, afterwards = new_token(), new_token(), new_token()
    command = "while :; do echo x >> beats; sleep 0.05; done"
    beats = use("execute", command=command, timeout_s=COMMAND_S)
    await breakable.rehearse(running, beats, use("fs_write", path="after.txt", content="x"))
    await breakable.rehearse(late, use("fs_write", path="never.txt", content="x"))
    await breakable.rehearse(afterwards, use("fs_write", path="now.txt", content="x"))
    accepted = await breakable.submit(running)
    await _beats(breakable, accepted["session_id"])

    async with breakable.stack.outage("temporal", how):
        answer = await breakable.ask(late)
        health = await breakable.controller.get("/health")
        cut = await breakable.until(accepted["episode_id"], "failed", seconds=SOON_S)
        await _stands_still(breakable, accepted["session_id"])
        never = await _failed(breakable, late)
    new = await breakable.run_submitted(afterwards)
    closed = await closed_workflow(breakable.stack, accepted["workflow_id"])

    # Refused at once, or taken and failed within the deadline: what counts is what is on record.
    if answer.status != 202:
        expect_refused(answer, 503, says="temporal|workflow")
    expect_refused_health(health)
    assert never == await breakable.get(never["episode_id"]), "the episode changed after its end"
    assert "completed" == new["status"]
    assert "completed" != closed.status, f"Temporal has {closed}, the episode has failed"
    assert cut == await breakable.get(accepted["episode_id"]), "the episode changed after its end"
    for episode, steps in ((cut, ["queued", "running", "failed"]), (never, ["queued", "failed"])):
        assert "failed" == episode["status"]
        assert steps == [step["to_status"] for step in episode["transitions"]]
        assert "temporal" in episode["reason"].lower() or "workflow" in episode["reason"].lower()
        events = calls(await breakable.events(episode["episode_id"]), "workflow_transition")

        assert steps == [event["payload"]["to_status"] for event in events]
        assert episode["reason"] == events[-1]["payload"]["reason"]
    # What the worker wrote for an episode that ended so arrives like any other.
    await breakable.until_event(cut["episode_id"], "tool_call")
    files = await breakable.session(never["session_id"]).files()
    assert "never.txt" not in files, "an episode that was refused was run"
    files = await breakable.session(cut["session_id"]).files()
    assert "after.txt" not in files, "an episode that had failed went on"


def expect_refused_health(answer: Response) -> None:
    """Health names Temporal, and Temporal alone."""
    body = payload(answer)

    assert (503, "unhealthy") == (answer.status, body["status"]), answer
    assert {"temporal"} == unwell(body), answer


async def _failed(episodes: Episodes, token: str) -> dict[str, Any]:
    """The episode of a submission that Temporal did not see: it is on record, and has failed."""

    async def there() -> str | None:
        listed = await episodes.controller.get("/episodes", params={"limit": 50})

        assert 200 == listed.status, listed
        mine = [row for row in listed.json()["episodes"] if token in row["task"]]
        return mine[0]["episode_id"] if mine else None

    expected = f"the episode of {token} on record"
    return await episodes.until(
        await eventually(there, seconds=SOON_S, expected=expected), "failed", seconds=SOON_S
    )


async def _beats(episodes: Episodes, session_id: str) -> None:
    async def there() -> bool:
        return "beats" in await episodes.session(session_id).files()

    await eventually(there, seconds=SOON_S, expected="the command to run")


async def _stands_still(episodes: Episodes, session_id: str) -> None:
    """The work of an episode that has failed ends, though Temporal cannot cancel it."""

    async def still() -> bool:
        command = "wc -c < beats; sleep 0.4; wc -c < beats"
        before, after = (await episodes.session(session_id).execute(command))["stdout"].split()
        return before == after

    await eventually(still, seconds=SOON_S, expected="the process of the failed episode to end")
