"""Holes and bosses of a solid: cylinders that go all the way around, read from its faces.

A cylinder that some other program cut into halves is not put together again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from workbench_making.revolved import Revolved, revolved
from workbench_making.samples import Floats

if TYPE_CHECKING:
    from build123d import Solid

#: Beyond an end by this there is material or there is none.
_BEYOND_MM = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Cylinder:
    """A hole or a boss.

    Attributes:
        axis: unit vector from the start to the end.
        start_mm: where its axis begins.
        end_mm: where its axis ends.
        hollow: whether it is a hole.
        blind_start: whether there is material beyond the start.
        blind_end: whether there is material beyond the end.
    """

    axis: Floats
    start_mm: Floats
    end_mm: Floats
    diameter_mm: float
    hollow: bool
    blind_start: bool
    blind_end: bool

    @property
    def depth_mm(self) -> float:
        """Along its axis."""
        return float((self.end_mm - self.start_mm) @ self.axis)

    def off_axis_mm(self, point_mm: Floats) -> float:
        """How far a point is from the axis."""
        apart = point_mm - self.start_mm
        return float(np.linalg.norm(apart - (apart @ self.axis) * self.axis))

    def along_mm(self, point_mm: Floats) -> float:
        """How far along the axis a point is, from the start."""
        return float((point_mm - self.start_mm) @ self.axis)


def cylinders(solid: Solid) -> tuple[Cylinder, ...]:
    """All whole cylinders of a solid, in the order of its faces."""
    shapes = (revolved(face) for face in solid.faces())
    return tuple(
        _measured(solid, shape)
        for shape in shapes
        if shape is not None and shape.radius_mm is not None
    )


def angle_deg(one: Floats, other: Floats) -> float:
    """Between two axes, whichever way they point: 0 to 90."""
    across = float(np.linalg.norm(np.cross(one, other)))
    return float(np.degrees(np.arctan2(across, abs(float(one @ other)))))


def _measured(solid: Solid, shape: Revolved) -> Cylinder:
    assert shape.radius_mm is not None
    half = shape.length_mm / 2 * shape.axis
    start, end = shape.point_mm - half, shape.point_mm + half
    return Cylinder(
        axis=shape.axis,
        start_mm=start,
        end_mm=end,
        diameter_mm=2 * shape.radius_mm,
        hollow=shape.hollow,
        blind_start=_blind(solid, start, -shape.axis, shape.radius_mm),
        blind_end=_blind(solid, end, shape.axis, shape.radius_mm),
    )


def _blind(solid: Solid, end: Floats, out: Floats, radius_mm: float) -> bool:
    """Whether a hole stops there: at once, or behind the tip that a drill leaves."""
    from OCP.BRepClass3d import BRepClass3d_SolidClassifier
    from OCP.gp import gp_Pnt
    from OCP.TopAbs import TopAbs_State

    classifier = BRepClass3d_SolidClassifier(solid.wrapped)
    for beyond in (_BEYOND_MM, radius_mm):
        point = end + beyond * out
        classifier.Perform(gp_Pnt(*map(float, point)), 1e-6)
        if classifier.State() == TopAbs_State.TopAbs_IN:
            return True
    return False
