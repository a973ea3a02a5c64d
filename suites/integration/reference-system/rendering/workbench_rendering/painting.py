"""A picture of pieces: one ray through the middle of each pixel, by Embree.

Light comes from the camera and a little from above, so that a mirrored design has a mirrored picture. It
makes a colour darker and never another.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench_rendering.camera import Camera
from workbench_rendering.pieces import Bytes, Floats, Piece

BACKGROUND = (255, 255, 255)

#: Shares of a colour that are always there, that face the camera, and that look up.
_AMBIENT, _FACING, _ABOVE = 0.40, 0.48, 0.12


class Painter:
    """Pieces, ready to be looked at from anywhere."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        from embreex.mesh_construction import TriangleMesh
        from embreex.rtcore_scene import EmbreeScene

        corners = np.concatenate([piece.corners for piece in pieces])
        flat = corners.reshape(-1, 3)
        # Embree counts in single precision: nearer to the origin is more exact.
        self._low, self._high = flat.min(axis=0), flat.max(axis=0)
        self._middle = (self._low + self._high) / 2
        self._reach = float(np.linalg.norm(self._high - self._low)) + 1e-12
        self._points = flat
        across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        lengths = np.linalg.norm(across, axis=1, keepdims=True)
        self._normals = across / np.maximum(lengths, 1e-300)
        counts = [len(piece.corners) for piece in pieces]
        colours = np.array([piece.colour for piece in pieces], dtype=np.float64)
        self._colours = np.repeat(colours, counts, axis=0)
        self._scene = EmbreeScene(robust=True)
        # The scene does not hold on to its triangles.
        self._triangles = TriangleMesh(
            self._scene, ((corners - self._middle) / self._reach).astype(np.float32)
        )

    def seen(self, camera: Camera) -> Bytes:
        """What a camera sees: (rows, columns, 3)."""
        picture = np.empty((camera.height_px, camera.width_px, 3), dtype=np.uint8)
        picture[:] = BACKGROUND
        places = camera.placed(self._points)
        size = np.array([camera.width_px, camera.height_px])
        low = np.clip(np.floor(places.min(axis=0)) - 1, 0, size).astype(int)
        high = np.clip(np.ceil(places.max(axis=0)) + 1, 0, size).astype(int)
        (left, top), (right, bottom) = low, high
        if right <= left or bottom <= top:
            return picture
        hit = self._first(camera, np.arange(left, right) + 0.5, np.arange(top, bottom) + 0.5)
        table = np.vstack([np.array(BACKGROUND, dtype=np.uint8)[None], self._shaded(camera)])
        picture[top:bottom, left:right] = table[hit + 1].reshape(bottom - top, right - left, 3)
        return picture

    def _first(self, camera: Camera, columns: Floats, rows: Floats) -> Floats:
        """The triangle at each of these places, row by row; -1 for none."""
        right, up, towards = camera.axes()
        across = (columns - camera.width_px / 2) * camera.per_px
        upwards = (camera.height_px / 2 - rows) * camera.per_px
        start = np.array(camera.centre) - self._middle
        # From before everything, however far the middle of the picture is from it.
        start = start - (start @ towards) * towards + towards * self._reach
        origins = (
            start + across[None, :, None] * right + upwards[:, None, None] * up
        ).reshape(-1, 3) / self._reach
        along = np.broadcast_to(-towards, origins.shape)
        found = self._scene.run(
            np.ascontiguousarray(origins, dtype=np.float32),
            np.ascontiguousarray(along, dtype=np.float32),
        )
        return np.asarray(found, dtype=np.int64)

    def _shaded(self, camera: Camera) -> Bytes:
        """The colour of each triangle as a camera sees it."""
        _, _, towards = camera.axes()
        facing = np.abs(self._normals @ towards)
        # A surface has two sides, and the one that is seen looks towards the camera.
        upwards = self._normals[:, 2] * np.where(self._normals @ towards < 0, -1.0, 1.0)
        light = _AMBIENT + _FACING * facing + _ABOVE * (0.5 + 0.5 * upwards)
        # What the last digit of a direction makes of it is no difference.
        return np.round(self._colours * np.round(light, 4)[:, None]).astype(np.uint8)
