"""Pieces out of B-rep files, as build123d exports them; lengths in millimetres."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from workbench_rendering.errors import RenderError
from workbench_rendering.pieces import Floats, Piece, colour_of

if TYPE_CHECKING:
    from build123d import Shape

#: How far the mesh may be from a surface, as a share of the shape's diagonal, and how much it may turn.
_SAG_SHARE = 1e-3
_LEAST_SAG_MM = 0.002
_ANGLE_RAD = 0.3


def read(paths: Sequence[str], names: Sequence[str]) -> list[Piece]:
    """A piece of each file, in their order.

    Raises:
        RenderError: a file is none.
    """
    from build123d import import_brep

    found = []
    for index, (path, name) in enumerate(zip(paths, names, strict=True)):
        try:
            shape = import_brep(path)
        except (OSError, ValueError) as error:
            raise RenderError(f"{name or 'its part'} cannot be read: {error}") from error
        found.append(Piece(name=name, corners=triangles_of(shape), colour=colour_of(index)))
    return found


def triangles_of(shape: Shape) -> Floats:
    """A mesh of a shape: (k, 3, 3)."""
    from OCP.BRep import BRep_Tool
    from OCP.BRepMesh import BRepMesh_IncrementalMesh
    from OCP.BRepTools import BRepTools
    from OCP.TopLoc import TopLoc_Location

    sag = max(shape.bounding_box().diagonal * _SAG_SHARE, _LEAST_SAG_MM)
    # A mesh that is there already would be taken as it is, however coarse.
    BRepTools.Clean_s(shape.wrapped)
    BRepMesh_IncrementalMesh(shape.wrapped, sag, False, _ANGLE_RAD, False)
    corners = []
    for face in shape.faces():
        location = TopLoc_Location()
        found = BRep_Tool.Triangulation_s(face.wrapped, location)
        if found is None:
            continue
        move = location.Transformation()
        nodes = [found.Node(i + 1).Transformed(move) for i in range(found.NbNodes())]
        xyz = np.array([(node.X(), node.Y(), node.Z()) for node in nodes])
        triangles = np.array([found.Triangle(i + 1).Get() for i in range(found.NbTriangles())]) - 1
        corners.append(xyz[triangles])
    return np.concatenate(corners) if corners else np.zeros((0, 3, 3))
