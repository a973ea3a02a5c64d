"""Without Temporal nothing claims success, and nothing is stuck."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

import pytest
import trio

from harness_core.doubles.http import Response, Unanswered
from harness_core.doubles.turns import use
from suites.integration.comparing import expect_same, expect_unchanged, in_order, utc
from suites.integration.episodes import Episodes, calls, new_token
from suites.integration.health import payload, unwell
from suites.integration.patience import COMMAND_S, SOON_S, by_a_stack, eventually
from suites.integration.refusals import expect_refused
from suites.integration.temporal_view import closed_workflow

#: More than a client waits for, should each of a batch wait for Temporal after the other.
_BATCH: Final = 30

#: How long an episode has run when Temporal goes away for a moment: longer than the outage that a stack
#: with short timeouts takes for the end.
_AGE_S: Final = 5.0

#: How much longer than until health names Temporal a short outage lasts, for whoever else looks for it,
#: and how many of it new episodes meet.
_NOTICED_S: Final = 1.0
_COMPARED: Final = 3


@pytest.mark.covers("INT-054")
@pytest.mark.integration_p0
@pytest.mark.parametrize("how", ["kill", pytest.param("pause", marks=pytest.mark.corpus)])
async def test_int_054_an_outage_of_temporal_is_no_success(breakable: Episodes, how: str) -> None:
    """What runs, and what is submitted, while Temporal is away fails: with state, reason and event.

    So does what is submitted to a controller that was started meanwhile. It stays failed when Temporal is
    back and still knows of the workflow, its work has ended, and new episodes run. The model provider is a stand-in: the gateway does the turns.
    """
    began = datetime.now(UTC)
    running, late, afterwards = new_token(), new_token(), new_token()
    command = "while :; do echo x >> beats; sleep 0.05; done"
    beats = use("execute", command=command, timeout_s=COMMAND_S)
    await breakable.rehearse(running, beats, use("fs_write", path="after.txt", content="x"))
    batched, started = [new_token() for _ in range(_BATCH)], new_token()
    for token in (late, started, *batched):
        await breakable.rehearse(token, use("fs_write", path="never.txt", content="x"))
    await breakable.rehearse(afterwards, use("fs_write", path="now.txt", content="x"))
    accepted = await breakable.submit(running)
    await _beats(breakable, accepted["session_id"])

    async with breakable.stack.outage("temporal", how):
        answer, batch, interruption = await _at_once(
            partial(breakable.ask, late),
            partial(_batch, breakable, batched),
            partial(breakable.interrupt, accepted["episode_id"]),
        )
        health = await breakable.controller.get("/health")
        cut = await breakable.until(accepted["episode_id"], "failed", seconds=SOON_S)
        await breakable.until_still(accepted["session_id"])
        never = [await _failed(breakable, token) for token in (late, *batched)]
        if how == "kill":
            never.append(await _failed_when_started(breakable, started))
    await breakable.run_submitted(afterwards)
    closed = await closed_workflow(breakable.stack, accepted["workflow_id"])

    # Refused at once, or taken and failed within the deadline: what counts is what is on record.
    for each in (answer, batch):
        if each.status != 202:
            expect_refused(each, 503, says="temporal|workflow")
    if interruption.status != 202:
        expect_refused(interruption, 409, 503)
        asked_at = cut["interrupt_requested_at"]
        assert asked_at is None, f"an interruption that was refused is on record: {asked_at}"
    expect_refused_health(health)
    assert "completed" != closed.status, f"Temporal has {closed}, the episode has failed"
    expected = [(cut, ["queued", "running", "failed"])]
    expected += [(episode, ["queued", "failed"]) for episode in never]
    for episode, steps in expected:
        now = await breakable.get(episode["episode_id"])
        expect_unchanged(episode, now, what="an episode after its end, beside itself at its end")
        found = [step["to_status"] for step in episode["transitions"]]
        expect_same(steps, found, what="steps of an episode that Temporal's outage ended")
        reason = episode["reason"]
        assert re.search("temporal|workflow", reason, re.IGNORECASE), (
            f"expected a reason that names Temporal or the workflow, found {reason!r}"
        )
        events = calls(await breakable.events(episode["episode_id"]), "workflow_transition")

        recorded = [event["payload"]["to_status"] for event in events]
        expect_same(steps, recorded, what="events of the steps")
        said = events[-1]["payload"]["reason"]
        assert reason == said, f"the episode's reason is {reason!r}, its last event's {said!r}"
        times = [utc(event["time"], what="time of a step") for event in events]
        in_order([began, *times, datetime.now(UTC)], what="times of the steps")
    # What the worker wrote for an episode that ended so arrives like any other.
    await breakable.until_event(cut["episode_id"], "tool_call")
    for episode in never:
        files = await breakable.session(episode["session_id"]).files()
        assert "never.txt" not in files, "an episode that was refused was run"
    files = await breakable.session(cut["session_id"]).files()
    assert "after.txt" not in files, "an episode that had failed went on"


async def _failed_when_started(episodes: Episodes, token: str) -> dict[str, Any]:
    """An episode that is submitted to a controller which was started without Temporal; both are back then."""
    stack = episodes.stack
    await stack.kill("controller")

    async def serves() -> bool:
        try:
            return (await episodes.controller.get("/openapi.json")).status == 200
        except Unanswered:
            return False

    async with trio.open_nursery() as nursery:
        # It is not well before Temporal is back, which a start waits for.
        nursery.start_soon(stack.start, "controller")
        try:
            await eventually(serves, seconds=SOON_S, expected="a controller that serves")
            answer = await episodes.ask(token)
            expect_refused(answer, 503, says="temporal|workflow")
            failed = await _failed(episodes, token)
        finally:
            with trio.CancelScope(shield=True):
                await stack.start("temporal")
    return failed


@pytest.mark.covers("INT-054")
@pytest.mark.integration_p0
async def test_int_054_a_short_outage_is_short_for_old_episodes(breakable: Episodes) -> None:
    """An episode that has run for long outlives an outage of Temporal that a new one outlives.

    How much a product outlives is its own affair: the old one has failed wrongly when new ones, in
    outages at least as long, have not. The model provider is a stand-in: the gateway does the turns.
    """
    token = new_token()
    aged_s = by_a_stack(_AGE_S)
    works = use("execute", command=f"sleep {aged_s:.1f}", timeout_s=COMMAND_S)
    await breakable.rehearse(token, works, breakable.waiting())
    old = await breakable.submit(token)
    await breakable.begun(old["session_id"])
    lasted_s = await _short_outage(breakable)
    await breakable.release(old["session_id"])
    ended = await breakable.until(old["episode_id"], "completed", "failed")

    if ended["status"] == "failed":
        outlived = [await _is_outlived(breakable, lasted_s) for _ in range(_COMPARED)]
        assert not all(outlived), (
            f"an episode that had run for {aged_s:.1f} s failed by an outage of {lasted_s:.1f} s, "
            f"{_COMPARED} new ones outlived such outages: {ended['reason']!r}"
        )


async def _short_outage(episodes: Episodes, least_s: float = 0.0) -> float:
    """Temporal hangs until health says so, and a moment longer; how long that was, in seconds."""
    watching = episodes.session(new_token())
    async with episodes.stack.outage("temporal", "pause"):
        began = trio.current_time()
        expect_refused_health(await episodes.controller.get("/health"))
        left_s = least_s - (trio.current_time() - began)
        await watching.execute(f"sleep {max(_NOTICED_S, left_s):.2f}")
        return trio.current_time() - began


async def _is_outlived(episodes: Episodes, least_s: float) -> bool:
    """Whether a new episode outlives an outage at least as long."""
    token = new_token()
    await episodes.rehearse(token, use("fs_write", path="a.txt", content="x"))
    accepted = await episodes.submit(token)
    await _short_outage(episodes, least_s)
    ended = await episodes.until(accepted["episode_id"], "completed", "failed")
    return bool(ended["status"] == "completed")


def expect_refused_health(answer: Response) -> None:
    """Health names Temporal, and Temporal alone."""
    body = payload(answer)

    assert 503 == answer.status, f"expected 503 without Temporal, found {answer}"
    assert "unhealthy" == body["status"], f"expected it unhealthy without Temporal, found {answer}"
    assert {"temporal"} == unwell(body), f"expected it to name Temporal alone, found {answer}"


async def _at_once(*asking: Callable[[], Awaitable[Response]]) -> list[Response]:
    """The answers to requests that are made at the same time, in the order of the requests."""
    answers: dict[int, Response] = {}

    async def one(number: int, ask: Callable[[], Awaitable[Response]]) -> None:
        answers[number] = await ask()

    async with trio.open_nursery() as nursery:
        for number, ask in enumerate(asking):
            nursery.start_soon(one, number, ask)
    return [answers[number] for number in range(len(asking))]


async def _batch(episodes: Episodes, tokens: list[str]) -> Response:
    """Submit several episodes at once; the answer, whatever it is.

    Raises:
        AssertionError: there is none as long as anybody waits for one.
    """
    try:
        return await episodes.ask_batch({token: {} for token in tokens})
    except Unanswered as unanswered:
        raise AssertionError(
            f"expected a batch of {len(tokens)} to be refused, or taken and failed, while Temporal "
            f"is away, as one submission is; found no answer: {unanswered}"
        ) from unanswered


async def _failed(episodes: Episodes, token: str) -> dict[str, Any]:
    """The episode of a submission that Temporal did not see: it is on record, and has failed."""

    async def there() -> str | None:
        listed = await episodes.controller.get("/episodes", params={"limit": 50})

        assert 200 == listed.status, f"expected a list of episodes, found {listed}"
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
