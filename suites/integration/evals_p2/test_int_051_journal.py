"""Entries of a journal have their structure, and rest on events of their own episode."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from datetime import datetime
from typing import Any, Final

import pytest
import trio
from workbench_contract.episodes import JournalLine
from workbench_contract.journal import JournalEntry

from harness_core.doubles.http import Response
from harness_core.doubles.model import Fault
from harness_core.doubles.turns import use
from suites.integration.comparing import consecutive, expect_same
from suites.integration.episodes import Episodes, new_token
from suites.integration.messages import answered, sent
from suites.integration.patience import EPISODE_S, eventually, patience_with_a_stack
from suites.integration.planners import at_work
from suites.integration.refusals import expect_refused
from suites.integration.temporal_view import describe_workflow

pytestmark = [pytest.mark.covers("INT-051"), pytest.mark.integration_p2]

_UNKNOWN: Final = "00000000-0000-4000-8000-000000000051"

#: Entries in a row: between two of them whoever pulls events now and then has seldom done so.
_AT_ONCE: Final = 5

_PARTS: Final = ("intent", "result", "reflection", "next_step")


async def test_int_051_an_agent_keeps_a_journal(episodes: Episodes) -> None:
    """What an agent writes down in a run stands in its episode, with the events that it rests on.

    An entry that rests on none is refused to the agent, in words, and the run goes on. Another agent at the
    same time keeps its own. The model provider is a stand-in: the gateway does the turns.
    """
    tokens = [new_token(), new_token()]
    written = [
        _entry(f"1 {tokens[0]}", ("worker", 2), ("worker", 1), ("controller", 1)),
        _entry("2 Ångström, “日本語”\n" + "long " * 700, ("controller", 1)),
        _entry(f"of the other {tokens[1]}", ("worker", 1)),
    ]
    act = use("execute", command="true")
    look = use("fs_ls", path=".")
    lost = use("write_journal", **_entry("nowhere", ("worker", 90)))
    await episodes.rehearse(
        tokens[0],
        *(act, look, use("write_journal", **written[0]), lost, use("write_journal", **written[1])),
    )
    await episodes.rehearse(tokens[1], act, use("write_journal", **written[2]))
    accepted = [await episodes.submit(token) for token in tokens]
    first, second = [await episodes.until(each["episode_id"], "completed") for each in accepted]

    _is_journal(first, written[:2])
    _is_journal(second, written[2:])
    calls = [trace["ok"] for trace in first["traces"] if trace["name"] == "write_journal"]
    expect_same([True, False, True], calls, what="which entries were taken")
    refused = next(trace for trace in first["traces"] if trace["ok"] is False)
    assert "worker 90" in refused["detail"]["result"], (
        f"the agent is told which event there is none of: found {refused['detail']}"
    )
    for episode in (first, second):
        known = {(e["source"], e["seq"]) for e in await episodes.events(episode["episode_id"])}
        named = {
            (o["source"], o["seq"]) for line in episode["journal"] for o in line["observations"]
        }
        assert named <= known, f"expected entries to rest on events, found {named - known} of none"


async def test_int_051_an_entry_that_is_tried_twice_is_one(breakable: Episodes) -> None:
    """An agent's entry whose first attempt is still under way when the second begins is one line.

    The worker, from which its events are pulled first, is paused meanwhile. The model provider is a stand-in.
    """
    token, stack = new_token(), breakable.stack
    await breakable.rehearse(token, use("write_journal", **_entry(token, ("controller", 1))))
    gateway = stack.gateway.client

    async def begun() -> datetime | None:
        """When the attempt began that is under way."""
        seen = await describe_workflow(stack, accepted["workflow_id"])
        assert seen is not None, f"Temporal has no workflow of {accepted}"
        return max(seen.begun, default=None)

    async def after(before: datetime | None, what: str) -> datetime:
        async def there() -> datetime | None:
            found = await begun()
            return found if found and (before is None or found > before) else None

        seconds = patience_with_a_stack(EPISODE_S)
        found: datetime = await eventually(there, seconds=seconds, expected=what)
        return found

    async with AsyncExitStack() as held:
        hold = Fault(kind="hold", times=1, contains=token)
        number = await held.enter_async_context(gateway.fault(hold))
        accepted = await breakable.submit(token)

        async def asked() -> bool:
            return await gateway.fault_met(number) > 0

        await eventually(asked, seconds=EPISODE_S, expected="the model asked for its entry")
        turn = await after(None, "the model's turn under way")
        async with stack.outage("worker", "pause"):
            await held.aclose()
            first = await after(turn, "the first attempt at the entry")
            await after(first, "the second attempt at the entry, beside the first")
    episode = await breakable.until(accepted["episode_id"], "completed")
    _is_journal(episode, [_entry(token, ("controller", 1))])


async def test_int_051_what_rests_on_nothing_is_refused(episodes: Episodes) -> None:
    """An event beyond the last, before the first, of another episode or twice: refused, with the reason.

    So is an entry that lacks a part, or has one that says nothing. None leaves a line. The model provider is a
    stand-in.
    """
    short = await episodes.run(new_token(), use("execute", command="true"))
    longer = await episodes.run(new_token(), *[use("execute", command="true")] * 4)
    last = max(
        e["seq"] for e in await episodes.events(short["episode_id"]) if e["source"] == "worker"
    )
    most = max(
        e["seq"] for e in await episodes.events(longer["episode_id"]) if e["source"] == "worker"
    )
    assert last < most, f"expected the longer episode to have more events, found {last} and {most}"
    for why, observations in (
        ("beyond the last of all", [("worker", most + 1_000_000)]),
        ("of another episode", [("worker", most)]),
        ("among others that are there", [("worker", 1), ("worker", most)]),
    ):
        answer = await _write(episodes, short, _entry("x", *observations))
        assert answer.status in (409, 422), f"an event {why} is refused: found {answer}"
        expect_refused(answer, 409, 422, says=str(observations[-1][1]))
    apart = 0
    for episode in (short, longer):
        events = await episodes.events(episode["episode_id"])
        last_of = {
            source: max(event["seq"] for event in events if event["source"] == source)
            for source in ("controller", "worker")
        }
        fewer, more = sorted(last_of, key=last_of.__getitem__)
        if last_of[fewer] < last_of[more]:
            apart += 1
            entry = _entry("x", (fewer, last_of[more]))
            answer = await _write(episodes, episode, entry)
            expect_refused(answer, 409, 422, says=str(last_of[more]))
    assert apart, "cannot tell the sources of events apart by their numbers: both have as many"
    whole = _entry("whole", ("worker", 1))
    malformed: list[tuple[dict[str, Any], str]] = [
        *(({key: value for key, value in whole.items() if key != part}, part) for part in _PARTS),
        *((whole | {part: "  \n "}, part) for part in _PARTS),
        *((whole | {part: ["a list"]}, part) for part in _PARTS),
        (whole | {"observations": []}, "observations"),
        ({key: value for key, value in whole.items() if key != "observations"}, "observations"),
        (whole | {"observations": [{"source": "worker", "seq": 0}]}, "seq"),
        (whole | {"observations": [{"source": "nobody", "seq": 1}]}, "source"),
        (whole | {"observations": [{"source": "worker", "seq": 1}] * 2}, "observations"),
        (whole | {"observations": ["worker 1"]}, "observations"),
        (whole | {"mood": "good"}, "mood"),
    ]
    for body, says in malformed:
        expect_refused(await _post(episodes, short["episode_id"], body), 422, says=says)
    expect_refused(await _post(episodes, _UNKNOWN, whole), 404)
    for episode in (short, longer):
        now = (await episodes.get(episode["episode_id"]))["journal"]
        assert [] == now, f"what is refused leaves no line: found {now}"
    taken = await _write(episodes, short, whole)
    assert 201 == taken.status, f"expected a sound entry to be taken with 201, found {taken}"
    line = answered(taken, JournalLine)
    expect_same(whole["reflection"], line.reflection, what="what is answered")


async def test_int_051_an_event_may_be_named_at_once(episodes: Episodes) -> None:
    """An entry may rest on what its session has recorded a moment before.

    The model provider is a stand-in, held meanwhile.
    """
    async with at_work(episodes, role="planner") as (accepted, session, _):
        written = []
        for number in range(_AT_ONCE):
            await session.write("note.txt", f"note {number}")
            last = (await session.events())[-1]["seq"]
            written.append(_entry(f"number {number}", ("worker", last)))
            answer = await _write(episodes, accepted, written[-1])
            assert 201 == answer.status, (
                f"expected an entry that rests on the event {last} to be taken, found {answer}"
            )
    named = [entry["observations"][0]["seq"] for entry in written]
    assert sorted({*named}) == named, f"expected an event for each entry, found {named}"
    _is_journal(await episodes.get(accepted["episode_id"]), written)


async def test_int_051_entries_at_once_and_a_restart(breakable: Episodes) -> None:
    """Several at once are all there, each once and numbered without a gap, also when the controller was killed.

    The model provider is a stand-in.
    """
    episode = await breakable.run(new_token(), use("execute", command="true"))
    entries = [_entry(f"number {n}", ("worker", 1)) for n in range(8)]
    answers: list[Response] = []

    async def write(entry: dict[str, Any]) -> None:
        answers.append(await _write(breakable, episode, entry))

    async with trio.open_nursery() as nursery:
        for entry in entries:
            nursery.start_soon(write, entry)
    statuses = [answer.status for answer in answers]
    expect_same([201] * 8, statuses, what="answers to entries at once")
    async with breakable.stack.outage("controller", "kill"):
        pass
    journal = (await breakable.get(episode["episode_id"]))["journal"]
    consecutive((line["ordinal"] for line in journal), what="lines of the journal")
    expect_same(
        sorted(entry["intent"] for entry in entries),
        sorted(line["intent"] for line in journal),
        what="entries, each once",
    )


def _entry(name: str, *observations: tuple[str, int]) -> dict[str, Any]:
    """An entry whose parts are all different."""
    parts = {part: f"{part} of {name}" for part in _PARTS}
    named = [{"source": source, "seq": seq} for source, seq in observations]
    return {**parts, "observations": named}


async def _write(episodes: Episodes, episode: Mapping[str, Any], entry: dict[str, Any]) -> Response:
    body = sent(JournalEntry.model_validate(entry, strict=False))
    return await _post(episodes, episode["episode_id"], body)


async def _post(episodes: Episodes, episode_id: str, body: dict[str, Any]) -> Response:
    return await episodes.controller.post(f"/episodes/{episode_id}/journal", body)


def _is_journal(episode: Mapping[str, Any], written: list[dict[str, Any]]) -> None:
    """The journal of an episode is what its agent has written, in order."""
    consecutive((line["ordinal"] for line in episode["journal"]), what="lines of the journal")
    found = [{key: line[key] for key in (*_PARTS, "observations")} for line in episode["journal"]]
    expect_same(written, found, what="the journal of the run")
