"""When something was written: the time in a line of a log, or in a field of a row."""

from __future__ import annotations

import datetime as dt
import re
from functools import lru_cache
from typing import Final

#: A moment as logs and rows write it, with or without a zone.
_MOMENT: Final = re.compile(
    r"(\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?\s{0,1}(Z\b|UTC\b|[+-]\d\d:?\d\d)?"
)

#: A line begins with its moment, or a few words before it.
_WITHIN_CHARS: Final = 120


def stamp_of(line: str) -> float | None:
    """The moment that stands at the front of a line, in seconds since 1970; ``None`` for none.

    A moment without a zone is one of this machine.
    """
    found = _MOMENT.search(line, 0, _WITHIN_CHARS)
    if found is None:
        return None
    second, fraction, zone = found.groups()
    whole = _whole(second, zone or "")
    if whole is None:
        return None
    return whole + (float(f"0.{fraction}") if fraction else 0.0)


def without_stamp(line: str) -> str:
    """A line without the moment that it begins with."""
    found = _MOMENT.match(line)
    return line[found.end() :].lstrip() if found is not None else line


@lru_cache(maxsize=4096)
def _whole(second: str, zone: str) -> float | None:
    """A moment to the second; many lines have the same."""
    zone = "+00:00" if zone in {"Z", "UTC"} else zone
    try:
        return dt.datetime.fromisoformat(second.replace("/", "-") + zone).timestamp()
    except (ValueError, OverflowError):
        return None
