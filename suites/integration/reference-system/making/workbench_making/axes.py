"""Directions of a machine, in the part's own frame, and whether points can be reached along them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from workbench_making.rays import Scene
from workbench_making.samples import Floats, Mesh

#: A face that looks away from a direction by less stands along it: sin 0.1°.
LEVEL = 0.00175


def vector(axis: str) -> Floats:
    """``+z`` → (0, 0, 1)."""
    found = np.zeros(3)
    found["xyz".index(axis[1])] = 1.0 if axis[0] == "+" else -1.0
    return found


def clearance_mm(mesh: Mesh) -> float:
    """How far from the mesh a ray begins, so that it clears the facets of its own curved face."""
    return 3 * mesh.sag_mm


def reached(
    scene: Scene, mesh: Mesh, points_mm: Floats, normals: Floats, axis: Floats
) -> NDArray[np.bool_]:
    """Whether something that comes against ``axis`` reaches the points: (n,).

    Args:
        points_mm: (n, 3), on the mesh.
        normals: (n, 3), outward; a face that looks away is not reached.
        axis: from the part towards where it comes from.
    """
    looks = normals @ axis >= -LEVEL
    starts = points_mm[looks] + clearance_mm(mesh) * normals[looks]
    found = np.zeros(len(points_mm), dtype=bool)
    found[looks] = np.isinf(scene.first(starts, axis).distances_mm)
    return found
