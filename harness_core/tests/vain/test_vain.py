"""What several rows of a test waited for in vain, the next do not wait for as long."""

from contextlib import suppress

import pytest

from harness_core.base.vain import VainWaits


class Clock:
    """Time that passes when it is told to."""

    now_s = 0.0

    def __call__(self):
        """What time it is."""
        return self.now_s


@pytest.fixture
def clock():
    """Stands still."""
    return Clock()


@pytest.fixture
def row(clock, monkeypatch):
    """One row of a test waits 80 s for an answer."""
    waits = VainWaits(clock=clock)

    def waiting(test, *, came=False, error=None):
        monkeypatch.setenv("PYTEST_CURRENT_TEST", test)
        with suppress(AssertionError), waits.waiting("an answer", seconds=80) as found:
            if error:
                raise error
            found.came = came
            clock.now_s += 0.1 if came else found.seconds
        return found

    return waiting


def test_after_three_rows_in_vain_the_next_wait_a_part(row):
    """And say so; rows of another test wait in full."""
    rows = [row(f"a.py::test[{n}] (call)") for n in range(5)]
    other = row("a.py::other[1] (call)")

    assert [80, 80, 80, 40, 40] == [row.seconds for row in rows]
    assert ["", "", ""] == [row.note for row in rows[:3]]
    assert " (4 rows before it waited in vain, 3 in full)" == rows[4].note
    assert (80, "") == (other.seconds, other.note)


def test_one_answer_and_all_wait_in_full_again(row):
    """It came within the part, or before the third."""
    rows = [row(f"a.py::test[{n}] (call)", came=n in {2, 6}) for n in range(9)]

    assert [80, 80, 80, 80, 80, 80, 40, 80, 80] == [row.seconds for row in rows]


def test_what_ends_early_was_not_waited_for(row):
    """A connection that is closed, say: it shows nothing of how long an answer takes."""
    rows = [row(f"a.py::test[{n}] (call)", error=AssertionError()) for n in range(5)]

    assert {80} == {row.seconds for row in rows}


def test_outside_of_a_test_nothing_is_shortened(row):
    """Who waits there is not a row of anything."""
    assert {80} == {row("").seconds for _ in range(5)}
