"""What was expected beside what was found, in a sentence: times with their zone, and whole values."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

__all__ = ["consecutive", "expect_same", "expect_times", "expect_unchanged", "in_order", "utc"]

#: A time as JSON has it; other texts that look so are none of ours.
_TIME: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}\S*")
#: The zone of a stack of the suite is farther from UTC than this, and such a stack is younger.
_AGO: Final = timedelta(hours=4)
#: Clocks are those of one machine; an answer takes its time.
_AHEAD: Final = timedelta(minutes=1)

#: Of a value that differs, in a message.
_SHOWN: Final = 400


def expect_same(expected: object, found: object, *, what: str) -> None:
    """Assert that two values are equal; of mappings and sequences the parts that differ are shown.

    Args:
        expected: what the contract says.
        found: what the product has.
        what: of which both speak; begins the sentence.
    """
    assert expected == found, f"{what}: {_difference(expected, found)}"


def expect_unchanged(before: Mapping[str, Any], now: Mapping[str, Any], *, what: str) -> None:
    """Assert that an episode is as it was; that Langfuse has been told of it since is no change."""
    links = {trace["id"]: trace["langfuse_trace_id"] for trace in now["traces"]}
    traces = [
        {**trace, "langfuse_trace_id": trace["langfuse_trace_id"] or links.get(trace["id"])}
        for trace in before["traces"]
    ]
    expect_same({**before, "traces": traces}, now, what=what)


def utc(found: object, *, what: str) -> datetime:
    """A time of the product: ISO 8601, with its zone, which is UTC."""
    assert isinstance(found, str), f"{what}: expected a time, found {found!r}"
    try:
        time = datetime.fromisoformat(found)
    except ValueError as error:
        raise AssertionError(f"{what}: expected a time, found {found!r}") from error
    assert time.tzinfo is not None, f"{what}: expected a time with its zone, found {found!r}"
    assert time.utcoffset() == timedelta(0), f"{what}: expected a time in UTC, found {found!r}"
    return time


def expect_times(body: object, *, what: str) -> None:
    """Assert that every time in an answer is one of the last hours, in UTC and with its zone."""
    now = datetime.now(UTC)
    for place, text in _texts(body, ""):
        if _TIME.fullmatch(text):
            at = utc(text, what=f"{place} of {what}")
            assert now - _AGO < at < now + _AHEAD, (
                f"{place} of {what}: expected a time before {now}, as it is in UTC, found {at}"
            )


def _texts(value: object, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from _texts(each, f"{place}.{key}" if place else str(key))
    elif isinstance(value, Sequence):
        for number, each in enumerate(value):
            yield from _texts(each, f"{place}[{number}]")


def in_order(times: Iterable[datetime], *, what: str) -> None:
    """Assert that no time is before the one that stands before it."""
    found = list(times)
    wrong = [pair for pair in itertools.pairwise(found) if pair[0] > pair[1]]

    assert not wrong, f"{what}: expected times in order, found {wrong[0][1]} after {wrong[0][0]}"


def consecutive(numbers: Iterable[int], *, what: str) -> None:
    """Assert that numbers count from 1 without gap, double or disorder."""
    found = list(numbers)
    wrong = [(n, number) for n, number in enumerate(found, start=1) if n != number]

    assert not wrong, (
        f"{what}: expected numbers from 1 on, each by one more than the last, found "
        f"{wrong[0][1]} in place {wrong[0][0]} of {len(found)} (a gap, a double or disorder)"
    )


def _difference(expected: object, found: object) -> str:
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        keys = sorted({*expected, *found}, key=str)
        wrong = [key for key in keys if expected.get(key, _NONE) != found.get(key, _NONE)]
        return "; ".join(
            f"{key}: {_difference(expected.get(key, _NONE), found.get(key, _NONE))}"
            for key in wrong[:5]
        )
    if _is_row(expected) and _is_row(found) and len(expected) == len(found):
        number, pair = next(
            (number, pair)
            for number, pair in enumerate(zip(expected, found, strict=True))
            if pair[0] != pair[1]
        )
        return f"in place {number} of {len(expected)}, {_difference(*pair)}"
    return f"expected {_shown(expected)}, found {_shown(found)}"


def _is_row(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"


class _None:
    def __repr__(self) -> str:
        return "nothing"


_NONE: Final = _None()
