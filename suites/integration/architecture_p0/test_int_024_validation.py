"""INT-024: a benchmark is validated on its solids, over the whole range that its object starts in."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

import pytest
import trio
import yaml
from hypothesis import strategies as st
from workbench_contract.benchmark import (
    Configuration,
    ConfigurationKind,
    Validated,
    ValidateRequest,
    ValidationFinding,
)
from workbench_contract.findings import Finding
from workbench_contract.handover import GEOMETRY, SubmissionRefused
from workbench_contract.objectives import Objectives

from harness_core.base.slowness import patience
from harness_core.doubles.http import HttpClient, Response
from harness_core.doubles.turns import use
from suites.integration.bundles import OBJECTIVES, changed
from suites.integration.comparing import expect_same
from suites.integration.environments import planned
from suites.integration.episodes import Episodes, calls, new_token
from suites.integration.planners import planner_at_work
from suites.integration.refusals import OUTSIDE, expect_refused
from suites.integration.sampling import for_all
from suites.integration.scenes import scene
from suites.integration.sessions import Session, new_session

pytestmark = [pytest.mark.covers("INT-024"), pytest.mark.integration_p0]

#: An environment is built and measured.
_BUILT_S: Final = 60.0

Point = Sequence[float]
#: Two opposite corners.
Block = tuple[Point, Point]

_START: Final = (5.0, -3.0, 40.0)
#: Half of its edges 4, 6, 8 mm times 1.5, and what static randomization and jitter add.
_REACH: Final = (2 * 1.5 + 3 + 1, 3 * 1.5 + 2 + 0.5, 4 * 1.5 + 1 + 2)
_SPREAD: Final = (3 + 1, 2 + 0.5, 1 + 2)
_STILL: Final[dict[str, Any]] = {"static_randomization": {}, "runtime_jitter": {}}


def _objectives(*, label: str = "crate", **moved: Any) -> dict[str, Any]:
    """A crate that starts somewhere in the middle, within ±200 mm; its goal is far away."""
    value = {
        "goal_zone": {"min_mm": [150, -10, 0], "max_mm": [180, 10, 20]},
        "forbid_zones": [],
        "build_zone": {"min_mm": [60, -20, 0], "max_mm": [100, 20, 60]},
        "simulation_bounds": {"min_mm": [-200, -200, -200], "max_mm": [200, 200, 200]},
        "moved_object": {
            "label": label,
            "shape": "box",
            "size": {"x_mm": 4, "y_mm": 6, "z_mm": 8},
            "start_mm": list(_START),
            "static_randomization": {"start_mm": [3, 2, 1], "scale": {"min": 0.5, "max": 1.5}},
            "runtime_jitter": {"start_mm": [1, 0.5, 2]},
            **moved,
        },
        "moving_parts": [],
        "constraints": {"max_unit_cost_usd": 50.25, "max_weight_g": 1200},
        "randomization": {"variant": "v24", "seeds": [24]},
    }
    # What is built here is of the contract's form, or the mistake is ours.
    Objectives.model_validate(value)
    return value


def _script(blocks: Mapping[str, Block], *more: str) -> str:
    """A build123d script that leaves blocks, and whatever else is said, by their names."""
    lines = ["from build123d import Box, Cylinder, Pos, Sphere", "", "parts = {"]
    for name, (low, high) in blocks.items():
        middle = tuple((a + b) / 2 for a, b in zip(low, high, strict=True))
        sides = tuple(b - a for a, b in zip(low, high, strict=True))
        lines.append(f"    {name!r}: Pos{middle} * Box{sides},")
    return "\n".join([*lines, *(f"    {line}," for line in more), "}", ""])


async def _ask(session: Session, **request: Any) -> Response:
    """Have the session's environment validated; the answer, whatever it is."""
    asked = ValidateRequest(
        **{"model": GEOMETRY, "objectives": OBJECTIVES, "samples": 0, **request}
    )
    body = asked.model_dump(mode="json", exclude_none=True)
    return await session.client.post("/benchmark/validate", body, seconds=patience(_BUILT_S))


async def _validated(session: Session, **request: Any) -> Validated:
    answer = await _ask(session, **request)
    assert 200 == answer.status, f"expected a verdict on a benchmark, found {answer}"
    found = Validated.model_validate_json(answer.body)
    ok = not found.findings
    assert found.valid is ok, f"a verdict that is not what its findings are: {answer}"
    assert ok is (not found.reasons), f"a verdict and its reasons do not agree: {answer}"
    return found


async def _leave(
    session: Session, *, script: str | None = None, objectives: Mapping[str, Any] | None = None
) -> None:
    if script is not None:
        await session.write(GEOMETRY, script)
    if objectives is not None:
        await session.write(OBJECTIVES, yaml.safe_dump(dict(objectives), sort_keys=False))


def _told(each: Finding) -> str:
    return f"{each.file} {each.where} {each.found} {each.expected}"


def _about(found: Validated, *names: str) -> list[ValidationFinding]:
    """The findings that name all of these."""
    return [each for each in found.findings if all(name in _told(each) for name in names)]


def _expect_pairs(found: Validated, pairs: Collection[tuple[str, ...]], *, what: str) -> None:
    """Assert that there is one finding for each pair, which names it, and no other finding."""
    for pair in pairs:
        about = _about(found, *pair)
        assert 1 == len(about), f"{what}: expected one finding that names {pair}, found {found}"
    shown = [_told(each) for each in found.findings]
    assert len(pairs) == len(shown), f"{what}: expected findings of {sorted(pairs)}, found {shown}"


# --- both ends of everything that varies -------------------------------------------------------------------

_SIGNS: Final = tuple(itertools.product((-1, 1), repeat=3))


def _posts(nearest: float) -> dict[str, Block]:
    """A block beyond each corner of what the crate can reach, so far from there."""
    made = {}
    for signs in _SIGNS:
        name = "post" + "".join("+" if sign > 0 else "-" for sign in signs)
        inner = [at + s * (far + nearest) for at, s, far in zip(_START, signs, _REACH, strict=True)]
        outer = [at + s * (far + 20) for at, s, far in zip(_START, signs, _REACH, strict=True)]
        made[name] = _between(inner, outer)
    return made


def _plates(nearest: float) -> dict[str, Block]:
    """A plate across each side of what the crate can reach, so far from there."""
    made = {}
    for axis, sign in itertools.product(range(3), (-1, 1)):
        inner = [at - far + 1 for at, far in zip(_START, _REACH, strict=True)]
        outer = [at + far - 1 for at, far in zip(_START, _REACH, strict=True)]
        inner[axis] = _START[axis] + sign * (_REACH[axis] + nearest)
        outer[axis] = _START[axis] + sign * (_REACH[axis] + 20)
        made[f"plate{'-+'[sign > 0]}{'xyz'[axis]}"] = _between(inner, outer)
    return made


def _between(one: Point, other: Point) -> Block:
    pairs = list(zip(one, other, strict=True))
    return [min(pair) for pair in pairs], [max(pair) for pair in pairs]


#: What varies less: then nothing of what the crate meets at its ends is met.
_LESS: Final[dict[str, dict[str, Any]]] = {
    "no jitter": {"runtime_jitter": {}},
    "no static randomization of its place": {
        "static_randomization": {"scale": {"min": 0.5, "max": 1.5}}
    },
    "a largest size of 1.4": {
        "static_randomization": {"start_mm": [3, 2, 1], "scale": {"min": 0.5, "max": 1.4}}
    },
}


async def test_int_024_both_ends_of_each_range(worker: HttpClient) -> None:
    """What the object meets at one end of the range alone is refused there, by name; a gap of 0.01 mm is sound.

    Each axis, each sign, at its largest alone; by static randomization and jitter together, and by neither
    alone. Mended, it is valid.
    """
    session = new_session(worker)
    sound = _script(_plates(0.01) | _posts(0))
    spoilt = _script(_plates(-0.01) | _posts(-0.5))
    await _leave(session, script=sound, objectives=_objectives())
    found = await _validated(session)
    assert found.valid, f"expected what is sound over its whole range to be valid, found {found}"
    await _leave(session, script=spoilt)
    found = await _validated(session)
    wanted = [("crate", name) for name in (*_plates(0), *_posts(0))]
    _expect_pairs(found, wanted, what="solids that the crate meets at its ends")
    for signs, name in zip(_SIGNS, _posts(0), strict=True):
        (each,) = _about(found, name)
        expected = [sign * far for sign, far in zip(signs, _SPREAD, strict=True)]
        _expect_at(each, lambda at, ends=expected: (at.offset_mm, at.scale) == (ends, 1.5))
    for axis, sign in itertools.product(range(3), (-1, 1)):
        (each,) = _about(found, f"plate{'-+'[sign > 0]}{'xyz'[axis]}")
        end = sign * _SPREAD[axis]
        _expect_at(
            each, lambda at, axis=axis, end=end: (at.offset_mm[axis], at.scale) == (end, 1.5)
        )
    for name, less in _LESS.items():
        await _leave(session, objectives=_objectives(**less))
        found = await _validated(session)
        assert found.valid, f"expected the same solids to be sound with {name}, found {found}"
    await _leave(session, script=sound, objectives=_objectives())
    found = await _validated(session)
    assert found.valid, f"expected what was mended to be valid, found {found}"


def _expect_at(each: ValidationFinding, here: Callable[[Configuration], bool]) -> None:
    assert each.configurations, f"a finding that does not say at which start: {each}"
    strange = [at for at in each.configurations if not here(at)]
    assert not strange, f"expected {_told(each)} at its end of the range alone, found {strange}"


# --- solids by themselves ----------------------------------------------------------------------------------


async def test_int_024_solids_among_themselves(worker: HttpClient) -> None:
    """Solids that share more than 0.1 mm³ are refused, both named; so is one beyond the bounds, wherever it starts.

    Exactly 0.1 mm³, faces that touch and a border that is touched are sound.
    """
    session = new_session(worker)
    blocks: dict[str, Block] = {
        # 10 by 10 by 0.001, and a hundredth more, and less.
        "exact-a": ((-100, 0, 0), (-90, 10, 10)),
        "exact-b": ((-90.001, 0, 0), (-80, 10, 10)),
        "over-a": ((-100, 50, 0), (-90, 60, 10)),
        "over-b": ((-90.00101, 50, 0), (-80, 60, 10)),
        "thin-a": ((-100, 100, 0), (-90, 110, 10)),
        "thin-b": ((-90.00099, 100, 0), (-80, 110, 10)),
        "faces-a": ((-100, -50, 0), (-90, -40, 10)),
        "faces-b": ((-90, -50, 0), (-80, -40, 10)),
        "border": ((190, -200, -200), (200, -190, -190)),
        "beyond": ((-200.01, 150, 150), (-190, 160, 160)),
    }
    await _leave(session, script=_script(blocks), objectives=_objectives())
    found = await _validated(session)
    _expect_pairs(found, [("over-a", "over-b"), ("beyond",)], what="solids at their limits")
    assert 10 == found.bodies, f"expected 10 solids, found {found.bodies}"
    one = "'kept': Pos(50, 50, 0) * Box(9, 9, 9)"
    hollow = "'hollow': Pos(-50, 50, 0) * (Box(9, 9, 9) - Sphere(3)), 'core': Pos(-50, 50, 0) * Sphere(3)"
    await _leave(session, script=_script({}, one, hollow))
    found = await _validated(session)
    assert found.valid, f"expected a core that fits its hollow to be sound, found {found}"
    await _leave(session, script=_script({}, one, hollow.replace("* Sphere(3)", "* Sphere(3.1)")))
    found = await _validated(session)
    _expect_pairs(found, [("hollow", "core")], what="a core too large for its hollow")


# --- the object among solids -------------------------------------------------------------------------------


async def test_int_024_the_object_and_solids_at_the_limit(worker: HttpClient) -> None:
    """The object is its own shape: a ball's cap of more than 0.1 mm³ is refused, one of less is sound; so is a can's.

    Wholly inside a solid it is refused however small it is, at one end of its range too.
    """
    session = new_session(worker)
    ball = {"shape": "sphere", "size": {"radius_mm": 5}, "start_mm": [0, 0, 0]}

    # The cap of 0.08 mm has 0.0999953 mm³, that of 0.081 mm 0.1025.
    around: dict[str, Block] = {
        "floor": ((-50, -50, -60), (50, 50, -4.92)),
        "right": ((4.919, -40, -4), (60, 40, 4)),
        "left": ((-60, -40, -4), (-5.01, 40, 4)),
        "front": ((-4, -60, -4), (4, -5, 4)),
        # In a box around the ball, and none of the ball.
        "edge": ((-4.8, 4, 4.1), (4.8, 60, 60)),
    }
    await _leave(
        session, script=_script(around), objectives=_objectives(label="ball", **ball, **_STILL)
    )
    found = await _validated(session)
    _expect_pairs(found, [("ball", "right")], what="caps of a ball")
    can: dict[str, Any] = {
        "shape": "cylinder",
        "size": {"radius_mm": 3, "height_mm": 8},
        "start_mm": [0, 0, 0],
        "static_randomization": {"scale": {"min": 1.5, "max": 1.5}},
        "runtime_jitter": {},
    }
    # Radius 4.5, height 12. A strip of 0.01 mm has 0.040 mm³, one of 0.02 mm 0.113; the end 0.64.
    around = {
        "cover": ((-50, -50, 5.99), (50, 50, 60)),
        "stand": ((-50, -50, -60), (50, 50, -6.01)),
        "right": ((4.48, -40, -5), (60, 40, 5)),
        "left": ((-60, -40, -5), (-4.49, 40, 5)),
    }
    await _leave(session, script=_script(around), objectives=_objectives(label="can", **can))
    found = await _validated(session)
    _expect_pairs(found, [("can", "cover"), ("can", "right")], what="strips and ends of a can")
    # The same in a mirror: what is too near on one side is it on the other.
    around = {
        name: (tuple(-end for end in high), tuple(-end for end in low))
        for name, (low, high) in around.items()
    }
    await _leave(session, script=_script(around))
    found = await _validated(session)
    _expect_pairs(
        found, [("can", "cover"), ("can", "right")], what="a can among solids in a mirror"
    )
    speck = ball | {"size": {"radius_mm": 0.2}, "static_randomization": {"start_mm": [0, 0, 30]}}
    rocks: dict[str, Block] = {"rock": ((-20, -20, 20), (20, 20, 60))}
    moved = _objectives(label="speck", **speck, runtime_jitter={})
    await _leave(session, script=_script(rocks), objectives=moved)
    found = await _validated(session)
    _expect_pairs(found, [("speck", "rock")], what="a speck that can start inside a rock")
    for each in found.findings:
        _expect_at(each, lambda at: at.offset_mm[2] == 30)


async def test_int_024_between_the_corners(worker: HttpClient) -> None:
    """What no corner meets and the inside of the range does is found by samples, which follow from their seed.

    The same seed gives the same answer; each start that is told meets the solid by itself. A seed is answered
    where none was asked for.
    """
    session = new_session(worker)
    # 0.5 mm thick, away from the given start and from all corners.
    plate: dict[str, Block] = {"plate": ((12, -60, -20), (12.5, 60, 90))}
    wide = {"static_randomization": {"start_mm": [30, 2, 1], "scale": {"min": 0.5, "max": 1.5}}}
    await _leave(session, script=_script(plate), objectives=_objectives(**wide))
    found = await _validated(session)
    assert found.valid, f"expected nothing at the corners, found {found}"
    first = await _ask(session, samples=150, seed=240_024)
    found = Validated.model_validate_json(first.body)
    _expect_pairs(found, [("crate", "plate")], what="a plate between the corners")
    sampling = found.sampling
    assert sampling is not None, f"expected the seed of the samples in the answer, found {first}"
    expect_same((240_024, 150), (sampling.seed, sampling.samples), what="seed and count of samples")
    (each,) = found.findings
    _expect_at(each, lambda at: at.kind is ConfigurationKind.SAMPLE and 0 < at.offset_mm[0] < 14)
    again = await _ask(session, samples=150, seed=240_024)
    expect_same(first.json(), again.json(), what="the same request with the same seed")
    other = await _validated(session, samples=150)
    unasked = other.sampling
    assert unasked is not None, f"expected the seed that was chosen in the answer, found {other}"
    assert unasked.seed != 240_024, f"expected a seed that was chosen, found {unasked}"
    same = await _validated(session, samples=150, seed=unasked.seed)
    expect_same(
        other, same, what="an answer by the seed that was chosen, and by the same asked for"
    )
    least = [await _validated(session, samples=150, seed=0) for _ in range(2)]
    assert least[0].sampling is not None, f"expected the seed 0 in the answer, found {least[0]}"
    expect_same(0, least[0].sampling.seed, what="the seed that was asked for, the least there is")
    expect_same(least[0], least[1], what="the same request with the seed 0")
    # A start that is told, by itself.
    at = each.configurations[0]
    start = [a + b for a, b in zip(_START, at.offset_mm, strict=True)]
    alone = {"scale": {"min": at.scale, "max": at.scale}}
    moved = _objectives(start_mm=start, static_randomization=alone, runtime_jitter={})
    await _leave(session, objectives=moved)
    found = await _validated(session)
    _expect_pairs(found, [("crate", "plate")], what=f"the start that was told, {at}")


# --- sessions, roles, routes -------------------------------------------------------------------------------


async def test_int_024_each_session_has_its_own(worker: HttpClient) -> None:
    """Two sessions at once are each judged by their own files, in each round; what is no benchmark is told as that."""
    one, two = new_session(worker), new_session(worker)
    found: dict[str, Validated] = {}

    async def ask(session: Session) -> None:
        found[session.id] = await _validated(session, samples=5, seed=1)

    for number, (bad, good) in enumerate(((one, two), (two, one))):
        # Each has the start of its own where the other has its rock.
        for session, side, label in ((bad, -60.0, f"bad-{number}"), (good, 60.0, f"good-{number}")):
            rock: dict[str, Block] = {f"rock-{label}": ((-80, -20, 20), (-40, 20, 60))}
            moved = _objectives(label=label, start_mm=[side, 0, 40])
            await _leave(session, script=_script(rock), objectives=moved)
        async with trio.open_nursery() as nursery:
            for session in (one, two):
                nursery.start_soon(ask, session)
        assert found[good.id].valid, f"what is sound, beside another session: {found[good.id]}"
        pair = (f"bad-{number}", f"rock-bad-{number}")
        _expect_pairs(found[bad.id], [pair], what="a rock, beside another session")
    tools = [each["payload"]["tool"] for each in calls(await one.events(), "tool_call")]
    expect_same(2, tools.count("validate"), what="events of two validations")
    await one.write(GEOMETRY, "parts = {'rock': None}\n")
    answer = await _ask(one)
    failed = Validated.model_validate_json(answer.body)
    assert not failed.valid, f"expected a script that leaves no solid to be refused, found {answer}"
    assert "no solid" in " ".join(failed.reasons), f"expected why, found {answer}"
    await one.write("scene.xml", scene())
    expect_refused(await _ask(one, model="scene.xml"), 400, 409, 422, says="scene.xml")
    expect_refused(await _ask(one, objectives="other.yaml"), 404, says="other.yaml")
    expect_refused(await _ask(one, objectives="../../other.yaml"), *OUTSIDE)
    for body in ({"samples": -1}, {"samples": 10**9}, {"seed": -1}, {"seed": 2**31}, {"sample": 1}):
        refused = await one.malformed(
            "/benchmark/validate", model=GEOMETRY, objectives=OBJECTIVES, **body
        )
        expect_refused(refused, 422)


#: Objectives that are wrong in one way, or in several.
_MALFORMED: Final[dict[str, dict[str, Any]]] = {
    "a goal out of bounds": {"goal_zone.max_mm.0": 900},
    "a ball that meets a pit by its jitter": {
        "forbid_zones.0": {"min_mm": [18.5, -10, 30], "max_mm": [50, 10, 50]}
    },
    "a ball that starts in the goal": {"moved_object.start_mm": [90, 0, 10]},
    "several mistakes": {
        "goal_zone.colour": "red",
        "moving_parts.1.dof": "none",
        "randomization.seeds": [],
        "constraints.max_weight_g": "heavy",
    },
    "no number": {"simulation_bounds.min_mm.0": float("nan")},
}


async def test_int_024_findings_are_those_of_the_gate(episodes: Episodes) -> None:
    """Objectives that are wrong have the findings that a planner's gate has, all of them; so has an empty file.

    A build zone without room is a warning of both. The model provider is a stand-in: the gateway holds the
    planner's model.
    """
    async with planner_at_work(episodes, number=241, purpose="benchmark") as planner:
        session, bundle = planner.session, planner.sound()
        await planner.leave(planned(bundle.files()))
        await _leave(session, script=_script({"rock": ((-40, -40, -9), (-30, -30, -5))}))
        for name, changes in _MALFORMED.items():
            objectives = bundle.objectives
            for path, value in changes.items():
                objectives = changed(objectives, path, value)
            await _leave(session, objectives=objectives)
            await _alike(session, await planner.submit(), what=f"objectives with {name}")
        for name, text in (
            ("no text", " \n"),
            ("no YAML", "goal_zone: [1,\n"),
            ("a list", "- a\n"),
        ):
            await session.write(OBJECTIVES, text)
            await _alike(session, await planner.submit(), what=f"objectives with {name}")
        full = changed(bundle.objectives, "build_zone.max_mm", [70, 20, 30])
        pit = {"min_mm": [0, -20, 0], "max_mm": [70, 20, 30]}
        await _leave(session, objectives=changed(full, "forbid_zones.0", pit))
        accepted = await planner.submit()
        assert 200 == accepted.status, f"expected a warning alone, found {accepted}"
        found = await _validated(session)
        assert found.valid, f"expected a warning alone, found {found}"
        warned = [each.model_dump(mode="json") for each in found.warnings]
        assert warned, f"expected a warning of the build zone, found {found}"
        expect_same(accepted.json()["warnings"], warned, what="warnings of gate and validation")


async def _alike(session: Session, submitted: Response, *, what: str) -> None:
    """Assert that both routes have the same findings, and some."""
    assert 422 == submitted.status, f"expected {what} to be refused by the gate, found {submitted}"
    gate = SubmissionRefused.model_validate_json(submitted.body).findings
    found = await _validated(session)
    assert not found.valid, f"expected {what} to be no benchmark, found {found}"
    fields = set(Finding.model_fields)
    told = [each.model_dump(include=fields) for each in found.findings]
    expect_same(
        [each.model_dump() for each in gate], told, what=f"findings of gate and validation: {what}"
    )


async def test_int_024_samples_lie_to_every_side(worker: HttpClient) -> None:
    """A plate that no corner meets is found by samples on whichever side of the given start it stands."""
    session = new_session(worker)
    reach = 30.0
    for axis, sign in itertools.product(range(3), (-1, 1)):
        static = {"start_mm": [reach if at == axis else 0.0 for at in range(3)]}
        near, far = sorted(_START[axis] + sign * away for away in (14.5, 15.0))
        low, high = ([end] * 3 for end in (-90.0, 90.0))
        low[axis], high[axis] = near, far
        plate: dict[str, Block] = {"plate": (low, high)}
        objectives = _objectives(static_randomization=static, runtime_jitter={})
        await _leave(session, script=_script(plate), objectives=objectives)
        side = f"{'-+'[sign > 0]}{'xyz'[axis]}"
        found = await _validated(session)
        assert found.valid, f"expected nothing at the corners at {side}, found {found}"
        found = await _validated(session, samples=150, seed=24_024)
        _expect_pairs(found, [("crate", "plate")], what=f"a plate between the corners at {side}")
        (each,) = found.findings
        where = (axis, sign)
        _expect_at(each, lambda at, where=where: at.offset_mm[where[0]] * where[1] > 0)


async def test_int_024_an_agent_is_told_the_same(episodes: Episodes) -> None:
    """The agent's tool finds what the API finds, by the episode's seed or by its own, and recovers when it mends.

    The model provider is a stand-in: the gateway does the turns.
    """
    token = new_token()
    wide = _objectives(static_randomization={"start_mm": [30, 2, 1]})
    plate = _script({f"plate-{token}": ((12, -60, -20), (12.5, 60, 90))})
    mended = _script({f"plate-{token}": ((12, 60, -20), (12.5, 90, 90))})
    asked: dict[str, Any] = {"model": GEOMETRY, "objectives": OBJECTIVES, "samples": 150}
    await episodes.rehearse(
        token,
        (
            use("fs_write", path=GEOMETRY, content=plate),
            use("fs_write", path=OBJECTIVES, content=yaml.safe_dump(wide, sort_keys=False)),
        ),
        use("validate", **asked),
        use("validate", **asked, seed=2424),
        use("fs_write", path=GEOMETRY, content=mended),
        use("validate", **asked),
        use("fs_write", path=GEOMETRY, content=plate),
        episodes.waiting(),
    )
    accepted = await episodes.submit(token, seed=42)
    session = episodes.session(accepted["session_id"])
    await episodes.begun(accepted["session_id"])
    found = [await _validated(session, samples=150, seed=seed) for seed in (42, 2424)]
    await episodes.release(accepted["session_id"])
    episode = await episodes.until(accepted["episode_id"], "completed")
    traces = [
        each["detail"]["result"]
        for each in episode["traces"]
        if each["kind"] == "tool" and each["name"] == "validate"
    ]
    assert 3 == len(traces), f"expected three validations of the agent, found {traces}"
    for seed, own, told in zip((42, 2424), found, traces, strict=False):
        _expect_pairs(own, [("crate", f"plate-{token}")], what=f"what the API finds by seed {seed}")
        (each,) = own.findings
        sentences = [json.dumps(each.found, ensure_ascii=plain)[1:-1] for plain in (True, False)]
        assert any(sentence in told for sentence in sentences), (
            f"expected the agent to be told {each.found!r} by seed {seed}, found {told}"
        )
        assert f"plate-{token}" in told, f"expected the agent to be told of the plate, found {told}"
    valid = json.loads(traces[2])
    expect_same((True, 42), (valid["valid"], valid["sampling"]["seed"]), what="verdict once mended")


# --- an independent judge of boxes -------------------------------------------------------------------------

_TO: Final = 60

_CORNER = st.tuples(*[st.integers(-64, 50)] * 3)
_SIDES = st.tuples(*[st.integers(1, 25)] * 3)
_NEAR = st.tuples(*[st.integers(-12, 12)] * 3)
_BLOCKS = st.lists(st.tuples(st.one_of(_CORNER, _NEAR, _NEAR), _SIDES), min_size=5, max_size=9)
_EXAMPLES = st.fixed_dictionaries(
    {
        "blocks": _BLOCKS,
        "start": st.tuples(*[st.integers(-5, 5)] * 3),
        "half": st.tuples(*[st.integers(1, 3)] * 3),
        "static": st.tuples(*[st.integers(0, 6)] * 3),
        "jitter": st.tuples(*[st.integers(0, 3)] * 3),
        "largest": st.integers(1, 2),
    }
)

_Intervals = list[tuple[int, int]]


def _met(one: _Intervals, other: _Intervals) -> bool:
    """Whether two boxes have volume in common: all numbers are whole, so that is 1 mm³ or none."""
    return all(max(a, c) < min(b, d) for (a, b), (c, d) in zip(one, other, strict=True))


def _object(example: Mapping[str, Any], signs: Sequence[int], scale: int) -> _Intervals:
    """The object at a corner of its range."""
    found = []
    for axis, sign in enumerate(signs):
        at = example["start"][axis] + sign * (example["static"][axis] + example["jitter"][axis])
        half = example["half"][axis] * scale
        found.append((at - half, at + half))
    return found


def _swept(corners: Sequence[_Intervals]) -> _Intervals:
    return [
        (min(each[axis][0] for each in corners), max(each[axis][1] for each in corners))
        for axis in range(3)
    ]


async def test_int_024_a_judge_of_boxes_agrees(worker: HttpClient) -> None:
    """Over many boxes: pairs that meet, boxes beyond the bounds, and what the object meets at a corner are found.

    Nothing else is, but what lies within the range and at no corner, which may be.
    """
    session = new_session(worker)

    async def agrees(example: Mapping[str, Any]) -> None:
        boxes: dict[str, _Intervals] = {
            f"block{number}.": [(a, a + side) for a, side in zip(low, sides, strict=True)]
            for number, (low, sides) in enumerate(example["blocks"])
        }
        script = _script({name: tuple(zip(*box, strict=True)) for name, box in boxes.items()})
        moved = {
            "start_mm": list(example["start"]),
            "size": dict(
                zip(("x_mm", "y_mm", "z_mm"), (2 * n for n in example["half"]), strict=True)
            ),
            "static_randomization": {
                "start_mm": list(example["static"]),
                "scale": {"min": 1, "max": example["largest"]},
            },
            "runtime_jitter": {"start_mm": list(example["jitter"])},
        }
        objectives = _objectives(**moved) | {
            "goal_zone": {"min_mm": [50, 50, 50], "max_mm": [_TO, _TO, _TO]},
            "build_zone": {"min_mm": [30, 30, 30], "max_mm": [40, 40, 40]},
            "simulation_bounds": {"min_mm": [-_TO] * 3, "max_mm": [_TO] * 3},
        }
        await _leave(session, script=script, objectives=objectives)
        found = await _validated(session)
        told = [_told(each) for each in found.findings]
        corners = [
            _object(example, signs, scale) for signs in _SIGNS for scale in {1, example["largest"]}
        ]
        allowed = []
        for one, other in itertools.combinations(boxes, 2):
            if _met(boxes[one], boxes[other]):
                allowed.append((one, other))
                assert any(one in text and other in text for text in told), (
                    f"expected {one} and {other} to be found, which meet: {told}"
                )
        for name, box in boxes.items():
            if any(low < -_TO or high > _TO for low, high in box):
                allowed.append((name, "mm"))
                assert any(name in text and str(_TO) in text for text in told), (
                    f"expected {name} to be found beyond the bounds: {told}"
                )
            must = any(_met(box, at) for at in corners)
            assert not must or _about(found, "crate", name), (
                f"expected crate and {name} to be found, which meet at a corner: {told}"
            )
            if must or _met(box, _swept(corners)):
                allowed.append(("crate", name))
        strange = [
            text for text in told if not any(all(name in text for name in pair) for pair in allowed)
        ]
        assert not strange, f"findings about what does not meet: {strange}"

    await for_all(_EXAMPLES, agrees, most=5)
