"""Faces that go all the way around an axis: holes, their tips, sinks and rounded mouths; bosses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from workbench_making.samples import Floats

if TYPE_CHECKING:
    from build123d import Face

#: A turn, less what rounding takes.
_TURN_RAD = 2 * math.pi - 1e-6
#: Cos 18°.
_AROUND = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Revolved:
    """A cylinder, cone or torus that goes all the way around.

    Attributes:
        axis: unit vector, either way along it.
        point_mm: on the axis, halfway along the face.
        length_mm: of the face along its axis; of a torus 0.
        radius_mm: of a cylinder, else None.
        hollow: whether the face looks at the axis.
    """

    axis: Floats
    point_mm: Floats
    length_mm: float
    radius_mm: float | None
    hollow: bool

    def around(self, points_mm: Floats, directions: Floats) -> NDArray[np.bool_]:
        """Which directions at points of the face run around the axis: (n,)."""
        apart = points_mm - self.point_mm
        along = np.cross(self.axis, apart - np.outer(apart @ self.axis, self.axis))
        lengths = np.maximum(np.linalg.norm(along, axis=1), 1e-12)
        found: NDArray[np.bool_] = (
            np.abs(np.einsum("nd,nd->n", along, directions)) / lengths > _AROUND
        )
        return found


def revolved(face: Face) -> Revolved | None:
    """What a face is if it is a whole cylinder, cone or torus, else None."""
    from OCP.BRepAdaptor import BRepAdaptor_Surface
    from OCP.GeomAbs import GeomAbs_SurfaceType
    from OCP.gp import gp_Pnt, gp_Vec
    from OCP.TopAbs import TopAbs_Orientation

    surface = BRepAdaptor_Surface(face.wrapped, True)
    kind = surface.GetType()
    if kind == GeomAbs_SurfaceType.GeomAbs_Cylinder:
        shape = surface.Cylinder()
        radius, slope = shape.Radius(), 1.0
    elif kind == GeomAbs_SurfaceType.GeomAbs_Cone:
        shape = surface.Cone()
        radius, slope = None, math.cos(shape.SemiAngle())
    elif kind == GeomAbs_SurfaceType.GeomAbs_Torus:
        shape = surface.Torus()
        radius, slope = None, 0.0
    else:
        return None
    u0, u1 = surface.FirstUParameter(), surface.LastUParameter()
    if u1 - u0 < _TURN_RAD:
        return None
    line = shape.Axis()
    axis = np.array([line.Direction().X(), line.Direction().Y(), line.Direction().Z()])
    origin = np.array([line.Location().X(), line.Location().Y(), line.Location().Z()])
    v0, v1 = surface.FirstVParameter(), surface.LastVParameter()
    point, du, dv = gp_Pnt(), gp_Vec(), gp_Vec()
    surface.D1(u0, (v0 + v1) / 2, point, du, dv)
    normal = np.cross([du.X(), du.Y(), du.Z()], [dv.X(), dv.Y(), dv.Z()])
    if face.wrapped.Orientation() == TopAbs_Orientation.TopAbs_REVERSED:
        normal = -normal
    away = np.array([point.X(), point.Y(), point.Z()]) - origin
    middle = origin + (away @ axis) * axis
    return Revolved(
        axis=axis,
        point_mm=middle,
        length_mm=abs(v1 - v0) * slope,
        radius_mm=radius,
        hollow=bool(normal @ (origin + away - middle) < 0),
    )
