"""A design as an MJCF model: parts are bodies, joints are what they are between them.

Everything is written in the frame of the assembly: bodies are not turned, so that axes and anchors stand there as
they are. Numbers are written so that they read as the same float; the same design gives the same text.

A rigid joint makes its parts bodies of one link, which never move against each other. Parts of two links that a
joint connects do not collide: they touch where they are joined.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import quoteattr

from workbench_contract.joints import JointKind
from workbench_foundation import faults
from workbench_physics.kinematics import WORLD, Mechanism, Move

_M_PER_MM = 1e-3
_STEP_S = 0.002
#: From the middle of the floor.
_FLOOR_M = 5.0
#: A limit that nothing reaches, where a joint has only one.
_FAR = 1e3
#: A servo is at its limit when it is so far from where it is told to be.
_FULL_AT_RAD = 0.05
_FULL_AT_M = 1e-3
#: How fast a servo swings by itself, in radians per step; faster is not stable.
_SWING_RAD = 0.5

Point = tuple[float, float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Solid:
    """A part, or a solid of the environment.

    Attributes:
        centre_mm: of its mass.
        inertia_mm5: of its volume about its centre: xx, yy, zz, xy, xz, yz.
        pieces_mm: corners of its convex pieces, from its centre.
        density_kg_m3: weighs all of its volume.
    """

    name: str
    volume_mm3: float
    centre_mm: Point
    inertia_mm5: tuple[float, ...]
    pieces_mm: Sequence[Sequence[Point]]
    density_kg_m3: float

    @property
    def mass_kg(self) -> float:
        """What it weighs."""
        return self.volume_mm3 * self.density_kg_m3 * 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Drive:
    """What moves a joint.

    Attributes:
        joint: its name.
        most: force (N) or torque (N·m), either way.
        to_position: whether it is told where to be, and not how much to push.
    """

    joint: str
    most: float
    to_position: bool = False


def mjcf(
    solids: Sequence[Solid],
    mechanism: Mechanism,
    *,
    drives: Sequence[Drive] = (),
    environment: Sequence[Solid] = (),
    floor_mm: float | None = None,
) -> str:
    """A model's text.

    Args:
        mechanism: of these parts.
        environment: solids that do not move.
        floor_mm: height of a floor; none is there where it is left out.
    """
    return _Text(solids, mechanism, drives, environment, floor_mm).text()


class _Text:
    def __init__(
        self,
        solids: Sequence[Solid],
        mechanism: Mechanism,
        drives: Sequence[Drive],
        environment: Sequence[Solid],
        floor_mm: float | None,
    ) -> None:
        self._parts: Mapping[str, Solid] = {each.name: each for each in solids}
        self._mechanism = mechanism
        self._drives = {each.joint: each for each in drives}
        self._environment = environment
        self._floor_mm = floor_mm
        self._lines: list[str] = []

    def text(self) -> str:
        self._line(0, '<mujoco model="design">')
        self._line(1, '<compiler angle="radian" autolimits="true"/>')
        self._line(1, f'<option timestep="{_STEP_S}"/>')
        self._line(1, "<asset>")
        for number, solid in enumerate(self._environment):
            self._meshes(f"environment/{number}", solid)
        for number, solid in enumerate(self._parts.values()):
            self._meshes(f"part/{number}", solid)
        self._line(1, "</asset>")
        self._line(1, "<worldbody>")
        if self._floor_mm is not None:
            place = _place((0, 0, self._floor_mm))
            size = f"{_FLOOR_M} {_FLOOR_M} 0.1"
            self._line(2, f'<geom name="floor" type="plane" size="{size}" pos="{place}"/>')
        for number, solid in enumerate(self._environment):
            name = f"environment/{solid.name}"
            self._open(2, name, solid.centre_mm)
            self._geoms(3, f"environment/{number}", solid)
            self._line(2, "</body>")
        for part in self._mechanism.held:
            self._body(2, part, (0, 0, 0), ())
            self._line(2, "</body>")
        self._carried(2, WORLD, (0, 0, 0))
        self._line(1, "</worldbody>")
        self._excluded()
        self._actuators()
        self._line(0, "</mujoco>")
        return "\n".join(self._lines) + "\n"

    def _carried(self, depth: int, carrier: int, origin_mm: Point) -> None:
        """The links that a link carries, each with all that it carries itself."""
        for number, move in enumerate(self._mechanism.moves):
            if move.carrier != carrier:
                continue
            first, *others = self._mechanism.links[number]
            centre = self._parts[first].centre_mm
            self._body(depth, first, origin_mm, self._moves(move, centre))
            for other in others:
                self._body(depth + 1, other, centre, ())
                self._line(depth + 1, "</body>")
            if faults.on("joint-chains-cut"):
                self._line(depth, "</body>")
                self._carried(depth, number, origin_mm)
                continue
            self._carried(depth + 1, number, centre)
            self._line(depth, "</body>")

    def _moves(self, move: Move, centre_mm: Point) -> tuple[str, ...]:
        joint = move.joint
        if joint is None:
            return ("<freejoint/>",)
        assert joint.axis is not None
        turns = joint.kind is JointKind.REVOLUTE
        scale = math.pi / 180 if turns else _M_PER_MM
        axis = tuple(-value + 0.0 for value in joint.axis) if move.reversed else joint.axis
        written = [
            f"<joint name={quoteattr(joint.name)}",
            f'type="{"hinge" if turns else "slide"}"',
            f'pos="{_place(_apart(joint.anchor_mm, centre_mm))}"',
            f'axis="{_numbers(axis)}"',
            f'ref="{joint.value * scale!r}"',
        ]
        if joint.least is not None or joint.most is not None:
            least = -_FAR if joint.least is None else joint.least * scale
            most = _FAR if joint.most is None else joint.most * scale
            written.append(f'range="{_numbers((least, most))}"')
        drive = self._drives.get(joint.name)
        if drive is not None and drive.to_position:
            # What a geared motor resists by itself; without it no step is short enough for a servo.
            swings_per_s = _SWING_RAD / _STEP_S
            written.append(f'armature="{_stiffness(drive, turns) / swings_per_s**2!r}"')
        return (" ".join(written) + "/>",)

    def _body(self, depth: int, part: str, origin_mm: Point, joints: Sequence[str]) -> None:
        """A part's body, left open."""
        solid = self._parts[part]
        self._open(depth, part, _apart(solid.centre_mm, origin_mm))
        for joint in joints:
            self._line(depth + 1, joint)
        unit = solid.density_kg_m3 * 1e-15
        inertia = _numbers([value * unit for value in solid.inertia_mm5])
        self._line(
            depth + 1,
            f'<inertial pos="0 0 0" mass="{solid.mass_kg!r}" fullinertia="{inertia}"/>',
        )
        self._geoms(depth + 1, f"part/{list(self._parts).index(part)}", solid)

    def _open(self, depth: int, name: str, at_mm: Point) -> None:
        self._line(depth, f'<body name={quoteattr(name)} pos="{_place(at_mm)}">')

    def _meshes(self, name: str, solid: Solid) -> None:
        for number, corners in enumerate(solid.pieces_mm):
            flat = _numbers([value * _M_PER_MM for corner in corners for value in corner])
            self._line(2, f'<mesh name="{name}/{number}" inertia="shell" vertex="{flat}"/>')

    def _geoms(self, depth: int, name: str, solid: Solid) -> None:
        for number, _ in enumerate(solid.pieces_mm):
            self._line(depth, f'<geom type="mesh" mesh="{name}/{number}"/>')

    def _excluded(self) -> None:
        """Pairs of parts that do not collide."""
        links = self._mechanism.links
        pairs = [
            pair
            for link, move in zip(links, self._mechanism.moves, strict=True)
            if move.joint is not None
            for pair in itertools.product(
                self._mechanism.held if move.carrier == WORLD else links[move.carrier], link
            )
        ]
        if pairs:
            self._line(1, "<contact>")
            for one, other in pairs:
                self._line(2, f"<exclude body1={quoteattr(one)} body2={quoteattr(other)}/>")
            self._line(1, "</contact>")

    def _actuators(self) -> None:
        moved = {
            move.joint.name: move.joint for move in self._mechanism.moves if move.joint is not None
        }
        if not self._drives:
            return
        self._line(1, "<actuator>")
        for name, drive in self._drives.items():
            where = f"name={quoteattr(name)} joint={quoteattr(name)}"
            most = f'forcerange="{_numbers((-drive.most, drive.most))}"'
            if drive.to_position:
                stiff = _stiffness(drive, moved[name].kind is JointKind.REVOLUTE)
                self._line(2, f'<position {where} kp="{stiff!r}" dampratio="1" {most}/>')
            else:
                self._line(2, f"<motor {where} {most}/>")
        self._line(1, "</actuator>")

    def _line(self, depth: int, text: str) -> None:
        self._lines.append("  " * depth + text)


def _stiffness(drive: Drive, turns: bool) -> float:
    return drive.most / (_FULL_AT_RAD if turns else _FULL_AT_M)


def _apart(at: Point, origin: Point) -> Point:
    x, y, z = (a - b for a, b in zip(at, origin, strict=True))
    return (x, y, z)


def _place(at_mm: Point) -> str:
    return _numbers([value * _M_PER_MM for value in at_mm])


def _numbers(values: Sequence[float]) -> str:
    return " ".join(repr(float(value)) for value in values)

