"""From where it is looked: along parallel lines, so that a length is the same anywhere in a picture.

A camera stands in the direction (cos pitch cos yaw, cos pitch sin yaw, sin pitch) and looks at the middle;
to the right of a picture is (-sin yaw, cos yaw, 0).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from workbench_rendering.pieces import Floats, Surroundings

#: The 24 views.
YAWS_DEG = tuple(45.0 * step for step in range(8))
PITCHES_DEG = (-30.0, 15.0, 50.0)

#: Of a picture, what the ball around all pieces takes.
_FILLED = 0.94


@dataclass(frozen=True, slots=True, kw_only=True)
class Camera:
    """One view.

    Attributes:
        centre: what the middle of the picture shows.
        per_px: what a pixel is, in the unit of the pieces.
        width_px, height_px: of the picture.
    """

    yaw_deg: float
    pitch_deg: float
    centre: tuple[float, float, float]
    per_px: float
    width_px: int
    height_px: int

    def axes(self) -> tuple[Floats, Floats, Floats]:
        """Right, up, and towards the camera; each of length 1."""
        yaw, pitch = math.radians(self.yaw_deg), math.radians(self.pitch_deg)
        right = np.array([-math.sin(yaw), math.cos(yaw), 0.0])
        towards = np.array(
            [
                math.cos(pitch) * math.cos(yaw),
                math.cos(pitch) * math.sin(yaw),
                math.sin(pitch),
            ]
        )
        return right, np.cross(towards, right), towards

    def placed(self, points: Floats) -> Floats:
        """Where points are in the picture: (n, 2), columns and rows, the first pixel from 0 to 1."""
        right, up, _ = self.axes()
        away = np.asarray(points) - np.array(self.centre)
        columns = self.width_px / 2 + away @ right / self.per_px
        rows = self.height_px / 2 - away @ up / self.per_px
        return np.column_stack([columns, rows])


def looking(
    around: Surroundings, *, yaw_deg: float, pitch_deg: float, width_px: int, height_px: int
) -> Camera:
    """A camera that sees everything; the scale is the same from wherever it looks."""
    return Camera(
        yaw_deg=yaw_deg,
        pitch_deg=pitch_deg,
        centre=around.centre,
        per_px=2 * around.radius / (_FILLED * min(width_px, height_px)),
        width_px=width_px,
        height_px=height_px,
    )


def views() -> list[tuple[float, float]]:
    """Yaw and pitch of each of the 24 views."""
    return [(yaw, pitch) for pitch in PITCHES_DEG for yaw in YAWS_DEG]
