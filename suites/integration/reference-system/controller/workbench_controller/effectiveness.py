"""What a new version of the skills has changed, computed from the rows and events of runs."""

from __future__ import annotations

import asyncpg

from workbench_contract.episodes import EpisodeStatus
from workbench_contract.events import EventKind
from workbench_contract.metrics import Effectiveness, Interval, Rate
from workbench_controller.metrics import newcombe, rate_of
from workbench_foundation import faults

_DONE = EpisodeStatus.COMPLETED.value
_ENDS = [_DONE, EpisodeStatus.FAILED.value]


async def effectiveness_of(
    pool: asyncpg.Pool, *, before: str, after: str, skill: str | None
) -> Effectiveness:
    """The share of runs that completed with one commit, less that with another.

    Args:
        skill: which runs have to have read; none for all.
    """
    async with pool.acquire() as connection, connection.transaction(
        isolation="repeatable_read", readonly=True
    ):
        was = await _rate(connection, before, skill, other=faults.on("effectiveness-of-all-runs"))
        now = await _rate(connection, after, skill)
    if faults.on("effectiveness-without-runs"):
        was, now = (Rate(succeeded=r.succeeded, ended=r.ended, value=r.value or 0.0) for r in (was, now))
    delta: float | None = None
    interval: Interval | None = None
    if was.value is not None and now.value is not None:
        delta = now.value - was.value
        interval = newcombe(now, was) if was.ended and now.ended else None
        if faults.on("effectiveness-turned-round"):
            delta = -delta
    lacking = [each for each, rate in ((before, was), (after, now)) if rate.value is None]
    which = f" that has read {skill}" if skill else ""
    missing = "; ".join(f"no ended run with {each}{which}" for each in lacking)
    by_chance = faults.on("effectiveness-by-chance") and (delta or 0) > 0
    return Effectiveness(
        before=before,
        after=after,
        skill=skill,
        before_rate=was,
        after_rate=now,
        delta=delta,
        interval=interval,
        improves=by_chance or (interval is not None and interval.low > 0),
        missing=missing,
    )


async def _rate(
    connection: asyncpg.Connection, commit: str, skill: str | None, *, other: bool = False
) -> Rate:
    """How many of the runs with a version completed; ``other``: planted, all but those."""
    if faults.on("effectiveness-of-unread"):
        skill = None
    of = "skills ->> 'commit' = $1" if not other else "skills ->> 'commit' IS NOT NULL AND $1 <> ''"
    if faults.on("effectiveness-of-coders"):
        of += " AND role = 'coder'"
    rows = await connection.fetch(
        f"SELECT status FROM episodes e WHERE {of} AND status = ANY($2) AND ($3::text IS NULL"
        " OR EXISTS (SELECT 1 FROM events r WHERE r.session_id = e.session_id AND r.kind = $4"
        " AND r.payload ->> 'skill' = $3 AND r.payload ->> 'commit' = e.skills ->> 'commit'))",
        *(commit, _ends(), skill, EventKind.SKILL_READ.value),
    )
    return rate_of([row["status"] == _DONE for row in rows])


def _ends() -> list[str]:
    if faults.on("effectiveness-counts-interrupted"):
        return [status.value for status in EpisodeStatus if status.final]
    return _ENDS
