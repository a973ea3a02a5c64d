"""The life of an episode is on record, and Temporal knows the same."""

from __future__ import annotations

import itertools
from datetime import datetime
from typing import Any

import pytest

from harness_core.doubles.turns import fail, use
from suites.integration.episodes import Episodes, calls, new_token
from suites.integration.temporal_view import closed_workflow, describe_workflow


@pytest.mark.covers("INT-053")
@pytest.mark.integration_p0
async def test_int_053_the_life_of_a_workflow_is_recorded(episodes: Episodes) -> None:
    """Each step of an episode is a row and an event with its own time and the workflow's ids.

    Temporal knows the same workflow, with the same end. An episode that fails has a failed step with
    the reason, and no completed one. The model provider is a stand-in: the gateway does
    the turns of the first episode, and refuses the second one.
    """
    began = _now()
    token = new_token()
    await episodes.rehearse(token, use("fs_write", path="a.txt", content="x"), episodes.waiting())
    accepted = await episodes.submit(token)
    await episodes.begun(accepted["session_id"])
    while_running = await episodes.get(accepted["episode_id"])
    seen_running = await describe_workflow(episodes.stack, accepted["workflow_id"])
    await episodes.release(accepted["session_id"])
    good = await episodes.until(accepted["episode_id"], "completed")
    unheard = new_token()
    await episodes.rehearse(unheard, fail(400))
    accepted = await episodes.submit(unheard)
    bad = await episodes.until(accepted["episode_id"], "failed")
    ended = _now()

    assert "running" == while_running["status"]
    assert "running" == (seen_running and seen_running.status), "Temporal has no running workflow"
    assert ["queued", "running"] == _steps(while_running)
    assert ["queued", "running", "completed"] == _steps(good)
    assert ["queued", "running", "failed"] == _steps(bad)
    assert "400" in bad["reason"] or "planted by the harness" in bad["reason"], bad["reason"]
    for episode, end in ((good, "completed"), (bad, "failed")):
        assert end == episode["status"]
        assert episode["reason"] == episode["transitions"][-1]["reason"]
        await _is_consistent(episodes, episode, began=began, ended=ended)
        seen = await closed_workflow(episodes.stack, episode["workflow_id"])

        assert end == seen.status, f"Temporal has {seen}, the episode is {end}"
        assert {seen.run_id} == {s["run_id"] for s in episode["transitions"][1:]} | {
            episode["run_id"]
        }
        listed = await episodes.controller.get("/episodes", params={"status": end, "limit": 500})

        assert episode["episode_id"] in [row["episode_id"] for row in listed.json()["episodes"]]


async def _is_consistent(
    episodes: Episodes, episode: dict[str, Any], *, began: datetime, ended: datetime
) -> None:
    """Rows in order of time, each with the workflow and a reason, and each an event as well."""
    rows = episode["transitions"]
    times = [datetime.fromisoformat(row["at"]) for row in rows]

    assert [None, *_steps(episode)[:-1]] == [row["from_status"] for row in rows]
    assert list(range(1, len(rows) + 1)) == [row["ordinal"] for row in rows]
    assert all(before < after for before, after in itertools.pairwise([began, *times, ended])), (
        times
    )
    assert {episode["workflow_id"]} == {row["workflow_id"] for row in rows}
    assert all(row["reason"] for row in rows), rows
    recorded = calls(await episodes.events(episode["episode_id"]), "workflow_transition")
    for row, event in itertools.zip_longest(rows, recorded):
        assert row is not None, f"an event without a row: {event}"
        assert event is not None, f"a row without an event: {row}"
        same = ("from_status", "to_status", "reason", "workflow_id", "run_id")
        payload = event["payload"]

        assert {key: row[key] for key in same} == {key: payload[key] for key in same}
        assert datetime.fromisoformat(row["at"]) == datetime.fromisoformat(event["time"])


def _steps(episode: dict[str, Any]) -> list[str]:
    return [step["to_status"] for step in episode["transitions"]]


def _now() -> datetime:
    return datetime.now().astimezone()
