"""The geometry of zones, exactly: do two boxes meet, how far is a ball from a box, is there room left.

Numbers are fractions of what was typed (0.1 is one tenth), so that a verdict at a boundary is no matter
of rounding. Whatever touches at a face, an edge or a point alone does not *meet*: the two have no volume
in common.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

AXES = "xyz"

Point = tuple[Fraction, Fraction, Fraction]


def exact(number: float) -> Fraction:
    """The number as it was typed: the shortest decimal that reads as the same float."""
    return Fraction(repr(number))


def exact_point(numbers: Sequence[float]) -> Point:
    """Three coordinates as they were typed."""
    x, y, z = (exact(number) for number in numbers)
    return x, y, z


@dataclass(frozen=True, slots=True)
class Solid:
    """A box with volume: ``low`` is below ``high`` in every axis. Millimetres."""

    low: Point
    high: Point

    @property
    def volume(self) -> Fraction:
        """In mm³."""
        x, y, z = (self.high[axis] - self.low[axis] for axis in range(3))
        return x * y * z

    def overlaps(self, other: Solid) -> Point:
        """How long both are at once, by axis; from 0 down where they are apart."""
        x, y, z = (
            min(self.high[axis], other.high[axis]) - max(self.low[axis], other.low[axis])
            for axis in range(3)
        )
        return x, y, z

    def meets(self, other: Solid) -> bool:
        """Whether both have volume in common."""
        return all(length > 0 for length in self.overlaps(other))

    def gaps(self, other: Solid) -> Point:
        """How far the two are apart, by axis; 0 where they are not."""
        x, y, z = (max(Fraction(0), -length) for length in self.overlaps(other))
        return x, y, z


@dataclass(frozen=True, slots=True)
class Ball:
    """A ball whose centre may be anywhere in a box, which may be as thin as a point.

    Attributes:
        centres: the box.
        radius2: the radius squared, which is exact where the radius is not; mm².
    """

    centres: Solid
    radius2: Fraction

    @property
    def radius_mm(self) -> float:
        """As findings show it; verdicts are by ``radius2``."""
        return math.sqrt(self.radius2)

    def distance2(self, box: Solid) -> Fraction:
        """From the nearest centre to the box, squared."""
        return sum((gap * gap for gap in self.centres.gaps(box)), Fraction(0))

    def meets(self, box: Solid) -> bool:
        """Whether the ball can be where it has volume in common with the box."""
        return self.distance2(box) < self.radius2

    def touches(self, box: Solid) -> bool:
        """Whether it can meet the box, or touch it from outside."""
        return self.distance2(box) <= self.radius2

    def leaves(self, bounds: Solid) -> list[tuple[str, Fraction]]:
        """Sides through which it can be outside, and how far its centre can be from each.

        Returns:
            For each side that is crossed its name (``x min``) and the distance from there to the farthest
            centre, inwards; less than the radius, and less than 0 where the centre is outside.
        """
        crossed = []
        for axis, name in enumerate(AXES):
            for side, distance in (
                ("min", self.centres.low[axis] - bounds.low[axis]),
                ("max", bounds.high[axis] - self.centres.high[axis]),
            ):
                if distance < 0 or distance * distance < self.radius2:
                    crossed.append((f"{name} {side}", distance))
        return crossed


def leaves_room(box: Solid, taken: Sequence[Solid]) -> bool:
    """Whether some volume of a box is in none of others."""
    # Large ones first: what they take need not be cut to pieces by the others.
    return _has_room(box, sorted(taken, key=lambda each: each.volume, reverse=True))


def _has_room(box: Solid, taken: Sequence[Solid]) -> bool:
    for number, other in enumerate(taken):
        if box.meets(other):
            rest = taken[number + 1 :]
            return any(_has_room(piece, rest) for piece in _without(box, other))
    return True


def _without(box: Solid, other: Solid) -> list[Solid]:
    """What is left of a box without another that it meets: at most six boxes."""
    pieces = []
    low, high = list(box.low), list(box.high)
    for axis in range(3):
        if low[axis] < other.low[axis]:
            pieces.append(_solid(low, [*high[:axis], other.low[axis], *high[axis + 1 :]]))
            low[axis] = other.low[axis]
        if high[axis] > other.high[axis]:
            pieces.append(_solid([*low[:axis], other.high[axis], *low[axis + 1 :]], high))
            high[axis] = other.high[axis]
    return pieces


def _solid(low: Sequence[Fraction], high: Sequence[Fraction]) -> Solid:
    return Solid((low[0], low[1], low[2]), (high[0], high[1], high[2]))
