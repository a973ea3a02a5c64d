"""Dates and times in a text, relative to a given now."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from harness_core.llm.policy._words import word_list

__all__ = ["When", "find_when"]

_WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS: Final = word_list(
    """
    january february march april may june july august september october november december
    """
)
_MONTH: Final = "|".join(f"{month}|{month[:3]}" for month in _MONTHS) + "|sept"
_NUMBER_WORDS: Final = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5,
                        "six": 6, "seven": 7, "ten": 10}  # fmt: skip
_COUNT: Final = r"\d+|" + "|".join(_NUMBER_WORDS)
_UNIT: Final = r"minute|hour|day|week|month|year"

#: Hours meant by parts of a day.
_DAY_PARTS: Final = {"morning": 9, "noon": 12, "lunchtime": 12, "afternoon": 15, "evening": 18,
                     "tonight": 20, "night": 20, "midnight": 0}  # fmt: skip

#: A date without a time, where a time is wanted: the beginning of a working day.
_DEFAULT_HOUR: Final = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class When:
    """A date, a time, or both, as a text states them.

    Attributes:
        spans: where in the text.
        stated_year: the year was written, not inferred.
    """

    date: dt.date | None = None
    time: dt.time | None = None
    spans: tuple[tuple[int, int], ...] = ()
    stated_year: bool = False

    def moment(self, now: dt.datetime, *, past: bool = False) -> dt.datetime:
        """Date and time with what is missing filled in: today, or nine in the morning.

        Args:
            now: what is not stated is taken from here.
            past: it tells when something happened, rather than when something is to happen.
        """
        date = self.date or now.date()
        time = self.time or dt.time(_DEFAULT_HOUR)
        found = dt.datetime.combine(date, time, tzinfo=now.tzinfo)
        if self.date is None and not past and found < now.replace(second=0, microsecond=0):
            # "at 8" said at 10 means tomorrow's 8.
            found += dt.timedelta(days=1)
        return found


_Found = tuple[dt.date | None, dt.time | None, bool]


def find_when(text: str, *, now: dt.datetime) -> When | None:
    """The first date and the first time of a text; ``None`` when it states neither."""
    date: dt.date | None = None
    time: dt.time | None = None
    stated_year = False
    spans: list[tuple[int, int]] = []
    for pattern, read in _PATTERNS:
        for match in pattern.finditer(text):
            if any(low < match.end() and match.start() < high for low, high in spans):
                continue
            found = read(match, now)
            if found is None:
                continue
            new_date, new_time, year = found
            spans.append(match.span())
            if date is None and new_date is not None:
                date, stated_year = new_date, year
            if time is None and new_time is not None:
                time = new_time
    if not spans:
        return None
    return When(date=date, time=time, spans=tuple(sorted(spans)), stated_year=stated_year)


def _iso(match: re.Match[str], now: dt.datetime) -> _Found | None:  # noqa: ARG001
    try:
        date = dt.date(int(match["y"]), int(match["m"]), int(match["d"]))
        hour = match["h"]
        time = dt.time(int(hour), int(match["min"]), int(match["s"] or 0)) if hour else None
    except ValueError:
        return None
    return date, time, True


def _named_day(match: re.Match[str], now: dt.datetime) -> _Found | None:
    day = match["day"].lower()
    offset = {"yesterday": -1, "tomorrow": 1, "tonight": 0, "today": 0}.get(day, 0)
    day = re.sub(r"^the\s+", "", day)
    if day.startswith("day after"):
        offset = 2
    elif day.startswith("day before"):
        offset = -2
    part = "tonight" if day == "tonight" else (match["part"] or "").lower()
    time = dt.time(_DAY_PARTS[part]) if part else None
    return now.date() + dt.timedelta(days=offset), time, True


def _this_part(match: re.Match[str], now: dt.datetime) -> _Found | None:
    part = match["part"].lower()
    last = match["which"].lower() == "last"
    return (
        now.date() - dt.timedelta(days=int(last)),
        dt.time(_DAY_PARTS[part]),
        True,
    )


def _weekday(match: re.Match[str], now: dt.datetime) -> _Found | None:
    wanted = _WEEKDAYS.index(match["day"].lower())
    ahead = (wanted - now.weekday()) % 7
    which = (match["which"] or "").lower()
    if which == "last":
        ahead = ahead - 7 if ahead else -7
    elif ahead == 0:
        ahead = 7
    part = (match["part"] or "").lower()
    time = dt.time(_DAY_PARTS[part]) if part else None
    return now.date() + dt.timedelta(days=ahead), time, True


def _relative(match: re.Match[str], now: dt.datetime) -> _Found | None:
    word = match["count"].lower()
    count = int(word) if word.isdecimal() else _NUMBER_WORDS[word]
    sign = -1 if (match["ago"] or "") else 1
    if not match["ago"] and not match["in"]:
        return None
    unit = match["unit"].lower()
    if count > 10_000:  # noqa: PLR2004 - dates end at the year 9999
        return None
    if unit in ("minute", "hour"):
        moved = now + sign * dt.timedelta(**{unit + "s": count})
        return moved.date(), moved.time().replace(microsecond=0, tzinfo=None), True
    days = {"day": 1, "week": 7, "month": 30, "year": 365}[unit] * count
    try:
        return now.date() + sign * dt.timedelta(days=days), None, True
    except OverflowError:
        return None


def _next_span(match: re.Match[str], now: dt.datetime) -> _Found | None:
    sign = -1 if match["which"].lower() == "last" else 1
    days = {"week": 7, "month": 30, "year": 365}[match["unit"].lower()]
    return now.date() + sign * dt.timedelta(days=days), None, True


def _month_day(match: re.Match[str], now: dt.datetime) -> _Found | None:
    month = [name[:3] for name in _MONTHS].index(match["month"].lower()[:3]) + 1
    year = int(match["year"]) if match["year"] else now.year
    try:
        date = dt.date(year, month, int(match["dom"]))
        if not match["year"] and date < now.date():
            date = date.replace(year=year + 1)
    except ValueError:
        return None
    return date, None, bool(match["year"])


def _clock(match: re.Match[str], now: dt.datetime) -> _Found | None:  # noqa: ARG001
    hour, minute = int(match["h"]), int(match["min"] or 0)
    half = (match["half"] or "").lower().replace(".", "")
    if half == "pm" and hour < 12:  # noqa: PLR2004 - hours of half a day
        hour += 12
    elif half == "am" and hour == 12:  # noqa: PLR2004
        hour = 0
    try:
        return None, dt.time(hour, minute), False
    except ValueError:
        return None


def _at_part(match: re.Match[str], now: dt.datetime) -> _Found | None:  # noqa: ARG001
    return None, dt.time(_DAY_PARTS[match["part"].lower()]), False


_PART: Final = (
    r"(?:\s+(?:in the\s+|at\s+)?(?P<part>morning|noon|lunchtime|afternoon|evening|night))?"
)
_Reader = Callable[[re.Match[str], dt.datetime], _Found | None]


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)


#: In order of trust; a span read by one is closed to those below.
_PATTERNS: Final[tuple[tuple[re.Pattern[str], _Reader], ...]] = (
    (
        _pattern(
            r"\b(?P<y>\d{4})[-/](?P<m>\d\d)[-/](?P<d>\d\d)"
            r"(?:[T ](?P<h>\d\d):(?P<min>\d\d)(?::(?P<s>\d\d))?(?:Z|[+-]\d\d:?\d\d)?)?"
        ),
        _iso,
    ),
    (
        _pattern(
            rf"\b(?:on\s+)?(?:the\s+)?(?P<month>{_MONTH})\.?\s+(?P<dom>\d{{1,2}})(?:st|nd|rd|th)?"
            r"(?:,?\s+(?P<year>\d{4}))?\b"
        ),
        _month_day,
    ),
    (
        _pattern(
            r"\b(?:on\s+)?(?:the\s+)?(?P<dom>\d{1,2})(?:st|nd|rd|th)?\s+(?:of\s+)?"
            rf"(?P<month>{_MONTH})\b\.?(?:,?\s+(?P<year>\d{{4}})\b)?"
        ),
        _month_day,
    ),
    (
        _pattern(
            r"\b(?P<day>(?:the\s+)?day after tomorrow|(?:the\s+)?day before yesterday|today|tonight"
            rf"|tomorrow|yesterday)\b{_PART}"
        ),
        _named_day,
    ),
    (
        _pattern(r"\b(?P<which>this|last)\s+(?P<part>morning|afternoon|evening|night)\b"),
        _this_part,
    ),
    (
        _pattern(
            r"\b(?:on\s+)?(?:(?P<which>next|this|last|coming)\s+)?"
            rf"(?P<day>{'|'.join(_WEEKDAYS)})\b{_PART}"
        ),
        _weekday,
    ),
    (
        _pattern(rf"\b(?P<in>in\s+)?(?P<count>{_COUNT})\s+(?P<unit>{_UNIT})s?\b(?P<ago>\s+ago)?"),
        _relative,
    ),
    (_pattern(r"\b(?P<which>next|last)\s+(?P<unit>week|month|year)\b"), _next_span),
    (
        _pattern(
            r"\b(?:at\s+)?(?P<h>\d{1,2})(?::(?P<min>\d\d))?\s?(?P<half>a\.?m\.?|p\.?m\.?)(?!\w)"
        ),
        _clock,
    ),
    (_pattern(r"\b(?:at\s+)?(?P<h>\d{1,2}):(?P<min>\d\d)(?P<half>)(?!\d)"), _clock),
    (
        _pattern(r"\bat\s+(?P<h>\d{1,2})(?P<min>)(?P<half>)(?:\s+o'?clock)?(?!\s*[\w%°/]|[.,:]\d)"),
        _clock,
    ),
    (_pattern(r"\b(?:at|in the|by)\s+(?P<part>noon|midnight|lunchtime|morning|afternoon|evening)\b"),
     _at_part),
)  # fmt: skip
