"""Rows as what is answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import asyncpg

from workbench_contract.episodes import (
    Asset,
    Episode,
    EpisodeSummary,
    JournalLine,
    Trace,
    Transition,
)
from workbench_controller.handovers import handovers_of
from workbench_controller.opening import issued_to

_SUMMARY = (
    "episode_id", "session_id", "workflow_id", "run_id", "trace_id", "status", "reason", "role",
    "purpose", "task", "seed", "variant", "metadata", "handover_id", "flow_id", "batch_id",
    "skills", "created_at", "updated_at",
)  # fmt: skip
_TRANSITION = (
    "ordinal", "from_status", "to_status", "reason", "workflow_id", "run_id", "at",
)  # fmt: skip
_TRACE = (
    "id", "ordinal", "trace_id", "kind", "name", "ok", "detail", "started_at", "finished_at",
    "langfuse_trace_id", "feedback_score", "feedback_comment",
)  # fmt: skip
_ASSET = (
    "path", "kind", "media_type", "status", "bucket", "key", "etag", "version_id", "size_bytes", "sha256", "attempts",
    "error", "created_at",
)  # fmt: skip

_LINE = (
    "ordinal", "at", "intent", "result", "reflection", "next_step", "observations", "event_source",
    "event_seq",
)  # fmt: skip


def summary(row: Mapping[str, Any]) -> EpisodeSummary:
    """An episode as it stands in a list."""
    return EpisodeSummary(**_picked(row, _SUMMARY))


async def episode(pool: asyncpg.Pool, episode_id: str) -> Episode | None:
    """An episode with all that belongs to it, as of one moment; none when there is none."""
    async with pool.acquire() as connection, connection.transaction(
        isolation="repeatable_read", readonly=True
    ):
        row = await connection.fetchrow("SELECT * FROM episodes WHERE episode_id = $1", episode_id)
        if row is None:
            return None
        steps = await _of(connection, "episode_transitions", episode_id, "ordinal")
        traces = await _of(connection, "traces", episode_id, "ordinal")
        kept = await _of(connection, "assets", episode_id, "path")
        lines = await _of(connection, "journal", episode_id, "ordinal")
        todo = await issued_to(connection, episode_id)
        handed = await handovers_of(connection, episode_id)
    return Episode(
        **_picked(row, _SUMMARY),
        todo=todo,
        handovers=handed,
        interrupt_requested_at=row["interrupt_requested_at"],
        transitions=[Transition(**_picked(step, _TRANSITION)) for step in steps],
        traces=[Trace(**_picked(trace, _TRACE)) for trace in traces],
        assets=[Asset(**_picked(asset, _ASSET)) for asset in kept],
        journal=[JournalLine(**_picked(line, _LINE)) for line in lines],
    )


async def assets(pool: asyncpg.Pool, episode_id: str) -> list[Asset]:
    """The assets of an episode."""
    rows = await pool.fetch("SELECT * FROM assets WHERE episode_id = $1 ORDER BY path", episode_id)
    return [Asset(**_picked(row, _ASSET)) for row in rows]


async def _of(connection: Any, table: str, episode_id: str, order: str) -> list[Mapping[str, Any]]:
    rows: list[Mapping[str, Any]] = await connection.fetch(
        f"SELECT * FROM {table} WHERE episode_id = $1 ORDER BY {order}", episode_id
    )
    return rows


def _picked(row: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: row[name] for name in names}
