"""Backups on record: asked for, looked up, ended."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import asyncpg

from workbench_contract.backups import BACKUPS, Backup, BackupList, BackupStatus, Manifest
from workbench_contract.events import EventKind
from workbench_controller.eventstore import record_event
from workbench_controller.parts import Parts, Refused
from workbench_controller.run import BackupRun
from workbench_controller.temporal import TemporalAway
from workbench_foundation import log


async def begin_backup(parts: Parts) -> tuple[Backup, str | None]:
    """Start a backup; its record and, when it could not be started, why.

    Raises:
        Refused: 409 when one is under way.
    """
    backup_id = str(uuid.uuid4())
    run = BackupRun(
        backup_id=backup_id,
        prefix=f"{BACKUPS}/{backup_id}/",
        attempts=parts.settings.backups.attempts,
        pause_s=parts.settings.backups.pause_s,
        attempt_s=parts.settings.backups.attempt_s,
        heartbeat_s=parts.settings.heartbeat_s,
        rpc_s=parts.settings.worker_timeout_s,
    )
    workflow_id = f"backup-{backup_id}"
    try:
        await parts.pool.execute(
            "INSERT INTO backups (backup_id, workflow_id, status, bucket, prefix, created_at, updated_at)"
            " VALUES ($1, $2, $3, $4, $5, clock_timestamp(), clock_timestamp())",
            *(backup_id, workflow_id, BackupStatus.RUNNING.value, parts.store.bucket, run.prefix),
        )
    except asyncpg.UniqueViolationError as error:
        detail = "cannot begin a backup: another one is under way. Wait until it has ended"
        raise Refused(409, detail) from error
    problem = None
    with log.about(backup_id=backup_id):
        try:
            await parts.workflows.start_backup(run, workflow_id=workflow_id)
            log.info("backup_begun", workflow_id=workflow_id)
        except TemporalAway as away:
            problem = str(away)
            # Should it have been started all the same, its first step finds that it has ended.
            await end_backup(parts.pool, backup_id, failed=problem)
    return await backup_of(parts, backup_id), problem


async def backup_of(parts: Parts, backup_id: str) -> Backup:
    """A backup.

    Raises:
        Refused: 404 when there is none.
    """
    row = await parts.pool.fetchrow("SELECT * FROM backups WHERE backup_id = $1", backup_id)
    if row is None:
        raise Refused(404, f"cannot find backup {backup_id}: there is none. Check the id")
    return told(row)


async def list_backups(parts: Parts, *, limit: int, offset: int) -> BackupList:
    """Backups, latest first."""
    rows = await parts.pool.fetch(
        "SELECT * FROM backups ORDER BY created_at DESC, backup_id LIMIT $1 OFFSET $2",
        *(limit, offset),
    )
    total = await parts.pool.fetchval("SELECT count(*) FROM backups")
    return BackupList(backups=[told(row) for row in rows], total=total)


def told(row: Mapping[str, Any]) -> Backup:
    """A backup as its row has it."""
    taken = None if row["ended_at"] is None else row["ended_at"] - row["created_at"]
    hidden = ("settled", "updated_at")
    return Backup(
        **{name: value for name, value in row.items() if name not in hidden},
        duration_s=None if taken is None else taken / timedelta(seconds=1),
    )


async def end_backup(
    pool: asyncpg.Pool, backup_id: str, *, failed: str = "", manifest: Manifest | None = None,
    found: Mapping[str, Any] | None = None,
) -> bool:  # fmt: skip
    """Write down how one that is under way has ended, with its event; false when it has ended otherwise.

    Args:
        failed: why, when it has not succeeded.
        manifest: of one that has.
        found: further columns of its row.
    """
    status = BackupStatus.FAILED if failed else BackupStatus.COMPLETED
    values = {"status": status.value, "reason": failed or None, **(found or {})}
    if manifest is not None:
        values["database"] = manifest.database.model_dump(mode="json")
        values["objects"] = len(manifest.objects)
        values["missing"] = manifest.missing
    names = ", ".join(f"{name} = ${place}" for place, name in enumerate(values, start=2))
    async with pool.acquire() as connection, connection.transaction():
        row = await connection.fetchrow(
            f"UPDATE backups SET {names}, ended_at = clock_timestamp(), updated_at = clock_timestamp()"
            " WHERE backup_id = $1 AND status = 'running' RETURNING *",
            *(backup_id, *values.values()),
        )
        if row is None:
            return False
        whose = {"session_id": f"backup-{backup_id}", "episode_id": None, "trace_id": None}
        payload = told(row).model_dump(mode="json")
        await record_event(connection, whose, EventKind.BACKUP, payload)
    log.info("backup_ended", status=status.value, reason=failed or None)
    return True
