"""A mesh as convex pieces: MuJoCo lets nothing but convex shapes touch.

A mesh that is convex is its own piece. Any other is cut by coacd, with a fixed seed, on one thread (the
process has ``OMP_NUM_THREADS=1``): the same mesh gives the same pieces.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: How far a piece may bulge beyond the mesh, as a share of the mesh's half length, and how hard coacd searches:
#: a plate with one small hole takes two seconds; searched ten times as hard, 19 for half as many pieces.
_ASKED: dict[str, Any] = {
    "threshold": 0.05,
    "max_ch_vertex": 64,
    "preprocess_mode": "auto",
    "resolution": 100,
    "mcts_nodes": 5,
    "mcts_iterations": 5,
    "mcts_max_depth": 1,
    "seed": 1,
}
#: Places of a coordinate that are kept: a nanometre.
_PLACES = 6
#: Beyond a face, as a share of the mesh's size, and still on it.
_FLAT = 1e-6
#: What is smaller has no inside for MuJoCo.
_LEAST_MM3 = 1e-3
#: Faces that are held against all points at once.
_AT_ONCE = 256


def welded(points_mm: Floats, triangles: Ints) -> tuple[Floats, Ints]:
    """A mesh whose faces share their points, without triangles that are none.

    Args:
        points_mm: (n, 3).
        triangles: (k, 3), numbers of points.
    """
    points, numbers = np.unique(
        np.round(points_mm, _PLACES) + 0.0, axis=0, return_inverse=True
    )
    found = numbers.reshape(-1)[triangles]
    a, b, c = found.T
    return points, found[(a != b) & (b != c) & (a != c)]


def key(points_mm: Floats, triangles: Ints) -> str:
    """By which the pieces of a mesh are kept: of all that they depend on."""
    digest = hashlib.sha256()
    version = importlib.metadata.version("coacd")
    digest.update(json.dumps([version, _ASKED, _LEAST_MM3], sort_keys=True).encode())
    for array, kind in ((points_mm, "<f8"), (triangles, "<i8")):
        data = np.ascontiguousarray(array, dtype=kind)
        digest.update(str(data.shape).encode() + data.tobytes())
    return digest.hexdigest()


def pieces(points_mm: Floats, triangles: Ints) -> list[Floats]:
    """The corners of each convex piece, (m, 3).

    Args:
        points_mm, triangles: of a welded mesh.
    """
    if _is_convex(points_mm, triangles):
        return [points_mm]
    import coacd

    coacd.set_log_level("off")
    found = coacd.run_coacd(coacd.Mesh(points_mm, triangles), **_ASKED)
    return [
        np.round(np.asarray(corners, dtype=float), _PLACES) + 0.0
        for corners, faces in found
        if _volume_mm3(np.asarray(corners), np.asarray(faces)) > _LEAST_MM3
    ]


def _is_convex(points_mm: Floats, triangles: Ints) -> bool:
    """Whether no point lies beyond any face."""
    size = float(np.ptp(points_mm, axis=0).max())
    for at in range(0, len(triangles), _AT_ONCE):
        a, b, c = points_mm[triangles[at : at + _AT_ONCE]].transpose(1, 0, 2)
        across = np.cross(b - a, c - a)
        lengths = np.linalg.norm(across, axis=1)
        whole = lengths > 0
        normals = across[whole] / lengths[whole, None]
        beyond = normals @ points_mm.T - np.einsum("nd,nd->n", normals, a[whole])[:, None]
        if beyond.max(initial=0.0) > _FLAT * size:
            return False
    return True


def _volume_mm3(corners: Floats, faces: Ints) -> float:
    a, b, c = corners[faces].transpose(1, 0, 2)
    return abs(float(np.einsum("nd,nd->", a, np.cross(b, c)))) / 6
