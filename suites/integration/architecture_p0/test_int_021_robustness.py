"""Many jittered runs of one scene: which differ, which repeat, and what they add up to."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, Final

import pytest
from workbench_contract.simulation import Aggregate, Outcome, Simulated, SimulatedRun

from harness_core.doubles.http import HttpClient
from suites.integration.comparing import expect_same
from suites.integration.episodes import Episodes, new_token
from suites.integration.refusals import expect_refused
from suites.integration.scenes import EXPLODING_SCENE
from suites.integration.sessions import Session, new_session
from suites.integration.simulating import (
    EMPTY_SCENE,
    GRAVITY,
    at_once,
    empty,
    goals,
    moved,
    simulate,
    simulated,
    track_of,
)

#: 97.5 % of a standard normal distribution lie below it.
_Z: Final = 1.959963984540054

#: An object's radius, and what it may hit on its way down: millimetres.
_RADIUS: Final = 7.0
_GOAL_FROM, _PIT_TO = -4.0, -20.0

#: So many are in all four quarters of any two axes, but for one time in a thousand.
_VARIANTS: Final = 32


def _spread(
    *,
    static: tuple[float, float, float] = (0, 0, 0),
    scale: tuple[float, float] = (1, 1),
    jitter: tuple[float, float, float] = (30, 0, 0),
    start: tuple[float, float, float] = (0, 0, 300),
) -> dict[str, Any]:
    """A ball above a goal, and a pit beside it; how far aside it begins decides what it meets."""
    ball = moved(
        start_mm=list(start),
        static_randomization={
            "start_mm": list(static),
            "scale": {"min": scale[0], "max": scale[1]},
        },
        runtime_jitter={"start_mm": list(jitter)},
    )
    x = start[0]
    return goals(
        goal_zone={"min_mm": [x + _GOAL_FROM, -90, 100], "max_mm": [x + 12, 90, 120]},
        forbid_zones=[
            {"name": "pit", "min_mm": [x - 60, -90, 90], "max_mm": [x + _PIT_TO, 90, 120]}
        ],
        moved_object=ball,
    )


def _ends(aside_mm: float) -> Outcome:
    """What a ball of 7 mm meets that falls so far beside the middle; a small model of the scene."""
    if aside_mm < _PIT_TO + _RADIUS:
        return Outcome.FORBID_HIT
    if _GOAL_FROM - _RADIUS < aside_mm < 12 + _RADIUS:
        return Outcome.GOAL_HIT
    return Outcome.OUT_OF_BOUNDS


def _expect_sums(found: Simulated) -> None:
    """The aggregate is what the runs say together: counts, share and Wilson's interval of 95 %."""
    outcomes = Counter(run.outcome for run in found.runs)
    total, hits = len(found.runs), outcomes[Outcome.GOAL_HIT]
    share = hits / total
    shifted = (share + _Z**2 / (2 * total)) / (1 + _Z**2 / total)
    spread = math.sqrt(share * (1 - share) / total + _Z**2 / (4 * total**2))
    half = _Z * spread / (1 + _Z**2 / total)
    told: Aggregate = found.aggregate
    counts = {outcome: outcomes[outcome] for outcome in Outcome}
    expect_same(
        (total, counts), (told.runs, told.counts), what="runs, and how many ended in each way"
    )

    assert share == pytest.approx(told.success_rate, abs=1e-12), (
        f"{hits} of {total} runs hit the goal: expected a rate of {share}, found {told.success_rate}"
    )
    assert told.interval is not None, f"a success rate has its interval: found none in {told}"
    for name, expected, bound in (
        ("lower", max(0.0, shifted - half), told.interval.low),
        ("upper", min(1.0, shifted + half), told.interval.high),
    ):
        assert expected == pytest.approx(bound, abs=1e-9), (
            f"the {name} bound of Wilson's interval for {hits} of {total}: expected {expected}, "
            f"found {bound}"
        )


async def _starts(session: Session, found: Simulated) -> list[tuple[float, float, float]]:
    """Where the object began in each run, in millimetres."""
    tracks = [await track_of(session, run) for run in found.runs]
    return [
        (1000 * x, 1000 * y, 1000 * z) for x, y, z in (track.place("load", 0) for track in tracks)
    ]


def _fallen_mm(steps: int) -> float:
    """How far something has fallen after so many steps of a millisecond: each adds its new speed."""
    return GRAVITY * 1e-3**2 * steps * (steps + 1) / 2 * 1000


def _told(run: SimulatedRun) -> dict[str, Any]:
    """A run, without where it lies."""
    said = run.model_dump(mode="json", exclude={"trajectory"})
    return said | {"track": run.trajectory.sha256 if run.trajectory else None}


@pytest.mark.covers("INT-021")
@pytest.mark.integration_p0
async def test_int_021_runs_add_up(worker: HttpClient) -> None:
    """Each of many runs begins elsewhere within the jitter and ends as it must from there.

    Exactly those that begin badly are counted as failing. Every run has a seed of its own, which alone
    gives that run again, bit for bit; all of it repeats, and another seed gives others.
    """
    session = new_session(worker)
    asked: dict[str, Any] = {"runs": 40, "duration_s": 0.5, "trajectories": True, "variant": "a"}
    found = await simulated(session, EMPTY_SCENE, judged_by=_spread(), seed=23, **asked)

    _expect_sums(found)
    seeds = [run.seed for run in found.runs]
    assert (23, 40) == (seeds[0], len(set(seeds))), (
        f"the first of 40 different seeds is the one that was asked for, 23: found {seeds}"
    )
    starts = await _starts(session, found)
    for run, (x, y, z) in zip(found.runs, starts, strict=True):
        within = abs(x) <= 30 and (0, 300) == pytest.approx((y, z), abs=1e-9)
        assert within, (
            f"jitter of 30 mm along x alone: expected a start within it, found {(x, y, z)}"
        )
        assert _ends(x) == run.outcome, (
            f"a ball that begins {x:.3f} mm aside: expected {_ends(x)}, found {run}"
        )
    aside = [x for x, _, _ in starts]
    assert len(set(aside)) == 40, f"each run begins elsewhere: found {sorted(aside)}"
    assert min(aside) < -15 < 15 < max(aside), (
        f"40 runs use the jitter of 30 mm to either side: found {min(aside)} to {max(aside)} mm"
    )
    kinds = {run.outcome for run in found.runs}
    assert {Outcome.GOAL_HIT, Outcome.FORBID_HIT} <= kinds, f"expected several ends, found {kinds}"

    again = await simulated(session, EMPTY_SCENE, judged_by=_spread(), seed=23, **asked)
    expect_same(
        [_told(run) for run in found.runs],
        [_told(run) for run in again.runs],
        what="runs of the same seed, asked for again",
    )
    untracked = asked | {"trajectories": False}
    bare = await simulated(session, EMPTY_SCENE, judged_by=_spread(), seed=23, **untracked)
    expect_same(
        [_told(run) | {"track": None} for run in found.runs],
        [_told(run) for run in bare.runs],
        what="runs of the same seed, their tracks not asked for",
    )
    other = await simulated(session, EMPTY_SCENE, judged_by=_spread(), seed=24, **asked)
    shared = {run.seed for run in other.runs} & set(seeds)
    assert len(shared) < 3, f"seeds that follow from 24 are not those of 23: both have {shared}"
    _expect_sums(other)
    expect_same(starts, await _starts(session, found), what="tracks of a request, after later ones")
    for number in (1, 17, 39):
        run = found.runs[number]
        alone = await simulated(
            session, EMPTY_SCENE, judged_by=_spread(), **asked | {"runs": 1, "seed": run.seed}
        )
        expect_same(_told(run), _told(alone.runs[0]), what=f"run {number} again, by its own seed")


@pytest.mark.covers("INT-021")
@pytest.mark.integration_p0
async def test_int_021_each_axis_varies_by_itself(worker: HttpClient) -> None:
    """Jitter along three axes, and a static range along three, fill a box: no axis follows another."""
    session = new_session(worker)
    box = (8.0, 7.0, 6.0)
    asked: dict[str, Any] = {"runs": 40, "duration_s": 0.1, "trajectories": True}
    jittered = _spread(jitter=box)
    found = await simulated(session, EMPTY_SCENE, judged_by=jittered, seed=210, **asked)
    _fill(await _starts(session, found), box, what="40 runs")

    asked |= {"runs": 1, "judged_by": _spread(static=box, jitter=(0, 0, 0)), "seed": 211}
    starts = []
    for number in range(_VARIANTS):
        found = await simulated(session, EMPTY_SCENE, variant=f"Nr. {number}", **asked)
        starts += await _starts(session, found)
    _fill(starts, box, what=f"{_VARIANTS} variants")


def _fill(
    starts: list[tuple[float, float, float]], box: tuple[float, float, float], *, what: str
) -> None:
    """Starts of 300 mm up lie within a box, and of each two axes in all four quarters."""
    shares = [
        tuple(
            (value - middle) / most
            for value, middle, most in zip(at, (0, 0, 300), box, strict=True)
        )
        for at in starts
    ]
    far = [each for each in shares if max(map(abs, each)) > 1 + 1e-9]
    assert not far, f"expected {what} to begin within {box} mm, found shares of it: {far}"
    for one, other in ((0, 1), (0, 2), (1, 2)):
        quarters = {(each[one] > 0, each[other] > 0) for each in shares}
        axes = f"{'xyz'[one]} and {'xyz'[other]}"
        assert 4 == len(quarters), (
            f"expected {what} to begin to every side by {axes}, found {sorted(shares)}"
        )


@pytest.mark.covers("INT-021")
@pytest.mark.integration_p0
async def test_int_021_every_shape_has_its_scale(worker: HttpClient) -> None:
    """A variant's scale is of all lengths of a box and of a cylinder, too: it meets the goal that much earlier."""
    session = new_session(worker)
    for shape, half_mm in (("sphere", 7.0), ("box", 7.0), ("cylinder", 8.5)):
        for scale in (0.7, 1.3):
            range_ = {"start_mm": [0, 0, 0], "scale": {"min": scale, "max": scale}}
            judge = goals(moved_object=moved(shape, static_randomization=range_))
            found = await simulated(session, EMPTY_SCENE, judged_by=judge, duration_s=0.5)
            (run,) = found.runs
            most, least = (300 - 120 - _fallen_mm(count) for count in (run.steps - 1, run.steps))
            assert least - 1e-3 <= half_mm * scale <= most + 1e-3, (
                f"a {shape} of {scale} times its size: expected {half_mm * scale} mm below its centre, "
                f"found {least} to {most} mm"
            )


@pytest.mark.covers("INT-021")
@pytest.mark.integration_p0
async def test_int_021_extremes_and_bounds(worker: HttpClient) -> None:
    """Where all runs succeed or all fail the sums say so, with an interval that is no point.

    One run has one, too. How many runs there may be is bounded: 1 to 100.
    """
    session = new_session(worker)
    for runs, jitter, start, hits in (
        (12, 3, 0, 12),
        (11, 5, -40, 0),
        (1, 2, 0, 1),
        (100, 6, 0, 100),
    ):
        judge = _spread(jitter=(jitter, 0, 0), start=(start, 0, 300))
        if start:
            judge["goal_zone"] = {"min_mm": [60, -9, 100], "max_mm": [70, 9, 120]}
        found = await simulated(
            session, EMPTY_SCENE, judged_by=judge, seed=2**31 - 1, runs=runs, duration_s=0.4
        )

        _expect_sums(found)
        counted = found.aggregate.counts[Outcome.GOAL_HIT]
        assert hits == counted, (
            f"expected {hits} of {runs} runs at the goal, found {found.aggregate}"
        )
        assert all(0 <= run.seed < 2**31 for run in found.runs), (
            f"seeds are below 2³¹: {found.runs}"
        )
    for wrong in (0, -1, 101, 2.5):
        body = {"model": "scene.xml", "objectives": "objectives.yaml", "runs": wrong}
        expect_refused(await session.malformed("/benchmark/simulate", **body), 400, 422)
    without = await simulated(session, EMPTY_SCENE, runs=3, duration_s=0.1)
    assert without.aggregate.success_rate is None, (
        f"a scene without a goal has no success rate: expected none, found {without.aggregate}"
    )


@pytest.mark.covers("INT-021")
@pytest.mark.integration_p0
async def test_int_021_however_it_fails_it_is_a_run(worker: HttpClient) -> None:
    """The rate and its interval are of all runs: of some that end otherwise than by the goal it is 0 of so many."""
    session = new_session(worker)
    for outcome, (scene, judge) in _FAILING.items():
        found = await simulated(session, scene, judged_by=judge, runs=5, duration_s=0.3, seed=21)
        expect_same([outcome] * 5, [run.outcome for run in found.runs], what="ends of five runs")
        _expect_sums(found)


#: An end that is none at the goal → a scene whose runs all end so.
_FAILING: Final = {
    Outcome.INSTABILITY: (EXPLODING_SCENE, goals()),
    Outcome.TIMEOUT: (empty(gravity=(0, 0, 0)), goals()),
    Outcome.OUT_OF_BOUNDS: (
        EMPTY_SCENE,
        goals(goal_zone={"min_mm": [-390, -390, 100], "max_mm": [-380, -380, 120]}),
    ),
    Outcome.FORBID_HIT: (
        EMPTY_SCENE, goals(forbid_zones=[{"min_mm": [-30, -30, 200], "max_mm": [30, 30, 220]}])
    ),
}  # fmt: skip


@pytest.mark.covers("INT-021", "INT-027")
@pytest.mark.integration_p0
async def test_int_021_variants_and_runs_vary_apart(worker: HttpClient) -> None:
    """A variant is one scene in all its runs; what a run changes is the same in all variants.

    Two sessions that run different objectives at once keep apart.
    """
    one, two = new_session(worker), new_session(worker)
    static = _spread(static=(9, 0, 4), scale=(0.8, 1.3), jitter=(0, 6, 0))

    async def run(session: Session, judge: dict[str, Any], seed: int) -> dict[str, Simulated]:
        return {
            variant: await simulated(
                session,
                EMPTY_SCENE,
                judged_by=judge,
                variant=variant,
                seed=seed,
                runs=6,
                duration_s=0.5,
                trajectories=True,
            )
            for variant in ("nord", "süd", "nord ")
        }

    upwards = _spread(jitter=(0, 0, 11), start=(50, 7, 250))
    found, other = await at_once(
        lambda: run(one, static, 611),
        lambda: run(two, upwards, 88),
    )
    begun = {variant: await _starts(one, each) for variant, each in found.items()}
    for variant, starts in begun.items():
        fixed = {(round(x, 9), round(z, 9)) for x, _, z in starts}
        assert 1 == len(fixed), f"{variant!r} begins in one place in all its runs: found {fixed}"
        x, z = starts[0][0], starts[0][2]
        assert max(abs(x) / 9, abs(z - 300) / 4) <= 1, (
            f"{variant!r} begins within its static range of 9 and 4 mm: found x={x}, z={z}"
        )
    places = {(round(starts[0][0], 6), round(starts[0][2], 6)) for starts in begun.values()}
    assert 3 == len(places), f"three variants begin in three places: found {begun}"
    sideways = [[round(y, 9) for _, y, _ in starts] for starts in begun.values()]
    expect_same(
        [sideways[0]] * 3, sideways, what="what runs of the same seeds change in each variant"
    )
    sizes = {run.steps for each in found.values() for run in each.runs}
    assert len(sizes) > 1, f"variants differ in size, and so in the way down: found {sizes} steps"
    for variant, each in found.items():
        radii = []
        for run, (_, _, z) in zip(each.runs, begun[variant], strict=True):
            steps = run.steps
            # It met the goal's top in its last step, and not in the one before.
            most, least = (z - 120 - _fallen_mm(count) for count in (steps - 1, steps))
            radii.append((least, most))
        least, most = max(low for low, _ in radii), min(high for _, high in radii)
        of_one = max(least, 7 * 0.8 - 1e-3) <= min(most, 7 * 1.3 + 1e-3)
        assert of_one, (
            f"{variant!r} is one ball of 0.8 to 1.3 times 7 mm in all its runs: found radii of {radii}"
        )
    for variant, each in other.items():
        starts = await _starts(two, each)
        aside = {(round(x, 6), round(y, 6)) for x, y, _ in starts}
        expect_same({(50.0, 7.0)}, aside, what=f"starts of the other session's {variant!r}")
        heights = [z for _, _, z in starts]
        within = {z for z in heights if abs(z - 250) <= 11}
        assert 6 == len(within), (
            f"jitter of 11 mm upwards: expected six starts within it, found {heights}"
        )


@pytest.mark.covers("INT-021")
@pytest.mark.integration_p0
async def test_int_021_a_seed_outlives_the_worker(breakable: Episodes) -> None:
    """After a restart of the worker a seed gives the same runs, bit for bit."""
    session = breakable.session(new_token())
    judge = _spread(static=(5, 5, 0), jitter=(20, 3, 1))
    asked: dict[str, Any] = {"seed": 909, "runs": 5, "duration_s": 0.5, "trajectories": True}
    before = await simulated(session, EMPTY_SCENE, judged_by=judge, **asked)
    async with breakable.stack.outage("worker"):
        pass
    after = await simulate(session, model="scene.xml", objectives="objectives.yaml", **asked)

    assert 200 == after.status, f"expected the same runs after a restart, found {after}"
    expect_same(
        [_told(run) for run in before.runs],
        [_told(run) for run in Simulated.model_validate_json(after.body).runs],
        what="runs of one seed before and after a restart of the worker",
    )
