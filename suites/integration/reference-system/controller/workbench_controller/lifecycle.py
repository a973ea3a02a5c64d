"""An episode's life: which steps there are, and that each is a row and an event, or neither."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import asyncpg

from workbench_contract.episodes import EpisodeStatus
from workbench_contract.events import EventKind
from workbench_controller.eventstore import record_event
from workbench_foundation import faults, log

_ENDS = frozenset(status for status in EpisodeStatus if status.final)
_NEXT: dict[EpisodeStatus, frozenset[EpisodeStatus]] = {
    EpisodeStatus.QUEUED: _ENDS - {EpisodeStatus.COMPLETED} | {EpisodeStatus.RUNNING},
    EpisodeStatus.RUNNING: _ENDS,
}


class TransitionRefused(Exception):
    """The episode cannot take this step from where it is.

    Args:
        current: where it is.
    """

    def __init__(self, episode_id: str, current: EpisodeStatus, wanted: EpisodeStatus) -> None:
        super().__init__(f"cannot make episode {episode_id} {wanted}: it is {current}")
        self.current = current


async def begin(connection: asyncpg.Connection, row: dict[str, Any]) -> None:
    """Insert an episode with its first transition; within the caller's transaction."""
    now = datetime.now(UTC)
    whole = row | {"status": EpisodeStatus.QUEUED.value, "created_at": now, "updated_at": now}
    names = ", ".join(whole)
    places = ", ".join(f"${i}" for i in range(1, len(whole) + 1))
    await connection.execute(f"INSERT INTO episodes ({names}) VALUES ({places})", *whole.values())
    await _step(connection, whole, before=None, after=EpisodeStatus.QUEUED, at=now)


async def transition(
    pool: asyncpg.Pool,
    episode_id: str,
    status: EpisodeStatus,
    *,
    reason: str,
    run_id: str | None = None,
) -> bool:
    """Take one step; whether it was taken now, or had been before.

    Args:
        reason: why; for people.
        run_id: Temporal's id of the run, where known.

    Raises:
        TransitionRefused: the episode is elsewhere.
    """
    async with pool.acquire() as connection, connection.transaction():
        taken = await take(connection, episode_id, status, reason=reason, run_id=run_id)
    return taken


async def take(
    connection: asyncpg.Connection,
    episode_id: str,
    status: EpisodeStatus,
    *,
    reason: str,
    run_id: str | None = None,
) -> bool:
    """As :func:`transition`, within the caller's transaction."""
    row = await connection.fetchrow(
        "SELECT * FROM episodes WHERE episode_id = $1 FOR UPDATE", episode_id
    )
    if row is None:
        raise LookupError(f"no episode {episode_id}")
    current = EpisodeStatus(row["status"])
    if current is status:
        return False
    if status not in _NEXT.get(current, frozenset()):
        raise TransitionRefused(episode_id, current, status)
    now = datetime.now(UTC)
    # PostgreSQL refuses U+0000, and an episode must end whatever its reason says.
    reason = reason.replace("\0", "\ufffd")
    whole = dict(row) | {"run_id": run_id or row["run_id"], "reason": reason}
    await connection.execute(
        "UPDATE episodes SET status = $2, reason = $3, run_id = $4, updated_at = $5"
        " WHERE episode_id = $1",
        *(episode_id, status.value, reason, whole["run_id"], now),
    )
    await _step(connection, whole, before=current, after=status, at=now)
    with log.about(episode_id=episode_id, trace_id=row["trace_id"], session_id=row["session_id"]):
        log.info("transition", before=current.value, after=status.value, reason=reason)
    return True


async def _step(
    connection: asyncpg.Connection,
    episode: dict[str, Any],
    *,
    before: EpisodeStatus | None,
    after: EpisodeStatus,
    at: datetime,
) -> None:
    if faults.on("transition-unwritten") and after is EpisodeStatus.RUNNING:
        return
    workflow_id = episode["workflow_id"]
    if faults.on("workflow-id-invented"):
        workflow_id = f"workflow-{episode['session_id']}"
    if faults.on("transitions-at-one-time"):
        at = episode["created_at"]
    ordinal = await connection.fetchval(
        "SELECT coalesce(max(ordinal), 0) + 1 FROM episode_transitions WHERE episode_id = $1",
        episode["episode_id"],
    )
    step = {
        "from_status": before and before.value,
        "to_status": after.value,
        "reason": episode["reason"],
        "workflow_id": workflow_id,
        "run_id": episode.get("run_id"),
    }
    await connection.execute(
        "INSERT INTO episode_transitions (episode_id, ordinal, from_status, to_status, reason,"
        " workflow_id, run_id, at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        *(episode["episode_id"], ordinal, *step.values(), at),
    )
    if faults.on("transition-without-event"):
        return
    await record_event(
        connection, episode, EventKind.WORKFLOW_TRANSITION, step | {"ordinal": ordinal}, at=at
    )
