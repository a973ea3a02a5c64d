"""Shards divide: each name is in exactly one, and none takes much longer than another."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_core.assurance.shards import Shard, names_of
from harness_core.base.errors import BadInput

names = st.lists(st.text(max_size=30), max_size=60)
durations = st.dictionaries(st.text(max_size=30), st.floats(0, 1e6), max_size=60)


@given(names=names, seconds=durations, count=st.integers(1, 12), order=st.randoms())
def test_each_name_is_in_exactly_one_shard(names, seconds, count, order):
    """Whatever is measured and in whatever order the names come, the shards are a partition."""
    parts = []
    for number in range(1, count + 1):
        # Each machine collects in an order of its own.
        order.shuffle(names)
        parts.append(names_of(Shard(number, count), names, seconds=seconds))

    assert sorted(set(names)) == sorted(name for part in parts for name in part)


@given(lengths=st.lists(st.floats(0.001, 100), min_size=1, max_size=60), count=st.integers(1, 12))
def test_no_shard_is_longer_than_another_by_more_than_one_test(lengths, count):
    """The longest shard without its last test is no longer than the shortest."""
    seconds = {f"test-{number}": length for number, length in enumerate(lengths)}

    loads = [
        sum(seconds[name] for name in names_of(Shard(number, count), seconds, seconds=seconds))
        for number in range(1, count + 1)
    ]

    assert max(loads) - min(loads) <= max(lengths) * (1 + 1e-9)


@given(total=st.integers(0, 60), count=st.integers(1, 12))
def test_without_durations_the_numbers_are_equal(total, count):
    """Nothing measured: the shards differ by one test at most."""
    names = [f"test-{number}" for number in range(total)]

    sizes = [len(names_of(Shard(n, count), names, seconds={})) for n in range(1, count + 1)]

    assert max(sizes) - min(sizes) <= 1


def test_a_new_name_counts_as_the_mean():
    """One long test and four new ones in two shards: the new ones do not all join the same side."""
    seconds = {"long": 30.0, "short": 10.0}
    new = [f"new-{number}" for number in range(4)]

    first = names_of(Shard(1, 2), [*seconds, *new], seconds=seconds)

    # Each new one counts 20 s: 120 s in all, so 60 s on each side, to within one test.
    assert abs(sum(seconds.get(name, 20.0) for name in first) - 60.0) <= 10.0


def test_the_division_is_the_same_everywhere():
    """It is written down here, so another machine or Python that divides otherwise is seen."""
    names = [f"tests/test_a.py::test_{letter}" for letter in "abcdefgh"]
    random.shuffle(names)

    chosen = names_of(Shard(1, 3), names, seconds={"tests/test_a.py::test_c": 2.0})

    assert ["a", "e", "f"] == sorted(name[-1] for name in chosen)


@pytest.mark.parametrize("text", ["", "1", "0/3", "4/3", "-1/3", "1/0", "1/3/5", "a/b", "1 / 3"])
def test_what_is_no_shard_is_refused(text):
    """The error shows what was given and what would do."""
    with pytest.raises(BadInput, match=r"expected I/N with 1 <= I <= N") as caught:
        Shard.parse(text)

    assert text == caught.value.found


def test_a_shard_is_read_and_written_alike():
    """2/3 is the second of three."""
    assert Shard(2, 3) == Shard.parse("2/3")
    assert "2/3" == str(Shard(2, 3))
