"""INT-037: joints of a script are constraints of the model that is made of it, where they are and as far as they go.

Models are loaded as the files that they are, moved joint by joint, and measured against a computation by hand.
"""

from __future__ import annotations

import json
import math
from typing import Any, Final

import mujoco
import numpy as np
import pytest
import trio
from workbench_contract.connections import Connections
from workbench_contract.joints import DesignJoint, Exported
from workbench_contract.simulation import SimulateRequest

from harness_core.base.slowness import patience
from harness_core.doubles.http import HttpClient
from suites.integration.assemblies import (
    CONNECTIONS,
    MOST_OFF_MM,
    Moved,
    driven_plan,
    driven_script,
    drives,
    expect_near,
    expect_turned,
    export,
    exported,
    frame,
    rotation,
)
from suites.integration.bundles import OBJECTIVES, Bundle, changed, milled, printed, sound
from suites.integration.comparing import expect_same
from suites.integration.environments import benchmark_made, coder_in
from suites.integration.episodes import Episodes
from suites.integration.planners import Coder, Planner, coder_at_work
from suites.integration.refusals import expect_refused
from suites.integration.sessions import Session, new_session

pytestmark = [pytest.mark.covers("INT-037"), pytest.mark.integration_p1]

_SIMULATED_S: Final = 120.0

#: Orthonormal, no axis of it along one of the world's.
_TURNED: Final = np.array([[2.0, 1.0, 2.0], [-2.0, 2.0, 1.0], [-1.0, -2.0, 2.0]]) / 3
_MIRROR: Final = np.diag([-1.0, 1.0, 1.0])

#: A place, and whether all is seen in a mirror at x = 0 before it is put there.
_PLACED: Final[dict[str, tuple[Any, tuple[float, ...], bool]]] = {
    "as_drawn": (np.eye(3), (0.0, 0.0, 0.0), False),
    "rotated": (_TURNED, (120.0, -35.0, 60.0), False),
    "mirrored": (np.eye(3), (0.0, 0.0, 0.0), True),
    "mirrored_and_rotated": (_TURNED, (-40.0, 7.5, 11.0), True),
}

_ANCHOR: Final = np.array([22.0, 3.0, 6.0])
_AXIS: Final = np.array([1.0, 2.0, 2.0]) / 3
_FLAP: Final = np.array([30.0, 14.0, 25.0])
_BASE: Final = np.array([10.0, 0.0, 2.0])
_RANGE: Final = (-30.0, 60.0)
_ANGLE: Final = 15.0
#: What a direction that is told may be off.
_TOLD: Final = 1e-6


def _hinged(turn: Any, at: Any, axis: Any, places: tuple[Any, Any, Any]) -> str:
    """A flap on a hinge; it is drawn where it is at an angle of 0."""
    base, flap, anchor = (tuple(map(float, place)) for place in places)
    return f"""\
from build123d import *

base = {frame(turn, base)} * Box(40, 30, 4)
flap = {frame(turn, flap)} * Box(6, 16, 2)
hinge = RevoluteJoint("hinge", base, Axis({anchor}, {tuple(map(float, axis))}), angular_range={_RANGE})
hinge.connect_to(RigidJoint("held", flap, hinge.location), angle={_ANGLE})
parts = {{"base": base, "flap": flap}}
"""


@pytest.mark.parametrize("placed", _PLACED)
async def test_int_037_a_hinge_turns_where_it_is(worker: HttpClient, placed: str) -> None:
    """A revolute joint is a hinge: about its axis, through its anchor, as far as its range.

    Wherever the design stands, and in a mirror, where it turns the other way. An angle beyond its range is no
    place for it to be put together at, and refused.
    """
    turn, at, mirrored = _PLACED[placed]
    seen = _MIRROR if mirrored else np.eye(3)

    def put(point: Any) -> Any:
        return turn @ (seen @ point) + at

    # What turns right by an axis turns left by it in a mirror.
    axis = turn @ (seen @ _AXIS) * (-1 if mirrored else 1)
    base, flap, anchor = put(_BASE), put(_FLAP), put(_ANCHOR)
    script = _hinged(turn, at, axis, (base, flap, anchor))
    session = new_session(worker)
    told, model = await exported(session, script)
    expect_same(["hinge"], [each.name for each in told.joints], what="joints that are told")

    def turned(degrees: float) -> Any:
        return rotation(axis, degrees) @ (flap - anchor) + anchor

    expect_near(base, model.place("base")[1], MOST_OFF_MM, what="the base as it was drawn")
    expect_near(turned(_ANGLE), model.place("flap")[1], MOST_OFF_MM, what="the flap at 15°")
    joint = model.joint("hinge")
    assert joint.type[0] == mujoco.mjtJoint.mjJNT_HINGE, (
        f"expected a hinge, found type {joint.type}"
    )
    travel = [math.degrees(each) for each in model.travel("hinge")]
    wanted = [limit - _ANGLE for limit in _RANGE]
    expect_near(wanted, travel, 1e-4, what="degrees that the hinge may turn, from 15°")
    off = np.cross(model.data.xanchor[joint.id] * 1e3 - anchor, axis)
    expect_near(np.zeros(3), off, MOST_OFF_MM, what="how far the hinge is from its axis, in mm")
    where = 0.0
    for degrees in (20.0, -45.0, 45.0):
        where += degrees
        model.move("hinge", math.radians(degrees))
        turned_by, now = model.moved("flap", "base")
        what = f"the flap, turned by {where}° from 15°"
        expect_near(turned(_ANGLE + where), now, MOST_OFF_MM, what=what)
        expect_turned(rotation(axis, where), turned_by, what=what)
    _is_told(told.joints[0], axis, anchor)
    outside = script.replace(f"angle={_ANGLE}", "angle=61")
    await session.write("model.py", outside)
    expect_refused(await export(session), 409, 422)


def _is_told(said: DesignJoint, axis: Any, anchor: Any) -> None:
    """What an export answers of the hinge is what the script says of it."""
    between = (said.kind.value, said.part, said.other)
    expect_same(("revolute", "base", "flap"), between, what="what is told of the hinge")
    assert said.axis is not None, f"a hinge that is told without an axis: {said}"
    expect_near(axis, said.axis, _TOLD, what="the axis of the hinge as it is told")
    off = np.cross(np.array(said.anchor_mm) - anchor, axis)
    expect_near(np.zeros(3), off, MOST_OFF_MM, what="mm from the axis to its anchor as it is told")
    limits = (said.value, said.least, said.most)
    assert None not in limits, f"a hinge that is told without its range: {said}"
    expect_near((_ANGLE, *_RANGE), limits, 1e-4, what="degrees of the hinge as they are told")


#: What a joint is limited by, and where it is put together; the far end is no end.
_ONE_END: Final = {
    "a slide that ends above": ("LinearJoint", "linear_range=(-float('inf'), 45)", "position=10", (None, 35)),
    "a slide that ends below": ("LinearJoint", "linear_range=(-20, float('inf'))", "position=10", (-30, None)),
    "a hinge that ends above": ("RevoluteJoint", "angular_range=(-float('inf'), 60)", "angle=15", (None, 45)),
    "a hinge that ends below": ("RevoluteJoint", "angular_range=(-30, float('inf'))", "angle=15", (-45, None)),
}  # fmt: skip
#: Farther than any part of a design goes: mm or degrees.
_FAR_OFF: Final = 1000.0


async def test_int_037_a_joint_that_ends_on_one_side(worker: HttpClient) -> None:
    """A joint that is limited at one end alone keeps that end, and has none on the other side.

    A product that takes no such joint refuses it by its label.
    """
    session = new_session(worker)
    for what, (kind, limits, place, ends) in _ONE_END.items():
        script = (
            "from build123d import *\n"
            "a, b = Box(90, 10, 4), Pos(0, 0, 20) * Box(9, 9, 9)\n"
            f'{kind}("one-sided", a, Axis.X, {limits}).connect_to(RigidJoint("r", b), {place})\n'
            'parts = {"a": a, "b": b}\n'
        )
        await session.write("model.py", script)
        answer = await export(session)
        if answer.status != 200:
            expect_refused(answer, 409, 422, says="one-sided")
            continue
        _, model = await exported(session)
        scale = 1e3 if kind == "LinearJoint" else math.degrees(1)
        travel = [each * scale for each in model.travel("one-sided")]
        for end, found in zip(ends, travel, strict=True):
            if end is None:
                assert abs(found) >= _FAR_OFF, f"{what}: expected no other end, found {travel}"
            else:
                expect_near([end], [found], 1e-4, what=f"{what}: how far it may go, from there")


_RAIL: Final = """\
from build123d import *

rail = {rail} * Box(120, 10, 4)
cart = {cart} * Box(10, 12, 6)
mast = {mast} * Box(4, 4, 40)
flag = {flag} * Box(12, 2, 6)
slide = LinearJoint("slide", rail, Axis({at}, {axis}), linear_range=(-20, 45))
top, foot = RigidJoint("top", cart, {top}), RigidJoint("foot", mast, {top})
slide.connect_to(RigidJoint("under", cart, {start}), position=10)
top.connect_to(foot)
wave = RevoluteJoint("wave", mast, Axis({pole}, {up}), angular_range=(-70, 80))
wave.connect_to(RigidJoint("hem", flag, wave.location), angle=0)
parts = {{"flag": flag, "mast": mast, "cart": cart, "rail": rail}}
"""


@pytest.mark.parametrize("placed", ["as_drawn", "rotated"])
async def test_int_037_a_slide_goes_along_its_axis_and_what_is_rigid_goes_with_it(
    worker: HttpClient, placed: str
) -> None:
    """A prismatic joint is a slide, from 10 mm on as far as its range; a rigid joint holds under any load.

    The mast stands on the cart: it goes where the cart goes, and does not move against it when it is pushed
    with ten times its weight, while the whole falls. What turns on the mast goes with it, too, and turns about
    the mast wherever that is.
    """
    turn, at, _ = _PLACED[placed]
    axis = turn @ np.array([1.0, 0.0, 0.0])

    def put(*point: float) -> Any:
        return turn @ np.array(point) + at

    # The joint of the cart is where it is put: 10 mm along the axis of the slide, from (5, 0, 2).
    start, top = put(5.0, 0.0, 2.0), frame(turn, put(5.0, 0.0, 8.0))
    script = _RAIL.format(
        rail=frame(turn, put(0, 0, 0)),
        cart=frame(turn, put(5.0, 0.0, 5.0)),
        mast=frame(turn, put(5.0, 0.0, 28.0)),
        flag=frame(turn, put(23.0, 0.0, 40.0)),
        pole=tuple(map(float, put(17.0, 0.0, 37.0))),
        up=tuple(map(float, turn @ np.array([0.0, 0.0, 1.0]))),
        at=tuple(map(float, start)),
        axis=tuple(map(float, axis)),
        start=frame(turn, start),
        top=top,
    )
    session = new_session(worker)
    told, model = await exported(session, script)
    kinds = sorted((each.name, each.kind.value) for each in told.joints)
    wanted = [("slide", "prismatic"), ("top", "rigid"), ("wave", "revolute")]
    expect_same(wanted, kinds, what="joints that are told")
    _is_inert_as_a_box(model, "flag", turn, (12.0, 2.0, 6.0))
    joint = model.joint("slide")
    assert joint.type[0] == mujoco.mjtJoint.mjJNT_SLIDE, f"expected a slide, found {joint.type}"
    travel = [each * 1e3 for each in model.travel("slide")]
    expect_near([-30.0, 35.0], travel, MOST_OFF_MM, what="mm that the slide may go, from 10")
    cart, mast = (
        start + 10 * axis + turn @ np.array([0, 0, 3.0]),
        start + 10 * axis + turn @ np.array([0, 0, 26.0]),
    )
    flag, pole = put(23.0, 0.0, 40.0), put(17.0, 0.0, 37.0)
    _stands(model, {"cart": cart, "mast": mast, "flag": flag}, "rail", "at 10 mm")
    for by in (25.0, -50.0):
        model.move("slide", by * 1e-3)
        cart, mast, flag, pole = (each + by * axis for each in (cart, mast, flag, pole))
        places = {"cart": cart, "mast": mast, "flag": flag}
        _stands(model, places, "rail", f"{by:g} mm further")
    up = turn @ np.array([0.0, 0.0, 1.0])
    model.move("wave", math.radians(40.0))
    turned_by, now = model.moved("flag", "rail")
    wanted_at = rotation(up, 40.0) @ (flag - pole) + pole
    expect_near(wanted_at, now, MOST_OFF_MM, what="the flag, turned by 40° on the moved mast")
    expect_turned(rotation(up, 40.0), turned_by, what="how the flag is turned on the moved mast")
    _pushed(model, "mast", "cart")


def _stands(model: Moved, places: dict[str, Any], base: str, what: str) -> None:
    """Parts are at places, not turned; one that is no body of its own is one with another."""
    for part, place in places.items():
        if model.has(part):
            turned, found = model.moved(part, base)
            expect_near(place, found, MOST_OFF_MM, what=f"the {part} {what}")
            expect_turned(np.eye(3), turned, what=f"how the {part} lies {what}")


def _is_inert_as_a_box(model: Moved, part: str, turn: Any, sides_mm: tuple[float, ...]) -> None:
    """A part's mass is spread as that of a massive box of these sides, turned so, within 1 %."""
    body = model.model.body(part)
    axes = model.data.ximat[body.id].reshape(3, 3)
    found = axes @ np.diag(body.inertia) @ axes.T / model.mass_kg(part) * 1e6
    squares = np.array(sides_mm) ** 2
    expected = turn @ np.diag(squares.sum() - squares) @ turn.T / 12
    most = 0.01 * float(np.abs(expected).max())
    expect_near(expected, found, most, what=f"how hard the {part} is to turn, in mm² of its mass")


def _pushed(model: Moved, part: str, other: str) -> None:
    """Half a second with ten times its weight on a part moves it by less than 0.1 mm against another."""
    both = [each for each in (part, other) if model.has(each)]
    if len(both) < 2:
        assert both, f"expected {part} and {other}, or the body that they are, found neither"
        return
    body = model.model.body(part).id
    before = model.moved(part, other)[1]
    weight = model.mass_kg(part) * 9.81
    push = np.array([6, -6, 5, 0.03, 0.03, -0.03]) * weight
    model.data.xfrc_applied[body] = push
    steps = round(0.5 / model.model.opt.timestep)
    for _ in range(steps):
        mujoco.mj_step(model.model, model.data)
    near = model.data.time == pytest.approx(steps * model.model.opt.timestep)
    assert near, f"expected a model that is pushed to stay stable, found {model.data.time} s done"
    after = model.moved(part, other)[1]
    expect_near(before, after, 0.1, what=f"the {part}, pushed, as seen from the {other}, in mm")


#: A joint that has no counterpart, by the line that makes it, and the label that is to be named.
_UNMAPPED: Final = {
    "ball": 'RigidJoint("r", b).connect_to(BallJoint("swivel", a))',
    "ball, on nothing": 'BallJoint("swivel", a)',
    "cylindrical": 'CylindricalJoint("swivel", a, linear_range=(0, 5)).connect_to(RigidJoint("r", b), position=1)',
    "two at once": 'LinearJoint("swivel", a, linear_range=(0, 9)).connect_to(RevoluteJoint("h", b), position=1)',
    "to no part": 'RevoluteJoint("swivel", a).connect_to(RigidJoint("r", Box(2, 2, 2)))',
    "rigid and moving": (
        'RevoluteJoint("swivel", a).connect_to(RigidJoint("r", b), angle=0)\n'
        'RigidJoint("s", a).connect_to(RigidJoint("t", b))'
    ),
}


async def test_int_037_what_cannot_be_mapped_is_refused(worker: HttpClient) -> None:
    """A joint that has no counterpart is refused by its label, exported and simulated, and never left out.

    The same parts without it are exported, before and after.
    """
    session = new_session(worker)
    begin = "from build123d import *\na, b = Box(30, 10, 4), Pos(0, 0, 20) * Box(9, 9, 9)\n"
    end = 'parts = {"a": a, "b": b}\n'
    for line in _UNMAPPED.values():
        await session.write("model.py", begin + line + "\n" + end)
        expect_refused(await export(session), 409, 422, says="swivel")
        expect_refused(await _simulated(session), 409, 422, says="swivel")
    hinged = 'RevoluteJoint("swivel", a).connect_to(RigidJoint("r", b), angle=0)\n'
    told, model = await exported(session, begin + hinged + end)
    expect_same(["swivel"], [each.name for each in told.joints], what="joints, mended")
    assert not model.joint("swivel").limited[0], "a hinge that goes all round was given an end"


async def _simulated(session: Session, model: str = "model.py", **options: Any) -> Any:
    body = SimulateRequest(model=model, **{"duration_s": 0.1, "seed": 37, **options})
    return await session.client.post(
        "/benchmark/simulate",
        body.model_dump(mode="json", exclude_none=True),
        seconds=patience(_SIMULATED_S),
    )


def _ring(outer: float, inner: float) -> str:
    return (
        "from build123d import *\n"
        f'parts = {{"ring": Cylinder({outer}, 10) - Cylinder({inner}, 20), "ball": Pos(0, 0, 12) * Sphere(5)}}\n'
    )


async def test_int_037_meshes_touch_where_they_are_solid(worker: HttpClient) -> None:
    """A ball falls through a ring that is held; on one that is too narrow for it, it stays.

    Two sessions at once with other rings of the same name have each their own; asked again, each gets the
    same bytes, and so does a third session with the first one's script.
    """
    wide, narrow = _ring(24, 15), _ring(30, 3.5)
    sessions = {wide: new_session(worker), narrow: new_session(worker)}
    found: dict[str, tuple[Exported, Moved]] = {}

    async def first(script: str) -> None:
        held = Connections(pairs=[], grounded=["ring"])
        await sessions[script].write(CONNECTIONS, held.model_dump_json())
        found[script] = await exported(sessions[script], script)

    async with trio.open_nursery() as nursery:
        for script in sessions:
            nursery.start_soon(first, script)
    for script, radius in ((wide, 24.0), (narrow, 30.0)):
        size = np.diff(found[script][1].extent_mm("ring"), axis=0)[0]
        expect_near([2 * radius, 2 * radius, 10], size, 0.8, what=f"size of a ring of {radius} mm")
    # It starts 2 mm above; on the narrow one it sinks in a little, or the hole is too small to count.
    for script, least, most in ((wide, 40.0, 80.0), (narrow, 1.0, 5.0)):
        told, _ = found[script]
        again, _ = await exported(sessions[script])
        expect_same(told.sha256, again.sha256, what="sha256 of a design that is exported again")
        fallen = await _fallen(sessions[script])
        assert least < fallen < most, (
            f"expected the ball to fall by {least} to {most} mm, found {fallen:.2f}"
        )
    elsewhere = new_session(worker)
    held = await sessions[wide].read(CONNECTIONS)
    await elsewhere.write(CONNECTIONS, held.json()["content"])
    third, _ = await exported(elsewhere, wide)
    expect_same(found[wide][0].sha256, third.sha256, what="sha256 of the same design elsewhere")


async def _fallen(session: Session) -> float:
    """How far the ball has fallen, as seen from the ring, in mm."""
    height = []
    for seconds in (0.002, 0.4):
        answer = await _simulated(session, duration_s=seconds)
        assert 200 == answer.status, f"expected ring and ball to be simulated, found {answer}"
        at = {each["name"]: each["position_m"] for each in answer.json()["bodies"]}
        height.append((at["ball"][2] - at["ring"][2]) * 1e3)
    return height[0] - height[1]


async def test_int_037_parts_weigh_what_they_are_made_of(episodes: Episodes) -> None:
    """Each part of a design has the mass of its own material and method, by the plan it was made by.

    The model provider is a stand-in: the gateway holds the models.
    """
    made = [
        milled("block-371", 12_000, (40, 30, 10), units=100, material="steel_1018"),
        printed("plate-371", 6_000, units=100, infill="0.5"),
    ]

    def plan(planner: Planner) -> Bundle:
        goal = changed(planner.sound().objectives, "moving_parts", [])
        return sound(planner.issued, number=371, made=made, units=100, objectives=goal)

    script = (
        "from build123d import *\n"
        'parts = {"plate-371": Pos(30, 0, 40) * Box(30, 20, 10), "block-371": Pos(30, 0, 5) * Box(40, 30, 10)}\n'
    )
    async with coder_at_work(episodes, number=371, plan=plan) as coder:
        await coder.session.write("model.py", script)
        expect_refused(await export(coder.session), 409, 422)
        judged = await coder.judged(script)
        assert judged.passed, f"expected block and plate to pass, found {judged.findings}"
        told, model = await exported(coder.session)
        for each in made:
            name, kilograms = str(each.fields["id"]), float(each.grams) / 1000
            near = model.mass_kg(name) == pytest.approx(kilograms, rel=1e-6)
            assert near, f"expected {kilograms} kg for {each.fields}, found {model.mass_kg(name)}"
            [row] = [row for row in told.parts if row.name == name]
            near = row.mass_kg == pytest.approx(kilograms, rel=1e-6)
            assert near, f"expected {kilograms} kg told of {name}, found {row}"
        await coder.session.write(CONNECTIONS, json.dumps({"pairs": []}))
        expect_refused(await export(coder.session), 409, 422, says="connections")


#: Beside the design, above the floor of the environment.
_BALL: Final = {
    "label": "ball",
    "shape": "sphere",
    "size": {"radius_mm": 5},
    "start_mm": [-20, 0, 20],
    "static_randomization": {"start_mm": [2, 2, 0]},
    "runtime_jitter": {"start_mm": [1, 1, 0.5]},
}


async def test_int_037_a_design_stands_in_its_environment(episodes: Episodes) -> None:
    """Held against its objectives, a design stands in the geometry of its benchmark: a ball falls onto its floor.

    The flap hangs on a hinge that nothing drives. Without the benchmark's geometry the ball leaves the bounds;
    objectives that are not those which were handed over are refused. The model provider is a stand-in: the
    gateway holds the models.
    """
    passive = {"name": "flap", "type": "passive", "dof": "rotate_y"}
    changes = {"moving_parts": [passive], "forbid_zones": [], "moved_object": _BALL}
    benchmark = await benchmark_made(episodes, 372, **changes)
    outcomes = {}
    plan = driven_plan(373, ["flap"], [], control=_passive)
    async with coder_in(episodes, benchmark, number=373, plan=plan) as coder:
        outcomes["in it"] = await _hangs(coder, 373)
        session = coder.session
        _, model = await exported(session, objectives=OBJECTIVES)
        expect_near([-40, 40], _degrees(model, "flap"), 1e-4, what="degrees that the flap swings")
        goal = (await session.read(OBJECTIVES)).json()["content"]
        await session.write(OBJECTIVES, goal + "# mine\n")
        expect_refused(await _simulated(session, objectives=OBJECTIVES), 409, 422)
        expect_refused(await export(session, objectives=OBJECTIVES), 409, 422)
    plan = driven_plan(374, ["flap"], [], control=_passive, **changes)
    async with coder_at_work(episodes, number=374, plan=plan) as coder:
        outcomes["without one"] = await _hangs(coder, 374)
    wanted = {"in it": "timeout", "without one": "out_of_bounds"}
    expect_same(wanted, outcomes, what="how a run ends with an environment, and without one")


def _passive(_: str) -> dict[str, Any]:
    return {}


async def _hangs(coder: Coder, number: int) -> str:
    """How a run of a design ends whose flap hangs."""
    await coder.session.write(CONNECTIONS, json.dumps(drives(number, {})))
    judged = await coder.judged(driven_script(number, ["flap"]))
    assert judged.passed, f"expected a hanging flap to pass, found {judged.findings}"
    answer = await _simulated(coder.session, objectives=OBJECTIVES, duration_s=0.5)
    assert 200 == answer.status, f"expected the design to be simulated, found {answer}"
    outcome: str = answer.json()["outcome"]
    return outcome


def _degrees(model: Moved, joint: str) -> list[float]:
    return [math.degrees(each) for each in model.travel(joint)]
