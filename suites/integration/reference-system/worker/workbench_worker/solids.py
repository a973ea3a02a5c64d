"""Solids as physics needs them: mass, and convex pieces; in a process that has run none of their script.

Everything is imported before the fork: behind the walls there are the system's programs alone.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from workbench_physics import decomposition
from workbench_worker.modelerror import ModelError

#: Of the mesh that is decomposed.
_TOLERANCE_MM = 0.1
_ANGLE_RAD = 0.4
_MOST_POINTS = 20_000


def solids(folder: str, names: list[str]) -> dict[str, Any]:
    """What ``build`` has left in a folder, each by volume, centre, inertia, and key of its pieces.

    Args:
        names: of the parts, in the order of their files.

    Raises:
        ModelError: one has no volume, or too fine a surface.
    """
    return {"solids": [_solid(folder, number, name) for number, name in enumerate(names)]}


def decompose(folder: str, number: int, name: str) -> dict[str, Any]:
    """The convex pieces of one of them, and their key."""
    shape, centre = _read(folder, number, name)
    points, triangles = _mesh(shape, centre, name)
    found = decomposition.pieces(points, triangles)
    return {
        "key": decomposition.key(points, triangles),
        "pieces": [corners.tolist() for corners in found],
    }


def _solid(folder: str, number: int, name: str) -> dict[str, Any]:
    from OCP.BRepGProp import BRepGProp
    from OCP.GProp import GProp_GProps

    shape, centre = _read(folder, number, name)
    properties = GProp_GProps()
    BRepGProp.VolumeProperties_s(shape.wrapped, properties)
    tensor = properties.MatrixOfInertia()
    places = ((1, 1), (2, 2), (3, 3), (1, 2), (1, 3), (2, 3))
    points, triangles = _mesh(shape, centre, name)
    return {
        "name": name,
        "volume_mm3": properties.Mass(),
        "centre_mm": centre,
        "inertia_mm5": [tensor.Value(*place) for place in places],
        "low_mm": float(points[:, 2].min() + centre[2]),
        "key": decomposition.key(points, triangles),
    }


def _read(folder: str, number: int, name: str) -> tuple[Any, list[float]]:
    from build123d import import_brep
    from OCP.BRepGProp import BRepGProp
    from OCP.GProp import GProp_GProps

    shape = import_brep(os.path.join(folder, f"part-{number}.brep"))
    properties = GProp_GProps()
    BRepGProp.VolumeProperties_s(shape.wrapped, properties)
    if not 0 < properties.Mass() < float("inf"):
        raise ModelError(f"cannot simulate {name!r}: it has no volume. Leave a closed solid there")
    centre = properties.CentreOfMass()
    return shape, [centre.X() + 0.0, centre.Y() + 0.0, centre.Z() + 0.0]


def _mesh(shape: Any, centre_mm: list[float], name: str) -> tuple[Any, Any]:
    """A welded mesh around the origin."""
    points, triangles = shape.tessellate(_TOLERANCE_MM, _ANGLE_RAD)
    if len(points) > _MOST_POINTS:
        detail = f"cannot simulate {name!r}: its surface is finer than {_MOST_POINTS} points"
        raise ModelError(f"{detail}. Make it simpler")
    placed = np.array([(point.X, point.Y, point.Z) for point in points]) - centre_mm
    return decomposition.welded(placed, np.array(triangles))
