"""Whether a solid passes through itself: a coil whose turns are wider than its pitch, a bent sweep.

Such a solid is closed, and its faces are each in order, but some of it is counted twice: its volume, and
all that follows from it, is wrong. Just outside any of its faces has to be outside of all of it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from workbench_contract.findings import Finding, Stage
from workbench_making.findings import finding
from workbench_making.rays import Scene
from workbench_making.samples import Samples

_OUTSIDE_MM = 0.001
#: Of a face; the rest are rays that run along another face.
_SHARE = 0.05


def check(points: Samples, *, file: str) -> Iterator[Finding]:
    """Each face that lies within the solid itself."""
    mesh = points.mesh
    starts = points.points_mm + _OUTSIDE_MM * points.normals
    hits = Scene(mesh).first(starts, points.normals)
    leaves = np.einsum("nd,nd->n", mesh.normals[hits.triangles], points.normals) > 0
    # What leaves the solid first was in it.
    within = np.isfinite(hits.distances_mm) & leaves
    for row in points.worst_of_each_face(within, np.zeros(len(within)), least_share=_SHARE):
        yield finding(
            Stage.VALID,
            file=file,
            where=points.place(row),
            found="a face within the solid: it passes through itself",
            expected="a solid that is nowhere twice",
        )
