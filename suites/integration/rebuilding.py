"""Parts in numbers: as a plan has them, as a script makes them, and how far two of them are from each other.

A small model of its own: blocks along the axes, some with a hole from top to bottom, and pins that lie along
an axis. Lengths are in mm.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from suites.integration.bundles import Made, milled

__all__ = ["Block", "Pin", "farthest", "planned", "script_of"]

Points = NDArray[np.float64]

#: Between two points of a surface that is looked at.
_STEP_MM: Final = 0.4


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A block, and the hole in it.

    Attributes:
        at: its centre.
        hole: x and y of its middle, and its radius; none without one.
    """

    name: str
    at: tuple[float, float, float]
    size: tuple[float, float, float]
    hole: tuple[float, float, float] | None = None

    @property
    def volume(self) -> float:
        """In mm³."""
        cut = math.pi * self.hole[2] ** 2 * self.size[2] if self.hole else 0.0
        return math.prod(self.size) - cut

    @property
    def box(self) -> list[float]:
        """Its lower, then its upper corner."""
        halves = list(zip(self.at, self.size, strict=True))
        return [*(a - s / 2 for a, s in halves), *(a + s / 2 for a, s in halves)]

    def moved(self, x: float, y: float, z: float) -> Block:
        """The same elsewhere."""
        a, b, c = self.at
        hole = self.hole and (self.hole[0] + x, self.hole[1] + y, self.hole[2])
        return replace(self, at=(a + x, b + y, c + z), hole=hole)

    def features(self) -> list[dict[str, Any]]:
        """Its numbers, as an estimate has them."""
        made: list[dict[str, Any]] = [
            {"shape": "box", "kind": "add", "at_mm": [*self.at], "size_mm": [*self.size]}
        ]
        if self.hole:
            x, y, radius = self.hole
            made.append(
                {
                    "shape": "cylinder",
                    "kind": "cut",
                    "at_mm": [x, y, self.at[2]],
                    "radius_mm": radius,
                    "height_mm": self.size[2],
                    "axis": "z",
                }
            )
        return made

    @property
    def script(self) -> str:
        """What makes it."""
        made = f"Pos{self.at} * Box{self.size}"
        if self.hole:
            x, y, radius = self.hole
            made += f" - Pos({x}, {y}, {self.at[2]}) * Cylinder({radius}, {self.size[2]})"
        return made


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """A cylinder.

    Attributes:
        at: its centre.
        along: the axis that it lies along.
    """

    name: str
    at: tuple[float, float, float]
    radius: float
    length: float
    along: str

    @property
    def size(self) -> tuple[float, float, float]:
        """Of the box around it."""
        x, y, z = (self.length if axis == self.along else 2 * self.radius for axis in "xyz")
        return x, y, z

    @property
    def volume(self) -> float:
        """In mm³."""
        return math.pi * self.radius**2 * self.length

    @property
    def box(self) -> list[float]:
        """Its lower, then its upper corner."""
        return Block(name=self.name, at=self.at, size=self.size).box

    def features(self) -> list[dict[str, Any]]:
        """Its numbers, as an estimate has them: two shorter cylinders that share a part of it."""
        part = 0.6 * self.length
        middles = [(part - self.length) / 2, (self.length - part) / 2]
        return [
            {
                "shape": "cylinder",
                "kind": "add",
                "at_mm": [
                    a + (off if axis == self.along else 0)
                    for axis, a in zip("xyz", self.at, strict=True)
                ],
                "radius_mm": self.radius,
                "height_mm": part,
                "axis": self.along,
            }
            for off in middles
        ]

    @property
    def script(self) -> str:
        """What makes it."""
        turned = {"x": "Rot(0, 90, 0) * ", "y": "Rot(90, 0, 0) * ", "z": ""}[self.along]
        return f"Pos{self.at} * {turned}Cylinder({self.radius}, {self.length})"


def planned(part: Block | Pin, *, units: int, numbers: bool = True) -> Made:
    """The part of a plan, with its numbers or without them."""
    x, y, z = part.size
    made = milled(part.name, round(part.volume, 3), (x + 2, y + 2, z + 2), units=units)
    more = {"features": part.features()} if numbers else {}
    return replace(made, fields={**made.fields, **more})


def script_of(*parts: Block | Pin) -> str:
    """The script of a design."""
    lines = ["from build123d import Box, Cylinder, Pos, Rot", "", "parts = {}"]
    lines += [f"parts[{part.name!r}] = {part.script}" for part in parts]
    return "\n".join(lines) + "\n"


def farthest(one: Block | Pin, other: Block | Pin) -> float:
    """The largest distance from a point on the surface of either to the other's surface.

    Raises:
        NotImplementedError: one of two that differ is a pin.
    """
    if one == other:
        return 0.0
    if isinstance(one, Pin) or isinstance(other, Pin):
        raise NotImplementedError(f"cannot tell how far {one} is from {other}. Compare blocks")
    ways = ((one, other), (other, one))
    return max(float(_distances(_points(a), b).max()) for a, b in ways)


def _points(block: Block) -> Points:
    """Points on all of its surface, its edges among them."""
    low, high = np.array(block.box[:3]), np.array(block.box[3:])
    lines = [
        np.linspace(a, b, math.ceil((b - a) / _STEP_MM) + 1) for a, b in zip(low, high, strict=True)
    ]
    found = []
    for axis in range(3):
        across = [each for each in range(3) if each != axis]
        grid = np.stack(np.meshgrid(*(lines[each] for each in across)), -1).reshape(-1, 2)
        for side in (low[axis], high[axis]):
            face = np.full((len(grid), 3), side)
            face[:, across] = grid
            found.append(face)
    points = np.concatenate(found)
    if block.hole is None:
        return points
    x, y, radius = block.hole
    ends = np.isin(points[:, 2], (low[2], high[2]))
    open_ = ends & (np.hypot(points[:, 0] - x, points[:, 1] - y) < radius)
    angles = np.linspace(0, 2 * math.pi, math.ceil(2 * math.pi * radius / _STEP_MM) + 1)
    angle, height = (each.ravel() for each in np.meshgrid(angles, lines[2]))
    wall = np.stack([x + radius * np.cos(angle), y + radius * np.sin(angle), height], -1)
    return np.concatenate([points[~open_], wall])


def _distances(points: Points, block: Block) -> Points:
    """How far each point is from the block's surface."""
    low, high = np.array(block.box[:3]), np.array(block.box[3:])
    beside = np.maximum(np.maximum(low - points, points - high), 0.0)
    least = np.full(len(points), np.inf)
    for axis in range(3):
        across = [each for each in range(3) if each != axis]
        for side in (low[axis], high[axis]):
            off = beside[:, across]
            if axis == 2 and block.hole:
                off = np.concatenate([off, _into_the_open(points, block.hole)[:, None]], -1)
            away = np.abs(points[:, axis] - side)
            least = np.minimum(least, np.hypot(away, np.linalg.norm(off, axis=1)))
    if block.hole:
        x, y, radius = block.hole
        off_wall = np.abs(np.hypot(points[:, 0] - x, points[:, 1] - y) - radius)
        least = np.minimum(least, np.hypot(off_wall, beside[:, 2]))
    return least


def _into_the_open(points: Points, hole: tuple[float, float, float]) -> Points:
    """How far from the rim of a hole those points are that lie over it; 0 of others."""
    x, y, radius = hole
    return np.maximum(radius - np.hypot(points[:, 0] - x, points[:, 1] - y), 0.0)
