"""Whether rigid pairs are held, and joints start from something: INT-023.

At least two fasteners hold a pair, each in a hole of either part. Both holes are found on the solids, and
what counts is what is found: they are equally wide to 0.01 mm, their axes agree to 0.5°, one side holds
the fastener, and it is in there by its own diameter at least.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from workbench_contract.connections import (
    Connections,
    Fastener,
    HoleUse,
    JointStart,
    Movement,
    RigidPair,
)
from workbench_contract.findings import Finding, Stage
from workbench_making.findings import finding, one_of, position
from workbench_making.holes import Cylinder, angle_deg, cylinders
from workbench_making.samples import Floats

if TYPE_CHECKING:
    from build123d import Solid

_LEAST_FASTENERS_N = 2
_DIAMETER_MM = 0.01
_ANGLE_DEG = 0.5
#: Two axes side by side, or a point beside an axis; a shank has that much room in a close hole.
_OFFSET_MM = 0.1
#: A hole that is wider than its fastener by more lets it through: M2 in 2.4 mm is the widest in use.
_WIDEST = 1.25
#: Between two parts that touch.
_GAP_MM = 0.1
#: Noise of the geometry.
_EXACT_MM = 1e-4
_EXACT_DEG = 1e-4


def check(connections: Connections, solids: Mapping[str, Solid], *, file: str) -> list[Finding]:
    """All that keeps the parts of a design from holding together.

    Args:
        solids: by the name of their part, in the frame of the assembly; closed valid solids.
        file: that describes the connections.
    """
    judge = _Judge(solids, file)
    for number, pair in enumerate(connections.pairs):
        judge.pair(pair, f"pairs[{number}]")
    for number, joint in enumerate(connections.joints):
        judge.joint(joint, f"joints[{number}]")
    return judge.findings


class _Judge:
    """Collects findings; a part's cylinders are read once."""

    def __init__(self, solids: Mapping[str, Solid], file: str) -> None:
        self.findings: list[Finding] = []
        self._solids = solids
        self._file = file
        self._read: dict[str, tuple[Cylinder, ...]] = {}

    def pair(self, pair: RigidPair, where: str) -> None:
        one, other = pair.parts
        unknown = [name for name in pair.parts if name not in self._solids]
        for name in unknown:
            self._wrong(f"{where}.parts", f"{name}, no part of the design", one_of(self._solids))
        if one == other:
            self._wrong(f"{where}.parts", f"{one} twice", "two parts")
        count = len(pair.fasteners)
        if count < _LEAST_FASTENERS_N:
            expected = f"at least {_LEAST_FASTENERS_N}: one alone is an axis to turn about"
            self._wrong(f"{where}.fasteners", f"{count} between {one} and {other}", expected)
        if unknown or one == other:
            return
        gap = self._solids[one].distance_to(self._solids[other])
        if gap > _GAP_MM + _EXACT_MM:
            found = f"{one} and {other}, {gap:.3g} mm apart"
            self._wrong(f"{where}.parts", found, f"parts that touch, to {_GAP_MM:g} mm")
        taken: list[tuple[Fastener, Cylinder]] = []
        for number, fastener in enumerate(pair.fasteners):
            place = f"{where}.fasteners[{number}]"
            holes = self._fastener(fastener, pair, place)
            for before, hole in taken:
                if any(hole is found for found in holes):
                    found = f"{fastener.name} in a hole of {before.name}"
                    self._wrong(place, found, "holes of its own")
            taken += [(fastener, hole) for hole in holes]

    def joint(self, joint: JointStart, where: str) -> None:
        if joint.part not in self._solids:
            found = f"{joint.part}, no part of the design"
            self._wrong(f"{where}.part", found, one_of(self._solids))
            return
        axis = self._axis(joint.axis, where)
        if axis is None:
            return
        at = np.array(joint.at_mm)
        for cylinder in self._cylinders(joint.part):
            if _lies_in(cylinder, at) and angle_deg(cylinder.axis, axis) <= _ANGLE_DEG + _EXACT_DEG:
                return
        expected = "the axis of a hole or boss, within its length"
        if joint.movement is Movement.PRISMATIC:
            if any(_on_plane(self._solids[joint.part], at, axis)):
                return
            expected += ", or a plane face along which it slides"
        place = f"{position(at)} along {_told(axis)}"
        found = f"nothing of {joint.part} at {place}, where {joint.name} starts"
        self._wrong(where, found, expected)

    def _fastener(self, fastener: Fastener, pair: RigidPair, where: str) -> list[Cylinder]:
        """The holes that were found; what is wrong with the fastener goes to the findings."""
        parts = sorted(use.part for use in fastener.holes)
        if parts != sorted(pair.parts):
            found = f"holes in {' and '.join(parts)}"
            self._wrong(f"{where}.holes", found, f"one in {pair.parts[0]}, one in {pair.parts[1]}")
            return []
        holding = [use for use in fastener.holes if use.holds]
        if len(holding) != 1:
            found = "both sides hold it" if holding else "neither side holds it"
            self._wrong(f"{where}.holes", found, "one side that holds the fastener")
        holes = [
            self._hole(use, f"{where}.holes[{number}]") for number, use in enumerate(fastener.holes)
        ]
        first, second = holes
        if first is not None and second is not None:
            self._matching(first, second, fastener, where)
            if len(holding) == 1:
                passed, held = (second, first) if fastener.holes[0].holds else (first, second)
                self._engaged(passed, held, fastener, where)
        return [hole for hole in holes if hole is not None]

    def _hole(self, use: HoleUse, where: str) -> Cylinder | None:
        """The hole of a solid that a description names, the nearest in diameter if several are there."""
        axis = self._axis(use.axis, where)
        if axis is None:
            return None
        at = np.array(use.at_mm)
        holes = [hole for hole in self._cylinders(use.part) if hole.hollow and _lies_in(hole, at)]
        if not holes:
            found = f"no hole of {use.part} at {position(at)}"
            self._wrong(
                where, found, "a point on the axis of a hole of the solid, within its depth"
            )
            return None
        hole = min(holes, key=lambda hole: abs(hole.diameter_mm - use.diameter_mm))
        turned = angle_deg(hole.axis, axis)
        if turned > _ANGLE_DEG + _EXACT_DEG:
            expected = f"its axis {_told(hole.axis)} to {_ANGLE_DEG:g}°"
            self._wrong(f"{where}.axis", f"{turned:.2f}° off the hole's", expected)
        if abs(hole.diameter_mm - use.diameter_mm) > _DIAMETER_MM + _EXACT_MM:
            expected = f"{hole.diameter_mm:.4g} mm, as on the solid of {use.part}"
            self._wrong(f"{where}.diameter_mm", f"{use.diameter_mm:g} mm", expected)
        return hole

    def _matching(self, one: Cylinder, other: Cylinder, fastener: Fastener, where: str) -> None:
        apart = abs(one.diameter_mm - other.diameter_mm)
        if apart > _DIAMETER_MM + _EXACT_MM:
            found = f"holes of {one.diameter_mm:.4g} and {other.diameter_mm:.4g} mm"
            self._wrong(f"{where}.holes", found, f"equal diameters, to {_DIAMETER_MM:g} mm")
        turned = angle_deg(one.axis, other.axis)
        if turned > _ANGLE_DEG + _EXACT_DEG:
            found = f"axes {turned:.2f}° apart"
            self._wrong(f"{where}.holes", found, f"axes aligned to {_ANGLE_DEG:g}°")
        else:
            off = min(other.off_axis_mm(one.start_mm), other.off_axis_mm(one.end_mm))
            if off > _OFFSET_MM + _EXACT_MM:
                found = f"axes {off:.3g} mm beside each other"
                self._wrong(f"{where}.holes", found, f"one axis, to {_OFFSET_MM:g} mm")
        narrow = min(one.diameter_mm, other.diameter_mm)
        if fastener.diameter_mm > narrow + _DIAMETER_MM:
            found = f"{fastener.diameter_mm:g} mm in a hole of {narrow:.4g} mm"
            self._wrong(f"{where}.diameter_mm", found, "a shank that goes into its holes")
        elif narrow > _WIDEST * fastener.diameter_mm + _EXACT_MM:
            found = f"{fastener.diameter_mm:g} mm in a hole of {narrow:.4g} mm"
            expected = f"a hole of at most {_WIDEST * fastener.diameter_mm:.4g} mm"
            self._wrong(f"{where}.diameter_mm", found, expected)

    def _engaged(self, passed: Cylinder, held: Cylinder, fastener: Fastener, where: str) -> None:
        """The shank begins at the far mouth of the hole that it passes, and goes on into the other."""
        along = held.axis if _middle(held) @ held.axis > _middle(passed) @ held.axis else -held.axis
        seat = min(float(passed.start_mm @ along), float(passed.end_mm @ along))
        mouth, bottom = sorted((float(held.start_mm @ along), float(held.end_mm @ along)))
        tip = seat + fastener.length_mm
        engaged = max(0.0, min(tip, bottom) - max(seat, mouth))
        if engaged < fastener.diameter_mm - _EXACT_MM:
            found = f"{engaged:.4g} mm in the part that holds it"
            expected = f"at least {fastener.diameter_mm:g} mm, one diameter"
            self._wrong(f"{where}.length_mm", found, expected)
        blind = held.blind_end if along @ held.axis > 0 else held.blind_start
        if blind and tip > bottom + _EXACT_MM:
            found = f"{fastener.length_mm:g} mm, {tip - bottom:.3g} mm beyond the hole's bottom"
            self._wrong(f"{where}.length_mm", found, f"at most {bottom - seat:.4g} mm")

    def _axis(self, given: tuple[float, float, float], where: str) -> Floats | None:
        length = float(np.linalg.norm(given))
        if length < 1e-9:
            self._wrong(f"{where}.axis", "a vector of length 0", "a direction")
            return None
        return np.array(given) / length

    def _cylinders(self, part: str) -> tuple[Cylinder, ...]:
        if part not in self._read:
            self._read[part] = cylinders(self._solids[part])
        return self._read[part]

    def _wrong(self, where: str, found: str, expected: str) -> None:
        self.findings.append(
            finding(Stage.VALID, file=self._file, where=where, found=found, expected=expected)
        )


def _lies_in(cylinder: Cylinder, point_mm: Floats) -> bool:
    """Whether a point is on the axis and between both ends, the ends included."""
    along = cylinder.along_mm(point_mm)
    within = -_OFFSET_MM <= along <= cylinder.depth_mm + _OFFSET_MM
    return within and cylinder.off_axis_mm(point_mm) <= _OFFSET_MM + _EXACT_MM


def _on_plane(solid: Solid, at_mm: Floats, axis: Floats) -> Iterator[bool]:
    """Of each plane face, whether a point is on it and an axis lies in it."""
    from build123d import GeomType, Vector

    for face in solid.faces().filter_by(GeomType.PLANE):
        normal = face.normal_at()
        flat = 90 - angle_deg(np.array([normal.X, normal.Y, normal.Z]), axis)
        yield (
            flat <= _ANGLE_DEG + _EXACT_DEG
            and face.distance_to(Vector(*map(float, at_mm))) <= _OFFSET_MM
        )


def _middle(cylinder: Cylinder) -> Floats:
    middle: Floats = (cylinder.start_mm + cylinder.end_mm) / 2
    return middle


def _told(axis: Floats) -> str:
    return f"({', '.join(f'{round(float(value), 4) + 0.0:g}' for value in axis)})"
