"""Where the moved object can start, and how large: as it is given, every corner of its randomization, samples.

For whoever has the geometry: what holds at the corners and in the samples is not proven between them. The
same seed gives the same samples.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass

from workbench_contract.objectives import MovedBox, MovedCylinder, MovedSphere
from workbench_planning.boxes import Point, exact, exact_point

Moved = MovedSphere | MovedBox | MovedCylinder


@dataclass(frozen=True, slots=True)
class Placement:
    """One start of the moved object.

    Attributes:
        start_mm: its centre.
        scale: of all its lengths.
    """

    start_mm: tuple[float, float, float]
    scale: float


def given(moved: Moved) -> Placement:
    """The start as it was typed, in a size as near to 1 as may be."""
    x, y, z = moved.start_mm
    low, high = _scales(moved)
    return Placement((float(x), float(y), float(z)), min(max(1.0, low), high))


def corners(moved: Moved) -> list[Placement]:
    """Both ends of all that varies, each corner once; static randomization and jitter add up."""
    start, spread = exact_point(moved.start_mm), spread_of(moved)
    found = []
    for factor in _scales(moved):
        for signs in itertools.product((-1, 1), repeat=3):
            x, y, z = (float(start[axis] + signs[axis] * spread[axis]) for axis in range(3))
            found.append(Placement((x, y, z), factor))
    return list(dict.fromkeys(found))


def samples(moved: Moved, count: int, *, seed: int) -> list[Placement]:
    """So many starts within the range.

    Args:
        seed: of the samples.
    """
    source = random.Random(seed)
    start, spread = exact_point(moved.start_mm), spread_of(moved)
    low, high = (exact(each) for each in _scales(moved))
    found = []
    for _ in range(count):
        x, y, z = (
            float(start[axis] + spread[axis] * exact(source.uniform(-1, 1))) for axis in range(3)
        )
        found.append(Placement((x, y, z), float(low + (high - low) * exact(source.random()))))
    return found


def spread_of(moved: Moved) -> Point:
    """How far a start can be from the one that is given, by axis, to either side."""
    fixed = exact_point(moved.static_randomization.start_mm)
    jitter = exact_point(moved.runtime_jitter.start_mm)
    x, y, z = (fixed[axis] + jitter[axis] for axis in range(3))
    return x, y, z


def _scales(moved: Moved) -> tuple[float, float]:
    scale = moved.static_randomization.scale
    return scale.min, scale.max
