"""Events: the worker writes them, the controller has each of them once."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from harness_core.doubles.http import Unanswered
from harness_core.doubles.turns import use
from suites.integration.episodes import Episodes, calls, new_token
from suites.integration.patience import EPISODE_S

_TURNS = 4
_CALLS = 6
_BURST = 40


@pytest.mark.covers("INT-025")
@pytest.mark.integration_p0
async def test_int_025_every_event_arrives_once_and_in_order(breakable: Episodes) -> None:
    """What the worker wrote is what the controller has, under load and over its own restart.

    While the controller is away nothing is accepted; what the worker writes meanwhile arrives when
    it is back, once. The model provider is a stand-in: the gateway does the turns of each episode.
    """
    tokens = [new_token() for _ in range(3)]
    for token in tokens:
        turns = [
            tuple(use("fs_write", path=f"{token}/{t}-{c}.txt", content="x") for c in range(_CALLS))
            for t in range(_TURNS)
        ]
        await breakable.rehearse(token, *turns[:2], breakable.waiting(), *turns[2:])
    accepted = [await breakable.submit(token) for token in tokens]
    for episode in accepted:
        await breakable.begun(episode["session_id"])

    async with breakable.stack.outage("controller", "kill"):
        with pytest.raises(Unanswered):
            await breakable.ask(new_token())
        async with trio.open_nursery() as nursery:
            for token, episode in zip(tokens, accepted, strict=True):
                nursery.start_soon(_burst, breakable, episode["session_id"], token)
    for episode in accepted:
        await breakable.release(episode["session_id"])
    for token, episode in zip(tokens, accepted, strict=True):
        await breakable.until(episode["episode_id"], "completed", seconds=EPISODE_S)
        record = await breakable.record(episode["session_id"])
        stored = await breakable.until_events(episode["episode_id"], len(record))
        of_worker = [event for event in stored if event["source"] == "worker"][: len(record)]

        assert list(range(1, len(record) + 1)) == [line["seq"] for line in record], (
            "a gap at the worker"
        )
        assert [_content(line) for line in record] == [_content(event) for event in of_worker]
        for source in {event["source"] for event in stored}:
            numbers = [event["seq"] for event in stored if event["source"] == source]

            assert list(range(1, len(numbers) + 1)) == numbers, f"gap, double or disorder: {source}"
        # Counted by what was done, not by what was recorded of it.
        done = [f"{token}/{t}-{c}.txt" for t in range(_TURNS) for c in range(_CALLS)]
        done += [f"burst/{token}-{n}" for n in range(_BURST)]
        written = [
            event["payload"]["arguments"]["path"]
            for event in calls(stored, "tool_call")
            if event["payload"]["tool"] == "fs_write"
        ]

        assert sorted(done) == sorted(path for path in written if token in path)


async def _burst(episodes: Episodes, session_id: str, token: str) -> None:
    session = episodes.session(session_id)

    async def one(numbers: range) -> None:
        for number in numbers:
            await session.write(f"burst/{token}-{number}", "x")

    async with trio.open_nursery() as nursery:
        for first in range(4):
            nursery.start_soon(one, range(first, _BURST, 4))


def _content(event: dict[str, Any]) -> dict[str, Any]:
    return {key: event[key] for key in ("seq", "kind", "episode_id", "trace_id", "payload")}
