"""What some waited for in vain, the next do not wait for as long."""

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
def wait():
    """One wait of a process: ``after`` is the part of it after which an answer comes, if one does."""
    clock = Clock()
    waits = VainWaits(least_s=3, clock=clock)

    def waiting(seconds=80, *, after=None, error=None):
        with suppress(AssertionError), waits.waiting(seconds=seconds) as found:
            if error:
                raise error
            found.came = after is not None
            clock.now_s += found.seconds * (1 if after is None else after)
        return found

    return waiting


def test_after_one_in_vain_the_next_are_shorter(wait):
    """Half, then a fifth, then a tenth; each says so."""
    waits = [wait() for _ in range(8)]

    assert [80, 40, 16, 16, 16, 16, 8, 8] == [each.seconds for each in waits]
    assert ["", " (80 s, before one wait was in vain)"] == [each.note for each in waits[:2]]
    assert " (80 s, before 3 waits were in vain)" == waits[3].note


def test_answers_that_come_at_once_change_nothing(wait):
    """Half of a product is sound, and its other half silent."""
    waits = [wait(after=0.1 if n % 2 else None) for n in range(8)]

    assert [80, 40, 40, 16, 16, 16, 16, 16] == [each.seconds for each in waits]


def test_answers_that_come_late_make_waits_longer_again(wait):
    """The product is slow, not silent; one that is late within a wait in full shows nothing new."""
    few = [wait(after={0: 0.9, 2: 0.9}.get(n)) for n in range(4)]
    for _ in range(9):
        wait()
    many = [wait(after=0.9) for _ in range(4)]

    assert [80, 80, 40, 80] == [each.seconds for each in few]
    assert [8, 16, 40, 80] == [each.seconds for each in many]


def test_none_is_shorter_than_a_right_answer_may_take(wait):
    """What the suite says, and half of it when many were in vain; what is shorter by itself stays as it is."""
    for _ in range(2):
        wait()

    assert [16, 3, 3, 2] == [wait(seconds).seconds for seconds in (80, 10, 3, 2)]
    assert [8, 1.5, 1.5, 1] == [wait(seconds).seconds for seconds in (80, 10, 3, 1)]
    assert "" == wait(1).note


def test_what_answers_alike_is_left_twice_what_one_has_taken():
    """A real model takes half a minute, and one message that hangs shortens no wait below that."""
    clock = Clock()
    waits = VainWaits(least_s=3, alike=True, clock=clock)
    found = []
    for took_s in (30, *[None] * 8, 59):
        with waits.waiting(seconds=120) as each:
            each.came = took_s is not None
            clock.now_s += each.seconds if took_s is None else took_s
        found.append(each.seconds)

    assert [120, 120, *[60] * 8] == found


def test_what_ends_early_was_not_waited_for(wait):
    """A connection that is closed, say: it shows nothing of how long an answer takes."""
    waits = [wait(error=AssertionError()) for _ in range(5)]

    assert {80} == {each.seconds for each in waits}
