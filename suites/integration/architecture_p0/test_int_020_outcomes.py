"""How a run ends, by scenes that are made to end so, each beside the neighbour that just does not."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pytest
import yaml
from workbench_contract.simulation import Outcome, Simulated

from harness_core.doubles.http import HttpClient
from harness_core.doubles.turns import use
from suites.integration.comparing import expect_same
from suites.integration.episodes import Episodes, calls, new_token
from suites.integration.refusals import expect_refused
from suites.integration.scenes import EXPLODING_SCENE
from suites.integration.sessions import new_session
from suites.integration.simulating import (
    EMPTY_SCENE,
    GRAVITY,
    empty,
    goals,
    moved,
    simulate,
    simulated,
)

#: By how much a neighbour misses, or does not: millimetres.
_JUST: Final = 0.1


_STEP_S: Final = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """A scene that ends in one way.

    Attributes:
        what: in a few words.
        says: what the reason names.
    """

    what: str
    outcome: Outcome
    objectives: Mapping[str, Any]
    scene: str = EMPTY_SCENE
    duration_s: float = 0.5
    says: str = ""
    asked: Mapping[str, Any] = field(default_factory=dict)


def _aside(shape: str, axis: int, gap_mm: float) -> _Case:
    """An object that falls past the goal at a distance; below 0 it grazes it."""
    half = {"sphere": (7, 7), "box": (4.5, 5.5), "cylinder": (6, 6)}[shape][axis]
    start = [0.0, 0.0, 300.0]
    start[axis] = -13 - half - gap_mm
    hit = gap_mm < 0
    return _Case(
        what=f"a {shape} {gap_mm:+g} mm beside the goal along {'xy'[axis]}",
        outcome=Outcome.GOAL_HIT if hit else Outcome.OUT_OF_BOUNDS,
        objectives=goals(moved_object=moved(shape, start_mm=start)),
    )


def _past_an_edge(gap_mm: float, shape: str = "sphere") -> _Case:
    """What is round past the goal's upright edge: the box around it meets the goal, it itself may not."""
    radius = {"sphere": 7, "cylinder": 6}[shape]
    away = 13 + (radius + gap_mm) / math.sqrt(2)
    return _Case(
        what=f"a {shape} {gap_mm:+g} mm past an edge of the goal",
        outcome=Outcome.GOAL_HIT if gap_mm < 0 else Outcome.OUT_OF_BOUNDS,
        objectives=goals(moved_object=moved(shape, start_mm=[away, -away, 300])),
    )


def _pit(gap_mm: float, *, name: str | None) -> _Case:
    """A ball that falls past the second of two forbid zones before it comes to the goal."""
    zones = [
        {"name": "far pit", "min_mm": [200, 200, 20], "max_mm": [220, 220, 40]},
        {"min_mm": [7 + gap_mm, -5, 150], "max_mm": [60, 5, 170]},
    ]
    if name:
        zones[1]["name"] = name
    return _Case(
        what=f"a ball {gap_mm:+g} mm beside a pit named {name!r}",
        outcome=Outcome.FORBID_HIT if gap_mm < 0 else Outcome.GOAL_HIT,
        objectives=goals(forbid_zones=zones),
        says=(name or "1") if gap_mm < 0 else "",
    )


def _leaving(axis: int, sign: int, gap_mm: float, shape: str = "box") -> _Case:
    """An object that is drawn onto a wall, whose face is inside the bounds by a gap, or outside."""
    half = {"box": (4.5, 5.5, 7.0), "cylinder": (6.0, 6.0, 8.5), "sphere": (7.0, 7.0, 7.0)}[shape][
        axis
    ]
    limit = ((-400, 400), (-400, 400), (0, 500))[axis][0 if sign < 0 else 1]
    face = limit - sign * gap_mm
    start = [31.0, -27.0, 300.0]
    start[axis] = face - sign * (half + 6)
    gravity = [0.0, 0.0, 0.0]
    gravity[axis] = sign * 0.1
    centre = [value / 1000 for value in start]
    centre[axis] = (face + sign * 20) / 1000
    size = [0.1, 0.1, 0.1]
    size[axis] = 0.02
    wall = f'<geom type="box" size="{_words(size)}" pos="{_words(centre)}" solref="0.002 1" priority="1"/>'
    return _Case(
        what=f"a {shape} {gap_mm:+g} mm within the bounds at {'-+'[sign > 0]}{'xyz'[axis]}",
        outcome=Outcome.OUT_OF_BOUNDS if gap_mm < 0 else Outcome.TIMEOUT,
        objectives=goals(
            goal_zone={"min_mm": [-300, -300, 100], "max_mm": [-280, -280, 120]},
            moved_object=moved(shape, start_mm=start),
        ),
        scene=empty(gravity=(gravity[0], gravity[1], gravity[2])).replace(
            "<worldbody/>", f"<worldbody>{wall}</worldbody>"
        ),
        duration_s=0.6,
    )


def _words(numbers: list[float]) -> str:
    return " ".join(f"{number:.9g}" for number in numbers)


def _steps_to_fall(by_mm: float, step_s: float = _STEP_S) -> int:
    """After how many steps something has fallen so far: MuJoCo moves it by its new speed."""
    needed = by_mm / 1000 / (GRAVITY * step_s**2) * 2
    return math.ceil((math.sqrt(1 + 4 * needed) - 1) / 2)


def _in_time(steps_more: int) -> _Case:
    """A run that is as long as the fall, or a step shorter."""
    steps = _steps_to_fall(300 - 7 - 120)
    return _Case(
        what=f"a run of {steps_more:+d} steps beside those of the fall",
        outcome=Outcome.GOAL_HIT if steps_more >= 0 else Outcome.TIMEOUT,
        objectives=goals(),
        duration_s=(steps + steps_more) * _STEP_S,
    )


def _both_at_once(lower_mm: float) -> _Case:
    """A box that comes down on a goal and a pit side by side; the pit lies lower by so much."""
    return _Case(
        what=f"goal and pit side by side, the pit {lower_mm:g} mm lower",
        outcome=Outcome.FORBID_HIT if lower_mm == 0 else Outcome.GOAL_HIT,
        objectives=goals(
            goal_zone={"min_mm": [1, -13, 100], "max_mm": [30, 13, 120]},
            forbid_zones=[
                {"name": "trap", "min_mm": [-30, -13, 90], "max_mm": [-1, 13, 120 - lower_mm]}
            ],
            moved_object=moved("box", start_mm=[0, 0, 260]),
        ),
        says="trap" if lower_mm == 0 else "",
    )


def _cases() -> Iterator[_Case]:
    for gap in (-_JUST, _JUST):
        for shape, axis in (("sphere", 0), ("box", 0), ("box", 1), ("cylinder", 1)):
            yield _aside(shape, axis, gap)
        yield _past_an_edge(gap)
        yield _past_an_edge(gap, "cylinder")
        yield _pit(gap, name="die Grube, 坑")
        for axis, sign in ((0, 1), (0, -1), (1, 1), (1, -1), (2, 1), (2, -1)):
            yield _leaving(axis, sign, gap)
        for axis, sign in ((0, -1), (2, 1), (2, -1)):
            yield _leaving(axis, sign, gap, "cylinder")
        for axis, sign in ((0, 1), (1, -1), (2, 1)):
            yield _leaving(axis, sign, gap, "sphere")
    yield _pit(-_JUST, name=None)
    yield _both_at_once(0)
    yield _both_at_once(6)
    yield _in_time(0)
    yield _in_time(-1)


@pytest.mark.covers("INT-020")
@pytest.mark.integration_p0
async def test_int_020_just_so_and_just_not(worker: HttpClient) -> None:
    """A run ends by what its object's geometry meets, at every step, and not by what it just misses.

    Objectives that are none judge nothing: they are refused, and no run is made up.
    """
    session = new_session(worker)
    for case in _cases():
        found = await simulated(
            session,
            case.scene,
            judged_by=case.objectives,
            duration_s=case.duration_s,
            **case.asked,
        )

        _ended(case, found)
    tipped = await simulated(session, _PEG, judged_by=_TIPPED, duration_s=1.0)
    [centre] = [body.position_m[2] * 1000 for body in tipped.runs[0].bodies if body.name == "load"]
    assert Outcome.OUT_OF_BOUNDS == tipped.outcome, f"expected a rod to leave, found {tipped}"
    assert 20 < centre < 49, (
        "a rod of 100 mm that tips over a peg leaves the bounds with its end, while its middle is 20 to 49 mm "
        f"above them: found the middle at {centre} mm"
    )
    late = await simulated(session, EMPTY_SCENE, judged_by=_in_time(0).objectives, duration_s=0.5)
    steps = _steps_to_fall(300 - 7 - 120)
    assert steps == late.steps, (
        f"a run ends with the step that brings the object to its goal: expected {steps}, found {late}"
    )
    wrong = goals()
    wrong["goal_zone"] = {"min_mm": [-13, -13, 120], "max_mm": [13, 13, 100]}
    expect_refused(await simulate(session, judged_by=wrong, model="scene.xml"), 409, 422)
    gone = await simulate(session, objectives="gone.yaml", model="scene.xml")
    expect_refused(gone, 404, 409, 422)


#: What one end of a rod falls onto, so that the other goes down first.
_PEG: Final = EMPTY_SCENE.replace(
    "<worldbody/>",
    '<worldbody><geom type="box" size=".008 .02 .05" pos="-.042 0 .15"/></worldbody>',
)


_TIPPED: Final = goals(
    goal_zone={"min_mm": [300, 300, 100], "max_mm": [320, 320, 120]},
    moved_object=moved("box", size={"x_mm": 100, "y_mm": 6, "z_mm": 6}),
)


def _ended(case: _Case, found: Simulated) -> None:
    one = found.runs[0]

    assert case.outcome == one.outcome, (
        f"{case.what}: expected {case.outcome}, found {one.outcome} after {one.simulated_s} s: "
        f"{one.reason} (nearest to the goal: {one.goal_gap_mm} mm)"
    )
    assert case.outcome == found.outcome, (
        f"{case.what}: expected the answer's outcome to be its run's, {case.outcome}, found {found.outcome}"
    )
    assert case.says in one.reason, (
        f"{case.what}: expected a reason that names {case.says!r}, found {one.reason!r}"
    )
    hits = int(case.outcome is Outcome.GOAL_HIT)
    assert hits == found.aggregate.success_rate, (
        f"{case.what}: expected a success rate of {hits}, found {found.aggregate}"
    )


#: A spring too stiff for the step: its swing grows tenfold with each, until it is no number.
_UNSTABLE: Final = (
    '<mujoco><option timestep="0.01" integrator="Euler"/><worldbody><body name="spring" pos="1 1 1">'
    '<joint type="slide" axis="0 0 1" stiffness="0.5" springref="1"/>'
    '<geom type="sphere" size=".01" density="1"/></body></worldbody></mujoco>'
)


@pytest.mark.covers("INT-020")
@pytest.mark.integration_p0
async def test_int_020_instability_wins(worker: HttpClient) -> None:
    """Physics that becomes unstable ends a run so, though its object meets goal or pit in that step.

    What the object met before stays what ended the run.
    """
    session = new_session(worker)
    step_s = 0.01
    far = {"min_mm": [300, 300, 100], "max_mm": [320, 320, 120]}
    alone = await simulated(session, _UNSTABLE, judged_by=goals(goal_zone=far), duration_s=1.0)

    assert Outcome.INSTABILITY == alone.outcome, f"expected physics to become unstable: {alone}"
    last = alone.steps
    assert 0 < last < _steps_to_fall(280, step_s), f"expected instability during the fall: {alone}"
    for zone, outcome in (("goal_zone", Outcome.GOAL_HIT), ("forbid_zones", Outcome.FORBID_HIT)):
        for steps, expected in ((last, outcome), (last + 1, Outcome.INSTABILITY)):
            # Half a step deeper than the step before, half a step less than this one.
            fallen_mm = GRAVITY * step_s**2 * steps**2 / 2 * 1000
            top = 300 - 7 - fallen_mm
            box = {"min_mm": [-13, -13, top - 5], "max_mm": [13, 13, top]}
            judge = goals(goal_zone=box)
            if zone == "forbid_zones":
                judge = goals(goal_zone=far, forbid_zones=[{"name": "pit", **box}])
            found = await simulated(session, _UNSTABLE, judged_by=judge, duration_s=1.0)

            assert expected == found.outcome, (
                f"{zone} met in step {steps}, the last stable one being {last}: expected {expected}, "
                f"found {found.outcome} after {found.steps} steps: {found.reason}"
            )


@pytest.mark.covers("INT-020")
@pytest.mark.integration_p0
async def test_int_020_answers_and_events_agree(episodes: Episodes) -> None:
    """Each way to end is in the answer to an agent and in the stored event of that run, the same.

    The model provider is a stand-in: the gateway does the turns.
    """
    token = new_token()
    cases = [
        _aside("cylinder", 0, -_JUST),
        _aside("cylinder", 0, _JUST),
        _pit(-_JUST, name="Fallgrube"),
        _in_time(-3),
    ]
    told = [(f"{number}.xml", f"{number}.yaml", case) for number, case in enumerate(cases)]
    written = [
        use(
            "fs_write",
            path=path,
            content=text,
        )
        for scene, goal, case in told
        for path, text in ((scene, case.scene), (goal, yaml.safe_dump(dict(case.objectives))))
    ]
    await episodes.rehearse(
        token,
        (*written, use("fs_write", path="unstable.xml", content=EXPLODING_SCENE)),
        *(
            use(
                "simulate",
                model=scene,
                objectives=goal,
                seed=70 + number,
                duration_s=case.duration_s,
            )
            for number, (scene, goal, case) in enumerate(told)
        ),
        use("simulate", model="unstable.xml", seed=80, duration_s=0.7),
        episodes.waiting(),
    )
    accepted = await episodes.submit(token, variant="lauf", seed=5)
    session = episodes.session(accepted["session_id"])
    await episodes.begun(accepted["session_id"])
    scene, goal, case = told[0]
    asked = {"model": scene, "objectives": goal, "seed": 90, "duration_s": case.duration_s}
    by_hand = await simulate(session, **asked)
    await episodes.release(accepted["session_id"])
    await episodes.until(accepted["episode_id"], "completed")
    events = calls(await episodes.events(accepted["episode_id"]), "simulation_result")

    expected = [(70 + number, case.outcome) for number, case in enumerate(cases)]
    expected += [(80, Outcome.INSTABILITY), (90, cases[0].outcome)]
    found = [(event["payload"]["seed"], event["payload"]["outcome"]) for event in events]
    expect_same(expected, found, what="seeds and outcomes of the stored runs, in order")
    answer = Simulated.model_validate_json(by_hand.body)
    last = events[-1]["payload"]
    told_by_event = {key: last[key] for key in ("outcome", "reason", "steps", "simulated_s")}
    told_by_answer = answer.model_dump(mode="json", include=set(told_by_event))
    expect_same(
        told_by_answer, told_by_event, what="the answer about a run beside its stored event"
    )
    for event in events:
        payload = event["payload"]
        assert payload["reason"], f"a run does not say how it ended: {event}"
        counts = payload["aggregate"]["counts"]
        once = {outcome: int(outcome == payload["outcome"]) for outcome in map(str, Outcome)}
        expect_same(once, counts, what=f"counts of the run with seed {payload['seed']}")
