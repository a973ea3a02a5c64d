"""What a mill cannot make of a solid: undercuts, corners that are too sharp, slots, what does not fit.

The mill has straight tools that come along fixed axes. A point is cut from an axis when its face does
not look away from it and nothing lies between. Found on about 3000 points, so an undercut smaller than
their spacing, or with less than three times the mesh's sag of room, may be missed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from workbench_contract.findings import Finding, Stage
from workbench_making import axes
from workbench_making.configuration import CncLimits
from workbench_making.edges import Corner, inner_corners
from workbench_making.findings import finding, position
from workbench_making.rays import Scene
from workbench_making.revolved import Revolved, revolved
from workbench_making.samples import Floats, Samples
from workbench_making.solid import Box, box_of, does_not_fit

if TYPE_CHECKING:
    from build123d import Solid

#: Of a face; the rest is a seam or an edge of the mesh.
_UNDERCUT_SHARE = 0.01
#: Lengths are told to a thousandth; the mesh is not exact to more.
_EXACT_MM = 0.001
#: Two directions are the same: cos 0.5°.
_SAME = 0.99996
#: A fillet runs along the tool rather than across it: cos 45°.
_ALONG = 0.7071


def check(
    solid: Solid,
    points: Samples,
    limits: CncLimits,
    *,
    file: str,
    stock_mm: Sequence[float] | None = None,
) -> list[Finding]:
    """All that keeps a closed valid solid with those points from being milled.

    Args:
        stock_mm: sides of the box that it is cut from, in the frame of the part.
    """
    box = box_of(solid)
    found = list(_sizes(box, limits, stock_mm, file))
    scene = Scene(points.mesh)
    tools = np.array([axes.vector(axis) for axis in limits.tool_axes])
    drilled = {
        number: shape
        for number, shape in enumerate(map(revolved, points.solid_faces))
        if shape is not None and shape.hollow and np.any(np.abs(tools @ shape.axis) > _SAME)
    }
    reach = np.array(
        [axes.reached(scene, points.mesh, points.points_mm, points.normals, tool) for tool in tools]
    )
    hidden = np.logical_not(reach.any(axis=0))
    undercut = list(
        points.worst_of_each_face(hidden, np.zeros(len(hidden)), least_share=_UNDERCUT_SHARE)
    )
    found += _undercuts(points, undercut, limits, file)
    found += _holes(points, drilled, limits, file)
    found += _fillets(points, reach, tools, drilled, limits, file)
    found += _slots(points, scene, drilled, limits, file)
    # No tool comes to the corners of an undercut; they go when it goes.
    passed = {int(points.faces[row]) for row in undercut}
    corners = [c for c in inner_corners(points.solid_faces) if passed.isdisjoint(c.faces)]
    found += _sharp(points, scene, tools, drilled, corners, limits, file)
    return found


def _sizes(
    box: Box, limits: CncLimits, stock_mm: Sequence[float] | None, file: str
) -> Iterator[Finding]:
    machine = [float(side) for side in limits.machine_mm]
    yield from does_not_fit(box, machine, what="the machine", file=file)
    if stock_mm is not None:
        yield from does_not_fit(box, stock_mm, what="the stock", file=file)


def _undercuts(
    points: Samples, rows: Sequence[int], limits: CncLimits, file: str
) -> Iterator[Finding]:
    named = ", ".join(limits.tool_axes)
    for row in rows:
        yield _wrong(
            file,
            points.place(row),
            "an undercut: no tool reaches it",
            f"open towards one of {named}",
        )


def _holes(
    points: Samples, drilled: dict[int, Revolved], limits: CncLimits, file: str
) -> Iterator[Finding]:
    least = float(limits.least_hole_diameter_mm)
    for number, hole in drilled.items():
        if hole.radius_mm is not None and 2 * hole.radius_mm < least - _EXACT_MM:
            yield _wrong(
                file,
                f"face {number} (cylinder) at {position(hole.point_mm)}",
                f"a hole of {2 * hole.radius_mm:.4g} mm",
                f"a diameter of at least {least:g} mm",
            )


def _fillets(
    points: Samples,
    reach: NDArray[np.bool_],
    tools: Floats,
    drilled: dict[int, Revolved],
    limits: CncLimits,
    file: str,
) -> Iterator[Finding]:
    """Hollow faces: along the tool an end mill's radius, across it a ball nose's."""
    bends = points.bends_per_mm
    # Along a fillet, square to its bend; the tool that cuts with its flank runs that way.
    runs = np.cross(points.normals, points.bend_directions)
    along = np.abs(tools @ runs.T) > _ALONG
    rounds_floor = (reach & ~along).any(axis=0)
    end, ball = float(limits.tool_radius_mm), float(limits.ball_radius_mm)
    least = np.where(rounds_floor, ball, end)
    radii = 1 / np.maximum(bends, 1e-9)
    free: NDArray[np.bool_] = np.asarray(~reach.any(axis=0))
    for number, hole in drilled.items():
        rows = np.flatnonzero(points.faces == number)
        # A hole is as narrow as its drill; what is rounded along it is not.
        free[rows] |= hole.around(points.points_mm[rows], points.bend_directions[rows])
    wrong = (radii < least - _EXACT_MM) & ~free
    for row in points.worst_of_each_face(wrong, bends, least_share=_UNDERCUT_SHARE):
        yield _wrong(
            file,
            points.place(row),
            f"an inner radius of {radii[row]:.4g} mm",
            f"at least {least[row]:g} mm, the smallest tool's",
        )


def _slots(
    points: Samples, scene: Scene, drilled: dict[int, Revolved], limits: CncLimits, file: str
) -> Iterator[Finding]:
    """Walls that face each other closer than the smallest end mill is wide."""
    least = 2 * float(limits.tool_radius_mm)
    starts = points.points_mm + _EXACT_MM * points.normals
    across = scene.first(starts, points.normals)
    width = across.distances_mm + _EXACT_MM
    # Facets of a curved wall stand in the slot by the mesh's sag.
    met = points.mesh.faces[across.triangles]
    curved = ~(points.flat[points.faces] & points.flat[met])
    wrong = width < least - _EXACT_MM - np.where(curved, 3 * points.mesh.sag_mm, 0.0)
    wrong &= ~np.isin(points.faces, list(drilled))
    # Between two walls of one corner a tool need not go; that corner is looked at as such.
    facing = np.einsum("nd,nd->n", points.normals, points.mesh.normals[across.triangles])
    wrong &= facing < -_ALONG
    for row in points.worst_of_each_face(wrong, -width):
        yield _wrong(
            file,
            points.place(row),
            f"a gap of {width[row]:.4g} mm",
            f"at least {least:g} mm, the smallest tool's diameter",
        )


def _sharp(
    points: Samples,
    scene: Scene,
    tools: Floats,
    drilled: dict[int, Revolved],
    corners: Sequence[Corner],
    limits: CncLimits,
    file: str,
) -> Iterator[Finding]:
    """Inner corners of radius 0: only the flat end of a tool makes one, standing on one of the faces."""
    told: set[int] = set()
    for corner in corners:
        if corner.edge in told or all(face in drilled for face in corner.faces):
            continue
        if not _on_a_floor(corner, points, scene, tools):
            told.add(corner.edge)
            first, second = sorted(corner.faces)
            yield _wrong(
                file,
                f"edge between faces {first} and {second} at {position(corner.point_mm)}",
                "an inner corner of radius 0 mm",
                f"at least {float(limits.tool_radius_mm):g} mm, the smallest tool's",
            )


def _on_a_floor(corner: Corner, points: Samples, scene: Scene, tools: Floats) -> bool:
    """Whether some tool stands on one face of a corner and is free."""
    out = corner.normals.sum(axis=0)
    start = corner.point_mm + 2 * axes.clearance_mm(points.mesh) * out / np.linalg.norm(out)
    for tool in tools:
        looks = corner.normals @ tool
        if looks.max() > _SAME and looks.min() >= -axes.LEVEL:
            if np.isinf(scene.first(start[None], tool).distances_mm[0]):
                return True
    return False


def _wrong(file: str, where: str, found: str, expected: str) -> Finding:
    return finding(Stage.VALID, file=file, where=where, found=found, expected=expected)
