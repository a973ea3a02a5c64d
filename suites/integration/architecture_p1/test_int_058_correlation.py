"""One episode can be followed through every system."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio

from harness_core.doubles.turns import fail, use
from suites.integration.episodes import Episodes, new_token
from suites.integration.patience import SOON_S, eventually
from suites.integration.temporal_view import describe_workflow

_SERVICES = ("controller", "controller-worker", "worker")


@pytest.mark.covers("INT-058")
@pytest.mark.integration_p1
async def test_int_058_an_episode_is_found_everywhere(episodes: Episodes) -> None:
    """Rows, events, logs, Temporal and objects name the same episode and trace, and mix up none.

    Two episodes run at the same time; one of them fails and is followed up to its failure. The model
    provider is a stand-in: the gateway does the turns of one to its end, and fails the other.
    """
    tokens = [new_token(), new_token()]
    report = use("fs_write", path="assets/report.md", content="x")
    await episodes.rehearse(tokens[0], report, episodes.waiting())
    await episodes.rehearse(tokens[1], report, episodes.waiting(), fail(400))
    accepted = [await episodes.submit(token) for token in tokens]
    for episode in accepted:
        # From its first tool call on, the worker knows whose the session is.
        await episodes.until_event(episode["episode_id"], "tool_call")
        await episodes.begun(episode["session_id"])
    for episode in accepted:
        await episodes.release(episode["session_id"])
    good = await episodes.until(accepted[0]["episode_id"], "completed")
    bad = await episodes.until(accepted[1]["episode_id"], "failed")

    assert ["completed", "failed"] == [good["status"], bad["status"]]
    assert good["trace_id"] != bad["trace_id"]
    assert [good["trace_id"], bad["trace_id"]] == [episode["trace_id"] for episode in accepted]
    for episode, other in ((good, bad), (bad, good)):
        ids = {key: episode[key] for key in ("episode_id", "trace_id")}
        record = await episodes.record(episode["session_id"])
        events = await episodes.until_events(episode["episode_id"], len(record))
        named = {(event["episode_id"], event["trace_id"]) for event in [*events, *record]}
        seen = await describe_workflow(episodes.stack, episode["workflow_id"])

        assert {tuple(ids.values())} == named, "events of another episode, or of none"
        assert {episode["trace_id"]} == {trace["trace_id"] for trace in episode["traces"]}
        assert seen is not None, "Temporal has no such workflow"
        assert ids == {key: seen.memo.get(key) for key in ids}, f"Temporal's memo says {seen.memo}"
        for service in _SERVICES:
            await _logged(episodes, service, ids, other)
    found = [await _objects_of(episodes, episode) for episode in (good, bad)]
    assert [1, 0] == [len(names) for names in found], f"objects of the two episodes: {found}"


async def _logged(
    episodes: Episodes, service: str, ids: dict[str, str], other: dict[str, Any]
) -> None:
    """The service has logged the episode with both ids, and never with those of the other one."""
    lines: list[str] = []

    async def there() -> bool:
        lines[:] = await trio.to_thread.run_sync(episodes.stack.logs, service)
        return any(ids.items() <= _fields(line).items() for line in lines)

    expected = f"a line with {ids} in the log of {service}"
    await eventually(there, seconds=SOON_S, expected=expected, seen=lambda: f"{len(lines)} others")
    strange = (other["episode_id"], other["trace_id"], other["session_id"])
    mixed = [
        line
        for line in lines
        if ids["trace_id"] in line and any(foreign in line for foreign in strange)
    ]

    assert [] == mixed, f"lines of {service} that are about two episodes at once"


def _fields(line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return {k: v for k, v in found.items() if isinstance(v, str)} if isinstance(found, dict) else {}


async def _objects_of(episodes: Episodes, episode: dict[str, Any]) -> list[str]:
    """Keys of objects that name the episode and its trace, in the key, metadata or tags."""
    found = []
    for summary in await episodes.stack.objects():
        each = await episodes.stack.object(summary.key)
        named = f"{summary.key} {dict(each.metadata)} {dict(each.tags)}"
        if episode["episode_id"] in named and episode["trace_id"] in named:
            found.append(summary.key)
    return found
