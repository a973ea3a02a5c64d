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
#: Points for which balls are looked for, and points that each is compared with.
_BALLS_N = 800
_OTHERS_N = 4000
#: A ball that is touched from here and from within 14° of opposite lies in a wall.
_ACROSS = 0.97
#: Where three walls of the same thickness meet there is room for a ball that much larger.
_MEETING = 1.27


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


def thick_mm(points: Samples) -> Floats:
    """Thickness of the wall at each of about 800 points; 0 at the rest.

    Where walls meet, the ball is larger than any of them; what three of them add is taken off.
    """
    step = max(1, len(points.points_mm) // _BALLS_N)
    spread = points.points_mm[:: max(1, len(points.points_mm) // _OTHERS_N)]
    # Where walls meet, an edge is what keeps the ball out.
    others = np.concatenate([spread, points.edges_mm])
    found = np.zeros(len(points.points_mm))
    for row in range(0, len(found), step):
        apart = points.points_mm[row] - others
        depth = apart @ points.normals[row]
        below = np.flatnonzero(depth > _INSIDE_MM)
        if len(below):
            squares = np.einsum("nd,nd->n", apart[below], apart[below])
            # A ball that touches here and passes through another point has this diameter.
            balls = squares / depth[below]
            nearest = int(np.argmin(balls))
            across = depth[below[nearest]] / np.sqrt(squares[nearest])
            ball = balls[nearest]
            found[row] = depth[below[nearest]] if across > _ACROSS else ball / _MEETING
    return found
