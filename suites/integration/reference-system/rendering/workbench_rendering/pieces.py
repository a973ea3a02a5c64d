"""What is looked at: triangles, each piece with a name and a colour of its own."""

from __future__ import annotations

import colorsys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench_rendering.errors import RenderError

Floats = NDArray[np.float64]
Bytes = NDArray[np.uint8]
Colour = tuple[int, int, int]

#: More are not looked at.
MOST_TRIANGLES = 2_000_000

#: Of the first pieces: far from each other, and none is grey, black or white.
_FIRST: tuple[Colour, ...] = (
    (220, 50, 40),
    (40, 90, 220),
    (50, 160, 60),
    (235, 160, 20),
    (140, 60, 190),
    (20, 160, 180),
    (230, 90, 160),
    (130, 90, 40),
    (150, 190, 30),
    (30, 60, 110),
)
_GOLDEN = 0.618033988749895


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Triangles of one colour.

    Attributes:
        corners: (k, 3, 3), in any unit that all pieces of a picture share.
    """

    name: str
    corners: Floats
    colour: Colour


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The ball that a picture holds whole.

    Attributes:
        centre: of the box around all pieces.
        radius: to the farthest corner.
    """

    centre: tuple[float, float, float]
    radius: float


def colour_of(index: int) -> Colour:
    """The colour of a piece by its place; none of two pieces is the same."""
    if index < len(_FIRST):
        return _FIRST[index]
    # Ever other hues; and what hue is near an earlier one differs in how full it is.
    hue = (0.07 + index * _GOLDEN) % 1.0
    full, light = 0.55 + 0.4 * ((index * 7) % 5) / 4, 0.6 + 0.3 * ((index * 3) % 4) / 3
    red, green, blue = colorsys.hsv_to_rgb(hue, full, light)
    return round(255 * red), round(255 * green), round(255 * blue)


def hex_of(colour: Colour) -> str:
    """``#rrggbb``."""
    return "#" + "".join(f"{value:02x}" for value in colour)


def around(pieces: Sequence[Piece]) -> Surroundings:
    """What a picture of some pieces has to hold, from wherever it is looked.

    Raises:
        RenderError: there is nothing to be seen, too much, or something without a place.
    """
    corners = [piece.corners.reshape(-1, 3) for piece in pieces if len(piece.corners)]
    if not corners:
        raise RenderError("there is nothing to be seen: no part of it has a surface")
    triangles = sum(len(piece.corners) for piece in pieces)
    if triangles > MOST_TRIANGLES:
        raise RenderError(f"it has {triangles} triangles, and {MOST_TRIANGLES} can be seen at once")
    points = np.concatenate(corners)
    if not np.isfinite(points).all():
        raise RenderError("some of it is nowhere: its place is no number")
    low, high = points.min(axis=0), points.max(axis=0)
    # A mirrored design has the mirrored middle, to the last digit that is shown.
    centre = np.round((low + high) / 2, 9)
    radius = float(np.sqrt(((points - centre) ** 2).sum(axis=1).max()))
    if radius <= 0:
        raise RenderError("there is nothing to be seen: all of it is in one point")
    x, y, z = (float(value) for value in centre)
    return Surroundings(centre=(x, y, z), radius=radius)
