"""What some waited for in vain, the next do not wait for as long."""

from contextlib import suppress

import pytest

from harness_core.base import vain
from harness_core.base.vain import VainWaits, share_waits
from harness_core.tests.plugin.inner import Inner


class Clock:
    """Time that passes when it is told to."""

    now_s = 0.0

    def __call__(self):
        """What time it is."""
        return self.now_s


@pytest.fixture(autouse=True)
def _alone(monkeypatch):
    """A worker that runs these tests tells nobody of their waits."""
    monkeypatch.setattr(vain, "_shared", [])


@pytest.fixture
def wait():
    """One wait of a process: ``after`` is the part of it after which an answer comes, if one does."""
    clock = Clock()
    waits = VainWaits("tests", least_s=3, clock=clock)

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
    waits = VainWaits("tests", least_s=3, alike=True, clock=clock)
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


@pytest.fixture
def process(tmp_path):
    """One process of a run, with the waits of a name: each call waits once."""
    share_waits(tmp_path / "waits")

    def made(name, **options):
        clock = Clock()
        waits = VainWaits(name, least_s=3, clock=clock, **options)

        def waiting(seconds=80, *, after=None):
            with waits.waiting(seconds=seconds) as found:
                found.came = after is not None
                clock.now_s += found.seconds * (1 if after is None else after)
            return found.seconds

        return waiting

    return made


def test_processes_of_a_run_tell_each_other(process):
    """One waits in vain, the other less; late answers of any make the waits of all longer again."""
    one, two = process("answers"), process("answers")
    in_turn = [one(), two(), one(), two(), one()]
    late = [two(after=0.9), one()]

    assert [80, 40, 16, 16, 16] == in_turn
    assert [16, 16] == late
    assert [80, 40] == [process("ticks")() for _ in range(2)]


def test_who_comes_later_is_told_too(process):
    """A worker that is started anew waits as the others do; what is alike has the slowest of all."""
    first = process("ends", alike=True)
    first(120, after=0.25)
    for _ in range(6):
        first(120)

    assert 60 == process("ends", alike=True)(120)


def test_a_line_that_is_not_whole_is_read_when_it_is(process, tmp_path):
    """Another process may be in the middle of it."""
    waits, told = process("answers"), tmp_path / "waits"
    told.write_text("answers in-va")
    before = waits(after=0)
    told.write_text("answers in-vain 80.000\n")

    assert (80, 40) == (before, waits(after=0))


#: Two tests, for two workers: the second waits when the first has, in vain.
WORKERS = """
import os
from pathlib import Path

from harness_core.base.vain import VainWaits
from harness_core.base.wait import until_blocking

WORKER, WRITTEN, DONE = os.environ["PYTEST_XDIST_WORKER"], Path("written"), Path("done")

def test_one():
    with VainWaits("answers", least_s=1, clock=iter((0.0, 80.0)).__next__).waiting(seconds=80):
        pass
    WRITTEN.write_text(WORKER)
    WRITTEN.rename(DONE)

def test_two():
    until_blocking(DONE.exists, seconds=60, action="wait for the other worker")
    assert DONE.read_text() != WORKER
    with VainWaits("answers", least_s=1).waiting(seconds=80) as wait:
        assert 40 == wait.seconds
"""


def test_a_worker_knows_what_another_waited_for(tmp_path):
    """In each run anew: a second one knows nothing of the first."""
    inner = Inner(tmp_path)
    for _ in range(2):
        done = inner.run("-n", "2", files={"test_two.py": WORKERS})
        (inner.root / "done").unlink()

        assert 0 == done.returncode, done.stdout
