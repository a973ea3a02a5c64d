"""Pieces out of a model of MuJoCo as it stands at one moment; lengths in metres.

What a body is made of has the body's colour, what stands still is grey. Zones are lines, through which
everything is seen.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench_rendering.pieces import Colour, Floats, Piece, Surroundings, colour_of

GROUND: Colour = (222, 222, 222)
STILL: Colour = (150, 156, 164)
GOAL: Colour = (0, 150, 60)
FORBIDDEN: Colour = (210, 0, 0)

#: Names that the scene's zones have, and the colours of their lines.
_ZONES = {"workbench/goal": GOAL, "workbench/forbid/": FORBIDDEN}

#: A viewer of MuJoCo shows these groups; the others are helpers of its physics.
_SHOWN_GROUPS = 3
#: Around a round shape, and from pole to pole.
_AROUND_N, _ALONG_N = 32, 16
#: Of the ground, what is shown of it beside what stands there.
_GROUND_SHARE = 1.1

#: The faces of a box by its corners, which are numbered by their signs.
_FACES = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
_CORNERS = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
_EDGES = [
    (one, other)
    for one, other in itertools.combinations(range(8), 2)
    if (_CORNERS[one] != _CORNERS[other]).sum() == 1
]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    """A geom: its body, and its triangles where it has its own place."""

    geom: int
    body: int
    corners: Floats


class Actors:
    """The shapes of a model.

    Attributes:
        legend: name and colour of each body that has a shape.
    """

    def __init__(self, model: Any) -> None:
        import mujoco

        self._model = model
        self._data = mujoco.MjData(model)
        self._mujoco = mujoco
        zones = {geom: colour for geom, colour in self._zones()}
        solid = [g for g in range(model.ngeom) if g not in zones]
        shown = [g for g in solid if model.geom_group[g] < _SHOWN_GROUPS] or solid
        self._planes = [g for g in shown if model.geom_type[g] == mujoco.mjtGeom.mjGEOM_PLANE]
        self._shapes = [
            _Shape(geom=g, body=int(model.geom_bodyid[g]), corners=_triangles(mujoco, model, g))
            for g in shown
            if g not in self._planes
        ]
        bodies = sorted({shape.body for shape in self._shapes if shape.body})
        self._colours = {body: colour_of(number) for number, body in enumerate(bodies)}
        self.legend = [(model.body(body).name, colour) for body, colour in self._colours.items()]
        self._lines = zones

    def at(self, positions: Floats) -> list[Piece]:
        """Its pieces, the ground left out, when its joints stand at ``positions``."""
        self._data.qpos[:] = positions
        self._mujoco.mj_kinematics(self._model, self._data)
        return [
            Piece(
                name=self._model.body(shape.body).name,
                corners=self._placed(shape.geom, shape.corners),
                colour=self._colours.get(shape.body, STILL),
            )
            for shape in self._shapes
            if len(shape.corners)
        ]

    def ground(self, around: Surroundings) -> list[Piece]:
        """What is shown of its planes, where they were when :meth:`at` was asked last."""
        found = []
        for geom in self._planes:
            place = self._data.geom_xpos[geom]
            turned = self._data.geom_xmat[geom].reshape(3, 3)
            middle = (np.array(around.centre) - place) @ turned
            reach = around.radius * _GROUND_SHARE
            low, high = middle[:2] - reach, middle[:2] + reach
            half = self._model.geom_size[geom][:2]
            low = np.where(half > 0, np.maximum(low, -half), low)
            high = np.where(half > 0, np.minimum(high, half), high)
            if (low < high).all():
                (a, b), (c, d) = low, high
                corners = np.array([(a, b, 0), (c, b, 0), (c, d, 0), (a, d, 0)]) @ turned.T + place
                quad = corners[[[0, 1, 2], [0, 2, 3]]]
                found.append(Piece(name="ground", corners=quad, colour=GROUND))
        return found

    def zones(self) -> list[tuple[Floats, Colour]]:
        """The edges of the zones, two points (2, 3) each."""
        return [
            (self._placed(geom, (_CORNERS * self._model.geom_size[geom])[[one, other]]), colour)
            for geom, colour in self._lines.items()
            for one, other in _EDGES
        ]

    def _zones(self) -> Iterator[tuple[int, Colour]]:
        for geom in range(self._model.ngeom):
            name = self._model.geom(geom).name
            for start, colour in _ZONES.items():
                if name.startswith(start):
                    yield geom, colour

    def _placed(self, geom: int, points: Floats) -> Floats:
        turned = self._data.geom_xmat[geom].reshape(3, 3)
        placed: Floats = points @ turned.T + self._data.geom_xpos[geom]
        return placed


def _triangles(mujoco: Any, model: Any, geom: int) -> Floats:
    """The triangles of a geom around its own origin."""
    kind, size = model.geom_type[geom], np.array(model.geom_size[geom], dtype=np.float64)
    kinds = mujoco.mjtGeom
    if kind == kinds.mjGEOM_MESH:
        mesh = int(model.geom_dataid[geom])
        first, count = int(model.mesh_vertadr[mesh]), int(model.mesh_vertnum[mesh])
        points = np.array(model.mesh_vert[first : first + count], dtype=np.float64)
        first, count = int(model.mesh_faceadr[mesh]), int(model.mesh_facenum[mesh])
        return points[np.array(model.mesh_face[first : first + count])]
    if kind == kinds.mjGEOM_SPHERE:
        return _round(np.array([size[0]] * 3), 0.0)
    if kind == kinds.mjGEOM_ELLIPSOID:
        return _round(size, 0.0)
    if kind == kinds.mjGEOM_CAPSULE:
        return _round(np.array([size[0]] * 3), float(size[1]))
    if kind == kinds.mjGEOM_CYLINDER:
        return _cylinder(float(size[0]), float(size[1]))
    if kind == kinds.mjGEOM_BOX:
        return _box(size, np.zeros(3))
    # Of anything else, the box around it.
    return _box(np.array(model.geom_aabb[geom][3:]), np.array(model.geom_aabb[geom][:3]))


def _box(half: Floats, middle: Floats) -> Floats:
    points = _CORNERS * half + middle
    return np.array(
        [points[[a, b, c]] for p, q, r, s in _FACES for a, b, c in ((p, q, r), (p, r, s))]
    )


def _round(radii: Floats, half_length: float) -> Floats:
    """An ellipsoid; its upper and lower half are ``half_length`` away from the middle."""
    down = np.linspace(0, np.pi, _ALONG_N + 1)
    # The middle twice: a capsule has a cylinder between its halves.
    down = np.insert(down, _ALONG_N // 2, np.pi / 2)
    lift = np.where(np.arange(len(down)) <= _ALONG_N // 2, half_length, -half_length)
    turn = np.linspace(0, 2 * np.pi, _AROUND_N + 1)
    x = np.outer(np.sin(down), np.cos(turn)) * radii[0]
    y = np.outer(np.sin(down), np.sin(turn)) * radii[1]
    z = np.repeat((np.cos(down) * radii[2] + lift)[:, None], len(turn), axis=1)
    return _quads(np.stack([x, y, z], axis=-1))


def _cylinder(radius: float, half_length: float) -> Floats:
    turn = np.linspace(0, 2 * np.pi, _AROUND_N + 1)
    rings = [
        (share * radius, height)
        for share, height in ((0, half_length), (1, half_length), (1, -half_length), (0, -half_length))
    ]
    grid = [
        np.column_stack([r * np.cos(turn), r * np.sin(turn), np.full(len(turn), height)])
        for r, height in rings
    ]
    return _quads(np.stack(grid))


def _quads(grid: Floats) -> Floats:
    """The triangles between the points of a grid (rows, columns, 3); none without area at a pole."""
    a, b, c, d = grid[:-1, :-1], grid[1:, :-1], grid[1:, 1:], grid[:-1, 1:]
    halves = [np.stack(three, axis=2).reshape(-1, 3, 3) for three in ((a, b, c), (a, c, d))]
    found = np.concatenate(halves)
    across = np.cross(found[:, 1] - found[:, 0], found[:, 2] - found[:, 0])
    whole: Floats = found[np.linalg.norm(across, axis=1) > 0]
    return whole
