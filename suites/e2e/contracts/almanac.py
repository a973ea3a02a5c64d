"""When a cron line fires next: an almanac of our own, looked up minute by minute of a matching day.

Five fields of numbers: ``*``, lists, ranges and steps. Lines that restrict the day of the month and
the day of the week both are read in two ways by different products, and are no part of it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Final
from zoneinfo import ZoneInfo

__all__ = ["next_times"]

_BOUNDS: Final = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))

#: Eight years hold a 29th of February on each of them that has one, also around 2100.
_DAYS: Final = 9 * 366

_SUNDAYS: Final = (0, 7)


def next_times(line: str, after: dt.datetime, *, zone: ZoneInfo) -> frozenset[dt.datetime]:
    """The moments at which a line may fire first after another one, in UTC.

    A time that does not exist may come earlier or later by the change of the clock, and one that
    exists twice at either.

    Args:
        line: five fields.
        after: when it is asked, with its zone.
        zone: of the clock it is read by.
    """
    return frozenset(_first(line, after, zone, fold=fold) for fold in (0, 1))


def _first(line: str, after: dt.datetime, zone: dt.tzinfo, *, fold: int) -> dt.datetime:
    for wall in _walls(line, after.astimezone(zone).date() - dt.timedelta(days=1)):
        moment = wall.replace(tzinfo=zone, fold=fold).astimezone(dt.UTC)
        if moment > after:
            return moment
    message = f"{line!r} does not fire within {_DAYS} days of {after}"
    raise ValueError(message)


def _walls(line: str, day: dt.date) -> Iterator[dt.datetime]:
    """The times on a wall clock at which a line fires, from a day on."""
    minutes, hours, days, months, weekdays = (
        _values(field, low, high) for field, (low, high) in zip(line.split(), _BOUNDS, strict=True)
    )
    if weekdays & set(_SUNDAYS):
        weekdays |= set(_SUNDAYS)
    for _ in range(_DAYS):
        if day.month in months and day.day in days and day.isoweekday() in weekdays:
            for hour in sorted(hours):
                for minute in sorted(minutes):
                    yield dt.datetime.combine(day, dt.time(hour, minute))
        day += dt.timedelta(days=1)


def _values(field: str, low: int, high: int) -> set[int]:
    found: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        first, _, last = (f"{low}-{high}" if span == "*" else span).partition("-")
        end = int(last) if last else (high if step else int(first))
        found.update(range(int(first), end + 1, int(step or 1)))
    return found
