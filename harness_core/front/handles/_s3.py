"""A bucket of a test."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import trio

from harness_core.base.bridge import Loop, View, in_sync, this_loop
from harness_core.base.evidence import Evidence
from harness_core.infrastructure.services import (
    S3Object,
    S3Service,
    S3Summary,
    S3Url,
    fetch_object,
    list_objects,
    name_bucket,
    put_object,
    remove_bucket,
    remove_object,
    s3_client,
)
from harness_core.process import Run


class S3Bucket:
    """A bucket on a server that speaks S3; given by the fixture ``s3_bucket``.

    Its methods may be awaited in a task of trio, asyncio or anyio; :attr:`sync` has them for any other
    code. A client of your own takes :attr:`endpoint`, :attr:`access_key` and :attr:`secret_key`, and
    reaches buckets by path.

    Attributes:
        name: of the bucket.
    """

    def __init__(self, name: str, url: S3Url, *, loop: Loop) -> None:
        self.name = name
        self._url = url
        self._loop = loop

    def __repr__(self) -> str:
        return f"S3Bucket({self.name!r}, {self.endpoint!r})"

    @property
    def sync(self) -> SyncS3Bucket:
        """The same methods, which wait for their answer."""
        return SyncS3Bucket(self, self._loop)

    @property
    def endpoint(self) -> str:
        """``http://127.0.0.1:PORT``, without credentials."""
        return self._url.endpoint

    @property
    def access_key(self) -> str:
        """Our name there."""
        return self._url.access_key

    @property
    def secret_key(self) -> str:
        """Kept out of all evidence."""
        return self._url.secret_key

    @property
    def region(self) -> str:
        """What clients want to know; the server takes any."""
        return self._url.region

    @property
    def environment(self) -> Mapping[str, str]:
        """For a process: what AWS's own clients read, and ``S3_BUCKET``."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_REGION": self.region,
            "AWS_DEFAULT_REGION": self.region,
            "S3_BUCKET": self.name,
        }

    @property
    def boto3(self) -> Any:
        """A client of boto3 for S3, which blocks; without retries, with nothing of the user's settings."""
        return s3_client(self._url)

    async def put(self, key: str, body: bytes, *, content_type: str = "") -> None:
        """Put an object there, in the place of an older one."""
        await put_object(self._url, self.name, key, body, content_type=content_type)

    async def get(self, key: str) -> S3Object:
        """One object: ``body``, ``etag``, ``content_type``, ``metadata``.

        Raises:
            S3RefusedError: there is none; its ``code`` is ``NoSuchKey``.
            OSError: the server is away.
        """
        return await fetch_object(self._url, self.name, key)

    async def objects(self, prefix: str = "") -> tuple[S3Summary, ...]:
        """What lies in it, in the order of their keys: ``key``, ``size_bytes``, ``etag``."""
        return await list_objects(self._url, self.name, prefix=prefix)

    async def keys(self, prefix: str = "") -> tuple[str, ...]:
        """The keys alone."""
        return tuple(each.key for each in await self.objects(prefix))

    async def remove(self, key: str) -> None:
        """Lose an object; one that is not there stays so."""
        await remove_object(self._url, self.name, key)


class SyncS3Bucket(View[S3Bucket]):
    """The methods of :class:`S3Bucket` for code without a loop."""

    put = in_sync(S3Bucket.put)
    get = in_sync(S3Bucket.get)
    objects = in_sync(S3Bucket.objects)
    keys = in_sync(S3Bucket.keys)
    remove = in_sync(S3Bucket.remove)


@asynccontextmanager
async def open_bucket(
    run: Run, server: S3Service, *, evidence: Evidence
) -> AsyncIterator[S3Bucket]:
    """A bucket of its own for the block; then it goes with all that lies in it.

    Args:
        run: whose id is in its name.
        server: where it is.
        evidence: keeps a list of what lay in it at the end.
    """
    name = name_bucket(secrets.token_hex(6), run_id=run.id)
    if server.provider == "external":
        # Before it is made: whoever sweeps after this run must know where to look.
        run.ledger.record("bucket", server=server.url.address, run=run.id, bucket=name)
    await server.make_bucket(name)
    async with this_loop("the bucket") as loop:
        try:
            yield S3Bucket(name, server.url, loop=loop)
        finally:
            with trio.CancelScope(shield=True):
                for each in await list_objects(server.url, name):
                    row = {"key": each.key, "size_bytes": each.size_bytes, "etag": each.etag}
                    evidence.append_json("s3_bucket.jsonl", row)
                await remove_bucket(server.url, name)
