"""Waiting on observables, under deadlines that say what was seen."""

import itertools

import pytest
import trio

from harness_core.base.errors import NotReady
from harness_core.base.wait import deadline, until, until_blocking


@pytest.fixture(autouse=True)
def calm(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with nothing else to do: deadlines are what they say."""
    monkeypatch.setattr("harness_core.base.wait.slowness", lambda: 1.0)


async def test_until_returns_the_first_answer(autojump_clock):
    """``None`` and ``False`` mean not yet; any other answer, an empty one too, ends the wait."""
    answers = iter([None, False, 0, "later"])

    async def probe():
        return next(answers)

    assert 0 == await until(probe)


async def test_until_looks_at_growing_intervals(autojump_clock):
    """The interval starts small, doubles, and stays at a tenth of a second."""
    looks: list[float] = []

    async def probe():
        looks.append(trio.current_time())
        return len(looks) == 12

    await until(probe, poll_s=0.001)

    gaps = [round(after - before, 4) for before, after in itertools.pairwise(looks)]
    assert [0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.1, 0.1, 0.1, 0.1] == gaps


async def test_until_does_not_catch(autojump_clock):
    """An error of the probe ends the wait as itself."""

    async def probe():
        raise KeyError("x")

    with pytest.raises(KeyError):
        await until(probe)


async def test_deadline_says_what_was_waited_for_and_seen(autojump_clock):
    """Expiry is NotReady with action, seconds, what was seen and the tail; in fields and text."""
    began = trio.current_time()
    with (
        pytest.raises(NotReady) as expired,
        deadline(
            "get handshake from sexpd",
            seconds=2.5,
            observed=lambda: "read 3 of 6 prefix bytes",
            tail=lambda: ("booting", "listening"),
        ),
    ):
        await trio.sleep_forever()

    assert 2.5 == trio.current_time() - began
    error = expired.value
    assert "get handshake from sexpd" == error.action
    assert "2.5 s passed, read 3 of 6 prefix bytes" == error.observed
    assert 2.5 == error.waited_s
    assert ("booting", "listening") == error.tail
    assert (
        "cannot get handshake from sexpd: 2.5 s passed, read 3 of 6 prefix bytes.\n"
        "last 2 lines of output:\n  | booting\n  | listening" == str(error)
    )


async def test_deadline_that_saw_nothing_says_only_the_time(autojump_clock):
    """Without an observation the text does not end in a comma."""
    with pytest.raises(NotReady) as expired, deadline("x", seconds=1, observed=lambda: ""):
        await trio.sleep_forever()

    assert "1 s passed" == expired.value.observed


async def test_deadline_that_is_met_does_nothing(autojump_clock):
    """A block that ends in time passes its result on, and reads nothing."""
    with deadline("x", seconds=1, observed=lambda: pytest.fail("was not late")) as scope:
        await trio.lowlevel.checkpoint()

    assert not scope.cancelled_caught


async def test_answer_in_the_last_moment_counts(autojump_clock):
    """A block that has its answer is not late, even when the time runs out while it ends."""
    with deadline("x", seconds=1):
        autojump_clock.jump(2)
        with trio.CancelScope(shield=True):
            await trio.lowlevel.checkpoint()
        answered = True

    assert answered


async def test_cancellation_from_outside_is_no_deadline(autojump_clock):
    """A block cancelled by its caller is cancelled, not late."""
    with trio.move_on_after(1) as outer, deadline("x", seconds=10):
        await trio.sleep_forever()

    assert outer.cancelled_caught
    assert 1 == round(trio.current_time() - outer.deadline + 1)


async def test_error_of_the_block_wins_over_its_deadline(autojump_clock):
    """An error raised on the way out of an expired block is not replaced."""
    with pytest.raises(KeyError), deadline("x", seconds=1):  # noqa: PT012
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            raise KeyError("broken on the way out") from None


async def test_inner_deadline_of_two_is_named(autojump_clock):
    """Of nested deadlines the one that passed first is reported."""
    with pytest.raises(NotReady) as expired, deadline("outer", seconds=2):  # noqa: SIM117
        with deadline("inner", seconds=1):
            await trio.sleep_forever()

    assert "inner" == expired.value.action


def test_until_blocking_answers_or_is_late():
    """Outside a loop the same holds: the first answer, or NotReady after the time."""
    answers = iter([None, False, "yes"])

    assert "yes" == until_blocking(lambda: next(answers), seconds=5, action="see it")
    with pytest.raises(NotReady) as expired:
        until_blocking(lambda: None, seconds=0.01, action="see the end")
    assert "see the end" == expired.value.action
    assert expired.value.waited_s > 0.01


def test_until_blocking_looks_once_at_least():
    """Even without any time an observable that is there is seen."""
    assert 1 == until_blocking(lambda: 1, seconds=0, action="see it")
