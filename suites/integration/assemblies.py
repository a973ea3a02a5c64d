"""Designs whose parts are joined, and the models that they are exported as, moved and measured by MuJoCo.

What a model must do is computed here by hand; lengths are in mm, of the frame in which a script has its parts.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import mujoco
import numpy as np
from workbench_contract.design import CONNECTIONS, DesignRequest
from workbench_contract.joints import Exported, ExportRequest

from harness_core.base.slowness import patience
from harness_core.doubles.http import Response
from suites.integration.bundles import Bundle, Made, changed, milled, printed, sound
from suites.integration.planners import Planner
from suites.integration.sessions import Session

__all__ = [
    "CONNECTIONS",
    "MOST_OFF_MM",
    "Moved",
    "driven_plan",
    "driven_script",
    "drives",
    "expect_near",
    "expect_turned",
    "export",
    "exported",
    "frame",
    "judged",
    "rotation",
]

#: 1e-6 m, what a contract allows of axes, anchors and ranges.
MOST_OFF_MM: Final = 1e-3
_MOST_TURNED: Final = 1e-6

#: Building, cutting into pieces, and no other request before it.
_EXPORTED_S: Final = 120.0

Floats = Any


def rotation(axis: Sequence[float], degrees: float) -> Floats:
    """A matrix that turns about an axis through the origin, by Rodrigues' formula."""
    x, y, z = np.array(axis, dtype=float) / np.linalg.norm(axis)
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    angle = math.radians(degrees)
    turned: Floats = np.eye(3) + math.sin(angle) * cross + (1 - math.cos(angle)) * cross @ cross
    return turned


def frame(turn: Floats, at_mm: Sequence[float]) -> str:
    """A place as build123d writes it: a plane's location, its axes the columns of a matrix."""
    x, _, z = (tuple(map(float, column)) for column in np.array(turn).T)
    at = tuple(map(float, at_mm))
    return f"Plane(origin={at}, x_dir={x}, z_dir={z}).location"


async def export(session: Session, model: str = "model.py", **options: Any) -> Response:
    """Export a design; the answer, whatever it is."""
    body = ExportRequest(model=model, **options).model_dump(mode="json", exclude_none=True)
    return await session.client.post("/benchmark/export", body, seconds=patience(_EXPORTED_S))


async def exported(
    session: Session, script: str | None = None, **options: Any
) -> tuple[Exported, Moved]:
    """A design that must be exported, and its model, read as the file of the session that it is.

    Args:
        session: whose design it is.
        script: written first, when given.
        options: of the export.
    """
    if script is not None:
        await session.write("model.py", script)
    answer = await export(session, **options)
    assert 200 == answer.status, f"expected the design to be exported, found {answer}"
    told = Exported.model_validate_json(answer.body)
    file = await session.client.get(f"/assets/{told.path}")
    assert 200 == file.status, f"expected the model at {told.path}, found {file}"
    digest = hashlib.sha256(file.body).hexdigest()
    assert told.sha256 == digest, f"expected a file of sha256 {told.sha256}, found {digest}"
    return told, Moved(mujoco.MjModel.from_xml_string(file.body.decode()))


class Moved:
    """A model in one position; parts are found by their names.

    Attributes:
        model: of MuJoCo.
        data: its state.
    """

    def __init__(self, model: Any, *, first: Moved | None = None) -> None:
        self.model = model
        self.data = mujoco.MjData(model)
        mujoco.mj_forward(model, self.data)
        self._first = first or Moved(model, first=self)

    def joint(self, name: str) -> Any:
        """A joint, which must be there."""
        found = mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_JOINT, name)
        names = [self.model.joint(number).name for number in range(self.model.njnt)]
        assert found >= 0, f"expected a joint {name!r} in the model, found {names}"
        return self.model.joint(found)

    def move(self, name: str, by: float) -> None:
        """Move a joint by rad or m, and nothing else."""
        self.data.qpos[self.joint(name).qposadr[0]] += by
        mujoco.mj_forward(self.model, self.data)

    def travel(self, name: str) -> tuple[float, float]:
        """How far a joint may go either way from where it is put together; rad or m."""
        joint = self.joint(name)
        assert joint.limited[0], f"expected the joint {name!r} to have a range, found none"
        at = float(self.model.qpos0[joint.qposadr[0]])
        low, high = joint.range
        return float(low) - at, float(high) - at

    def has(self, part: str) -> bool:
        """Whether a part is a body of its own."""
        return bool(mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_BODY, part) >= 0)

    def mass_kg(self, part: str) -> float:
        """Of one part's body."""
        assert self.has(part), f"expected a body {part!r} in the model"
        return float(self.model.body(part).mass[0])

    def place(self, part: str) -> tuple[Floats, Floats]:
        """How a part's body is turned, and where the middle of its mass is, in mm."""
        assert self.has(part), f"expected a body {part!r} in the model"
        body = self.model.body(part).id
        return self.data.xmat[body].reshape(3, 3).copy(), self.data.xipos[body] * 1e3

    def moved(self, part: str, base: str) -> tuple[Floats, Floats]:
        """How a part was turned since the beginning, and where its middle is; with its base put back."""
        base_turn, base_at = self.place(base)
        turn, at = self.place(part)
        first_turn, first_at = self._first.place(base)
        back = first_turn @ base_turn.T
        return back @ turn @ self._first.place(part)[0].T, back @ (at - base_at) + first_at

    def extent_mm(self, part: str) -> Floats:
        """Lowest and highest corner of what of a part touches others, (2, 3)."""
        body = self.model.body(part).id
        corners = []
        for geom in range(self.model.ngeom):
            mesh = self.model.geom_dataid[geom]
            if self.model.geom_bodyid[geom] != body or mesh < 0:
                continue
            first, count = self.model.mesh_vertadr[mesh], self.model.mesh_vertnum[mesh]
            points = self.model.mesh_vert[first : first + count]
            turn = self.data.geom_xmat[geom].reshape(3, 3)
            corners.append(points @ turn.T + self.data.geom_xpos[geom])
        assert corners, f"expected the part {part!r} to have meshes that touch, found none"
        points = np.concatenate(corners) * 1e3
        return np.array([points.min(axis=0), points.max(axis=0)])


def expect_near(expected: Floats, found: Floats, most: float, *, what: str) -> None:
    """Assert that all numbers are near each other."""
    off = float(np.abs(np.array(expected, dtype=float) - np.array(found, dtype=float)).max())
    told = (
        np.array2string(np.array(found), precision=6),
        np.array2string(np.array(expected), precision=6),
    )
    assert off <= most, f"{what}: expected {told[1]} to {most:g}, found {told[0]}"


def expect_turned(expected: Floats, found: Floats, *, what: str) -> None:
    """Assert that two turns are one."""
    expect_near(expected, found, _MOST_TURNED, what=what)


def driven_script(number: int, names: Sequence[str], *, slides: Sequence[str] = ()) -> str:
    """A base with a hole along y for each flap, and the flaps, each on a joint of its name.

    A flap is in its middle 20 mm above the hole; it may swing by 40 degrees either way. Those among
    ``slides`` move along x instead, by 5 mm either way.
    """
    lines = [
        "from build123d import *",
        "",
        "base = Pos(35, 0, 10) * Box(60, 10, 20)",
    ]
    for place, name in enumerate(names):
        x = 15 + 20 * place
        lines += [
            f"base -= Pos({x}, 0, 10) * Rotation(90, 0, 0) * Cylinder(2.5, 20)",
            f"{name} = Pos({x}, 0, 40) * Box(4, 8, 20)",
        ]
    for place, name in enumerate(names):
        x = 15 + 20 * place
        joint = (
            f'RevoluteJoint("{name}", base, Axis(({x}, 0, 10), (0, 1, 0)), angular_range=(-40, 40))'
        )
        at = "angle=0"
        if name in slides:
            joint = (
                f'LinearJoint("{name}", base, Axis(({x}, 0, 20), (1, 0, 0)), linear_range=(-5, 5))'
            )
            at = "position=0"
        lines += [
            f"joint = {joint}",
            f'joint.connect_to(RigidJoint("held", {name}, joint.location), {at})',
        ]
    rows = ", ".join(f'"{name}-{number}": {name}' for name in names)
    return "\n".join([*lines, f'parts = {{"base-{number}": base, {rows}}}', ""])


def driven_plan(
    number: int,
    names: Sequence[str],
    bought: Sequence[tuple[dict[str, Any], int]],
    *,
    control: Callable[[str], dict[str, Any]],
    slides: Sequence[str] = (),
    **objectives: Any,
) -> Callable[[Planner], Bundle]:
    """A plan of that design, whose flaps are motors.

    Args:
        number: of the bundle.
        names: of the flaps.
        bought: candidates of the catalogue, and how many.
        control: of each motor, by its name.
        slides: which of the flaps move along x.
        objectives: other values of them.
    """
    holes = len(names) * math.pi * 2.5**2 * 10
    made: list[Made] = [
        milled(f"base-{number}", f"{60 * 10 * 20 - holes:.4f}", (60, 10, 20), units=100)
    ]
    made += [printed(f"{name}-{number}", 640, units=100, infill="1") for name in names]

    def plan(planner: Planner) -> Bundle:
        goal = planner.sound().objectives
        if planner.given is None:
            parts = [
                {
                    "name": name,
                    "type": "motor",
                    "dof": "slide_x" if name in slides else "rotate_y",
                    "control": control(name),
                }
                for name in names
            ]
            goal = changed(goal, "moving_parts", parts)
            for key, value in objectives.items():
                goal = changed(goal, key, value)
        return sound(
            planner.issued, number=number, made=made, bought=bought, units=100, objectives=goal
        )

    return plan


def drives(
    number: int,
    drivers: dict[str, str],
    *,
    pinions: Mapping[str, float] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """What connections.json says of a driven design, whose base is held.

    Args:
        number: of the bundle.
        drivers: ids of parts by the joints that they drive.
        pinions: radius in mm, by the slide that it moves.
        options: whatever else it says.
    """
    rows: list[dict[str, Any]] = [
        {"joint": name, "part_id": part_id} for name, part_id in drivers.items()
    ]
    for row in rows:
        if pinions and row["joint"] in pinions:
            row["radius_mm"] = pinions[row["joint"]]
    return {"pairs": [], "grounded": [f"base-{number}"], "drives": rows, **options}


async def judged(session: Session) -> Response:
    """Have a design judged; the answer, whatever it is."""
    body = DesignRequest().model_dump(mode="json", exclude_none=True)
    return await session.client.post(
        "/benchmark/validate_and_price", body, seconds=patience(_EXPORTED_S)
    )
