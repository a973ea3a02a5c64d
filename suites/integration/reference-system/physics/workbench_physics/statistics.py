"""Many runs of one scene: their seeds, and what they say together."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from workbench_contract.simulation import Aggregate, Interval, Outcome
from workbench_foundation import faults

#: Of the standard normal distribution: 95 % lie between it and its negative.
_Z = 1.959963984540054
_SEEDS = 2**31


def seeds_from(seed: int, runs: int) -> list[int]:
    """Seeds of runs: the first is the given one, all others follow from it, none comes twice."""
    seeds = [seed]
    drawn = np.random.default_rng(seed)
    while len(seeds) < runs:
        one = int(drawn.integers(_SEEDS))
        if one not in seeds:
            seeds.append(one)
    return seeds


def aggregate(outcomes: Sequence[Outcome], *, has_goal: bool) -> Aggregate:
    """Counts of all outcomes, and the share that hit the goal with its Wilson interval of 95 %.

    Args:
        outcomes: of at least one run.
        has_goal: without one there is no success to speak of.
    """
    found = Counter(outcomes)
    counts = {each: found[each] for each in Outcome}
    if not has_goal:
        return Aggregate(runs=len(outcomes), counts=counts)
    hits = found[Outcome.GOAL_HIT]
    return Aggregate(
        runs=len(outcomes),
        counts=counts,
        success_rate=hits / len(outcomes),
        interval=wilson(hits, len(outcomes)),
    )


def wilson(hits: int, runs: int) -> Interval:
    """Wilson's score interval of a share, 95 %."""
    share, z2 = hits / runs, _Z * _Z
    if faults.on("interval-of-normal"):
        half = _Z * math.sqrt(share * (1 - share) / runs)
        return Interval(low=max(0.0, share - half), high=min(1.0, share + half))
    middle = (share + z2 / (2 * runs)) / (1 + z2 / runs)
    half = _Z / (1 + z2 / runs) * math.sqrt(share * (1 - share) / runs + z2 / (4 * runs * runs))
    low = 0.0 if hits == 0 else middle - half
    high = 1.0 if hits == runs else middle + half
    return Interval(low=low, high=high)
