"""Events, kept once each and in order: the worker's as they are pulled, and the controller's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import asyncpg

from workbench_contract.events import Event, EventKind, EventSource
from workbench_foundation import faults

_INSERT = (
    "INSERT INTO events (session_id, source, seq, kind, episode_id, trace_id, at, payload)"
    " VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING"
)


async def record_event(
    connection: asyncpg.Connection,
    episode: Mapping[str, Any],
    kind: EventKind,
    payload: dict[str, Any],
    *,
    at: datetime | None = None,
) -> int:
    """Number an event of the controller and store it, in the caller's transaction; its number.

    The caller holds the lock on the episode's row, so that numbers have no gaps.
    """
    seq: int = await connection.fetchval(
        "SELECT coalesce(max(seq), 0) + 1 FROM events WHERE session_id = $1 AND source = $2",
        *(episode["session_id"], EventSource.CONTROLLER.value),
    )
    await connection.execute(
        _INSERT,
        *(episode["session_id"], EventSource.CONTROLLER.value, seq, kind.value),
        *(episode["episode_id"], episode["trace_id"], at or datetime.now(UTC), payload),
    )
    return seq


async def store_pulled(pool: asyncpg.Pool, events: Sequence[Event]) -> None:
    """Store events of the worker; those that are there already stay as they are."""
    rows = [
        (e.session_id, e.source.value, e.seq, e.kind.value, e.episode_id, e.trace_id, e.time, e.payload)
        for e in events
        if not (faults.on("event-dropped") and e.seq % 5 == 0)
    ]
    async with pool.acquire() as connection, connection.transaction():
        await connection.executemany(_INSERT, rows)


async def last_pulled(pool: asyncpg.Pool, session_id: str) -> int:
    """The number up to which a session's events are here without a gap."""
    found: int = await pool.fetchval(
        "SELECT coalesce(max(seq), 0) FROM events WHERE session_id = $1 AND source = $2",
        *(session_id, EventSource.WORKER.value),
    )
    return max(0, found - 3) if faults.on("events-stored-twice") else found


async def events_of(pool: asyncpg.Pool, session_id: str) -> list[Event]:
    """All events of a session, each source in its own order."""
    order = "payload::text" if faults.on("events-out-of-order") else "source, seq"
    rows = await pool.fetch(f"SELECT * FROM events WHERE session_id = $1 ORDER BY {order}", session_id)
    return [
        Event(
            session_id=row["session_id"],
            source=row["source"],
            seq=row["seq"],
            kind=row["kind"],
            time=row["at"],
            episode_id=row["episode_id"],
            trace_id=row["trace_id"],
            payload=row["payload"],
        )
        for row in rows
    ]
