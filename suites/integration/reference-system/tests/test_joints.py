"""Joints of designs: read off what a script connects, and measured on the model that is made of them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from workbench_contract.joints import DesignJoint
from workbench_physics import assembly, decomposition, kinematics
from workbench_physics.errors import SceneError
from workbench_worker import geometry, solids
from workbench_worker.modelerror import ModelError
from workbench_worker.pieces import PiecesKept

_HINGED = """
from build123d import *

base = Pos(10, 20, 30) * Rotation(20, 30, 40) * Box(20, 30, 4)
flap = Box(10, 20, 2)
axis = Axis((12, 22, 33), (1, 2, 2))
hinge = RevoluteJoint("hinge", base, axis=axis, angular_range=(-30, 60))
held = RigidJoint("held", flap, Location((0, 10, 0)))
hinge.connect_to(held, angle=15)
parts = {"base": base, "flap": flap}
"""


def built(tmp_path: Path, script: str) -> dict[str, Any]:
    """What a script leaves, in ``tmp_path/built``."""
    model = tmp_path / "model.py"
    model.write_text(script, encoding="utf-8")
    return geometry.build(str(model), str(tmp_path / "built"))


def measured(tmp_path: Path, names: list[str]) -> list[assembly.Solid]:
    """Its solids, as physics has them."""
    folder = str(tmp_path / "built")
    return [
        assembly.Solid(
            name=each["name"],
            volume_mm3=each["volume_mm3"],
            centre_mm=tuple(each["centre_mm"]),
            inertia_mm5=tuple(each["inertia_mm5"]),
            pieces_mm=solids.decompose(folder, number, each["name"])["pieces"],
            density_kg_m3=1000.0 * (number + 1),
        )
        for number, each in enumerate(solids.solids(folder, names)["solids"])
    ]


def model_of(tmp_path: Path, script: str, **options: Any) -> tuple[Any, list[DesignJoint]]:
    """The MuJoCo model of a script, and its joints."""
    left = built(tmp_path, script)
    joints = [DesignJoint.model_validate(each) for each in left["joints"]]
    parts = measured(tmp_path, left["names"])
    mechanism = kinematics.mechanism(left["names"], joints, grounded=options.pop("grounded", ()))
    text = assembly.mjcf(parts, mechanism, **options)
    assert text == assembly.mjcf(parts, mechanism, **options)
    return mujoco.MjModel.from_xml_string(text), joints


def pose(model: Any, data: Any, name: str) -> tuple[Any, Any]:
    """Turn and place of a body, in mm."""
    body = model.body(name).id
    return data.xmat[body].reshape(3, 3).copy(), data.xpos[body] * 1e3


def turn(axis: Any, angle: float) -> Any:
    """Rodrigues' formula."""
    x, y, z = np.array(axis) / np.linalg.norm(axis)
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + math.sin(angle) * cross + (1 - math.cos(angle)) * cross @ cross


def test_a_hinge_is_read_as_the_script_has_it(tmp_path: Path) -> None:
    left = built(tmp_path, _HINGED)
    [joint] = [DesignJoint.model_validate(each) for each in left["joints"]]
    assert ("hinge", "revolute", "base", "flap") == (joint.name, joint.kind, joint.part, joint.other)
    assert joint.axis == pytest.approx((1 / 3, 2 / 3, 2 / 3), abs=1e-9)
    assert joint.anchor_mm == pytest.approx((12, 22, 33), abs=1e-9)
    assert (15, -30, 60) == (joint.value, joint.least, joint.most)


@pytest.mark.parametrize("grounded", [(), ("base",), ("flap",)])
def test_a_hinge_turns_its_part_about_its_axis(tmp_path: Path, grounded: tuple[str, ...]) -> None:
    """Whichever of both carries the other, the angle is that of the part in the one that has the joint."""
    model, _ = model_of(tmp_path, _HINGED, grounded=grounded)
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    base_turn, base_at = pose(model, data, "base")
    flap_turn, flap_at = pose(model, data, "flap")
    at = model.joint("hinge").qposadr[0]
    assert data.qpos[at] == pytest.approx(math.radians(15))
    assert model.joint("hinge").range == pytest.approx(np.radians([-30, 60]))
    data.qpos[at] += 0.7
    mujoco.mj_kinematics(model, data)
    moved_base_turn, moved_base_at = pose(model, data, "base")
    moved_turn, moved_at = pose(model, data, "flap")
    about = turn((1, 2, 2), 0.7)
    anchor = np.array([12, 22, 33])
    wanted = about @ (flap_at - anchor) + anchor
    # In the frame of the base, which moves when the flap carries it.
    back = base_turn @ moved_base_turn.T
    assert back @ (moved_at - moved_base_at) + base_at == pytest.approx(wanted, abs=1e-6)
    assert back @ moved_turn == pytest.approx(about @ flap_turn, abs=1e-9)


def test_a_slide_and_a_rigid_part_on_it(tmp_path: Path) -> None:
    script = """
from build123d import *
rail = Box(100, 10, 4)
cart = Box(10, 10, 10)
mast = Pos(0, 0, 50) * Cylinder(2, 40)
slide = LinearJoint("slide", rail, Axis((0, 0, 2), (-1, 0, 0)), linear_range=(-20, 45))
slide.connect_to(RigidJoint("under", cart, Location((0, 0, -5))), position=10)
RigidJoint("top", cart, Location((-10, 0, 12))).connect_to(RigidJoint("foot", mast, Location((0, 0, 30))))
parts = {"mast": mast, "cart": cart, "rail": rail}
"""
    model, joints = model_of(tmp_path, script, grounded=["rail"])
    assert ["rigid", "prismatic"] == sorted((each.kind.value for each in joints), reverse=True)
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    before = {name: pose(model, data, name)[1] for name in ("mast", "cart")}
    assert before["cart"] == pytest.approx([-10, 0, 7], abs=1e-6)
    joint = model.joint("slide")
    assert joint.range == pytest.approx([-0.02, 0.045])
    assert data.qpos[joint.qposadr[0]] == pytest.approx(0.01)
    data.qpos[joint.qposadr[0]] += 0.03
    mujoco.mj_kinematics(model, data)
    for name in ("mast", "cart"):
        assert pose(model, data, name)[1] - before[name] == pytest.approx([-30, 0, 0], abs=1e-6)


def test_bodies_weigh_and_swing_as_their_solids(tmp_path: Path) -> None:
    """A box of 2 by 3 by 0.4 cm has the inertia of a box, whichever way it lies; masses are by density."""
    model, _ = model_of(tmp_path, _HINGED)
    base, flap = model.body("base"), model.body("flap")
    assert base.mass[0] == pytest.approx(20 * 30 * 4 * 1e-9 * 1000)
    assert flap.mass[0] == pytest.approx(10 * 20 * 2 * 1e-9 * 2000)
    sides = np.array([0.02, 0.03, 0.004])
    wanted = sorted(base.mass[0] / 12 * (sides @ sides - sides**2))
    assert sorted(base.inertia) == pytest.approx(wanted, rel=1e-6)
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    turned = data.ximat[base.id].reshape(3, 3)
    tensor = turned @ np.diag(base.inertia) @ turned.T
    rotation = turn((1, 0, 0), math.radians(20)) @ turn((0, 1, 0), math.radians(30))
    rotation = rotation @ turn((0, 0, 1), math.radians(40))
    own = np.diag(base.mass[0] / 12 * (sides @ sides - sides**2))
    assert tensor == pytest.approx(rotation @ own @ rotation.T, rel=1e-6, abs=1e-12)


def test_whole_turns_and_open_ends_limit_nothing(tmp_path: Path) -> None:
    script = """
from build123d import *
a, b, c = Box(10, 10, 10), Box(5, 5, 5), Box(5, 5, 5)
RevoluteJoint("round", a, Axis.Z).connect_to(RigidJoint("r", b, Location((20, 0, 0))))
LinearJoint("out", a, Axis.X, linear_range=(2, float("inf"))).connect_to(RigidJoint("r", c), position=30)
parts = {"a": a, "b": b, "c": c}
"""
    model, _ = model_of(tmp_path, script)
    assert not model.joint("round").limited[0]
    assert model.joint("out").limited[0]
    assert model.joint("out").range[0] == pytest.approx(0.002)
    assert model.joint("out").range[1] >= 1e3


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ('RevoluteJoint("loose", a)', "'loose' moves, and is connected to nothing"),
        ('RevoluteJoint("far", a).connect_to(RigidJoint("r", Box(1, 1, 1)))', "'far' is connected"),
        ('RigidJoint("self", a).connect_to(RigidJoint("r", a))', "'self' is connected to its own"),
        (
            'RevoluteJoint("h", a).connect_to(RigidJoint("r", b))\n'
            'RevoluteJoint("h", b).connect_to(RigidJoint("r", c))',
            "two joints that move are labelled 'h'",
        ),
        (
            'RevoluteJoint("gone", a).connect_to(RigidJoint("r", b))\nb.position = (1, 2, 3)',
            "'gone' no longer holds",
        ),
        (
            'RevoluteJoint("bent", a).connect_to(RigidJoint("r", b))\n'
            "b.orientation = b.orientation + Vector(0, 0, 9)",
            "'bent' no longer holds",
        ),
        (
            'LinearJoint("s", a, linear_range=(0, 9)).connect_to(RevoluteJoint("h", b), position=1)',
            "connects a LinearJoint with a RevoluteJoint",
        ),
    ],
)
def test_what_cannot_be_mapped_is_refused_by_its_label(
    tmp_path: Path, lines: str, says: str
) -> None:
    script = "from build123d import *\na, b, c = (Box(9, 9, 9) for _ in range(3))\n"
    with pytest.raises(ModelError, match=says):
        built(tmp_path, f"{script}{lines}\nparts = dict(a=a, b=b, c=c)\n")


@pytest.mark.parametrize(
    "line",
    [
        'BallJoint("ball", a)',
        'CylindricalJoint("ball", a, linear_range=(0, 5)).connect_to(RigidJoint("r", b), position=1)',
        'RigidJoint("r", b).connect_to(BallJoint("ball", a))',
    ],
)
def test_unsupported_kinds_are_told(tmp_path: Path, line: str) -> None:
    script = "from build123d import *\na, b = Box(9, 9, 9), Box(9, 9, 9)\n"
    left = built(tmp_path, f"{script}{line}\nparts = dict(a=a, b=b)\n")
    assert [] == left["joints"]
    [told] = left["unmapped"]
    assert "'ball' is a " in told


def test_joints_of_a_builder_are_those_of_its_part(tmp_path: Path) -> None:
    script = """
from build123d import *
with BuildPart() as one:
    Box(10, 10, 10)
    RevoluteJoint("h", axis=Axis((0, 5, 0), (1, 0, 0)), angular_range=(0, 90))
with BuildPart() as two:
    Box(4, 4, 4)
    RigidJoint("r", joint_location=Location((0, -2, 0)))
one.part.joints["h"].connect_to(two.part.joints["r"], angle=30)
parts = {"one": one, "two": two}
"""
    [joint] = built(tmp_path, script)["joints"]
    assert ("one", "two", 30.0) == (joint["part"], joint["other"], joint["value"])


def _joint(name: str, part: str, other: str, kind: str = "revolute") -> DesignJoint:
    axis = None if kind == "rigid" else (0.0, 0.0, 1.0)
    return DesignJoint.model_validate(
        {"name": name, "kind": kind, "part": part, "other": other, "anchor_mm": (0, 0, 0), "axis": axis}
    )


def test_links_are_what_is_held_together_by_joints_and_pairs() -> None:
    joints = [_joint("j", "c", "d"), _joint("r", "a", "b", "rigid"), _joint("k", "b", "c")]
    found = kinematics.mechanism(list("abcde"), joints, pairs=[("d", "e")])
    assert (("a", "b"), ("c",), ("d", "e")) == found.links
    assert [-1, 0, 1] == [move.carrier for move in found.moves]
    grounded = kinematics.mechanism(list("abcde"), joints, grounded=["d"])
    assert (("c",), ("a", "b"), ("e",)) == grounded.links
    assert ("d",) == grounded.held
    assert [(-1, True), (0, True), (-1, False)] == [
        (move.carrier, move.reversed) for move in grounded.moves
    ]


@pytest.mark.parametrize(
    ("joints", "options", "says"),
    [
        ([_joint("j", "a", "b"), _joint("r", "b", "a", "rigid")], {}, "'j' moves what is held"),
        ([_joint("j", "a", "b")], {"pairs": [("a", "b")]}, "'j' moves what is held"),
        ([_joint("j", "a", "b")], {"grounded": ["a", "b"]}, "'j' moves what is held"),
        ([_joint("j", "a", "b"), _joint("k", "b", "c"), _joint("l", "c", "a")], {}, "closes a chain"),
        ([_joint("j", "a", "b"), _joint("k", "c", "b")], {"grounded": ["a", "c"]}, "closes a chain"),
        ([_joint("j", "a", "b")], {"grounded": ["x"]}, "'x' is no part"),
        ([_joint("j", "a", "y")], {}, "'y' is no part"),
    ],
)
def test_what_is_no_mechanism(joints: list[DesignJoint], options: dict[str, Any], says: str) -> None:
    with pytest.raises(SceneError, match=says):
        kinematics.mechanism(list("abc"), joints, **options)


def test_a_ring_stays_open_and_a_box_is_one_piece(tmp_path: Path) -> None:
    """What is decomposed lets a ball through; twice the same; a part elsewhere has the same key."""
    script = """
from build123d import *
ring = Cylinder(20, 10) - Cylinder(15, 20)
parts = {"ring": ring, "again": Pos(100, 7, 3) * ring, "box": Rotation(10, 20, 30) * Box(9, 8, 7)}
"""
    names = built(tmp_path, script)["names"]
    ring, again, box = measured(tmp_path, names)
    assert 1 == len(box.pieces_mm)
    assert len(ring.pieces_mm) > 3
    assert ring.pieces_mm == again.pieces_mm
    keys = [each["key"] for each in solids.solids(str(tmp_path / "built"), names)["solids"]]
    assert keys[0] == keys[1] != keys[2]
    for piece in ring.pieces_mm:
        # No piece reaches over the middle: all of it lies beyond a line through its own centre's direction.
        corners = np.array(piece)
        across = corners.mean(axis=0)[:2]
        assert (corners[:, :2] @ across).min() / np.linalg.norm(across) > 10


def test_motors_have_their_limit_and_servos_stand_still(tmp_path: Path) -> None:
    """A servo of 0.2 N·m holds its flap where it is told, and pushes no harder than it can."""
    drive = assembly.Drive(joint="hinge", most=0.2, to_position=True)
    model, _ = model_of(tmp_path, _HINGED, grounded=["base"], drives=[drive])
    assert model.actuator("hinge").forcerange == pytest.approx([-0.2, 0.2])
    data = mujoco.MjData(model)
    data.ctrl[0] = math.radians(40)
    for _ in range(1500):
        mujoco.mj_step(model, data)
        assert abs(data.actuator_force[0]) <= 0.2
    assert data.qpos[0] == pytest.approx(math.radians(40), abs=0.01)
    assert abs(data.qvel[0]) < 1e-3


def test_motors_push_no_harder_than_they_can(tmp_path: Path) -> None:
    motor = assembly.Drive(joint="hinge", most=0.2)
    model, _ = model_of(tmp_path, _HINGED, drives=[motor])
    data = mujoco.MjData(model)
    data.ctrl[0] = 50.0
    mujoco.mj_step(model, data)
    assert data.actuator_force[0] == pytest.approx(0.2)


def test_pieces_are_kept_by_content_and_believed_when_whole(tmp_path: Path) -> None:
    kept = PiecesKept(tmp_path / "pieces", most_bytes=2_000)
    pieces = [[(0.1, 0.2, 0.3)] * 4]
    key, other = "a" * 64, "b" * 64
    assert kept.of(key) is None
    kept.keep(key, pieces)
    kept.keep(key, pieces)
    assert [[list(corner) for corner in piece] for piece in pieces] == kept.of(key)
    # Another's file under this name, and one that was cut short, are none.
    (tmp_path / "pieces" / f"{other}.json").write_bytes(
        (tmp_path / "pieces" / f"{key}.json").read_bytes()
    )
    assert kept.of(other) is None
    file = tmp_path / "pieces" / f"{key}.json"
    file.write_bytes(file.read_bytes()[:-1])
    assert kept.of(key) is None
    for number in range(40):
        kept.keep(f"{number:064x}", pieces)
    left = sum(path.stat().st_size for path in (tmp_path / "pieces").iterdir())
    assert 0 < left <= 2_000
    assert kept.of(f"{39:064x}") is not None
    with pytest.raises(ValueError, match="no sha256"):
        kept.of("../x")


def test_a_welded_mesh_has_each_point_once() -> None:
    points = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1e-9], [1, 0, 0]])
    found, triangles = decomposition.welded(points, np.array([[0, 1, 2], [3, 4, 2], [0, 3, 1]]))
    assert 3 == len(found)
    assert [[0, 2, 1], [0, 2, 1]] == triangles.tolist()
