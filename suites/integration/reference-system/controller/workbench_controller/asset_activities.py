"""Keeping what an episode leaves: its files below ``assets/``, in the object store."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import asyncpg
import httpx
from temporalio import activity
from temporalio.exceptions import ApplicationError

from workbench_contract.episodes import AssetKind, AssetStatus
from workbench_contract.events import EventKind
from workbench_controller.activities import collected, telling, whose
from workbench_controller.eventstore import record_event
from workbench_controller.final_assets import final_assets, media_type_of
from workbench_controller.handovers import content_of
from workbench_controller.run import AssetToKeep, FoundAsset, FoundAssets, Run
from workbench_controller.storage import Store, Stored, StoreTroubled
from workbench_controller.worker_client import WorkerClient
from workbench_foundation import faults, log
from workbench_foundation.errors import describe

FOLDER = "assets"
_SHOWN_CHARS = 500


class NotGivenError(Exception):
    """The worker did not give the file."""


def object_key(run: Run, path: str) -> str:
    """Where an asset is kept; the key alone says whose it is."""
    if faults.on("object-uncorrelated"):
        return f"assets/{hashlib.sha256(run.session_id.encode()).hexdigest()}/{path}"
    return f"episodes/{run.episode_id}/{run.trace_id}/{path}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """An asset as its row and its events tell of it."""

    run: Run
    asset: FoundAsset

    @property
    def path(self) -> str:
        return self.asset.path

    @property
    def kind(self) -> AssetKind:
        return self.asset.kind

    @property
    def media_type(self) -> str:
        if faults.on("final-without-type") and self.asset.handover_id is not None:
            return "application/octet-stream"
        return media_type_of(self.asset.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class AssetActivities:
    """Activities, with what they need.

    Attributes:
        attempts: uploads of one asset; the workflow goes by the same number.
    """

    pool: asyncpg.Pool
    worker: WorkerClient
    store: Store
    attempts: int

    def all(self) -> list[Callable[..., Any]]:
        """The activities."""
        return [self.list_assets, self.keep_asset]

    @activity.defn(name="list_assets")
    async def list_assets(self, run: Run) -> FoundAssets:
        """What is to be kept: of its last hand-over, and what lies below the folder of assets.

        What the worker accepted a moment ago is asked for first: its last hand-over may not be here yet.
        """
        with telling(run):
            await collected(self.pool, self.worker, run)
            final = [] if faults.on("final-assets-unkept") else await final_assets(self.pool, run)
        taken = {each.path for each in final}
        own = [FoundAsset(path=path) for path in await self._own(run) if path not in taken]
        return FoundAssets(assets=[*final, *own])

    async def _own(self, run: Run) -> list[str]:
        """Paths below the folder of assets; none when there is no such folder."""
        body = {"path": FOLDER, "recursive": True}
        with telling(run):
            answer = await self.worker.post(whose(run), "/fs/ls", body)
        if answer.status_code == 404:
            return []
        answer.raise_for_status()
        if answer.json()["truncated"]:
            detail = f"cannot keep the assets: there are more than {len(answer.json()['entries'])}"
            raise ApplicationError(f"{detail}. Leave fewer files below {FOLDER}/", non_retryable=True)
        entries = answer.json()["entries"]
        found = [entry["path"] for entry in entries if entry["kind"] == "file"]
        if faults.on("asset-hidden-unkept"):
            found = [path for path in found if "/." not in path]
        return [path.removeprefix(f"{FOLDER}/") for path in found]

    @activity.defn(name="keep_asset")
    async def keep_asset(self, keep: AssetToKeep) -> None:
        """One attempt at an upload, with its event; the last one that fails is the asset's end."""
        run, asset, attempt = keep.run, Told(run=keep.run, asset=keep.asset), activity.info().attempt
        with telling(run):
            if await self._is_kept(run, asset.path):
                return
            key = object_key(run, asset.path)
            await self._tell_lost(asset, key, before=attempt)
            try:
                data = await self._bytes_of(keep)
            except httpx.HTTPError as error:
                reason = f"cannot get {asset.path} from the worker: {_observed(error)}"
                await self._failed(asset, key, None, attempt, reason)
                raise NotGivenError(reason) from error
            about = {
                "episode_id": run.episode_id,
                "trace_id": run.trace_id,
                "session_id": run.session_id,
                "sha256": hashlib.sha256(data).hexdigest(),
                "kind": asset.kind.value,
            }
            try:
                stored = await self.store.put(key, data, ids=about, media_type=asset.media_type)
            except StoreTroubled as error:
                await self._failed(asset, key, data, attempt, str(error))
                if faults.on("upload-failure-ignored"):
                    return
                raise
            await self._uploaded(asset, key, data, attempt, stored)

    async def _bytes_of(self, keep: AssetToKeep) -> bytes:
        """The bytes of a file in the folder of assets, or of what was handed over."""
        asset = keep.asset
        if asset.handover_id is None:
            return await self.worker.asset(whose(keep.run), f"{FOLDER}/{asset.path}")
        data = await content_of(self.pool, asset.handover_id, asset.handed_path)
        if data is None:
            detail = f"cannot keep {asset.path}: hand-over {asset.handover_id} has no such file"
            raise ApplicationError(detail, non_retryable=True)
        return data

    async def _is_kept(self, run: Run, path: str) -> bool:
        found = await self.pool.fetchval(
            "SELECT true FROM assets WHERE episode_id = $1 AND path = $2 AND status = $3",
            *(run.episode_id, path, AssetStatus.UPLOADED.value),
        )
        return bool(found)

    async def _tell_lost(self, asset: Told, key: str, *, before: int) -> None:
        """Tell of attempts that nothing was heard of: who had them has died, or never got them."""
        if before == 1:
            return
        told = await self.pool.fetch(
            "SELECT payload->>'attempt' AS attempt FROM events"
            " WHERE session_id = $1 AND kind = $2 AND ($4 OR payload->>'path' = $3)",
            *(asset.run.session_id, EventKind.UPLOAD_FAILED.value, asset.path),
            faults.on("upload-lost-like-another"),
        )
        for attempt in sorted({*range(1, before)} - {int(row["attempt"]) for row in told}):
            reason = f"cannot tell what became of attempt {attempt}: nothing was heard of it"
            await self._failed(asset, key, None, attempt, reason)

    async def _uploaded(
        self, asset: Told, key: str, data: bytes, attempt: int, stored: Stored
    ) -> None:
        etag = stored.etag
        if faults.on("etag-of-another-object"):
            etag = hashlib.md5(key.encode(), usedforsecurity=False).hexdigest()
        kept = {"etag": etag, "version_id": stored.version_id}
        await self._write(
            asset, key, data, attempt, EventKind.ASSET_UPLOADED,
            status=AssetStatus.UPLOADED, stored=kept,
        )  # fmt: skip
        log.info("asset_uploaded", path=asset.path, key=key, attempt=attempt)

    async def _failed(
        self, asset: Told, key: str, data: bytes | None, attempt: int, error: str
    ) -> None:
        final = attempt >= self.attempts
        log.warning("upload_failed", path=asset.path, attempt=attempt, final=final, reason=error)
        if faults.on("upload-failure-without-event"):
            return
        failure = {"error": error, "final": final, "attempts_allowed": self.attempts}
        await self._write(
            asset, key, data, attempt, EventKind.UPLOAD_FAILED,
            status=AssetStatus.FAILED if final else None, failure=failure,
        )  # fmt: skip

    async def _write(
        self, asset: Told, key: str, data: bytes | None, attempt: int, kind: EventKind, *,
        status: AssetStatus | None,
        stored: dict[str, Any] | None = None, failure: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        """The asset's row, when its end is known, and the event, both or neither.

        Without the file's bytes nothing is known of its size.
        """
        run, now = asset.run, datetime.now(UTC)
        bucket = self.store.bucket
        if faults.on("asset-wrong-bucket"):
            bucket = f"{bucket}-archive"
        size_bytes = None if data is None else len(data)
        digest = None if data is None else hashlib.sha256(data).hexdigest()
        payload = {
            "path": asset.path,
            "kind": asset.kind.value,
            "media_type": asset.media_type,
            "bucket": bucket,
            "key": key,
            "size_bytes": size_bytes,
            "sha256": digest,
            "attempt": attempt,
        }
        async with self.pool.acquire() as connection, connection.transaction():
            episode = await connection.fetchrow(
                "SELECT * FROM episodes WHERE episode_id = $1 FOR UPDATE", run.episode_id
            )
            if status is not None:
                await connection.execute(
                    "INSERT INTO assets (episode_id, path, status, bucket, key, etag, version_id,"
                    " size_bytes, sha256, attempts, error, created_at, kind, media_type)"
                    " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
                    *(run.episode_id, asset.path, status.value, bucket, key),
                    *((stored or {}).get("etag"), (stored or {}).get("version_id")),
                    *(size_bytes, digest, attempt, (failure or {}).get("error"), now),
                    *(asset.kind.value, asset.media_type),
                )
            await record_event(
                connection, episode, kind, payload | (stored or {}) | (failure or {}), at=now
            )


def _observed(error: httpx.HTTPError) -> str:
    """What the worker answered instead of a file, or what kept it from answering."""
    if isinstance(error, httpx.HTTPStatusError):
        return f"{error.response.status_code} {error.response.text[:_SHOWN_CHARS]}"
    return describe(error)
