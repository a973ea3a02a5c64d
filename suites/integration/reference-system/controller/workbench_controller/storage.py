"""The object store: one attempt at a time, bounded in time; who calls decides about another."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from typing import Any

from workbench_controller.settings import ObjectStore
from workbench_foundation import faults


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

        def put(client: Any) -> Any:
            if not self._made:
                _make_bucket(client, self.bucket)
                self._made = True
            return client.put_object(
                Bucket=self.bucket,
                Key=key,
                Body=data,
                ContentType=media_type,
                Metadata={} if faults.on("object-uncorrelated") else ids | {"type": media_type},
                ContentMD5=_md5(data),
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
            return {row["Key"] for page in pages for row in page.get("Contents", ())}

        found: set[str] = await self._do(f"list {prefix}", listed)
        return found

    async def get(self, key: str) -> bytes:
        """The bytes of an object.

        Raises:
            KeyError: there is none.
            StoreTroubled: the store does not answer.
        """
        from botocore.exceptions import ClientError

        def get(client: Any) -> bytes | None:
            try:
                data: bytes = client.get_object(Bucket=self.bucket, Key=key)["Body"].read()
            except ClientError as error:
                if error.response.get("Error", {}).get("Code") in ("NoSuchKey", "404"):
                    return None
                raise
            return data

        found: bytes | None = await self._do(f"get {key}", get)
        if found is None:
            raise KeyError(key)
        return found

    async def _do(self, what: str, ask: Any) -> Any:
        return await asyncio.to_thread(self._now, what, ask)

    def _now(self, what: str, ask: Any) -> Any:
        from botocore.exceptions import BotoCoreError, ClientError

        if self._client is None:
            self._client = _client(self._settings)
        try:
            return ask(self._client)
        except (BotoCoreError, ClientError, OSError) as error:
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
