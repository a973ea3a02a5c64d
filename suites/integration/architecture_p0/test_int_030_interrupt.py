"""An interrupt reaches the process that works for the episode."""

from __future__ import annotations

from typing import Any

import pytest

from harness_core.base.slowness import patience
from harness_core.doubles.turns import use
from suites.integration.episodes import Episodes, calls, new_token
from suites.integration.patience import COMMAND_S, SOON_S, eventually
from suites.integration.scenes import scene
from suites.integration.temporal_view import closed_workflow

#: Longer than any run of the suite, so that nothing ends by itself.
_LONG_S = 600


@pytest.mark.covers("INT-030")
@pytest.mark.integration_p0
@pytest.mark.parametrize("work", ["command", "simulation"])
async def test_int_030_interrupt_ends_the_work(episodes: Episodes, work: str) -> None:
    """An interrupted episode has no process any more; rows, events and Temporal agree about it.

    Another episode at the same worker is not ended with it, nor its command. It cannot be
    interrupted again: 409, and its state stays. The model provider is a stand-in: the gateway does
    the turns.
    """
    token = new_token()
    busy = {
        "command": use(
            "execute",
            command="while :; do echo x >> beats; sleep 0.05; done",
            timeout_s=COMMAND_S,
        ),
        "simulation": use("simulate", model="scene.xml", duration_s=_LONG_S),
    }[work]
    await episodes.rehearse(
        token,
        use("fs_write", path="scene.xml", content=scene(boxes=40)),
        busy,
        use("fs_write", path="afterwards.txt", content="x"),
    )
    bystander = await _bystander(episodes)
    accepted = await episodes.submit(token)
    episode_id, session_id = accepted["episode_id"], accepted["session_id"]
    await _is_busy(episodes, session_id, work)
    answer = await episodes.controller.post(f"/episodes/{episode_id}/interrupt")

    assert 202 == answer.status, answer
    episode = await episodes.until(episode_id, "interrupted", seconds=SOON_S)
    if work == "command":
        await _stands_still(episodes, session_id)
    else:
        await _others_may_simulate(episodes)
        results = calls(await episodes.record(session_id), "simulation_result")
        ended = [result for result in results if result["payload"].get("ok") is not False]
        # On a fast machine it may have come to its end: the queue is free then as well.
        assert [] == ended, "the interrupted simulation ran to its end"
    left = await episodes.session(session_id).files()
    assert "afterwards.txt" not in left, "the agent went on"
    steps = [step["to_status"] for step in episode["transitions"]]
    assert ["queued", "running", "interrupted"] == steps
    assert episode["transitions"][-1]["reason"], "an interruption without a reason"
    events = calls(await episodes.events(episode_id), "workflow_transition")
    assert steps == [event["payload"]["to_status"] for event in events]
    seen = await closed_workflow(episodes.stack, episode["workflow_id"])
    assert "canceled" == seen.status, f"Temporal has {seen}, the episode is interrupted"
    again = await episodes.controller.post(f"/episodes/{episode_id}/interrupt")
    unknown = await episodes.controller.post("/episodes/no-such-episode/interrupt")

    assert 409 == again.status, again
    assert 404 == unknown.status, unknown
    assert episode == await episodes.get(episode_id), "a refused interruption changed the episode"
    await _was_left_alone(episodes, bystander)


async def _bystander(episodes: Episodes) -> dict[str, Any]:
    """An episode whose command runs until it is let go."""
    token = new_token()
    await episodes.rehearse(token, episodes.waiting())
    accepted = await episodes.submit(token)
    await episodes.begun(accepted["session_id"])
    return accepted


async def _was_left_alone(episodes: Episodes, bystander: dict[str, Any]) -> None:
    """The other episode ran on, with its command, to an end of its own."""
    now = await episodes.get(bystander["episode_id"])

    assert "running" == now["status"], f"another episode was ended as well: {now['transitions']}"
    await episodes.release(bystander["session_id"])
    await episodes.until(bystander["episode_id"], "completed")
    assert await episodes.was_whole(bystander["session_id"]), (
        "the command of another episode was ended as well"
    )


async def _is_busy(episodes: Episodes, session_id: str, work: str) -> None:
    async def there() -> bool:
        if work == "simulation":
            return bool(calls(await episodes.record(session_id), "simulation_request"))
        beats = await episodes.session(session_id).read("beats")
        return beats.ok and beats.json()["size_bytes"] > 4

    await eventually(there, seconds=SOON_S, expected=f"the {work} of {session_id} to run")


async def _stands_still(episodes: Episodes, session_id: str) -> None:
    """The file that the process wrote to does not grow while another process watches it."""
    command = "wc -c < beats; sleep 1; wc -c < beats"
    watched = await episodes.session(session_id).execute(command)
    before, after = watched["stdout"].split()

    assert int(before) > 0, watched
    assert before == after, (
        f"the process of the interrupted episode still writes: {before}, {after}"
    )


async def _others_may_simulate(episodes: Episodes) -> None:
    """The queue is free: the simulation of another session is run at once."""
    session = episodes.session(new_token())
    await session.write("scene.xml", scene())
    body = {"model": "scene.xml", "duration_s": 0.1}
    answer = await session.client.post("/benchmark/simulate", body, seconds=patience(SOON_S))

    assert 200 == answer.status, answer
