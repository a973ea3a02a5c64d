"""What lies in a direction: rays through the mesh of a solid.

embreex is Intel's ray tracer with numpy alone beside it. It counts in single precision, so the mesh is
moved to the origin first: distances are right to about a millionth of the solid's size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench_making.samples import Floats, Ints, Mesh


@dataclass(frozen=True, slots=True, kw_only=True)
class Hits:
    """The first thing on each ray.

    Attributes:
        distances_mm: (n,), infinite where there is nothing.
        triangles: (n,), of the mesh; -1 where there is nothing.
    """

    distances_mm: Floats
    triangles: Ints


class Scene:
    """The triangles of a mesh, ready for rays."""

    def __init__(self, mesh: Mesh) -> None:
        from embreex.mesh_construction import TriangleMesh
        from embreex.rtcore_scene import EmbreeScene

        corners = mesh.corners_mm.reshape(-1, 3)
        self._middle = (corners.min(axis=0) + corners.max(axis=0)) / 2
        self._scene = EmbreeScene(robust=True)
        # The scene does not hold on to its triangles.
        self._triangles = TriangleMesh(
            self._scene, (mesh.corners_mm - self._middle).astype(np.float32)
        )

    def first(self, origins_mm: Floats, directions: Floats) -> Hits:
        """The first triangle on each ray.

        Args:
            origins_mm: (n, 3).
            directions: (n, 3) of length 1, or (3,) for all of them.
        """
        origins = np.ascontiguousarray(origins_mm - self._middle, dtype=np.float32)
        along = np.ascontiguousarray(np.broadcast_to(directions, origins.shape), dtype=np.float32)
        if not len(origins):
            return Hits(distances_mm=np.zeros(0), triangles=np.zeros(0, dtype=np.int64))
        found = self._scene.run(origins, along, output=1)
        triangles = found["primID"].astype(np.int64)
        distances = np.where(triangles < 0, np.inf, found["tfar"].astype(np.float64))
        return Hits(distances_mm=distances, triangles=triangles)
