"""Events: the worker writes them, the controller has each of them once."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, Final

import pytest
import trio

from harness_core.base.slowness import patience
from harness_core.doubles.http import HttpClient, Unanswered
from harness_core.doubles.turns import use
from harness_core.system.compose import Stack
from suites.integration.comparing import consecutive, expect_same, in_order, utc
from suites.integration.episodes import Episodes, calls, new_token
from suites.integration.full_disk import no_file_beyond
from suites.integration.patience import EPISODE_S
from suites.integration.record_files import cut_out, put_back, record_file
from suites.integration.refusals import expect_refused
from suites.integration.sessions import new_session
from suites.integration.temporal_view import closed_workflow

#: Turns and calls of each episode; no two are alike.
_WORK: Final = ((4, 6), (3, 7), (4, 5))

#: What is written to each session while the controller is away, each time: to one more than a page
#: holds.
_BURSTS: Final = ((40, 560, 23), (17, 3, 29))
_PAGE: Final = 500

#: What is written to a session that nobody looks at until its episode has ended: more than a page.
_UNSEEN: Final = 570

#: From the last turn of an episode to the end of its workflow: a second or two.
_ENDS_S: Final = 10.0

#: Events before the disk is full, and how much room is left then, in bytes, each time: less than an
#: event needs, and no whole number of them.
_BEFORE: Final = 12
_ROOMS: Final = (700, 1_111)
_TRIES: Final = 9
_LONG_NAME: Final = "x" * 90

#: Ends a line for those who split text and not bytes; no ASCII.
_AWKWARD: Final = "ä\u2028日\u0085😀"


@pytest.mark.covers("INT-025")
@pytest.mark.integration_p0
async def test_int_025_every_event_arrives_once_and_in_order(breakable: Episodes) -> None:
    """What the worker wrote is what the controller has, under load and over its own restarts.

    While the controller is away nothing is accepted; what the worker writes meanwhile arrives when
    it is back, once, the second time as well, when the episodes have ended before it is back. The model provider
    is a stand-in: the gateway does the turns of each episode.
    """
    began = datetime.now(UTC)
    tokens = [new_token() for _ in _WORK]
    for token, (turns, count) in zip(tokens, _WORK, strict=True):
        work = [
            tuple(use("fs_write", path=path, content="x") for path in _written(token, turn, count))
            for turn in range(turns)
        ]
        await breakable.rehearse(token, *work[:2], breakable.waiting(), *work[2:])
    accepted = [await breakable.submit(token) for token in tokens]
    for episode in accepted:
        await breakable.begun(episode["session_id"])

    async with breakable.stack.outage("controller", "kill"):
        with pytest.raises(Unanswered):
            await breakable.ask(new_token())
        await _bursts(breakable, accepted, tokens, time=0)
    async with breakable.stack.outage("controller", "stop"):
        await _bursts(breakable, accepted, tokens, time=1)
        for episode in accepted:
            await breakable.release(episode["session_id"])
        # It may be that an episode cannot end without its controller.
        with trio.move_on_after(patience(_ENDS_S)):
            for episode in accepted:
                await closed_workflow(breakable.stack, episode["workflow_id"])
    for index, (token, episode, work) in enumerate(zip(tokens, accepted, _WORK, strict=True)):
        await breakable.until(episode["episode_id"], "completed", seconds=EPISODE_S)
        done = [path for turn in range(work[0]) for path in _written(token, turn, work[1])]
        for time, counts in enumerate(_BURSTS):
            done += [_bursting(token, time, number) for number in range(counts[index])]
        stored = await _is_one_record(breakable, episode, began=began)
        _is_what_was_done(stored, token, done, episode)
        await _is_replayed(breakable, episode["session_id"])


@pytest.mark.covers("INT-025")
@pytest.mark.integration_p0
@pytest.mark.not_in_containers("takes a line out of a record, which is in a volume")
async def test_int_025_a_lost_line_keeps_no_other_waiting(breakable: Episodes) -> None:
    """What cannot be had of one session for a while, since its record has lost a line, holds up no other's.

    Of the two, that one is the older, which is looked at first. When the line is there again, all of it arrives.
    The model provider is a stand-in: the gateway does the turns of each episode.
    """
    tokens = [new_token(), new_token()]
    accepted = []
    for token in tokens:
        await breakable.rehearse(token, breakable.waiting())
        accepted.append(await breakable.submit(token))
        await breakable.begun(accepted[-1]["session_id"])
    sessions = [breakable.session(each["session_id"]) for each in accepted]
    record = record_file(breakable.stack["worker"], sessions[0].id)
    async with breakable.stack.outage("controller", "kill"):
        known = len(await sessions[0].events())
        for token, session, count in zip(tokens, sessions, (3, 5), strict=True):
            await _burst(breakable, session.id, token, 0, count)
        there = [len(await session.events()) for session in sessions]
        whole = cut_out(record, known + 1)
    try:
        await breakable.until_events(accepted[1]["episode_id"], there[1])
    finally:
        put_back(record, whole)
    await breakable.until_events(accepted[0]["episode_id"], there[0])
    for session, episode in zip(sessions, accepted, strict=True):
        await breakable.release(session.id)
        await breakable.until(episode["episode_id"], "completed")


@pytest.mark.covers("INT-025")
@pytest.mark.integration_p0
async def test_int_025_events_of_an_episode_that_has_ended_arrive_all(breakable: Episodes) -> None:
    """What the controller had no time for while an episode ran arrives afterwards, to the last event.

    The controller hangs while the events are written; then the worker is gone, which fails the
    episode, and comes back when the controller knows of that. Whoever looks at what has ended once
    more must take all of it. The model provider is a stand-in: the gateway does the turns.
    """
    began, token = datetime.now(UTC), new_token()
    first = _written(token, 0, 2)
    work = tuple(use("fs_write", path=path, content="x") for path in first)
    await breakable.rehearse(token, work, breakable.waiting())
    episode = await breakable.submit(token)
    await breakable.begun(episode["session_id"])
    stack, ends = breakable.stack, ("cancelled", "completed", "failed")
    async with stack.outage("controller", "pause"):
        await _burst(breakable, episode["session_id"], token, 0, _UNSEEN)
        async with stack.outage("worker", "kill"):
            # It may be that an episode cannot end without its worker, or without its controller.
            with trio.move_on_after(patience(_ENDS_S)):
                await closed_workflow(stack, episode["workflow_id"])
            await stack.resume("controller")
            with trio.move_on_after(patience(_ENDS_S)):
                await breakable.until(episode["episode_id"], *ends)
    # Only then: what is asked of the worker is an event, too.
    stored = await _is_one_record(breakable, episode, began=began)
    written = [_bursting(token, 0, number) for number in range(_UNSEEN)]
    _is_what_was_done(stored, token, [*first, *written], episode)
    await breakable.release(episode["session_id"])
    await breakable.until(episode["episode_id"], *ends)


@pytest.mark.covers("INT-025")
@pytest.mark.integration_p0
@pytest.mark.not_in_containers(
    "limits what the processes of the worker may write, by their numbers on this machine"
)
async def test_int_025_a_full_disk_cuts_no_event(stack: Stack, worker: HttpClient) -> None:
    """What the worker cannot write down it does not acknowledge; every line of the record is whole.

    With room again it goes on: numbers without a gap, and each operation that was acknowledged once.
    """
    session = new_session(worker)
    acknowledged: list[str] = []

    async def write(path: str) -> bool:
        answer = await session.post("/fs/write", path=path, content="x")
        assert answer.status == 200 or answer.status >= 500, f"without room, found {answer}"
        if answer.status == 200:
            acknowledged.append(path)
        return answer.status == 200

    for number in range(_BEFORE):
        await write(f"{number}-{_LONG_NAME}")
    for room in _ROOMS:
        counted = await session.execute("wc -c < events.jsonl")
        size = int(counted["stdout"])
        with no_file_beyond(stack["worker"], size + room):
            for number in range(_TRIES):
                await write(f"{room}-{number}-{_AWKWARD}")
        whole = await write(f"{room}-after")
        assert whole, "with room again, an operation is refused"
        answer = await session.client.get("/events", params={"after": 0})
        assert answer.status == 200, f"expected the events after a full disk, found {answer}"
        record = await session.read("events.jsonl")
        lines = record.json()["content"].removesuffix("\n").split("\n")
        events = await session.events()
        found = [_read(line)["seq"] for line in lines]
        consecutive(found, what="seq in events.jsonl after a full disk")
        consecutive((event["seq"] for event in events), what="seq of the events after a full disk")
    written = [
        event["payload"]["arguments"]["path"]
        for event in calls(events, "tool_call")
        if event["payload"]["tool"] == "fs_write" and event["payload"]["ok"]
    ]
    expect_same(
        acknowledged,
        [path for path in written if path in acknowledged],
        what="writes that were acknowledged, and the events of them",
    )


def _read(line: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(line)
    except ValueError as error:
        raise AssertionError(
            f"expected one JSON object in each line of events.jsonl, found {line[:400]!r}"
        ) from error
    return found


async def _is_one_record(
    episodes: Episodes, episode: dict[str, Any], *, began: datetime
) -> list[dict[str, Any]]:
    """By every route the same events, whole, in order, and when they happened; the stored ones."""
    session_id = episode["session_id"]
    record = await episodes.record(session_id)
    stored = await episodes.until_events(episode["episode_id"], len(record))
    of_worker = [event for event in stored if event["source"] == "worker"][: len(record)]
    ended = datetime.now(UTC)

    consecutive((line["seq"] for line in record), what="a gap at the worker: seq in events.jsonl")
    expect_same(
        [_content(line) for line in record],
        [_content(event) for event in of_worker],
        what="events.jsonl beside what the controller has of it",
    )
    for source in {event["source"] for event in stored}:
        of_source = [event for event in stored if event["source"] == source]
        times = [utc(event["time"], what=f"time of event {event['seq']}") for event in of_source]

        consecutive((event["seq"] for event in of_source), what=f"seq of the events of {source}")
        in_order([began, *times, ended], what=f"events of {source}, between the test's own times")
    strange = {event["session_id"] for event in stored} - {session_id}
    assert not strange, f"events of other sessions: {strange}, expected {session_id} alone"
    return stored


def _is_what_was_done(
    stored: list[dict[str, Any]], token: str, done: list[str], episode: dict[str, Any]
) -> None:
    """Counted by what was done, not by what was recorded of it: each once, with the episode's ids."""
    recorded = [
        event
        for event in calls(stored, "tool_call")
        if event["payload"]["tool"] == "fs_write" and token in str(event["payload"]["arguments"])
    ]
    written = sorted(event["payload"]["arguments"]["path"] for event in recorded)
    ids = (episode["episode_id"], episode["trace_id"])

    expect_same(sorted(done), written, what=f"paths that were written in {episode['session_id']}")
    strange = [event for event in recorded if (event["episode_id"], event["trace_id"]) != ids]
    assert not strange, f"expected events with the ids {ids}, found {strange[0]}"


async def _is_replayed(episodes: Episodes, session_id: str) -> None:
    """From any number on, the worker answers the events that follow it, page by page."""
    session = episodes.session(session_id)
    whole = await session.events()
    last = whole[-1]["seq"]
    for after in {1, 2, last // 2, _PAGE - 1, _PAGE, _PAGE + 1, last - 1, last, last + 7}:
        found = await session.events(after=after)

        expect_same(
            [event for event in whole if event["seq"] > after],
            [event for event in found if event["seq"] <= last],
            what=f"events of {session_id} after {after}",
        )
    for nonsense in (-1, "x"):
        answer = await session.client.get("/events", params={"after": nonsense})
        expect_refused(answer, 400, 422)


def _written(token: str, turn: int, count: int) -> list[str]:
    return [f"{token}/{turn}-{number}.txt" for number in range(count)]


def _bursting(token: str, time: int, number: int) -> str:
    return f"burst/{token}-{time}-{number}{_AWKWARD if number % 2 else ''}"


async def _bursts(
    episodes: Episodes, accepted: list[dict[str, Any]], tokens: list[str], *, time: int
) -> None:
    """Write to every session at once, as much to each as is due at this time."""
    async with trio.open_nursery() as nursery:
        for token, episode, count in zip(tokens, accepted, _BURSTS[time], strict=True):
            nursery.start_soon(_burst, episodes, episode["session_id"], token, time, count)


async def _burst(episodes: Episodes, session_id: str, token: str, time: int, count: int) -> None:
    session = episodes.session(session_id)

    async def some(numbers: range) -> None:
        for number in numbers:
            await session.write(_bursting(token, time, number), "x")

    async with trio.open_nursery() as nursery:
        for first in range(4):
            nursery.start_soon(some, range(first, count, 4))


def _content(event: dict[str, Any]) -> dict[str, Any]:
    """All of an event; its time as a time, since there is more than one way to write it."""
    return event | {"time": utc(event["time"], what=f"time of event {event['seq']}")}
