"""What Langfuse has not been told yet is told, over and over: rows are there first, and say what was told.

A process that is killed, and a Langfuse that is away, lose nothing: the row still says that it is untold.
What Langfuse refuses is put aside for a while, longer each time, and holds up nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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

#: The longest that what was refused is put aside.
_ASIDE_S = 600.0

#: For the planted fault `langfuse-of-first` alone.
_first: list[str] = []

_ENDS = tuple(status.value for status in EpisodeStatus if status.final)


async def tell_for_ever(pool: asyncpg.Pool, client: LangfuseClient, *, pause_s: float) -> None:
    """Tell Langfuse of episodes that have ended, of model turns and tool calls, of events; until cancelled."""
    troubled = False
    refused = _Refused(pause_s=pause_s)
    while True:
        try:
            all_told = await _round(pool, client, refused)
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


@dataclass(slots=True, kw_only=True)
class _Refused:
    """What Langfuse has refused, and when it is tried again.

    Attributes:
        pause_s: before the second attempt; doubled before each further one.
        tried: how often, by the key of the observation.
        due: when it is tried again, by the same; of the clock that never stands back.
    """

    pause_s: float
    tried: dict[str, int] = field(default_factory=dict)
    due: dict[str, float] = field(default_factory=dict)

    def put_aside(self, key: str) -> None:
        """Langfuse has refused it once more."""
        self.tried[key] = self.tried.get(key, 0) + 1
        pause_s = min(_ASIDE_S, self.pause_s * 2 ** min(self.tried[key], 30))
        self.due[key] = time.monotonic() + pause_s
        log.warning("langfuse_refuses", key=key, attempt=self.tried[key], pause_s=pause_s)

    def taken(self, key: str) -> None:
        """Langfuse has it after all."""
        self.tried.pop(key, None)
        self.due.pop(key, None)

    def waiting(self, prefix: str) -> list[str]:
        """What is not tried now: the rest of the keys that begin so."""
        now = time.monotonic()
        found = [key for key, due in self.due.items() if due > now and key.startswith(prefix)]
        return [key.removeprefix(prefix) for key in found]


async def _round(pool: asyncpg.Pool, client: LangfuseClient, refused: _Refused) -> bool:
    """Tell all that is untold now; whether Langfuse has taken it, or refused it alone."""
    for table, key, condition, made in _TABLES:
        if faults.on("langfuse-events-untold") and table == "events":
            continue
        if faults.on("langfuse-interrupted-untold") and table == "episodes":
            condition += " AND status NOT IN ('cancelled', 'interrupted')"
        while True:
            # The key of its row is how what was refused is known.
            aside = refused.waiting(f"{table} ")
            rows = await pool.fetch(
                f"SELECT * FROM {table} WHERE langfuse_trace_id IS NULL AND {condition}"
                f" AND NOT {key}::text = ANY($2) ORDER BY {key} LIMIT $1",
                *(_AT_ONCE, aside),
            )
            if not rows:
                break
            observations = {row[key]: _planted(made(row)) for row in rows}
            taken, refusals = await _tell(client, list(observations.values()))
            told = [row for row in rows if observations[row[key]].key in taken]
            if faults.on("langfuse-claimed"):
                told = rows
            await pool.executemany(
                f"UPDATE {table} SET langfuse_trace_id = $2 WHERE {key} = $1",
                [(row[key], observations[row[key]].trace_id) for row in told],
            )
            for row in told:
                refused.taken(f"{table} {row[key]}")
            for row in rows:
                if observations[row[key]].key in refusals:
                    refused.put_aside(f"{table} {row[key]}")
            if len(told) + len(refusals) < len(rows):
                return False
    return True


async def _tell(
    client: LangfuseClient, wanted: Sequence[Observation]
) -> tuple[set[str], set[str]]:
    """Send observations at once, and by halves where Langfuse refuses them: keys of what it took, and refused.

    What is in neither it has not answered about.
    """
    taken: set[str] = set()
    refused: set[str] = set()
    parts = [list(wanted)]
    while parts:
        part = parts.pop()
        found = await asyncio.to_thread(client.tell, part)
        taken |= found
        left = [each for each in part if each.key not in found]
        if not left:
            continue
        if not client.refuses or faults.on("langfuse-held-up"):
            break
        if len(part) == 1:
            refused.add(left[0].key)
            continue
        middle = (len(left) + 1) // 2
        # The first half next, so that all is told in its order.
        parts += [half for half in (left[middle:], left[:middle]) if half]
    return taken, refused


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
