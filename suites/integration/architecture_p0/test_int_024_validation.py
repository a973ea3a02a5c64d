"""INT-024: a benchmark is validated on its solids, over the whole range that its object starts in."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Final

import pytest
import trio
from workbench_contract.benchmark import (
    Configuration,
    ConfigurationKind,
    Validated,
    ValidationFinding,
)
from workbench_contract.handover import GEOMETRY

from harness_core.doubles.http import HttpClient
from suites.integration.bundles import OBJECTIVES
from suites.integration.comparing import expect_same
from suites.integration.episodes import calls
from suites.integration.refusals import OUTSIDE, expect_refused
from suites.integration.scenes import scene
from suites.integration.sessions import Session, new_session
from suites.integration.validating import (
    REACH,
    SIGNS,
    SPREAD,
    START,
    STILL,
    Block,
    ask_validation,
    block_between,
    expect_pairs,
    findings_about,
    leave_benchmark,
    objectives_with,
    script_of,
    told_of,
    validated_by,
)

pytestmark = [pytest.mark.covers("INT-024"), pytest.mark.integration_p0]


def _posts(nearest: float) -> dict[str, Block]:
    """A block beyond each corner of what the crate can reach, so far from there."""
    made = {}
    for signs in SIGNS:
        name = "post" + "".join("+" if sign > 0 else "-" for sign in signs)
        inner = [at + s * (far + nearest) for at, s, far in zip(START, signs, REACH, strict=True)]
        outer = [at + s * (far + 20) for at, s, far in zip(START, signs, REACH, strict=True)]
        made[name] = block_between(inner, outer)
    return made


def _plates(nearest: float) -> dict[str, Block]:
    """A plate across each side of what the crate can reach, so far from there."""
    made = {}
    for axis, sign in itertools.product(range(3), (-1, 1)):
        inner = [at - far + 1 for at, far in zip(START, REACH, strict=True)]
        outer = [at + far - 1 for at, far in zip(START, REACH, strict=True)]
        inner[axis] = START[axis] + sign * (REACH[axis] + nearest)
        outer[axis] = START[axis] + sign * (REACH[axis] + 20)
        made[f"plate{'-+'[sign > 0]}{'xyz'[axis]}"] = block_between(inner, outer)
    return made


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
    sound = script_of(_plates(0.01) | _posts(0))
    spoilt = script_of(_plates(-0.01) | _posts(-0.5))
    await leave_benchmark(session, script=sound, objectives=objectives_with())
    found = await validated_by(session)
    assert found.valid, f"expected what is sound over its whole range to be valid, found {found}"
    await leave_benchmark(session, script=spoilt)
    found = await validated_by(session)
    wanted = [("crate", name) for name in (*_plates(0), *_posts(0))]
    expect_pairs(found, wanted, what="solids that the crate meets at its ends")
    for signs, name in zip(SIGNS, _posts(0), strict=True):
        (each,) = findings_about(found, name)
        expected = [sign * far for sign, far in zip(signs, SPREAD, strict=True)]
        _expect_at(each, lambda at, ends=expected: (at.offset_mm, at.scale) == (ends, 1.5))
    for axis, sign in itertools.product(range(3), (-1, 1)):
        (each,) = findings_about(found, f"plate{'-+'[sign > 0]}{'xyz'[axis]}")
        end = sign * SPREAD[axis]
        _expect_at(
            each, lambda at, axis=axis, end=end: (at.offset_mm[axis], at.scale) == (end, 1.5)
        )
    for name, less in _LESS.items():
        await leave_benchmark(session, objectives=objectives_with(**less))
        found = await validated_by(session)
        assert found.valid, f"expected the same solids to be sound with {name}, found {found}"
    await leave_benchmark(session, script=sound, objectives=objectives_with())
    found = await validated_by(session)
    assert found.valid, f"expected what was mended to be valid, found {found}"


def _expect_at(each: ValidationFinding, here: Callable[[Configuration], bool]) -> None:
    assert each.configurations, f"a finding that does not say at which start: {each}"
    strange = [at for at in each.configurations if not here(at)]
    assert not strange, f"expected {told_of(each)} at its end of the range alone, found {strange}"


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
    await leave_benchmark(session, script=script_of(blocks), objectives=objectives_with())
    found = await validated_by(session)
    expect_pairs(found, [("over-a", "over-b"), ("beyond",)], what="solids at their limits")
    assert 10 == found.bodies, f"expected 10 solids, found {found.bodies}"
    one = "'kept': Pos(50, 50, 0) * Box(9, 9, 9)"
    hollow = "'hollow': Pos(-50, 50, 0) * (Box(9, 9, 9) - Sphere(3)), 'core': Pos(-50, 50, 0) * Sphere(3)"
    await leave_benchmark(session, script=script_of({}, one, hollow))
    found = await validated_by(session)
    assert found.valid, f"expected a core that fits its hollow to be sound, found {found}"
    await leave_benchmark(
        session, script=script_of({}, one, hollow.replace("* Sphere(3)", "* Sphere(3.1)"))
    )
    found = await validated_by(session)
    expect_pairs(found, [("hollow", "core")], what="a core too large for its hollow")


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
    await leave_benchmark(
        session, script=script_of(around), objectives=objectives_with(label="ball", **ball, **STILL)
    )
    found = await validated_by(session)
    expect_pairs(found, [("ball", "right")], what="caps of a ball")
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
    await leave_benchmark(
        session, script=script_of(around), objectives=objectives_with(label="can", **can)
    )
    found = await validated_by(session)
    expect_pairs(found, [("can", "cover"), ("can", "right")], what="strips and ends of a can")
    # The same in a mirror: what is too near on one side is it on the other.
    around = {
        name: (tuple(-end for end in high), tuple(-end for end in low))
        for name, (low, high) in around.items()
    }
    await leave_benchmark(session, script=script_of(around))
    found = await validated_by(session)
    expect_pairs(found, [("can", "cover"), ("can", "right")], what="a can among solids in a mirror")
    speck = ball | {"size": {"radius_mm": 0.2}, "static_randomization": {"start_mm": [0, 0, 30]}}
    rocks: dict[str, Block] = {"rock": ((-20, -20, 20), (20, 20, 60))}
    moved = objectives_with(label="speck", **speck, runtime_jitter={})
    await leave_benchmark(session, script=script_of(rocks), objectives=moved)
    found = await validated_by(session)
    expect_pairs(found, [("speck", "rock")], what="a speck that can start inside a rock")
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
    await leave_benchmark(session, script=script_of(plate), objectives=objectives_with(**wide))
    found = await validated_by(session)
    assert found.valid, f"expected nothing at the corners, found {found}"
    first = await ask_validation(session, samples=150, seed=240_024)
    found = Validated.model_validate_json(first.body)
    expect_pairs(found, [("crate", "plate")], what="a plate between the corners")
    sampling = found.sampling
    assert sampling is not None, f"expected the seed of the samples in the answer, found {first}"
    expect_same((240_024, 150), (sampling.seed, sampling.samples), what="seed and count of samples")
    (each,) = found.findings
    _expect_at(each, lambda at: at.kind is ConfigurationKind.SAMPLE and 0 < at.offset_mm[0] < 14)
    again = await ask_validation(session, samples=150, seed=240_024)
    expect_same(first.json(), again.json(), what="the same request with the same seed")
    other = await validated_by(session, samples=150)
    unasked = other.sampling
    assert unasked is not None, f"expected the seed that was chosen in the answer, found {other}"
    assert unasked.seed != 240_024, f"expected a seed that was chosen, found {unasked}"
    same = await validated_by(session, samples=150, seed=unasked.seed)
    expect_same(
        other, same, what="an answer by the seed that was chosen, and by the same asked for"
    )
    least = [await validated_by(session, samples=150, seed=0) for _ in range(2)]
    assert least[0].sampling is not None, f"expected the seed 0 in the answer, found {least[0]}"
    expect_same(0, least[0].sampling.seed, what="the seed that was asked for, the least there is")
    expect_same(least[0], least[1], what="the same request with the seed 0")
    # A start that is told, by itself.
    at = each.configurations[0]
    start = [a + b for a, b in zip(START, at.offset_mm, strict=True)]
    alone = {"scale": {"min": at.scale, "max": at.scale}}
    moved = objectives_with(start_mm=start, static_randomization=alone, runtime_jitter={})
    await leave_benchmark(session, objectives=moved)
    found = await validated_by(session)
    expect_pairs(found, [("crate", "plate")], what=f"the start that was told, {at}")


# --- sessions, roles, routes -------------------------------------------------------------------------------


async def test_int_024_each_session_has_its_own(worker: HttpClient) -> None:
    """Two sessions at once are each judged by their own files, in each round; what is no benchmark is told as that."""
    one, two = new_session(worker), new_session(worker)
    found: dict[str, Validated] = {}

    async def ask(session: Session) -> None:
        found[session.id] = await validated_by(session, samples=5, seed=1)

    for number, (bad, good) in enumerate(((one, two), (two, one))):
        # Each has the start of its own where the other has its rock.
        for session, side, label in ((bad, -60.0, f"bad-{number}"), (good, 60.0, f"good-{number}")):
            rock: dict[str, Block] = {f"rock-{label}": ((-80, -20, 20), (-40, 20, 60))}
            moved = objectives_with(label=label, start_mm=[side, 0, 40])
            await leave_benchmark(session, script=script_of(rock), objectives=moved)
        async with trio.open_nursery() as nursery:
            for session in (one, two):
                nursery.start_soon(ask, session)
        assert found[good.id].valid, f"what is sound, beside another session: {found[good.id]}"
        pair = (f"bad-{number}", f"rock-bad-{number}")
        expect_pairs(found[bad.id], [pair], what="a rock, beside another session")
    tools = [each["payload"]["tool"] for each in calls(await one.events(), "tool_call")]
    expect_same(2, tools.count("validate"), what="events of two validations")
    await one.write(GEOMETRY, "parts = {'rock': None}\n")
    answer = await ask_validation(one)
    failed = Validated.model_validate_json(answer.body)
    assert not failed.valid, f"expected a script that leaves no solid to be refused, found {answer}"
    assert "no solid" in " ".join(failed.reasons), f"expected why, found {answer}"
    await one.write("scene.xml", scene())
    expect_refused(await ask_validation(one, model="scene.xml"), 400, 409, 422, says="scene.xml")
    expect_refused(await ask_validation(one, objectives="other.yaml"), 404, says="other.yaml")
    expect_refused(await ask_validation(one, objectives="../../other.yaml"), *OUTSIDE)
    for body in ({"samples": -1}, {"samples": 10**9}, {"seed": -1}, {"seed": 2**31}, {"sample": 1}):
        refused = await one.malformed(
            "/benchmark/validate", model=GEOMETRY, objectives=OBJECTIVES, **body
        )
        expect_refused(refused, 422)


async def test_int_024_samples_lie_to_every_side(worker: HttpClient) -> None:
    """A plate that no corner meets is found by samples on whichever side of the given start it stands.

    So is a rod, which samples along a diagonal of the range would not meet.
    """
    session = new_session(worker)
    reach = 30.0
    for axis, sign in itertools.product(range(3), (-1, 1)):
        static = {"start_mm": [reach if at == axis else 0.0 for at in range(3)]}
        near, far = sorted(START[axis] + sign * away for away in (14.5, 15.0))
        low, high = ([end] * 3 for end in (-90.0, 90.0))
        low[axis], high[axis] = near, far
        plate: dict[str, Block] = {"plate": (low, high)}
        objectives = objectives_with(static_randomization=static, runtime_jitter={})
        await leave_benchmark(session, script=script_of(plate), objectives=objectives)
        side = f"{'-+'[sign > 0]}{'xyz'[axis]}"
        found = await validated_by(session)
        assert found.valid, f"expected nothing at the corners at {side}, found {found}"
        found = await validated_by(session, samples=150, seed=24_024)
        expect_pairs(found, [("crate", "plate")], what=f"a plate between the corners at {side}")
        (each,) = found.findings
        where = (axis, sign)
        _expect_at(each, lambda at, where=where: at.offset_mm[where[0]] * where[1] > 0)
    static = {"start_mm": [reach, reach, 0.0]}
    for x, y in ((1, -1), (-1, 1)):
        middle = [START[axis] + sign * 14.75 for axis, sign in enumerate((x, y))]
        rod: dict[str, Block] = {
            "rod": ([*(at - 0.25 for at in middle), -90.0], [*(at + 0.25 for at in middle), 90.0])
        }
        objectives = objectives_with(static_randomization=static, runtime_jitter={})
        await leave_benchmark(session, script=script_of(rod), objectives=objectives)
        found = await validated_by(session)
        assert found.valid, f"expected nothing at the corners beside a rod, found {found}"
        found = await validated_by(session, samples=300, seed=24_025)
        expect_pairs(found, [("crate", "rod")], what=f"a rod away from each diagonal, {x}, {y}")
