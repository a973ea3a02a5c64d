"""Where the moved object can start, and how large: every corner of the randomization, and samples within.

For whoever has the geometry: what holds at the corners and in the samples is not proven between them, so
the answer carries the seed, and the same seed gives the same samples.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass

from workbench_contract.objectives import MovedBox, MovedCylinder, MovedSphere
from workbench_planning.boxes import Point, exact, exact_point

#: Samples of one benchmark; each is a build and a check of the geometry.
MOST_SAMPLES = 1_000


@dataclass(frozen=True, slots=True)
class Placement:
    """One start of the moved object.

    Attributes:
        start_mm: its centre.
        scale: of all its lengths.
    """

    start_mm: tuple[float, float, float]
    scale: float


def placements(
    moved: MovedSphere | MovedBox | MovedCylinder, *, samples: int, seed: int
) -> list[Placement]:
    """All corners first, each once, then samples within the range.

    Args:
        moved: with its static randomization and runtime jitter, which add up.
        samples: how many starts within, at most ``MOST_SAMPLES``.
        seed: of the samples.

    Raises:
        ValueError: more samples than that, or fewer than none.
    """
    if not 0 <= samples <= MOST_SAMPLES:
        raise ValueError(
            f"cannot take {samples} samples: from 0 to {MOST_SAMPLES} are possible. Ask for so many"
        )
    corners = dict.fromkeys(_corners(moved))
    return [*corners, *_samples(moved, samples, random.Random(seed))]


def spread_of(moved: MovedSphere | MovedBox | MovedCylinder) -> Point:
    """How far a start can be from the one that is given, by axis, to either side."""
    fixed = exact_point(moved.static_randomization.start_mm)
    jitter = exact_point(moved.runtime_jitter.start_mm)
    x, y, z = (fixed[axis] + jitter[axis] for axis in range(3))
    return x, y, z


def _corners(moved: MovedSphere | MovedBox | MovedCylinder) -> Iterator[Placement]:
    start, spread = exact_point(moved.start_mm), spread_of(moved)
    scale = moved.static_randomization.scale
    for factor in (scale.min, scale.max):
        for signs in itertools.product((-1, 1), repeat=3):
            x, y, z = (float(start[axis] + signs[axis] * spread[axis]) for axis in range(3))
            yield Placement((x, y, z), factor)


def _samples(
    moved: MovedSphere | MovedBox | MovedCylinder, count: int, source: random.Random
) -> Iterator[Placement]:
    start, spread = exact_point(moved.start_mm), spread_of(moved)
    low, high = (exact(each) for each in _scales(moved))
    for _ in range(count):
        x, y, z = (
            float(start[axis] + spread[axis] * exact(source.uniform(-1, 1))) for axis in range(3)
        )
        yield Placement((x, y, z), float(low + (high - low) * exact(source.random())))


def _scales(moved: MovedSphere | MovedBox | MovedCylinder) -> tuple[float, float]:
    scale = moved.static_randomization.scale
    return scale.min, scale.max
