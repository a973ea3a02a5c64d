"""Edges of a solid at which two faces meet in an inner corner.

At a point of such an edge both normals look at each other; a floor and a wall do, two walls of a pocket
do, the outer edges of a box do not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench_making.samples import Floats

if TYPE_CHECKING:
    from build123d import Face

#: Where an edge is looked at, as shares of its length.
_SHARES = (0.1, 0.5, 0.9)
#: Faces that meet at less go on into each other: sin 1°.
_SMOOTH = 0.01745


@dataclass(frozen=True, slots=True, kw_only=True)
class Corner:
    """A point of an inner corner.

    Attributes:
        edge: its number in the solid, counted from 0.
        faces: the numbers of the two that meet.
        point_mm: on the edge.
        normals: (2, 3), of the two faces, outward.
    """

    edge: int
    faces: tuple[int, int]
    point_mm: Floats
    normals: Floats


def inner_corners(faces: tuple[Face, ...]) -> Iterator[Corner]:
    """Points of all inner corners, three of each edge, edges in the order in which faces have them."""
    for edge, sides in enumerate(_meetings(faces)):
        if len(sides) != 2 or sides[0].face == sides[1].face:
            continue  # a seam lies in one face
        first, second = sides
        for share in _SHARES:
            point, tangent, normal = first.at(share)
            other = second.at(share)[2]
            across = float(np.linalg.norm(np.cross(normal, other)))
            # normal × tangent points into the first face; there the second one rises or falls.
            if across > _SMOOTH and np.cross(normal, tangent) @ other > 0:
                yield Corner(
                    edge=edge,
                    faces=(first.face, second.face),
                    point_mm=point,
                    normals=np.array([normal, other]),
                )


class _Side:
    """An edge as one of its faces runs along it, that face at its left."""

    def __init__(self, edge: Any, face: Any, number: int) -> None:
        from OCP.BRepAdaptor import BRepAdaptor_Curve, BRepAdaptor_Curve2d, BRepAdaptor_Surface
        from OCP.TopAbs import TopAbs_Orientation

        reversed_ = TopAbs_Orientation.TopAbs_REVERSED
        self.face = number
        self._curve = BRepAdaptor_Curve(edge)
        self._on_surface = BRepAdaptor_Curve2d(edge, face)
        self._surface = BRepAdaptor_Surface(face, False)
        self._along = -1.0 if edge.Orientation() == reversed_ else 1.0
        self._out = -1.0 if face.Orientation() == reversed_ else 1.0

    def at(self, share: float) -> tuple[Floats, Floats, Floats]:
        """The point, the direction of travel and the outward normal there; unit vectors, or zero."""
        from OCP.gp import gp_Pnt, gp_Vec

        first, last = self._curve.FirstParameter(), self._curve.LastParameter()
        parameter = first + share * (last - first)
        point, along, du, dv = gp_Pnt(), gp_Vec(), gp_Vec(), gp_Vec()
        self._curve.D1(parameter, point, along)
        place = _xyz(point)
        uv = self._on_surface.Value(parameter)
        self._surface.D1(uv.X(), uv.Y(), point, du, dv)
        normal = np.cross(_xyz(du), _xyz(dv))
        return place, _unit(self._along * _xyz(along)), _unit(self._out * normal)


def _meetings(faces: tuple[Face, ...]) -> Iterator[list[_Side]]:
    """Each edge with the faces that have it."""
    from build123d.topology import downcast
    from OCP.BRep import BRep_Tool
    from OCP.TopAbs import TopAbs_ShapeEnum
    from OCP.TopExp import TopExp_Explorer

    met: dict[int, list[_Side]] = {}
    for number, face in enumerate(faces):
        explorer = TopExp_Explorer(face.wrapped, TopAbs_ShapeEnum.TopAbs_EDGE)
        while explorer.More():
            edge = downcast(explorer.Current())
            if not BRep_Tool.Degenerated_s(edge):
                # The hash is of the edge itself, whichever way a face runs along it.
                met.setdefault(hash(edge), []).append(_Side(edge, face.wrapped, number))
            explorer.Next()
    yield from met.values()


def _xyz(found: Any) -> Floats:
    return np.array([found.X(), found.Y(), found.Z()])


def _unit(vector: Floats) -> Floats:
    length = float(np.linalg.norm(vector))
    return vector / length if length > 0 else vector
