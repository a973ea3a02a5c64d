"""Arguments that are dates or times."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from typing import Final

from harness_core.llm.policy._filling import State
from harness_core.llm.policy._parameters import Parameter
from harness_core.llm.policy._when import When
from harness_core.llm.policy._words import stem, word_set

__all__ = ["date_kind", "fill_dates", "is_calendar_part"]

_DATE_WORDS: Final = word_set(
    """
    date day when due deadline birthday until starts ends start end time at on remind datetime
    timestamp
    """
)


#: Times of what has happened: now, unless the message says otherwise.
_EVENT_STEMS: Final = frozenset(
    stem(word)
    for word in word_set(
        """
    observed measured taken eaten logged occurred recorded happened consumed met timestamp
    started felt noted created
    """
    )
)


def fill_dates(state: State, parameters: Sequence[Parameter]) -> None:
    when, now = state.when, state.source.now
    for parameter in parameters:
        if is_calendar_part(parameter):
            value = _calendar_part(parameter, when) if when is not None else None
            if value is not None and when is not None:
                state.put(parameter, value, *when.spans)
            continue
        kind = date_kind(parameter)
        if not kind:
            continue
        if when is not None and (kind != "time" or when.time is not None):
            past = bool(parameter.name_stems & _EVENT_STEMS)
            state.put(parameter, _written(kind, when.moment(now, past=past)), *when.spans)
        elif parameter.required and parameter.name_stems & _EVENT_STEMS:
            state.put(parameter, _written(kind, now), evident=False)


def is_calendar_part(parameter: Parameter) -> bool:
    parts = {"year", "month", "day", "hour", "minute"}
    return "integer" in parameter.types and bool(parameter.words & parts)


def _calendar_part(parameter: Parameter, when: When) -> int | None:
    if when.date is not None:
        if "year" in parameter.words:
            return when.date.year if when.stated_year else None
        if "month" in parameter.words:
            return when.date.month
        if "day" in parameter.words:
            return when.date.day
    if when.time is not None:
        if "hour" in parameter.words:
            return when.time.hour
        if "minute" in parameter.words:
            return when.time.minute
    return None


def date_kind(parameter: Parameter) -> str:
    """``date``, ``date-time``, ``time``, or empty for a parameter that is none of them."""
    if not parameter.accepts("string") or parameter.enum:
        return ""
    if parameter.format in ("date", "date-time", "time"):
        return parameter.format
    return _told_kind(parameter) if _is_told(parameter) else ""


def _is_told(parameter: Parameter) -> bool:
    """Whether name and description say that it is a date; a name like "on" alone says little."""
    prose = parameter.description
    if re.search(r"YYYY|ISO[ -]?8601", prose):
        return True
    dated = re.search(r"\bdate\b|\btimestamp\b|\btime\b|\bwhen\b|HH:MM", prose, re.IGNORECASE)
    return bool(parameter.words & _DATE_WORDS) and (bool(dated) or not prose)


def _told_kind(parameter: Parameter) -> str:
    prose = parameter.description
    if "YYYY" not in prose and "HH:MM" in prose:
        return "time"
    if re.search(r"YYYY-MM-DD(?![T ]HH)", prose) and not re.search(r"T?HH", prose):
        return "date"
    timed = re.search(
        r"date-?time|timestamp|ISO[ -]?8601.{0,20}time|\btime\b", prose, re.IGNORECASE
    )
    if timed or "HH" in prose or parameter.words & {"at", "time", "datetime", "timestamp"}:
        return "date-time"
    return "date"


def _written(kind: str, moment: dt.datetime) -> str:
    if kind == "date":
        return moment.date().isoformat()
    if kind == "time":
        return moment.time().isoformat("minutes")
    return moment.isoformat(timespec="seconds")
