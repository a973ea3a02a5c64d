"""Judgements in sentences: the clause of the contract, what it demands, what was found.

A comparison of two lists or rows says that they differ; who reads a failure needs to know what was
promised, and which of the two was the product's.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

__all__ = [
    "expect_columns",
    "expect_moment",
    "expect_not_cut",
    "expect_same",
    "same_json",
    "texts_of",
]

#: Of a value in a sentence; the rest is in the evidence.
_SHOWN_CHARS = 400

#: Of a long text, by which its begin is known again.
_BEGIN_CHARS = 60


def expect_same(clause: str, *, expected: Any, found: Any, story: str = "") -> None:
    """What was found is what the contract demands.

    Args:
        clause: what is promised, as a sentence without its full stop.
        expected: by the contract.
        found: of the product.
        story: more for the failure.

    Raises:
        AssertionError: it is another.
    """
    assert expected == found, (
        f"{clause}: expected {_shown(expected)}, found {_shown(found)}\n{story}".rstrip()
    )


def expect_moment(what: str, found: object) -> datetime:
    """The time in a text.

    Args:
        what: it is the time of.
        found: of the product.

    Raises:
        AssertionError: it is no time, or of no zone.
    """
    moment = None
    with suppress(ValueError):
        moment = datetime.fromisoformat(str(found))

    assert moment is not None and moment.tzinfo is not None, (  # noqa: PT018 - one promise
        f"{what}: expected an ISO 8601 time with its offset, found {found!r}"
    )
    return moment


def expect_columns(
    clause: str, row: Mapping[str, Any] | None, *, story: str = "", **columns: Any
) -> None:
    """A row, or an answer, has these columns with these values.

    Raises:
        AssertionError: it is not there, lacks one, or has another value; names the first.
    """
    assert row is not None, f"{clause}: expected a row, found none\n{story}".rstrip()
    for name, expected in columns.items():
        assert name in row, f"{clause}: no {name!r} in {sorted(row)}\n{story}".rstrip()
        expect_same(f"{clause} ({name})", expected=expected, found=row[name], story=story)


def expect_not_cut(clause: str, text: str, *, found: str) -> None:
    """A record that has the begin of a text has all of it, or marks where it was cut.

    One that says it in other words is not judged.

    Args:
        clause: what is on record, as a sentence without its full stop.
        text: what was said, in one line.
        found: the record, which may hold more.

    Raises:
        AssertionError: the text ends in the middle, and nothing says so.
    """
    begins = found.find(text[:_BEGIN_CHARS])
    if begins < 0 or text in found:
        return
    pairs = zip(text, found[begins:], strict=False)
    kept = "".join(one for one, _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
    mark = found[begins + len(kept) :].split("\n", maxsplit=1)[0].strip()

    assert mark, (
        f"{clause}, never cut in silence: expected {len(text)} characters or a mark where they are "
        f"cut, found {len(kept)}, which end with {kept[-60:]!r}"
    )


def texts_of(value: Any) -> list[str]:
    """Every text inside a value, however deep."""
    if isinstance(value, Mapping):
        value = list(value.values())
    inner = value if isinstance(value, list) else ()
    return [value] if isinstance(value, str) else [text for one in inner for text in texts_of(one)]


def same_json(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON: 1 and true differ, 1e3 and 1000 are one number."""
    numbers = int | float
    if isinstance(one, bool) or isinstance(other, bool):
        same = one is other
    elif isinstance(one, int) and isinstance(other, int):
        same = one == other
    elif isinstance(one, numbers) and isinstance(other, numbers):
        # 1e30 and 1.0 may come back written without their point, and as no other numbers.
        same = float(one) == float(other)
    elif isinstance(one, dict) and isinstance(other, dict):
        same = one.keys() == other.keys() and all(same_json(one[key], other[key]) for key in one)
    elif isinstance(one, list) and isinstance(other, list):
        same = len(one) == len(other) and all(map(same_json, one, other))
    else:
        same = type(one) is type(other) and one == other
    return bool(same)


def _shown(value: Any) -> str:
    text = repr(value)
    if len(text) <= _SHOWN_CHARS:
        return text
    return f"{text[:_SHOWN_CHARS]}… ({len(text)} characters)"
