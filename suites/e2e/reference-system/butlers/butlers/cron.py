"""When does a cron line fire next?

`cronsim` is used rather than `croniter`: it follows Debian cron (daylight saving included), is
tested against it minute by minute, has no dependencies, and imports in a millisecond.
"""

from __future__ import annotations

from datetime import UTC, datetime

from butlers import faults

_FIELDS = 5


class CronProblem(ValueError):
    """The line is no cron expression."""


def check(line: str) -> None:
    """Refuse what is no five-field cron line.

    Raises:
        CronProblem: with the reason.
    """
    next_after(line, datetime.now(UTC))


def next_after(line: str, moment: datetime) -> datetime:
    """The first time the line fires strictly after a moment (UTC)."""
    from cronsim import CronSim, CronSimError

    if len(line.split()) != _FIELDS:  # the library would take a sixth, for seconds
        raise CronProblem(f"it has {len(line.split())} fields instead of {_FIELDS}")
    base = moment.astimezone(UTC)
    if faults.on("cron-by-the-wall"):
        base = moment.astimezone().replace(tzinfo=UTC)
    try:
        return next(CronSim(line, base))
    except (CronSimError, StopIteration) as error:
        raise CronProblem(str(error) or "it never fires") from error
