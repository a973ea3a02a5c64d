"""What a backup's workflow does outside of Temporal."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import tempfile
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import asyncpg
from temporalio import activity

from workbench_contract.backups import Kept, KeptObject, Manifest
from workbench_contract.episodes import AssetStatus
from workbench_controller.backups import end_backup
from workbench_controller.dump import Moment, dump, moment
from workbench_controller.run import BackupFailure, BackupRun
from workbench_controller.settings import Settings
from workbench_controller.storage import Store
from workbench_foundation import faults, log

_BEAT_S = 0.3
_BLOCK_BYTES = 1 << 20


class OtherBytes(Exception):
    """An object is not what its row says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupActivities:
    """Activities, with what they need."""

    settings: Settings
    pool: asyncpg.Pool
    store: Store

    def all(self) -> list[Callable[..., Any]]:
        """The activities."""
        return [self.take_backup, self.fail_backup, self.remove_backup, self.expire_backups]

    @activity.defn(name="take_backup")
    async def take_backup(self, run: BackupRun) -> None:
        """One attempt, from nothing; what it leaves when it fails is removed by the next step."""
        with log.about(backup_id=run.backup_id):
            async with _beating():
                await self.store.remove(run.prefix)
                if not await self._is_wanted(run):
                    return
                manifest, size_bytes = await self._copy(run)
                data = manifest.model_dump_json(indent=1).encode()
                kept = await self._put(run, "manifest.json", data, "application/json")
                found = {
                    "manifest": kept.model_dump(mode="json"),
                    "size_bytes": size_bytes + kept.size_bytes,
                }
                if not await end_backup(self.pool, run.backup_id, manifest=manifest, found=found):
                    # It was given up meanwhile; nobody else knows of what is here now.
                    await self.store.remove(run.prefix)

    async def _is_wanted(self, run: BackupRun) -> bool:
        """Whether it is under way: its submitter may have been told that it has failed."""
        found: bool = await self.pool.fetchval(
            "SELECT status = 'running' FROM backups WHERE backup_id = $1", run.backup_id
        )
        return found

    async def _copy(self, run: BackupRun) -> tuple[Manifest, int]:
        """The database and every object that it names, and how many bytes they have."""
        with tempfile.TemporaryDirectory(prefix="backup-") as folder:
            path = Path(folder) / "database.dump"
            async with moment(self.pool) as now:
                await dump(
                    self.settings.database_url, snapshot=now.snapshot, into=path,
                    program=self.settings.backups.pg_dump,
                )  # fmt: skip
                rows = await self._named(now)
            database = await self._put_file(run, path)
        copies, missing = [], []
        for row in rows:
            copied = await self._copy_object(run, row)
            if copied is None:
                missing.append(row["key"])
            else:
                copies.append(copied)
        manifest = Manifest(
            backup_id=run.backup_id, taken_at=now.at, database=database, objects=copies,
            missing=missing,
        )  # fmt: skip
        return manifest, database.size_bytes + sum(each.size_bytes for each in copies)

    async def _named(self, now: Moment) -> list[asyncpg.Record]:
        """The objects that rows of the moment name: each was there before its row."""
        ask = "SELECT DISTINCT ON (key) key, sha256 FROM assets WHERE status = $1 ORDER BY key"
        asked = self.pool if faults.on("backup-of-two-moments") else now.connection
        rows: list[asyncpg.Record] = await asked.fetch(ask, AssetStatus.UPLOADED.value)
        return rows

    async def _copy_object(self, run: BackupRun, row: asyncpg.Record) -> KeptObject | None:
        """A copy of an object with all that the store knows of it; none when it is lost."""
        try:
            found = await self.store.whole(row["key"])
        except KeyError:
            log.warning("object_lost", key=row["key"])
            return None
        digest = hashlib.sha256(found.data).hexdigest()
        if digest != row["sha256"]:
            raise OtherBytes(f"cannot copy {row['key']}: its bytes are not those of its row")
        key = f"{run.prefix}objects/{row['key']}"
        if faults.on("backup-forgets-metadata"):
            found = replace(found, metadata={})
        await self.store.put_whole(key, found)
        source = key if faults.on("backup-sources-unnamed") else row["key"]
        return KeptObject(key=key, size_bytes=len(found.data), sha256=digest, source_key=source)

    async def _put(self, run: BackupRun, name: str, data: bytes, media_type: str) -> Kept:
        key = f"{run.prefix}{name}"
        await self.store.put(key, data, ids={"backup_id": run.backup_id}, media_type=media_type)
        return Kept(key=key, size_bytes=len(data), sha256=hashlib.sha256(data).hexdigest())

    async def _put_file(self, run: BackupRun, path: Path) -> Kept:
        """The same for a file, which need not fit into memory."""
        key = f"{run.prefix}{path.name}"
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while block := await asyncio.to_thread(file.read, _BLOCK_BYTES):
                digest.update(block)
        await self.store.put_file(key, path, ids={"backup_id": run.backup_id})
        sha256 = digest.hexdigest()
        if faults.on("backup-hash-of-name"):
            sha256 = hashlib.sha256(key.encode()).hexdigest()
        return Kept(key=key, size_bytes=path.stat().st_size, sha256=sha256)

    @activity.defn(name="fail_backup")
    async def fail_backup(self, failure: BackupFailure) -> None:
        """Write down why it failed."""
        with log.about(backup_id=failure.backup_id):
            await end_backup(self.pool, failure.backup_id, failed=failure.reason)

    @activity.defn(name="remove_backup")
    async def remove_backup(self, prefix: str) -> None:
        """Remove what is there of one that failed."""
        if not faults.on("backup-leaves-orphans"):
            await self.store.remove(prefix)

    @activity.defn(name="expire_backups")
    async def expire_backups(self) -> None:
        """Remove the objects of completed ones, all but the latest so many; their records stay."""
        if faults.on("backups-kept-for-ever"):
            return
        rows = await self.pool.fetch(
            "SELECT backup_id, prefix FROM backups WHERE status = 'completed' AND expired_at IS NULL"
            " ORDER BY created_at DESC, backup_id OFFSET $1",
            self.settings.backups.kept,
        )
        for row in rows:
            with log.about(backup_id=row["backup_id"]):
                await self.store.remove(row["prefix"])
                await self.pool.execute(
                    "UPDATE backups SET expired_at = clock_timestamp(), size_bytes = 0"
                    " WHERE backup_id = $1",
                    row["backup_id"],
                )
                log.info("backup_expired")


@contextlib.asynccontextmanager
async def _beating() -> AsyncIterator[None]:
    """Let Temporal know that this is alive; what it has cancelled ends here."""

    async def beat() -> None:
        while True:
            activity.heartbeat()
            await asyncio.sleep(_BEAT_S)

    beating = asyncio.create_task(beat())
    try:
        yield
    finally:
        beating.cancel()
