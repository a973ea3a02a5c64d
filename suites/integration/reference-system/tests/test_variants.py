"""Where the moved object can start: corners and samples of its randomization."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from workbench_contract.objectives import MovedSphere
from workbench_planning.variants import Placement, corners, given as start_given, samples


def moved(start=(0, 0, 0), fixed=(0, 0, 0), jitter=(0, 0, 0), scale=(1, 1)):
    """A ball with its randomization."""
    return MovedSphere.model_validate(
        {
            "label": "ball",
            "shape": "sphere",
            "size": {"radius_mm": 5},
            "start_mm": list(start),
            "static_randomization": {
                "start_mm": list(fixed),
                "scale": {"min": scale[0], "max": scale[1]},
            },
            "runtime_jitter": {"start_mm": list(jitter)},
        }
    )


def test_nothing_random():
    """Without randomization there is one start."""
    assert [Placement((1.0, 2.0, 3.0), 1.0)] == corners(moved((1, 2, 3)))


def test_corners():
    """Every corner once: variants and jitter add up, exactly as typed, in each size."""
    found = corners(moved((10, 0, 0), (0.1, 1, 0), (0.2, 0, 0), (0.5, 2)))
    expected = {
        Placement((x, y, 0.0), scale)
        for x, y, scale in itertools.product((9.7, 10.3), (-1.0, 1.0), (0.5, 2.0))
    }

    assert len(expected) == len(found)
    assert expected == set(found)


def test_given():
    """The start as typed, in the size nearest to its own that there may be."""
    for scale, expected in (((0.5, 2), 1.0), ((1.5, 2), 1.5), ((0.25, 0.5), 0.5)):
        found = start_given(moved((10, 0, 0.1), (1, 1, 1), (1, 1, 1), scale))

        assert Placement((10.0, 0.0, 0.1), expected) == found


_SPREAD = st.tuples(*[st.integers(0, 5)] * 3)


@given(_SPREAD, _SPREAD, st.integers(1, 3), st.integers(0, 2), st.integers(0, 20), st.integers())
def test_samples(fixed, jitter, least, more, count, seed):
    """As many samples as asked for; they and the corners are within the range; one seed, one row of them."""
    ball = moved((1, 2, 3), fixed, jitter, (least, least + more))
    found = samples(ball, count, seed=seed)
    ends = corners(ball)
    spreads = [one + other for one, other in zip(fixed, jitter, strict=True)]

    assert 2 ** (sum(each > 0 for each in spreads) + (more > 0)) == len(ends)
    assert count == len(found)
    assert found == samples(ball, count, seed=seed)
    for placement in [*ends, *found]:
        assert least <= placement.scale <= least + more
        for at, start, spread in zip(placement.start_mm, (1, 2, 3), spreads, strict=True):
            assert abs(at - start) <= spread


def test_seeds_differ():
    """Another seed gives other samples."""
    ball = moved(fixed=(5, 5, 5))

    assert samples(ball, 3, seed=1) != samples(ball, 3, seed=2)
