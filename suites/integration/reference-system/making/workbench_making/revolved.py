"""Faces that go all the way around an axis: holes, their tips and their sinks; bosses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from workbench_making.samples import Floats

if TYPE_CHECKING:
    from build123d import Face

#: A turn, less what rounding takes.
_TURN_RAD = 2 * math.pi - 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Revolved:
    """A cylinder or cone that goes all the way around.

    Attributes:
        axis: unit vector, either way along it.
        point_mm: on the axis, halfway along the face.
        length_mm: of the face along its axis.
        radius_mm: of a cylinder; None of a cone.
        hollow: whether the axis lies outside the material.
    """

    axis: Floats
    point_mm: Floats
    length_mm: float
    radius_mm: float | None
    hollow: bool


def revolved(face: Face) -> Revolved | None:
    """What a face is if it is a whole cylinder or cone, else None."""
    from OCP.BRepAdaptor import BRepAdaptor_Surface
    from OCP.GeomAbs import GeomAbs_SurfaceType
    from OCP.gp import gp_Pnt, gp_Vec
    from OCP.TopAbs import TopAbs_Orientation

    surface = BRepAdaptor_Surface(face.wrapped, True)
    kind = surface.GetType()
    cylinder = kind == GeomAbs_SurfaceType.GeomAbs_Cylinder
    if not cylinder and kind != GeomAbs_SurfaceType.GeomAbs_Cone:
        return None
    u0, u1 = surface.FirstUParameter(), surface.LastUParameter()
    if u1 - u0 < _TURN_RAD:
        return None
    shape = surface.Cylinder() if cylinder else surface.Cone()
    line = shape.Axis()
    axis = np.array([line.Direction().X(), line.Direction().Y(), line.Direction().Z()])
    origin = np.array([line.Location().X(), line.Location().Y(), line.Location().Z()])
    v0, v1 = surface.FirstVParameter(), surface.LastVParameter()
    slope = 1.0 if cylinder else math.cos(shape.SemiAngle())
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
        radius_mm=shape.Radius() if cylinder else None,
        hollow=bool(normal @ (origin + away - middle) < 0),
    )
