"""INT-022: a motor of a design has the torque that the catalogue has for its part, and no more."""

from __future__ import annotations

import copy
import csv
import io
import json
import math
from typing import Any, Final

import mujoco
import pytest
from workbench_contract.design import DesignJudged
from workbench_contract.simulation import Simulated, SimulateRequest

from harness_core.base.slowness import patience
from harness_core.system.subject import Subject
from suites.integration.assemblies import (
    CONNECTIONS,
    driven_plan,
    driven_script,
    drives,
    export,
    exported,
    judged,
)
from suites.integration.bundles import OBJECTIVES
from suites.integration.cataloguing import Catalogue, later_version
from suites.integration.comparing import expect_same
from suites.integration.episodes import Episodes
from suites.integration.planners import Coder, coder_at_work
from suites.integration.refusals import expect_refused
from suites.integration.sessions import Session
from suites.integration.simulating import track_of

pytestmark = [pytest.mark.covers("INT-022"), pytest.mark.integration_p0]

_SIMULATED_S: Final = 120.0

#: What is moved falls beside the design, and for some seconds leaves nothing.
_ASIDE: Final[dict[str, Any]] = {
    "simulation_bounds": {"min_mm": [-100, -50, -1_000_000], "max_mm": [150, 50, 100]},
    "moved_object.start_mm": [-60, 0, 40],
    "forbid_zones": [],
}


#: Between which a flap swings, and where a wing is held.
_SWUNG_DEG: Final = (-20.0, 30.0)
_HELD_MM: Final = 3.0

#: From a flap's hinge to its middle.
_ARM_MM: Final = 30.0

#: Of a slide: radius in mm.
_PINION: Final = {"wing": 250.0}


async def _two(episodes: Episodes) -> list[dict[str, Any]]:
    """The two weakest servos of the catalogue that differ in torque."""
    found = await Catalogue(episodes.controller).walk(category="servo")
    by_torque = sorted(
        (each for each in found if each["specs"].get("torque_n_m")),
        key=lambda each: each["specs"]["torque_n_m"],
    )
    assert len(by_torque) > 1, f"expected servos with a torque, found {found}"
    weak, *others = by_torque
    return [weak, next(each for each in others if _torque(each) > _torque(weak))]


def _torque(part: dict[str, Any]) -> float:
    return float(part["specs"]["torque_n_m"])


def _force(part: dict[str, Any]) -> float:
    """N that its pinion pushes the wing with."""
    return _torque(part) / (_PINION["wing"] / 1000)


def _pushing(_: str) -> dict[str, Any]:
    return {"mode": "constant", "level": 1.0}


async def _connected(coder: Coder, connections: dict[str, Any]) -> DesignJudged:
    await coder.session.write(CONNECTIONS, json.dumps(connections))
    answer = await judged(coder.session)
    assert 200 == answer.status, f"expected a verdict on a driven design, found {answer}"
    return DesignJudged.model_validate_json(answer.body)


async def _limits(session: Session, names: list[str]) -> list[float]:
    """What the motors of the exported model exert at most."""
    told, model = await exported(session, objectives=OBJECTIVES)
    found = []
    for name in names:
        actuator = model.model.actuator(name)
        moved = model.model.joint(int(actuator.trnid[0])).name
        expect_same(name, moved, what=f"the joint that the motor {name} moves")
        low, high = actuator.forcerange
        assert low == -high, f"expected {name} to push as hard either way, found {low} and {high}"
        [row] = [each for each in told.motors if each.joint == name]
        expect_same(float(high), row.most, what=f"the limit that is told of {name}")
        found.append(float(high))
    return found


async def _exerted(
    coder: Coder, names: list[str], seconds: float
) -> tuple[dict[str, Any], dict[str, list[float]]]:
    """A run of the design, and what each motor exerted in every step."""
    body = SimulateRequest(duration_s=seconds, seed=22, objectives=OBJECTIVES, trajectories=True)
    answer = await coder.session.client.post(
        "/benchmark/simulate",
        body.model_dump(mode="json", exclude_none=True),
        seconds=patience(_SIMULATED_S),
    )
    assert 200 == answer.status, f"expected the driven design to be simulated, found {answer}"
    [run] = answer.json()["runs"]
    file = await coder.session.client.get(f"/assets/{run['trajectory']['path']}")
    assert 200 == file.status, f"expected the run's file, found {file}"
    rows = list(csv.DictReader(io.StringIO(file.body.decode())))
    forces = {
        name: [float(row[f"{name}.force"]) for row in rows if row[f"{name}.force"]]
        for name in names
    }
    return run, forces


async def test_int_022_a_motor_has_the_torque_of_its_part(episodes: Episodes) -> None:
    """Two motors of two parts have two limits, whichever script asks for more; exchanged, they are exchanged.

    One turns its flap, the other pushes its slide by a pinion: with the torque over the pinion's radius.
    Told to push as hard as they can they exert that, and not more; after two seconds the run ends of it. A
    motor without a part, of a part that is not in the plan, or that moves nothing, is refused. The model
    provider is a stand-in: the gateway holds the models.
    """
    weak, strong = await _two(episodes)
    number, names = 221, ["flap", "wing"]
    plan = driven_plan(
        number,
        names,
        [(weak, 1), (strong, 1)],
        control=_pushing,
        slides=["wing"],
        **_ASIDE,
    )
    async with coder_at_work(episodes, number=number, plan=plan) as coder:
        await coder.session.write("model.py", driven_script(number, names, slides=["wing"]))
        ours = drives(number, {"flap": weak["part_id"], "wing": strong["part_id"]}, pinions=_PINION)
        for what, other, says in _wrong(ours, weak):
            found = await _connected(coder, other)
            assert not found.passed, f"expected {what} not to pass, found {found}"
            told = " ".join(f"{each.where} {each.found} {each.expected}" for each in found.findings)
            assert says in told, f"expected findings about {says!r} for {what}, found {told}"
            expect_refused(await export(coder.session), 409, 422)
        found = await _connected(coder, ours)
        assert found.passed, f"expected the driven design to pass, found {found.findings}"
        limits = await _limits(coder.session, names)
        wanted = [_torque(weak), _force(strong)]
        assert limits == pytest.approx(wanted, rel=1e-9), (
            f"N·m of the flap and N of the wing: expected {wanted}, found {limits}"
        )
        run, forces = await _exerted(coder, names, 2.5)
        for name, limit in zip(names, wanted, strict=True):
            most = max(map(abs, forces[name]))
            near = most == pytest.approx(limit, rel=1e-9)
            assert near, f"expected {name} to exert {limit} N·m or N at most, found {most}"
        expect_same("motor_overload", run["outcome"], what="how a run ends whose motors only push")
        exchanged = drives(
            number, {"wing": weak["part_id"], "flap": strong["part_id"]}, pinions=_PINION
        )
        await coder.session.write(CONNECTIONS, json.dumps(exchanged))
        expect_refused(await export(coder.session), 409, 422, says="connections")
        found = await _connected(coder, exchanged)
        assert found.passed, f"expected the exchanged motors to pass, found {found.findings}"
        limits = await _limits(coder.session, names)
        wanted = [_torque(strong), _force(weak)]
        assert limits == pytest.approx(wanted, rel=1e-9), (
            f"N·m of the flap and N of the wing, exchanged: expected {wanted}, found {limits}"
        )
        goal = await coder.session.read(OBJECTIVES)
        text = goal.json()["content"]
        await coder.session.write(OBJECTIVES, text.replace("level: 1.0", "level: 0.5"))
        expect_refused(await export(coder.session, objectives=OBJECTIVES), 409, 422)


def _wrong(ours: dict[str, Any], weak: dict[str, Any]) -> list[tuple[str, dict[str, Any], str]]:
    """What is wrong with drives, and a word of what is said."""

    def other(index: int, **values: object) -> dict[str, Any]:
        made = copy.deepcopy(ours)
        made["drives"][index] |= values
        return made

    twice = [ours["drives"][0], ours["drives"][1] | {"joint": "flap", "radius_mm": None}]
    return [
        ("two parts for one motor", ours | {"drives": twice}, "flap"),
        ("a motor without a part", ours | {"drives": ours["drives"][:1]}, "wing"),
        ("a part that is not planned", other(0, part_id="ROBOTIS-XM540-W270"), "XM540"),
        ("a part that there is not", other(0, part_id="NO-SUCH-PART"), "NO-SUCH-PART"),
        ("one part for two motors", other(1, part_id=weak["part_id"]), weak["part_id"]),
        ("a joint that there is not", other(1, joint="tail"), "tail"),
        ("a slide without a pinion", other(1, radius_mm=None), "radius_mm"),
        ("a pinion on a hinge", other(0, radius_mm=5.0), "radius_mm"),
    ]


def _placing(name: str) -> dict[str, Any]:
    if name == "wing":
        return {"mode": "hold", "position": {"mm": _HELD_MM}}
    low, high = ({"deg": each} for each in _SWUNG_DEG)
    return {"mode": "oscillate", "low": low, "high": high, "period_s": 1.0}


async def test_int_022_a_motor_of_a_design_is_told_where_to_be(episodes: Episodes) -> None:
    """A hinge swings between two angles and a slide holds a place, in degrees and millimetres, and both get there.

    The model provider is a stand-in: the gateway holds the models.
    """
    weak, strong = await _two(episodes)
    number, names = 225, ["flap", "wing"]
    bought = [(strong, 1), (weak, 1)]
    plan = driven_plan(number, names, bought, control=_placing, slides=["wing"], **_ASIDE)
    async with coder_at_work(episodes, number=number, plan=plan) as coder:
        await coder.session.write("model.py", driven_script(number, names, slides=["wing"]))
        parts = {"flap": strong["part_id"], "wing": weak["part_id"]}
        found = await _connected(coder, drives(number, parts, pinions={"wing": 20.0}))
        assert found.passed, f"expected the driven design to pass, found {found.findings}"
        for options in ({}, {"objectives": OBJECTIVES}):
            _, model = await exported(coder.session, **options)
            pushing = [
                name
                for name in names
                if model.model.actuator(name).biastype[0] != mujoco.mjtBias.mjBIAS_AFFINE
            ]
            assert not pushing, f"motors told places are placed, exported with {options}: {pushing}"
        body = SimulateRequest(duration_s=1.0, seed=22, objectives=OBJECTIVES, trajectories=True)
        answer = await coder.session.client.post(
            "/benchmark/simulate",
            body.model_dump(mode="json", exclude_none=True),
            seconds=patience(_SIMULATED_S),
        )
        assert 200 == answer.status, f"expected a design to be told positions, found {answer}"
        [run] = Simulated.model_validate_json(answer.body).runs
        track = await track_of(coder.session, run)
    angles = track.columns["flap.command"]
    assert (min(angles), max(angles)) == pytest.approx(_SWUNG_DEG, abs=0.01), (
        f"expected the flap told {_SWUNG_DEG} degrees, found {min(angles)} to {max(angles)}"
    )
    held = {round(each, 6) for each in track.columns["wing.command"]}
    expect_same({_HELD_MM}, held, what="mm that the wing is told")
    last = len(track.times_s) - 1
    flap, wing = (
        [1000 * (track.place(f"{name}-{number}", at)[0] - track.place(f"{name}-{number}", 0)[0])
         for at in range(last)]
        for name in names
    )  # fmt: skip
    assert wing[-1] == pytest.approx(_HELD_MM, abs=0.3), (
        f"expected the wing there, found {wing[-1]}"
    )
    for found_mm, angle in ((min(flap), _SWUNG_DEG[0]), (max(flap), _SWUNG_DEG[1])):
        aside = _ARM_MM * math.sin(math.radians(angle))
        assert found_mm == pytest.approx(aside, rel=0.15), (
            f"expected the flap's middle {aside} mm aside at {angle} degrees, found {found_mm}"
        )


async def test_int_022_a_later_catalogue_has_other_torques(
    breakable: Episodes, subject: Subject
) -> None:
    """A plan by a later version of the catalogue has motors of that version's torque.

    The model provider is a stand-in: the gateway holds the models.
    """
    weak, _ = await _two(breakable)
    names = ["flap"]

    async def limit(number: int, part: dict[str, Any]) -> float:
        plan = driven_plan(number, names, [(part, 1)], control=_pushing)
        async with coder_at_work(breakable, number=number, plan=plan) as coder:
            await coder.session.write("model.py", driven_script(number, names))
            found = await _connected(coder, drives(number, {"flap": part["part_id"]}))
            assert found.passed, f"expected one flap to pass, found {found.findings}"
            [most] = await _limits(coder.session, names)
            return most

    expect_same(_torque(weak), await limit(223, weak), what="N·m by the first version")
    other = round(_torque(weak) / 4, 6)
    specs = {weak["part_id"]: {"torque_n_m": other}}
    async with later_version(breakable.stack, subject, without=[], specs=specs) as version:
        [now] = [
            each
            for each in await Catalogue(breakable.controller).walk(category="servo")
            if each["part_id"] == weak["part_id"]
        ]
        expect_same(version, now["catalogue_version"], what="version of the catalogue")
        expect_same(other, _torque(now), what="N·m of the part in the later version")
        expect_same(other, await limit(224, now), what="N·m by the later version")
