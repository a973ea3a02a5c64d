"""What a printer cannot make of a solid without supports: overhangs, thin walls, what does not fit.

The part is printed as it stands: +z is up and its lowest points lie on the bed. A face that looks down
hangs over by its angle from the vertical; a ceiling that is held on two sides may be bridged.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from workbench_contract.findings import Finding, Stage
from workbench_making.configuration import PrintLimits
from workbench_making.findings import finding
from workbench_making.rays import Scene
from workbench_making.samples import Floats, Samples
from workbench_making.solid import box_of, does_not_fit
from workbench_making.walls import Walls, thin

if TYPE_CHECKING:
    from build123d import Solid

_EXACT_DEG = 0.05
_EXACT_MM = 0.002
#: Of a face; the rest is a seam or an edge of the mesh.
_OVERHANG_SHARE = 0.01
#: A bridge is looked for in these directions, both ways, this far below the face.
_BRIDGES = tuple((np.cos(angle), np.sin(angle), 0.0) for angle in np.radians([0, 45, 90, 135]))
_BELOW_MM = 0.05


def check(solid: Solid, points: Samples, limits: PrintLimits, *, file: str) -> list[Finding]:
    """All that keeps a closed valid solid with those points from being printed."""
    box = box_of(solid)
    machine = [float(side) for side in limits.machine_mm]
    found = list(does_not_fit(box, machine, what="the printer", file=file))
    scene = Scene(points.mesh)
    bed_mm = box.min_mm[2] + float(limits.most_layer_mm)
    found += _overhangs(points, scene, bed_mm, limits, file)
    found += _thin(points, thin(points, scene), limits, file)
    return found


def _overhangs(
    points: Samples, scene: Scene, bed_mm: float, limits: PrintLimits, file: str
) -> Iterator[Finding]:
    hang_deg = np.degrees(np.arcsin(np.clip(-points.normals[:, 2], -1.0, 1.0)))
    most = float(limits.most_overhang_deg)
    wrong = (hang_deg > most + _EXACT_DEG) & (points.points_mm[:, 2] > bed_mm)
    rows = np.flatnonzero(wrong)
    wrong[rows[_bridged(points.points_mm[rows], scene, float(limits.most_bridge_mm))]] = False
    for row in points.worst_of_each_face(wrong, hang_deg, least_share=_OVERHANG_SHARE):
        yield _wrong(
            file,
            points.place(row),
            f"an overhang of {hang_deg[row]:.1f}° from the vertical",
            f"at most {most:g}°, or a bridge of at most {float(limits.most_bridge_mm):g} mm",
        )


def _bridged(points_mm: Floats, scene: Scene, most_mm: float) -> NDArray[np.bool_]:
    """Whether below each point there is material on two opposite sides, close together."""
    starts = points_mm - np.array([0.0, 0.0, _BELOW_MM])
    found = np.zeros(len(points_mm), dtype=bool)
    for direction in _BRIDGES:
        one, other = np.array(direction), -np.array(direction)
        span = scene.first(starts, one).distances_mm + scene.first(starts, other).distances_mm
        found |= span <= most_mm + _EXACT_MM
    return found


def _thin(points: Samples, walls: Walls, limits: PrintLimits, file: str) -> Iterator[Finding]:
    least, wall = float(limits.least_wall_mm), walls.thickness_mm
    wrong = wall < least - _EXACT_MM - walls.doubt_mm
    for row in points.worst_of_each_face(wrong, -wall):
        yield _wrong(
            file, points.place(row), f"a wall of {wall[row]:.3g} mm", f"at least {least:g} mm"
        )


def _wrong(file: str, where: str, found: str, expected: str) -> Finding:
    return finding(Stage.VALID, file=file, where=where, found=found, expected=expected)
