"""One episode can be followed through every system."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio

from harness_core.doubles.model import Fault
from harness_core.doubles.turns import fail, use
from suites.integration.comparing import expect_same
from suites.integration.episodes import Episodes, calls, new_token
from suites.integration.patience import EPISODE_S, SOON_S, eventually
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

    assert "completed" == good["status"], f"expected the first one completed, found {good}"
    assert "failed" == bad["status"], f"expected the second one failed, found {bad}"
    traces = [good["trace_id"], bad["trace_id"]]
    assert traces[0] != traces[1], f"two episodes have one trace: {traces}"
    expect_same([each["trace_id"] for each in accepted], traces, what="traces, as first answered")
    for episode, other in ((good, bad), (bad, good)):
        ids = {key: episode[key] for key in ("episode_id", "trace_id")}
        record = await episodes.record(episode["session_id"])
        events = await episodes.until_events(episode["episode_id"], len(record))
        named = {(event["episode_id"], event["trace_id"]) for event in [*events, *record]}
        seen = await describe_workflow(episodes.stack, episode["workflow_id"])

        strange = named - {tuple(ids.values())}
        assert not strange, f"events of another episode, or of none: {strange}, expected {ids}"
        traced = {trace["trace_id"] for trace in episode["traces"]}
        assert {episode["trace_id"]} == traced, f"expected traces of {ids}, found {traced}"
        assert seen is not None, "Temporal has no such workflow"
        memo = {key: seen.memo.get(key) for key in ids}
        assert ids == memo, f"Temporal's memo says {seen.memo}, expected {ids}"
        for service in _SERVICES:
            await _logged(episodes, service, ids, other)
    found = [await _objects_of(episodes, episode) for episode in (good, bad)]
    counts = [len(names) for names in found]
    assert [1, 0] == counts, f"expected one and none, found objects of the two episodes: {found}"


@pytest.mark.covers("INT-058")
@pytest.mark.integration_p1
async def test_int_058_a_second_attempt_has_the_same_ids(breakable: Episodes) -> None:
    """What is tried again is the same episode's: events, log lines, objects and traces name it.

    The model is overloaded once, who carries out a tool's call is killed meanwhile, and the object store is
    away for the first attempt of an upload. The job of the call has one id in both attempts. The model
    provider is a stand-in: the gateway does the turns, and fails one of them once.
    """
    token, other = new_token(), new_token()
    report = use("fs_write", path="assets/report.md", content=f"of {token}")
    await breakable.rehearse(token, report, breakable.waiting())
    await breakable.rehearse(other, report)
    gateway = breakable.stack.gateway.client
    overloaded = Fault(kind="status", status=529, times=1, contains=token)
    async with gateway.fault(overloaded) as number:
        accepted = await breakable.submit(token)
        # From its first tool call on, the worker knows whose the session is.
        await breakable.until_event(accepted["episode_id"], "tool_call")
        await breakable.begun(accepted["session_id"])
        met = await gateway.fault_met(number)
        async with breakable.stack.outage("controller-worker", "kill"):
            pass
        async with breakable.stack.outage("minio", "stop"):
            await breakable.release(accepted["session_id"])
            await breakable.until_event(
                accepted["episode_id"], "upload_failed", seconds=EPISODE_S, before_end=True
            )
            beside = await breakable.submit(other)
    episode = await breakable.until(accepted["episode_id"], "completed")
    second = await breakable.until(beside["episode_id"], "completed")

    assert 1 == met, f"expected the overloaded model to be asked once, found {met}"
    ids = {key: episode[key] for key in ("episode_id", "trace_id")}
    record = await breakable.record(episode["session_id"])
    events = await breakable.until_events(episode["episode_id"], len(record))
    strange = [event for event in events if ids != {key: event[key] for key in ids}]
    assert not strange, f"expected events of {ids} alone, found {strange[0]}"
    called = [event["payload"] for event in calls(events, "tool_call")]
    jobs = {each.get("job_id") for each in called if each["tool"] == "execute"}
    assert 1 == len(jobs), f"expected one id of the call's job in all attempts, found {jobs}"
    attempts = [event["payload"].get("attempt") for event in calls(events, "upload_failed")]
    assert attempts, "expected the failed attempts of an upload on record, found none"
    [row] = episode["assets"]
    found = await breakable.stored(row)
    named = f"{row['key']} {dict(found.metadata)} {dict(found.tags)}"
    lacking = [value for value in ids.values() if value not in named]
    assert not lacking, f"expected the object of a retry to name {lacking}, found {named}"
    traced = [(trace["kind"], trace["trace_id"]) for trace in episode["traces"]]
    kinds = ["model", "tool", "model", "tool", "model"]
    expect_same(
        [(kind, episode["trace_id"]) for kind in kinds], traced, what="traces, each attempt's once"
    )
    for service in _SERVICES:
        await _logged(breakable, service, ids, second)
    async with breakable.stack.outage("worker", "kill"):
        pass
    # Whose the session is was said before, by whoever worked in it then.
    await breakable.session(episode["session_id"]).files()
    later = (await breakable.record(episode["session_id"]))[len(record) :]
    assert later, "expected an event of a call after the worker was killed, found none"
    strange = [event for event in later if ids != {key: event[key] for key in ids}]
    assert not strange, f"expected events of {ids} after the worker was killed, found {strange[0]}"


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

    assert not mixed, f"lines of {service} that are about two episodes at once: {mixed[:3]}"


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
