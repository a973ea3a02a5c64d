"""What Langfuse has not been told yet is told, over and over: rows are there first, and say what was told.

A process that is killed, and a Langfuse that is away, lose nothing: the row still says that it is untold.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import asyncpg

from workbench_contract.episodes import EpisodeStatus, TraceKind
from workbench_controller.feedback import forward_waiting
from workbench_controller.langfuse_client import LangfuseClient, Observation
from workbench_foundation import faults, log
from workbench_foundation.errors import describe

#: Observations that are sent at once.
_AT_ONCE = 200

#: For the planted fault `langfuse-of-first` alone.
_first: list[str] = []

_ENDS = tuple(status.value for status in EpisodeStatus if status.final)


async def tell_for_ever(pool: asyncpg.Pool, client: LangfuseClient, *, pause_s: float) -> None:
    """Tell Langfuse of episodes that have ended, of model turns and tool calls, of events; until cancelled."""
    troubled = False
    while True:
        try:
            all_told = await _round(pool, client)
            await forward_waiting(pool, client)
        # The edge of a task that must not end: trouble of one round is logged, the next follows.
        except Exception as error:
            all_told = False
            if not troubled:
                log.warning("langfuse_untold", reason=describe(error))
        else:
            if not all_told and not troubled:
                log.warning("langfuse_untold", reason="Langfuse takes nothing; it is tried again")
        troubled = not all_told
        if troubled and faults.on("langfuse-given-up"):
            return
        await asyncio.sleep(pause_s)


async def _round(pool: asyncpg.Pool, client: LangfuseClient) -> bool:
    """Tell all that is untold now; whether Langfuse has taken it."""
    for table, key, condition, made in _TABLES:
        if faults.on("langfuse-events-untold") and table == "events":
            continue
        while True:
            rows = await pool.fetch(
                f"SELECT * FROM {table} WHERE langfuse_trace_id IS NULL AND {condition}"
                f" ORDER BY {key} LIMIT $1",
                _AT_ONCE,
            )
            if not rows:
                break
            observations = {row[key]: _planted(made(row)) for row in rows}
            taken = await asyncio.to_thread(client.tell, list(observations.values()))
            told = [row for row in rows if observations[row[key]].key in taken]
            if faults.on("langfuse-claimed"):
                told = rows
            await pool.executemany(
                f"UPDATE {table} SET langfuse_trace_id = $2 WHERE {key} = $1",
                [(row[key], observations[row[key]].trace_id) for row in told],
            )
            if len(told) < len(rows):
                return False
    return True


def _planted(one: Observation) -> Observation:
    """An observation, as the planted faults have it."""
    if faults.on("langfuse-calls-apart") and one.kind == "tool":
        return replace(one, trace_id=hashlib.md5(one.key.encode()).hexdigest())
    if faults.on("langfuse-later"):
        now = datetime.now(UTC)
        return replace(one, started_at=now, finished_at=now)
    if faults.on("langfuse-of-first"):
        _first[:] = _first or [one.trace_id]
        return replace(one, trace_id=_first[0])
    return one


def whole(episode_id: str) -> str:
    """Key of an episode as a whole."""
    return f"episode {episode_id}"


def _of_trace(row: Mapping[str, Any]) -> Observation:
    is_turn = row["kind"] == TraceKind.MODEL.value
    return Observation(
        key=f"trace {row['id']}",
        trace_id=row["trace_id"],
        below=whole(row["episode_id"]),
        kind="generation" if is_turn else "tool",
        name=row["name"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        ok=row["ok"] or faults.on("langfuse-failures-untold"),
        model=row["name"] if is_turn else None,
        usage=_counts(row["detail"].get("usage") or {}),
        shown=row["detail"],
        metadata={"episode_id": row["episode_id"], "ordinal": row["ordinal"], "id": row["id"]},
    )


def _of_event(row: Mapping[str, Any]) -> Observation:
    names = ("episode_id", "session_id", "source", "seq")
    return Observation(
        key=f"event {row['session_id']} {row['source']} {row['seq']}",
        trace_id=row["trace_id"],
        below=whole(row["episode_id"]),
        kind="event",
        name=row["kind"],
        started_at=row["at"],
        finished_at=row["at"],
        shown=row["payload"],
        metadata={name: row[name] for name in names},
    )


def _of_episode(row: Mapping[str, Any]) -> Observation:
    names = ("episode_id", "session_id", "workflow_id", "run_id", "role", "seed", "variant")
    return Observation(
        key=whole(row["episode_id"]),
        trace_id=row["trace_id"],
        below=None,
        kind="agent",
        name="episode",
        started_at=row["created_at"],
        finished_at=row["updated_at"],
        ok=row["status"] == EpisodeStatus.COMPLETED.value,
        shown={"status": row["status"], "reason": row["reason"]},
        metadata={name: row[name] for name in names},
    )


def _counts(usage: Mapping[str, Any]) -> dict[str, int]:
    """Tokens by kind; what else a provider tells of its use is no number of them."""
    return {name: value for name, value in usage.items() if isinstance(value, int)}


_Made = Callable[[Mapping[str, Any]], Observation]
#: Table, its key, which rows of it are of interest, and how one is told.
_TABLES: tuple[tuple[str, str, str, _Made], ...] = (
    ("traces", "id", "true", _of_trace),
    ("events", "id", "episode_id IS NOT NULL AND trace_id ~ '^[0-9a-f]{32}$'", _of_event),
    ("episodes", "episode_id", f"status IN {_ENDS}", _of_episode),
)
