"""Who carries out a step may be killed in it: the next attempt says so, and nothing is done twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from harness_core.doubles.model import Fault
from harness_core.doubles.turns import use
from harness_core.process import descendants
from suites.integration.comparing import expect_same, utc
from suites.integration.episodes import FINAL, Episodes, calls, new_token
from suites.integration.patience import EPISODE_S, eventually
from suites.integration.temporal_view import at_work_since

pytestmark = [pytest.mark.covers("INT-041"), pytest.mark.integration_p1]

#: More than are uploaded while a test looks whether the first is there.
_FILES: Final = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class _Killed:
    """A service that is about to be killed.

    Attributes:
        pids: of its processes; none where they are not of this machine.
        at: when that was looked up.
    """

    pids: frozenset[int] | None
    at: datetime

    @classmethod
    def of(cls, episodes: Episodes, name: str) -> _Killed:
        pid = episodes.stack[name].place.pid
        pids = None if pid is None else frozenset({pid, *descendants(pid)})
        return cls(pids=pids, at=datetime.now(UTC))


async def test_int_041_killed_at_each_step_of_an_episode(breakable: Episodes) -> None:
    """The controller's worker is killed in a model turn, in a tool call and in an upload of one episode.

    Each is told once, as preempted, with process, attempt and time; rows, events, objects and model calls
    are those of an undisturbed run, but for the call that was lost. An episode beside it is told of its own
    call alone, which was lost twice, one that had ended before of nothing. Another is in the middle of many
    uploads, of which the first has failed before: each of its files has its own attempts on record. The model
    provider is a stand-in: the gateway does the turns.
    """
    began = datetime.now(UTC)
    token, other, before, many = new_token(), new_token(), new_token(), new_token()
    report = use("fs_write", path="assets/report.md", content=f"of {token}")
    await breakable.rehearse(token, breakable.waiting(), report)
    await breakable.rehearse(other, breakable.waiting())
    files = f"cd assets && for n in $(seq 100 {100 + _FILES}); do echo $n > $n.txt; done"
    await breakable.rehearse(many, use("execute", command=f"mkdir -p assets && {files}"))
    over = await breakable.run(before, use("execute", command="true"))
    gateway = breakable.stack.gateway.client
    async with gateway.fault(Fault(kind="hold", times=1, contains=token)) as held:
        accepted = await breakable.submit(token)

        async def asks() -> bool:
            return bool(await gateway.fault_met(held))

        await eventually(asks, seconds=EPISODE_S, expected="the model asked for its first turn")
        killed = [await _kill(breakable, "controller-worker")]
        await _goes_on(breakable, accepted)
    beside = await breakable.submit(other)
    await breakable.begun(beside["session_id"])
    killed.append(await _kill(breakable, "controller-worker"))
    await _preempted(breakable, accepted["episode_id"], 2)
    await _preempted(breakable, beside["episode_id"], 1)
    await _goes_on(breakable, accepted)
    uploading = await _in_its_uploads(breakable, many)
    await breakable.stack.pause("minio")
    try:
        released = datetime.now(UTC)
        await breakable.release(accepted["session_id"])
        await at_work_since(
            breakable.stack,
            accepted["workflow_id"],
            released,
            seconds=EPISODE_S,
            expected="an upload under way, whose store does not answer",
        )
        killed.append(_Killed.of(breakable, "controller-worker"))
        await breakable.stack.kill("controller-worker")
    finally:
        await breakable.stack.resume("minio")
        await breakable.stack.mend()
    await breakable.release(beside["session_id"])
    episode = await breakable.until(accepted["episode_id"], "completed")
    await breakable.until(beside["episode_id"], "completed")
    await _has_each_attempt(breakable, await breakable.until(uploading, "completed"))

    told = await _preemptions(breakable, episode["episode_id"])
    assert 3 == len(told), f"a turn, a call and an upload were preempted once each: found {told}"
    _are_of_dead_processes(told, killed, began)
    attempts = [each["attempt"] for each in told]
    expect_same([1, 1], attempts[:2], what="lost attempts at a turn and at a call, begun once each")
    assert attempts[2] >= 1, f"the attempt at an upload that was lost: found {told[2]}"
    await _was_lost_twice(breakable, beside["episode_id"], killed[1:], began)
    nothing = await _preemptions(breakable, over["episode_id"])
    assert [] == nothing, f"an episode that had ended was not preempted: found {nothing}"
    await _is_done_once(breakable, episode, token, lost_calls=1)


async def _was_lost_twice(
    episodes: Episodes, episode_id: str, killed: Sequence[_Killed], began: datetime
) -> None:
    """The one call of an episode was lost with each of two processes."""
    told = await _preemptions(episodes, episode_id)
    assert 2 == len(told), f"a call was lost twice beside it: found {told}"
    _are_of_dead_processes(told, killed, began)
    lost = [each["attempt"] for each in told]
    expect_same([1, 2], lost, what="attempts at the call beside it that were lost")


async def _in_its_uploads(episodes: Episodes, token: str) -> str:
    """An episode whose first file could not be kept at once and is there now, with others to come; its id."""
    async with episodes.stack.outage("minio", "kill"):
        accepted = await episodes.submit(token)
        identity: str = accepted["episode_id"]
        await episodes.until_event(identity, "upload_failed", seconds=EPISODE_S, before_end=True)
    await episodes.until_event(identity, "asset_uploaded", seconds=EPISODE_S, before_end=True)
    return identity


async def _has_each_attempt(episodes: Episodes, episode: Mapping[str, Any]) -> None:
    """Of each file every attempt is on record, the one that kept it and all that failed or were lost."""
    events = calls(await episodes.events(episode["episode_id"]), "upload_failed")
    failed = Counter(event["payload"]["path"] for event in events)
    expect_same(
        {row["path"]: row["attempts"] for row in episode["assets"]},
        {row["path"]: failed[row["path"]] + 1 for row in episode["assets"]},
        what="attempts at each of many uploads, beside those on record",
    )


async def test_int_041_a_worker_is_killed_twice_in_one_call(breakable: Episodes) -> None:
    """Both times the worker says, when it is back, which attempt was lost; the third comes to its end.

    Of two episodes each is told its own. The model provider is a stand-in: the gateway does the turns.
    """
    began = datetime.now(UTC)
    tokens = [new_token(), new_token()]
    accepted = []
    for number, token in enumerate(tokens):
        report = use("fs_write", path="assets/report.md", content=f"of {token}")
        first = [use("execute", command="true")] * number
        await breakable.rehearse(token, *first, breakable.waiting(), report)
        accepted.append(await breakable.submit(token))
    killed = []
    for attempt in (1, 2):
        for each in accepted:
            await _goes_on(breakable, each)
            await breakable.session(each["session_id"]).execute("rm begun")
        killed.append(await _kill(breakable, "worker"))
        for each in accepted:
            await _preempted(breakable, each["episode_id"], attempt)
    for each in accepted:
        await _goes_on(breakable, each)
        await breakable.release(each["session_id"])
    jobs = []
    for token, each in zip(tokens, accepted, strict=True):
        episode = await breakable.until(each["episode_id"], "completed")
        told = await _preemptions(breakable, each["episode_id"])
        expect_same([1, 2], [one["attempt"] for one in told], what="attempts that were lost")
        _are_of_dead_processes(told, killed, began)
        found = {one.get("job_id") for one in told}
        assert 1 == len(found), f"attempts at one job have its id: expected one, found {found}"
        jobs.append(found.pop())
        await _is_done_once(breakable, episode, token, lost_calls=0)
        assert await breakable.was_whole(each["session_id"]), "the third attempt came to its end"
    named = [job for job in jobs if job is not None]
    assert len(named) == len(set(named)), f"calls of two episodes are jobs of their own: {jobs}"


async def test_int_041_attempts_are_used_up(breakable: Episodes) -> None:
    """A worker that stays away fails the episode, with the reason, and no step follows.

    When it is back it tells what was lost; another episode is carried out as ever. The model provider is
    a stand-in: the gateway does the turns.
    """
    token, other = new_token(), new_token()
    report = use("fs_write", path="assets/report.md", content=f"of {token}")
    await breakable.rehearse(token, breakable.waiting(), report)
    await breakable.rehearse(other, use("fs_write", path="assets/report.md", content="b"))
    accepted = await breakable.submit(token)
    await breakable.begun(accepted["session_id"])
    async with breakable.stack.outage("worker", "kill"):
        failed = await breakable.until(accepted["episode_id"], "failed")
    await breakable.run_submitted(other)
    await _preempted(breakable, accepted["episode_id"], 1)

    assert "failed" == failed["status"], f"expected it failed, found {failed}"
    assert "worker" in failed["reason"], f"the reason says who was lost: found {failed['reason']!r}"
    again = await breakable.get(accepted["episode_id"])
    expect_same(failed["transitions"], again["transitions"], what="its life, when all is back")
    assert [] == again["assets"], f"nothing of it is kept: found {again['assets']}"
    asked = await breakable.asked(token)
    assert 1 == asked, f"the model is not asked after a call that was lost: found {asked} calls"
    assert not await breakable.was_whole(accepted["session_id"]), "a lost command did not go on"


async def _preemptions(episodes: Episodes, episode_id: str) -> list[dict[str, Any]]:
    """What an episode's events say of attempts that were lost, in the order of their times."""
    events = calls(await episodes.events(episode_id), "job_preempted")
    events.sort(key=lambda event: utc(event["time"], what="an event"))
    return [{**event["payload"], "at": event["time"]} for event in events]


async def _preempted(episodes: Episodes, episode_id: str, count: int) -> None:
    """Wait until so many attempts are told as lost."""
    seen: list[dict[str, Any]] = []

    async def told() -> bool:
        seen[:] = await _preemptions(episodes, episode_id)
        return len(seen) >= count

    expected = f"{count} attempts of {episode_id} told as preempted"
    await eventually(told, seconds=EPISODE_S, expected=expected, seen=lambda: seen)


async def _kill(episodes: Episodes, name: str) -> _Killed:
    """Kill a service and start it again; the processes that it was."""
    killed = _Killed.of(episodes, name)
    async with episodes.stack.outage(name, "kill"):
        pass
    return killed


async def _goes_on(episodes: Episodes, accepted: Mapping[str, Any]) -> None:
    """Wait until the waiting command of an episode runs, for the first time or again."""

    async def runs() -> bool:
        episode = await episodes.get(accepted["episode_id"])
        assert episode["status"] not in FINAL, (
            f"expected the episode to go on, found {episode['status']}: {episode['reason']}"
        )
        return "begun" in await episodes.session(accepted["session_id"]).files()

    await eventually(runs, seconds=EPISODE_S, expected="its command to run")


def _are_of_dead_processes(
    told: Sequence[dict[str, Any]], killed: Sequence[_Killed], began: datetime
) -> None:
    """Each names a process that was killed, and is told after that; its times lie before it was told."""
    assert len(killed) == len(told), f"expected {len(killed)} attempts told as lost, found {told}"
    for each, kill in zip(told, killed, strict=True):
        reason = each["termination_reason"]
        assert "preempted" == reason, f"the reason of an attempt that was lost: found {each}"
        at = utc(each["at"], what="an event")
        assert kill.at <= at <= datetime.now(UTC), (
            f"an attempt is told as lost when its process is gone, after {kill.at}: found {each}"
        )
        for name, value in each.items():
            if name.endswith("_at"):
                time = utc(value, what=f"{name} of an attempt that was lost")
                assert began <= time <= at, (
                    f"{name} of an attempt lies between {began} and when it was told: found {each}"
                )
        if kill.pids is not None:  # in containers they have other numbers
            assert each["pid"] in kill.pids, (
                f"the process of a lost attempt is one that was killed: expected one of "
                f"{sorted(kill.pids)}, found {each}"
            )
    if all(kill.pids is not None for kill in killed):  # the first process of any container is its 1
        pids = [each["pid"] for each in told]
        assert len(pids) == len(set(pids)), f"each attempt was of another process: found {pids}"


async def _is_done_once(
    episodes: Episodes, episode: dict[str, Any], token: str, *, lost_calls: int
) -> None:
    """Transitions, turns, events, rows and objects of an episode are each there once."""
    identity = episode["episode_id"]
    steps = [step["to_status"] for step in episode["transitions"]]
    expect_same(["queued", "running", "completed"], steps, what="steps of the episode")
    kinds = Counter(trace["kind"] for trace in episode["traces"])
    asked = await episodes.asked(token)
    turns = kinds["model"]
    assert turns == kinds["tool"] + 1, f"one turn for each call and the last: found {kinds}"
    assert turns + lost_calls == asked, (
        f"expected {turns} calls of the model and {lost_calls} lost, found {asked}"
    )
    record = await episodes.record(episode["session_id"])
    events = await episodes.until_events(identity, len(record))
    for source in ("worker", "controller"):
        numbers = [event["seq"] for event in events if event["source"] == source]
        expect_same(
            list(range(1, len(numbers) + 1)), sorted(numbers), what=f"events of the {source}"
        )
    [row] = episode["assets"]
    path = f"assets/{row['path']}"
    written = [
        event["payload"]
        for event in calls(events, "tool_call")
        if event["payload"]["arguments"].get("path") == path
        and event["payload"]["tool"] == "fs_write"
    ]
    assert 1 == len(written), f"the model's one file is written once: found {written}"
    uploaded = calls(events, "asset_uploaded")
    assert 1 == len(uploaded), f"an asset is uploaded once: found {uploaded}"
    failed = calls(events, "upload_failed")
    assert row["attempts"] == len(failed) + 1, (
        f"each attempt at an upload is on record, the lost one too: {row['attempts']} attempts, found "
        f"one upload and {len(failed)} failures"
    )
    stored = await episodes.stored(row)
    assert f"of {token}" == stored.body.decode(), f"the asset is its own: found {stored.body!r}"
    keys = [each.key for each in await episodes.stack.objects() if identity in each.key]
    expect_same(
        [row["key"]],
        [key for key in keys if not key.startswith("backups/")],
        what="objects of the episode",
    )
