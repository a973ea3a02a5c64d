"""The table of a benchmark: honest about what was not measured."""

from __future__ import annotations

import pytest

from benchmarks import Table


def test_medians_and_ratio() -> None:
    """A contender is shown by its median and its ratio to ours."""
    table = Table("t", ours="a", contenders=("a", "b"))
    for seconds in (0.001, 0.009, 0.002):
        table.add("a", seconds)
    table.add("b", 0.008)
    lines = table.text().splitlines()

    assert () == table.failures
    assert ["a", "2.000", "1.000", "9.000", "3"] == lines[2].split()
    assert ["b", "8.000", "8.000", "8.000", "1", "4.0", "x"] == lines[3].split()


def test_what_failed_is_a_failure() -> None:
    """No samples, or one failed round, is said and counted."""
    table = Table("t", ours="a", contenders=("a", "b", "c"))
    table.add("a", 0.001)
    table.fail("a", "once")
    table.fail("b", "no binary")

    assert ("a", "b", "c") == table.failures
    assert "not measured: no binary" in table.text()
    assert "not measured: no run" in table.text()
    assert "failed once: once" in table.text()


def test_a_block_that_raises_gives_no_sample() -> None:
    """An aborted start is no fast start."""
    table = Table("t", ours="a", contenders=("a",))
    with pytest.raises(ZeroDivisionError), table.measure("a"):
        _ = 1 / 0

    assert [] == table.samples_s["a"]
