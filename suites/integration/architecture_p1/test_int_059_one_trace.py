"""A run is one trace at Langfuse, which its rows name once it is there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from harness_core.doubles.turns import fail, use
from suites.integration.comparing import expect_same, utc
from suites.integration.episodes import Episodes, new_token
from suites.integration.observed import Langfuse, Observation, away, linked
from suites.integration.patience import EPISODE_S, SOON_S, eventually

pytestmark = [pytest.mark.covers("INT-059"), pytest.mark.integration_p1]


async def test_int_059_all_of_a_run_is_one_trace(episodes: Episodes, langfuse: Langfuse) -> None:
    """Model turns, tool calls and events of an episode have one identity at Langfuse, another's another.

    Four run at once: one calls several tools, of which one is refused; one calls none; one fails; one is
    interrupted. The model provider and Langfuse are stand-ins: the gateway does the turns, a recorder takes
    what is sent.
    """
    tokens = [new_token() for _ in range(4)]
    reports = [
        use("fs_write", path="assets/report.md", content=f"{token} Ångström 日本語")
        for token in tokens
    ]
    refused = use("fs_read", path="assets/nowhere.md")
    await episodes.rehearse(tokens[0], reports[0], refused, use("execute", command="true"))
    await episodes.rehearse(tokens[1])
    await episodes.rehearse(tokens[2], reports[2], fail(400))
    await episodes.rehearse(tokens[3], reports[3], episodes.waiting())
    accepted = [await episodes.submit(token) for token in tokens]
    await episodes.begun(accepted[3]["session_id"])
    await episodes.interrupt(accepted[3]["episode_id"])
    ends = ("completed", "completed", "failed", "interrupted")
    for each, end in zip(accepted, ends, strict=True):
        await episodes.until(each["episode_id"], end)
    known = [await linked(episodes, each["episode_id"]) for each in accepted]
    ids = [_identity(episode) for episode in known]
    expect_same(4, len(set(ids)), what="traces of four runs at once")
    for token, episode, trace_id in zip(tokens, known, ids, strict=True):
        events = await episodes.events(episode["episode_id"])
        told = await _told(langfuse, trace_id, episode, events)
        _are_its_turns(episode, told)
        _are_its_calls(episode, told)
        _are_when_they_were(episode, told)
        others = [other for other in tokens if other != token]
        mixed = [one for one in told if any(other in one.text for other in others)]
        assert not mixed, f"the trace of a run tells of that alone: found {mixed[0]}"
    await _are_wholes(langfuse, ids)


async def test_int_059_langfuse_away_loses_nothing(
    breakable: Episodes, langfuse_service: str
) -> None:
    """While Langfuse is away, silent or broken, runs end as ever and no row claims a trace.

    When it is back it is told all, once, also what the killed processes of the stack had to say. The model
    provider and Langfuse are stand-ins.
    """
    stack, langfuse = breakable.stack, Langfuse(breakable.stack.recorder(langfuse_service))
    missed = []
    for trouble in ({}, {"status": 503}, {"drop": "silent"}):
        token = new_token()
        await breakable.rehearse(
            token, use("execute", command=f"echo {token}"), breakable.waiting()
        )
        with away(stack, langfuse_service, **trouble):
            accepted = await breakable.submit(token)
            await breakable.begun(accepted["session_id"])
            if not missed:
                for service in ("controller", "controller-worker"):
                    async with stack.outage(service, "kill"):
                        pass
            await breakable.release(accepted["session_id"])
            episode = await breakable.until(accepted["episode_id"], "completed")
            assert 3 == len([t for t in episode["traces"] if t["kind"] == "model"]), (
                f"a run without Langfuse has its turns on record: found {episode['traces']}"
            )
            untold = [t["langfuse_trace_id"] for t in episode["traces"] if t["langfuse_trace_id"]]
            assert [] == untold, f"no row claims what Langfuse does not have: found {untold}"
            healthy = await breakable.controller.get("/health")
            assert 200 == healthy.status, f"nothing depends on Langfuse: found {healthy}"
        missed.append(episode)
    for each in missed:
        episode = await linked(breakable, each["episode_id"])
        events = await breakable.events(each["episode_id"])
        told = await _told(langfuse, _identity(episode), episode, events)
        _are_its_turns(episode, told)
        _are_its_calls(episode, told)
        _are_when_they_were(episode, told)
    async with stack.outage(langfuse_service, "stop"):
        last = await breakable.run(new_token(), use("execute", command="true"))
        expect_same([None] * 3, [t["langfuse_trace_id"] for t in last["traces"]], what="its links")
    langfuse = Langfuse(stack.recorder(langfuse_service), whole=True)
    episode = await linked(breakable, last["episode_id"])
    events = await breakable.events(last["episode_id"])
    _are_its_calls(episode, await _told(langfuse, _identity(episode), episode, events))


def _identity(episode: Mapping[str, Any]) -> str:
    """The one trace of a run."""
    found = {trace["langfuse_trace_id"] for trace in episode["traces"]}
    assert 1 == len(found), f"all of a run is one trace: found {found}"
    return str(found.pop())


async def _told(
    langfuse: Langfuse,
    trace_id: str,
    episode: Mapping[str, Any],
    events: Sequence[Mapping[str, Any]],
) -> tuple[Observation, ...]:
    """What Langfuse has of a run, when it has all its events."""
    mine = [event for event in events if event["trace_id"] == episode["trace_id"]]
    wanted = Counter(str(event["kind"]) for event in mine)

    async def there() -> tuple[Observation, ...] | None:
        found = langfuse.observations(trace_id)
        kinds = Counter(
            next((kind for kind in wanted if _tells_of(one, kind)), "another") for one in found
        )
        return found if kinds >= wanted else None

    def seen() -> object:
        return Counter((one.kind, one.name) for one in langfuse.observations(trace_id))

    expected = f"at Langfuse, of {episode['episode_id']}, the events {dict(wanted)}"
    found: tuple[Observation, ...] = await eventually(
        there, seconds=EPISODE_S, expected=expected, seen=seen
    )
    return found


async def _are_wholes(langfuse: Langfuse, trace_ids: Sequence[str]) -> None:
    """Where all of one run hangs below one observation, so it is of each run, however it ended."""
    if all(len(_tops(langfuse, each)) != 1 for each in trace_ids):
        return
    for trace_id in trace_ids:

        async def there(trace_id: str = trace_id) -> bool:
            return len(_tops(langfuse, trace_id)) == 1

        await eventually(
            there,
            seconds=SOON_S,
            expected=f"one observation that all of {trace_id} hangs below, as all of other runs does",
            seen=lambda trace_id=trace_id: _tops(langfuse, trace_id),
        )


def _tops(langfuse: Langfuse, trace_id: str) -> list[str]:
    """Names of what hangs below nothing that Langfuse has."""
    found = langfuse.observations(trace_id)
    known = {one.id for one in found}
    return [one.name for one in found if one.parent not in known]


def _tells_of(one: Observation, kind: str) -> bool:
    """Whether an observation is of an event of a kind."""
    is_step = one.kind in {"generation", "tool"}
    return not is_step and (one.name == kind or f'"{kind}"' in one.text)


def _are_its_turns(episode: Mapping[str, Any], told: Sequence[Observation]) -> None:
    """A generation for each model turn that was taken."""
    turns = [trace for trace in episode["traces"] if trace["kind"] == "model"]
    found = [one for one in told if one.kind == "generation"]
    expect_same(len(turns), len(found), what="generations at Langfuse beside model turns")


def _are_its_calls(episode: Mapping[str, Any], told: Sequence[Observation]) -> None:
    """An observation of each tool call, by the tool's name."""
    calls = Counter(trace["name"] for trace in episode["traces"] if trace["kind"] == "tool")
    found = Counter(one.name for one in told if one.kind not in {"event", "generation"})
    missing = calls - found
    assert not missing, f"expected a trace of each call, {dict(calls)}, found {dict(found)}"
    doubled = {name for name in calls if found[name] > calls[name]}
    assert not doubled, f"expected each call once, {dict(calls)}, found {dict(found)}"
    came_to_nothing = Counter(
        trace["name"] for trace in episode["traces"] if trace["kind"] == "tool" and not trace["ok"]
    )
    said = Counter(one.name for one in told if one.name in calls and one.failed)
    expect_same(came_to_nothing, said, what="calls that are told as failed, by tool")


def _are_when_they_were(episode: Mapping[str, Any], told: Sequence[Observation]) -> None:
    """Each lies within the run, not when it was sent."""
    times = [utc(step["at"], what="a transition") for step in episode["transitions"]]
    begin, end = (round(at.timestamp() * 1e9) for at in (times[0], times[-1]))
    late = [
        one
        for one in told
        if one.kind in {"generation", "tool"} and not begin <= one.start_ns <= one.end_ns <= end
    ]
    assert not late, f"expected turns and calls at their times, {begin} to {end}, found {late[0]}"
