"""Whether memory goes on growing, by readings of daemons that do and of one with a collector."""

from __future__ import annotations

from itertools import accumulate

import pytest

from suites.daemon.growth import ROUNDS, is_level

pytestmark = pytest.mark.aside("judges readings, no daemon")

#: KiB that rounds of a heap added that is collected: a right daemon on Node.
COLLECTED = [12636, 6896, 1124, 4356, 4936, 3292, 4132, 6000, 1224, 892, -620, 788, -592, 540, 1144]

#: Likewise, of daemons that keep some of each round: steadily, with noise, and beside a collector.
LEAKING = {
    "steady": [800] * ROUNDS,
    "noisy": [2400, 1900, 2800] * 6,
    "collected": [more + 3000 for more in COLLECTED],
}


def level_after(grown: list[int]) -> int | None:
    """The round in which it is seen to be level."""
    seen = list(accumulate(grown, initial=50_000))
    levels = (is_level(seen[:count], kept_kib=256, leaps_kib=1024) for count in range(2, len(seen)))
    return next((number for number, level in enumerate(levels, 1) if level), None)


def test_a_heap_that_is_collected_is_level_in_the_end():
    """A heap grows by leaps until it has found its size; one that does not grow is level at once."""
    found = level_after(COLLECTED)

    assert found is not None
    assert found < ROUNDS
    assert level_after([300, 40, 12, 0]) == 3


@pytest.mark.parametrize("grown", LEAKING.values(), ids=LEAKING)
def test_what_is_kept_of_each_round_shows(grown):
    """What each round adds is found, however little its neighbours do."""
    assert level_after(grown) is None
