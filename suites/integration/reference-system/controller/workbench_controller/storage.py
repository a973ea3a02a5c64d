"""The object store: one attempt at a time, bounded in time; who calls decides about another."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench_controller.settings import ObjectStore
from workbench_foundation import faults


#: For the planted fault `object-of-first` alone.
_WHOSE = ("episode_id", "session_id", "trace_id")
_first: dict[str, str] = {}


class StoreTroubled(Exception):
    """The store did not take or give it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What the store says of an object.

    Attributes:
        etag: without quotes.
    """

    etag: str
    version_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """An object with what the store knows of it.

    Attributes:
        metadata: names in lower case.
    """

    data: bytes
    media_type: str
    metadata: dict[str, str]


class Store:
    """The bucket of the stack; made when it is not there.

    Args:
        settings: where it is.
    """

    def __init__(self, settings: ObjectStore) -> None:
        self.bucket = settings.bucket
        self._settings = settings
        self._client: Any = None
        self._made = False

    async def answers(self) -> None:
        """Raises StoreTroubled when it does not."""
        await self._do("reach", lambda client: client.list_buckets())

    async def put(self, key: str, data: bytes, *, ids: dict[str, str], media_type: str) -> Stored:
        """Store an object with the ids, and what else is known of it, as its metadata.

        Raises:
            StoreTroubled: it was not stored, as far as we know.
        """
        if faults.on("asset-cut-short"):
            data = data[:-1]
        metadata = {} if faults.on("object-uncorrelated") else ids | {"type": media_type}
        if faults.on("object-of-first"):
            _first.update({} if _first else {each: ids[each] for each in _WHOSE if each in ids})
            metadata |= _first
        return await self.put_whole(key, Whole(data=data, media_type=media_type, metadata=metadata))

    async def put_whole(self, key: str, whole: Whole) -> Stored:
        """Store an object as it is.

        Raises:
            StoreTroubled: it was not stored, as far as we know.
        """

        def put(client: Any) -> Any:
            self._make(client)
            return client.put_object(
                Bucket=self.bucket,
                Key=key,
                Body=whole.data,
                ContentType=whole.media_type,
                Metadata=whole.metadata,
                ContentMD5=_md5(whole.data),
            )

        answer = await self._do(f"store {key}", put)
        return Stored(etag=answer["ETag"].strip('"'), version_id=answer.get("VersionId"))

    async def keys(self, prefix: str) -> set[str]:
        """The keys of all objects that begin so.

        Raises:
            StoreTroubled: the store does not answer.
        """

        def listed(client: Any) -> set[str]:
            pages = client.get_paginator("list_objects_v2").paginate(
                Bucket=self.bucket, Prefix=prefix
            )
            if faults.on("store-listed-by-a-page"):
                pages = itertools.islice(pages, 1)
            return {row["Key"] for page in pages for row in page.get("Contents", ())}

        found: set[str] = await self._do(f"list {prefix}", listed)
        return found

    async def get(self, key: str) -> bytes:
        """The bytes of an object.

        Raises:
            KeyError: there is none.
            StoreTroubled: the store does not answer.
        """
        return (await self.whole(key)).data

    async def whole(self, key: str) -> Whole:
        """An object with what the store knows of it.

        Raises:
            KeyError: there is none.
            StoreTroubled: the store does not answer.
        """
        from botocore.exceptions import ClientError

        def get(client: Any) -> Whole | None:
            try:
                found = client.get_object(Bucket=self.bucket, Key=key)
            except ClientError as error:
                if error.response.get("Error", {}).get("Code") in ("NoSuchKey", "NoSuchBucket", "404"):
                    return None
                raise
            return Whole(
                data=found["Body"].read(),
                media_type=found.get("ContentType", "application/octet-stream"),
                metadata={key.lower(): value for key, value in found["Metadata"].items()},
            )

        found: Whole | None = await self._do(f"get {key}", get)
        if found is None:
            raise KeyError(key)
        return found

    async def put_file(self, key: str, path: Path, *, ids: dict[str, str]) -> None:
        """Store a file, however large.

        Raises:
            StoreTroubled: it was not stored, as far as we know.
        """

        def put(client: Any) -> None:
            self._make(client)
            client.upload_file(str(path), self.bucket, key, ExtraArgs={"Metadata": ids})

        await self._do(f"store {key}", put)

    async def remove(self, prefix: str) -> None:
        """Remove all objects whose keys begin so.

        Raises:
            StoreTroubled: the store does not answer; some may be gone.
        """
        keys = sorted(await self.keys(prefix))

        def delete(client: Any) -> None:
            for key in keys:
                client.delete_object(Bucket=self.bucket, Key=key)

        if keys:
            await self._do(f"remove {prefix}", delete)

    def _make(self, client: Any) -> None:
        if not self._made:
            _make_bucket(client, self.bucket)
            self._made = True

    async def _do(self, what: str, ask: Any) -> Any:
        return await asyncio.to_thread(self._now, what, ask)

    def _now(self, what: str, ask: Any) -> Any:
        from boto3.exceptions import Boto3Error
        from botocore.exceptions import BotoCoreError, ClientError

        if self._client is None:
            self._client = _client(self._settings)
        try:
            return ask(self._client)
        except (Boto3Error, BotoCoreError, ClientError, OSError) as error:
            self._made = False
            raise StoreTroubled(f"cannot {what}: {error}") from error


def _client(settings: ObjectStore) -> Any:
    import boto3
    from botocore.config import Config

    return boto3.client(
        "s3",
        endpoint_url=settings.url,
        aws_access_key_id=settings.access_key,
        aws_secret_access_key=settings.secret_key,
        region_name="us-east-1",
        config=Config(
            connect_timeout=settings.connect_timeout_s,
            read_timeout=settings.read_timeout_s,
            # Attempts are counted, recorded and bounded where the upload is asked for.
            retries={"total_max_attempts": 1},
            s3={"addressing_style": "path"},
            proxies={},
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        ),
    )


def _make_bucket(client: Any, name: str) -> None:
    from botocore.exceptions import ClientError

    try:
        client.create_bucket(Bucket=name)
    except ClientError as error:
        there = ("BucketAlreadyOwnedByYou", "BucketAlreadyExists")
        if error.response.get("Error", {}).get("Code") not in there:
            raise


def _md5(data: bytes) -> str:
    import base64

    return base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()
