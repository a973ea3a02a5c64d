"""How thick a solid is at points of its faces.

Thin is what a ray into the solid says: how far it is to a face that looks the other way. Thick is what
the largest ball says that touches the point from inside and lies in the solid: a rib is as thick as it is
wide, however high it stands.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench_making.rays import Scene
from workbench_making.samples import Floats, Samples

#: Rays begin this far inside, clear of their own face.
_INSIDE_MM = 0.001
#: Two faces make a wall when they are within 30° of looking away from each other: cos 150°. The edge
#: of a steeper wedge is an edge.
_OPPOSITE = -0.866
#: Points for which balls are looked for, and rays for each of them.
_BALLS_N = 800
_RAYS_N = 128
#: A ball that is touched from here and from within 14° of opposite lies in a wall.
_ACROSS = 0.97
#: Where three walls of the same thickness meet there is room for a ball that much larger.
_MEETING = 1.27
#: Rays nearer to the face than this say little: cos 80°.
_FLATTEST = 0.17


@dataclass(frozen=True, slots=True, kw_only=True)
class Walls:
    """Thickness along the normals of points.

    Attributes:
        thickness_mm: (n,), infinite where no wall is met.
        doubt_mm: (n,), by how much the mesh may be off there; 0 between two planes.
    """

    thickness_mm: Floats
    doubt_mm: Floats


def thin(points: Samples, scene: Scene) -> Walls:
    """How far it is through the solid at each point."""
    mesh = points.mesh
    hits = scene.first(points.points_mm - _INSIDE_MM * points.normals, -points.normals)
    met = mesh.faces[hits.triangles]
    facing = np.einsum("nd,nd->n", mesh.normals[hits.triangles], points.normals)
    curved = ~(points.flat[points.faces] & points.flat[met])
    return Walls(
        thickness_mm=np.where(facing <= _OPPOSITE, hits.distances_mm + _INSIDE_MM, np.inf),
        doubt_mm=np.where(curved, 2 * mesh.sag_mm, 0.0),
    )


def thick_mm(points: Samples, scene: Scene) -> Floats:
    """Thickness of the wall at each of about 800 points; 0 at the rest.

    A ball that touches the point and is met by a ray from there has the diameter distance / cosine. Where
    walls meet, the ball is larger than any of them; what three of them add is taken off.
    """
    rows = np.arange(0, len(points.points_mm), max(1, len(points.points_mm) // _BALLS_N))
    into = -points.normals[rows]
    rays, cosines = _around(into)
    starts = points.points_mm[rows] + _INSIDE_MM * into
    hits = scene.first(np.repeat(starts, _RAYS_N, axis=0), rays.reshape(-1, 3))
    distances = hits.distances_mm.reshape(len(rows), _RAYS_N) + _INSIDE_MM
    balls = distances / cosines
    nearest = balls.argmin(axis=1)
    each = np.arange(len(rows))
    depth, ball = distances[each, nearest] * cosines[nearest], balls[each, nearest]
    found = np.zeros(len(points.points_mm))
    thick = np.where(cosines[nearest] > _ACROSS, depth, ball / _MEETING)
    # A ray that slips out between two triangles says nothing.
    found[rows] = np.where(np.isfinite(thick), thick, 0.0)
    return found


def _around(axes: Floats) -> tuple[Floats, Floats]:
    """Rays evenly spread around each axis (n, rays, 3), the first one along it; their cosines."""
    cosines = np.linspace(1.0, _FLATTEST, _RAYS_N)
    turns = np.arange(_RAYS_N) * np.pi * (3 - np.sqrt(5))
    # Square to an axis: what is left of the coordinate that it has least of.
    least = np.eye(3)[np.abs(axes).argmin(axis=1)]
    first = np.cross(axes, least)
    first /= np.linalg.norm(first, axis=1)[:, None]
    second = np.cross(axes, first)
    sines = np.sqrt(1 - cosines**2)
    rays: Floats = (
        cosines[None, :, None] * axes[:, None, :]
        + (sines * np.cos(turns))[None, :, None] * first[:, None, :]
        + (sines * np.sin(turns))[None, :, None] * second[:, None, :]
    )
    return rays, cosines
