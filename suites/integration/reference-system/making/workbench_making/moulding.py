"""What a mould of two halves cannot make of a solid: undercuts, walls without draft, thin and thick walls.

The halves part along one axis. A point is in the half it looks towards; something between it and that
half's way out is an undercut. Draft is the angle between a face and that axis.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from workbench_contract.findings import Finding, Stage
from workbench_making import axes
from workbench_making.configuration import MouldingLimits
from workbench_making.findings import finding
from workbench_making.rays import Scene
from workbench_making.samples import Floats, Samples
from workbench_making.solid import box_of, does_not_fit
from workbench_making.walls import Walls, thick_mm, thin

if TYPE_CHECKING:
    from build123d import Solid

#: Of a face; the rest is a seam or an edge of the mesh.
_UNDERCUT_SHARE = 0.01
#: A rounded face has no draft where it turns over, and lets go nevertheless: it has no length there.
_TURNING_SHARE = 0.05
_EXACT_DEG = 0.01
_EXACT_MM = 0.002
#: Balls are found between rays, which makes them a little too large.
_BALL_SHARE = 0.02


def check(
    solid: Solid, points: Samples, limits: MouldingLimits, *, file: str, draw: str = "z"
) -> list[Finding]:
    """All that keeps a closed valid solid with those points from being moulded.

    Args:
        draw: the axis along which the halves part: x, y or z, in the frame of the part.
    """
    machine = [float(side) for side in limits.machine_mm]
    found = list(does_not_fit(box_of(solid), machine, what="the mould", file=file))
    scene = Scene(points.mesh)
    up = axes.vector(f"+{draw}")
    draft_deg = np.degrees(np.arcsin(np.clip(np.abs(points.normals @ up), 0.0, 1.0)))
    found += _undercuts(points, scene, up, draw, file)
    found += _draft(points, draft_deg, limits, draw, file)
    found += _thin(points, thin(points, scene), limits, file)
    found += _thick(points, thick_mm(points, scene), limits, file)
    return found


def wall_mm(points: Samples) -> float:
    """The thickest wall of a solid, which cools last; 0 if there is none."""
    return round(float(thick_mm(points, Scene(points.mesh)).max()), 3)


def _undercuts(
    points: Samples, scene: Scene, up: Floats, draw: str, file: str
) -> Iterator[Finding]:
    args = (scene, points.mesh, points.points_mm, points.normals)
    hidden = ~(axes.reached(*args, up) | axes.reached(*args, -up))
    for row in points.worst_of_each_face(
        hidden, np.zeros(len(hidden)), least_share=_UNDERCUT_SHARE
    ):
        yield _wrong(
            file,
            points.place(row),
            f"an undercut: neither half leaves it along {draw}",
            f"open towards +{draw} or -{draw}",
        )


def _draft(
    points: Samples, draft_deg: Floats, limits: MouldingLimits, draw: str, file: str
) -> Iterator[Finding]:
    least = float(limits.least_draft_deg)
    wrong = draft_deg < least - _EXACT_DEG
    for row in points.worst_of_each_face(wrong, -draft_deg, least_share=_TURNING_SHARE):
        yield _wrong(
            file,
            points.place(row),
            f"a draft of {draft_deg[row]:.2f}° along {draw}",
            f"at least {least:g}°",
        )


def _thin(points: Samples, walls: Walls, limits: MouldingLimits, file: str) -> Iterator[Finding]:
    least, wall = float(limits.least_wall_mm), walls.thickness_mm
    wrong = wall < least - _EXACT_MM - walls.doubt_mm
    for row in points.worst_of_each_face(wrong, -wall):
        yield _wrong(
            file, points.place(row), f"a wall of {wall[row]:.3g} mm", f"at least {least:g} mm"
        )


def _thick(
    points: Samples, wall_mm: Floats, limits: MouldingLimits, file: str
) -> Iterator[Finding]:
    most = float(limits.most_wall_mm)
    wrong = wall_mm > most * (1 + _BALL_SHARE) + 2 * points.mesh.sag_mm
    for row in points.worst_of_each_face(wrong, wall_mm):
        expected = f"at most {most:g} mm: it sinks"
        yield _wrong(file, points.place(row), f"a wall of {wall_mm[row]:.3g} mm", expected)


def _wrong(file: str, where: str, found: str, expected: str) -> Finding:
    return finding(Stage.VALID, file=file, where=where, found=found, expected=expected)
