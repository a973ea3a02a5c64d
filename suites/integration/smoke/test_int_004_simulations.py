"""Simulations of all sessions have one queue."""

from __future__ import annotations

import itertools
from datetime import datetime
from typing import Any, Final

import pytest
import trio

from harness_core.base.errors import HarnessError
from harness_core.base.slowness import patience, slowness
from harness_core.doubles.http import Response, Unanswered
from suites.integration.comparing import expect_same, in_order, utc
from suites.integration.episodes import Episodes, calls, new_token
from suites.integration.patience import SOON_S, eventually
from suites.integration.refusals import expect_refused
from suites.integration.scenes import BROKEN_SCENE, PART_SCRIPT, scene
from suites.integration.sessions import Session

#: Physics of about a second, so that everything else is asked for while it runs.
_LONG_S = 200.0

#: By how much it may be lengthened on a busy machine, where it takes long to ask for the others.
_LONGER = 2.5
_SHORT_S = 5.0

#: What a simulation's turn may take to come, behind all others: less than a tenth of it.
_TURN_S: Final = 60.0

#: What a listing may take while nothing else loads the machine: milliseconds.
_LISTING_S = 0.05

#: From here on the order of a second's events is the scheduler's.
_BUSY = 2.0


@pytest.mark.covers("INT-004")
@pytest.mark.integration_p0
async def test_int_004_one_simulation_at_a_time(episodes: Episodes) -> None:
    """Simulations of several sessions run one after another, in the order they were asked for.

    Responses and the sessions' events record the same times. A model that is none is refused when
    its turn comes, and those behind it run.
    """
    token = new_token()
    ids = [f"{token}-{name}" for name in ("a", "b", "c")]
    sessions = [episodes.session(session_id) for session_id in ids]
    for number, session in enumerate(sessions):
        await session.write("scene.xml", scene(boxes=3 + number, name=f"of-{number}-"))
    await sessions[2].write("broken.xml", BROKEN_SCENE)
    warm = await sessions[0].post("/benchmark/simulate", **_asked("scene.xml", _SHORT_S))

    assert 200 == warm.status, f"expected a first simulation, found {warm}"
    answers: dict[int, Response] = {}
    asked = [
        (0, _asked("scene.xml", _LONG_S * min(slowness(), _LONGER))),
        (1, _asked("scene.xml", _SHORT_S)),
        (2, _asked("broken.xml", _SHORT_S)),
        (0, _asked("scene.xml", _SHORT_S + 1)),
        (2, _asked("scene.xml", _SHORT_S + 2)),
        (1, _asked("scene.xml", _SHORT_S) | {"job_id": "to-be-cancelled"}),
        (1, _asked("scene.xml", _SHORT_S + 3)),
        (2, _asked("broken.xml", _SHORT_S)),
        (0, _asked("scene.xml", _SHORT_S + 4)),
    ]
    refused, ran = (2, 5, 7), (0, 1, 3, 4, 6, 8)
    began = datetime.now().astimezone()
    async with trio.open_nursery() as nursery:
        for number, (index, body) in enumerate(asked):
            nursery.start_soon(_simulate, sessions[index], body, answers, number)
            await _is_asked(episodes, ids[index], f"{token}-{number}", body, number)
        asked_at = datetime.now().astimezone()
        listed = await sessions[1].post("/fs/ls")
        listed_at = datetime.now().astimezone()
        cancelled = await sessions[1].post("/jobs/to-be-cancelled/cancel")
        cancelled_at = datetime.now().astimezone()
    ended = datetime.now().astimezone()

    for number in ran:
        assert 200 == answers[number].status, f"expected run {number}, found {answers[number]}"
    runs = [answers[number].json() for number in ran]
    for number, run in zip(ran, runs, strict=True):
        _is_its_own(run, asked[number], number)
    times = [_times(run) for run in runs]
    for each in times:
        in_order([began, *each, ended], what="times of a run, between the test's own")
    assert listed.ok, f"expected a listing while a simulation runs, found {listed}"
    _overlapped(first_ended=times[0][2], last_queued=times[-1][0], asked_at=asked_at)
    assert listed_at < times[0][2], "other work waited for the simulation"
    for before, after in itertools.pairwise(times):
        assert before[2] <= after[1], f"simulations ran side by side, or out of turn: {times}"
    assert 200 == cancelled.status, f"expected one that waits to be cancelled, found {cancelled}"
    for number in refused:
        expect_refused(answers[number], 400, 409, 422)
    # Its turn would have come after the fourth that ran.
    assert cancelled_at < times[3][2], "the cancellation of one that waits waited for its turn"
    for index, session_id in enumerate(ids):
        record = await episodes.record(session_id)
        _is_recorded(record, index, asked, dict(zip(ran, runs, strict=True)))


@pytest.mark.covers("INT-004")
@pytest.mark.integration_p0
@pytest.mark.slow
async def test_int_004_a_place_in_the_queue_is_of_who_asked(episodes: Episodes) -> None:
    """A design that takes long to build has the place of its request: what is asked for later runs later.

    Also who asks when one that has waited runs: it waits for that one.
    """
    token = new_token()
    sessions = [episodes.session(f"{token}-{name}") for name in ("slow", "slower", "quick")]
    first, second, third = sessions
    for session in (first, second):
        await session.write("model.py", _GATED + PART_SCRIPT)
    await third.write("scene.xml", scene())
    answers: dict[int, Response] = {}
    bodies = [_asked("model.py", 0.1), _asked("model.py", 0.2), _asked("scene.xml", 0.1)]

    async def first_is_answered() -> bool:
        return 0 in answers

    async with trio.open_nursery() as nursery:
        for number, (session, body) in enumerate(zip(sessions, bodies, strict=True)):
            nursery.start_soon(_simulate, session, body, answers, number)
            await _is_asked(episodes, session.id, f"{token}-{number}", body, number)
            if session is second:
                await first.write("go-on", "on")
                await eventually(
                    first_is_answered, seconds=_TURN_S, expected="the first run to end"
                )
        await second.write("go-on", "on")

    for number, answer in answers.items():
        assert 200 == answer.status, f"expected run {number}, found {answer}"
    times = [_times(answers[number].json()) for number in range(3)]
    in_order([queued for queued, _, _ in times], what="times of queueing, as they were asked for")
    for before, after in itertools.pairwise(times):
        assert before[2] <= after[1], (
            "expected what was asked for first to run first, and alone; found one that ended at "
            f"{before[2]:%T.%f}, and the next, which began at {after[1]:%T.%f}"
        )


#: A script's beginning that lasts until the test lets it go on.
_GATED: Final = """\
import os
import time

while not os.path.exists("go-on"):
    time.sleep(0.02)
"""


def _asked(model: str, duration_s: float) -> dict[str, Any]:
    variant = f"queue-{duration_s:g}"
    return {"model": model, "variant": variant, "seed": 1, "duration_s": duration_s}


async def _simulate(
    session: Session, body: dict[str, Any], answers: dict[int, Response], number: int
) -> None:
    try:
        answers[number] = await session.post(
            "/benchmark/simulate",
            **{**body, "seed": 100 + number},
            seconds=patience(_TURN_S),
        )
    except Unanswered as unanswered:
        raise AssertionError(
            f"expected run {number}, {body}, to be answered when its turn comes, whatever became of those "
            f"before it; found none: {unanswered}"
        ) from unanswered


def _is_recorded(
    record: list[dict[str, Any]],
    index: int,
    asked: list[tuple[int, dict[str, Any]]],
    runs: dict[int, dict[str, Any]],
) -> None:
    """A session's events have its own runs alone, each with the times of its answer.

    Args:
        record: the events of the session.
        index: which session it is.
        asked: what was asked for, and of which session.
        runs: number of what was asked → its answer, where it was carried out.
    """
    results = [event["payload"] for event in calls(record, "simulation_result")]
    recorded = {result["job_id"]: result for result in results}
    for number, run in runs.items():
        here = run["job_id"] in recorded
        assert here == (asked[number][0] == index), f"run {number} is an event of session {index}"
        if here:
            event = recorded[run["job_id"]]
            assert _times(run) == _times(event), f"response {run} and event {event} differ"
    unseeded = [result for result in results if result.get("seed") is None]
    assert not unseeded, f"results that do not say which run they are of: {unseeded}"
    count = sum(1 for at, _ in asked if at == index) + (index == 0)
    assert count == len(results), f"expected {count} results of a session, found {results}"


def _is_its_own(run: dict[str, Any], asked: tuple[int, dict[str, Any]], number: int) -> None:
    """The answer is about the scene, the seed and the time of this request."""
    index, body = asked
    names = [f"of-{index}-{n}" for n in range(3 + index)]
    found = [each["name"] for each in run["bodies"]]

    expect_same(names, found, what=f"bodies of run {number}, in the session's own scene")
    told = {"seed": 100 + number, "variant": f"queue-{body['duration_s']:g}"}
    expect_same(told, {key: run[key] for key in told}, what=f"seed and variant of run {number}")
    steps = round(body["duration_s"] / 0.002)
    assert steps == run["steps"], f"expected {steps} steps of run {number}, found {run['steps']}"


def _overlapped(*, first_ended: datetime, last_queued: datetime, asked_at: datetime) -> None:
    """All simulations, and the listing, were asked for while the first simulation still ran.

    Raises:
        HarnessError: they were not, on a machine too busy to tell whether the worker held them up.
    """
    left_s = (first_ended - max(last_queued, asked_at)).total_seconds()
    busy = slowness()
    if left_s < _LISTING_S * busy and busy > _BUSY:
        raise HarnessError(
            "judge the queue of simulations",
            observed=f"the first one ended {left_s:.2f} s after everything else had been asked for, "
            f"on a machine {busy:.1f} times as busy as idle",
            next_step="Run the test on a machine that is less busy",
        )

    assert left_s > 0, "other work waited for the simulation, or it was too short to prove anything"


async def _is_asked(
    episodes: Episodes, session_id: str, what: str, body: dict[str, Any], number: int
) -> None:
    """Wait until the worker has taken the request: the order of requests is certain then."""

    async def there() -> bool:
        requests = calls(await episodes.session(session_id).events(), "simulation_request")
        return any(event["payload"]["seed"] == 100 + number for event in requests)

    await eventually(there, seconds=SOON_S, expected=f"the request {what} ({body}) as an event")


def _times(run: dict[str, Any]) -> tuple[datetime, datetime, datetime]:
    queued, started, finished = (
        utc(run[name], what=name) for name in ("queued_at", "started_at", "finished_at")
    )
    return queued, started, finished
