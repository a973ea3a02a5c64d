"""Exception groups of one are opened; others stay what they are."""

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_core.base.errors import HarnessError, Unavailable
from harness_core.base.groups import lone_error, unwrap


def test_unwrap_opens_groups_of_one():
    """However deep one error is wrapped, it comes out; two stay a group."""
    error = KeyError("x")
    two = BaseExceptionGroup("", [error, ValueError()])

    assert unwrap(ExceptionGroup("", [ExceptionGroup("", [error])])) is error
    assert unwrap(ExceptionGroup("", [two])) is two
    assert unwrap(error) is error


@pytest.mark.parametrize("cause", [None, ValueError("cause")])
async def test_lone_error_out_of_a_nursery(cause):
    """A lone error leaves as itself; what it was raised in is not replaced by the group."""

    async def fail() -> None:
        try:
            raise LookupError("context")  # noqa: TRY301
        except LookupError:
            if cause is not None:
                raise KeyError("x") from cause
            raise KeyError("x")  # noqa: B904 - the point of the test

    with pytest.raises(KeyError) as raised:
        async with lone_error(), trio.open_nursery() as nursery:
            nursery.start_soon(fail)

    assert raised.value.__cause__ is cause
    assert isinstance(raised.value.__context__, LookupError)
    assert raised.value.__suppress_context__ is (cause is not None)


async def test_several_errors_stay_a_group():
    """Two errors are shown both."""

    async def fail(error: Exception) -> None:
        raise error

    with pytest.raises(ExceptionGroup) as raised:  # noqa: PT012
        async with lone_error(), trio.open_nursery() as nursery:
            nursery.start_soon(fail, KeyError())
            nursery.start_soon(fail, ValueError())

    assert {KeyError, ValueError} == {type(error) for error in raised.value.exceptions}


async def test_errors_outside_groups_pass():
    """An error that was never wrapped passes unchanged."""
    error = KeyError()
    with pytest.raises(KeyError) as raised:
        async with lone_error():
            raise error

    assert raised.value is error


async def test_several_harness_errors_are_the_first_with_notes():
    """Of several things that could not start side by side one is raised, and all are shown."""

    async def fail(name: str, observed: str) -> None:
        raise Unavailable(f"start {name}", observed=observed)

    with pytest.raises(Unavailable) as raised:  # noqa: PT012
        async with lone_error(), trio.open_nursery() as nursery:
            nursery.start_soon(fail, "a", "no such program")
            nursery.start_soon(fail, "b", "it is full")
    text = "\n".join([str(raised.value), *raised.value.__notes__])

    assert "cannot start a: no such program." in text
    assert "cannot start b: it is full." in text


async def test_one_cause_of_several_is_shown_once():
    """With everything that could not be done for it."""
    errors = [Unavailable(f"start {name}", observed="no such program") for name in "abc"]
    error = unwrap(BaseExceptionGroup("", errors))

    assert errors[0] is error
    assert ["for the same reason cannot start b, cannot start c"] == error.__notes__


def test_several_assertions_are_the_first_with_notes():
    """So a failure begins with what was expected, not with how many there were."""
    errors = [AssertionError("expected 1, found 2"), AssertionError("gone"), AssertionError("gone")]
    nested = ExceptionGroup("", [*errors[1:], AssertionError("expected 1, found 2")])

    assert errors[0] is unwrap(ExceptionGroup("Exceptions from Trio nursery", [errors[0], nested]))
    assert ["at the same time: gone"] == errors[0].__notes__


def test_an_example_that_fails_in_two_ways_says_so():
    """What Hypothesis found out about it is not lost with the group."""
    seen = []

    @given(st.integers())
    @settings(max_examples=1, database=None)
    def check(number):
        seen.append(number)
        if len(seen) == 1:
            raise AssertionError("expected an answer")
        raise AssertionError("gone")

    with pytest.raises(ExceptionGroup) as raised:
        check()
    error = unwrap(raised.value)

    assert "expected an answer" == str(error)
    assert error.__notes__[0].startswith("Inconsistent results")
    assert "at the same time: gone" == error.__notes__[1]


def test_an_assertion_beside_another_error_stays_a_group():
    """What raised something else may be no failure of the product."""
    group = ExceptionGroup("", [AssertionError("x"), OSError("y")])

    assert unwrap(group) is group


def test_a_harness_error_beside_a_failure_stays_a_group():
    """A failure of the product is never hidden behind a harness error."""
    group = BaseExceptionGroup("", [HarnessError("x", observed="y"), AssertionError("z")])

    assert unwrap(group) is group
