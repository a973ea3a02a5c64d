"""What lies in a bucket, as anybody with the keys sees it; lists and objects may be read in any event loop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import methodcaller
from typing import Any, Final

from harness_core.base.bridge import anywhere
from harness_core.infrastructure.services._s3_client import S3RefusedError, ask_s3
from harness_core.infrastructure.services._s3_url import S3Url

#: Longest object read: one that a test compares byte by byte, a render or a small video.
_OBJECT_BYTES: Final = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Summary:
    """An object in a list.

    Attributes:
        key: its name in the bucket.
        size_bytes: its length.
        etag: without quotes.
    """

    key: str
    size_bytes: int
    etag: str


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Object:
    """An object and everything the server knows of it.

    Attributes:
        bucket: where it lies.
        key: its name there.
        body: its bytes.
        etag: without quotes.
        version: of a bucket that keeps versions; empty otherwise.
        content_type: what whoever put it there called it.
        metadata: its ``x-amz-meta-`` headers, names in lower case.
        tags: its tags; empty where the server keeps none.
    """

    bucket: str
    key: str
    body: bytes = field(repr=False)
    etag: str
    version: str
    content_type: str
    metadata: Mapping[str, str]
    tags: Mapping[str, str]


@anywhere
async def list_objects(url: S3Url, bucket: str, *, prefix: str = "") -> tuple[S3Summary, ...]:
    """Every object whose key begins with ``prefix``, in the order of their keys.

    Raises:
        OSError: no server listens, or the connection broke.
        S3RefusedError: the server refuses; no such bucket, say.
    """

    def listed(client: Any) -> tuple[S3Summary, ...]:
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        return tuple(
            S3Summary(key=row["Key"], size_bytes=row["Size"], etag=row["ETag"].strip('"'))
            for page in pages
            for row in page.get("Contents", ())
        )

    return await ask_s3(url, listed)


@anywhere
async def fetch_object(url: S3Url, bucket: str, key: str) -> S3Object:
    """One object, whole.

    Raises:
        OSError: no server listens, or the connection broke.
        S3RefusedError: the server refuses; ``code`` is ``NoSuchKey`` when there is none.
    """

    def fetched(client: Any) -> tuple[Mapping[str, Any], bytes]:
        answer = client.get_object(Bucket=bucket, Key=key)
        with answer["Body"] as body:
            if answer["ContentLength"] > _OBJECT_BYTES:
                raise ConnectionResetError(f"the object has more than {_OBJECT_BYTES} bytes")
            return answer, body.read()

    found, body = await ask_s3(url, fetched)
    return S3Object(
        bucket=bucket,
        key=key,
        body=body,
        etag=found.get("ETag", "").strip('"'),
        version=found.get("VersionId", ""),
        content_type=found.get("ContentType", ""),
        metadata={name.lower(): value for name, value in found["Metadata"].items()},
        tags=await _tags(url, bucket, key),
    )


@anywhere
async def put_object(
    url: S3Url, bucket: str, key: str, body: bytes, *, content_type: str = ""
) -> None:
    """Put an object there, in the place of an older one.

    Raises:
        OSError: no server listens, or the connection broke.
        S3RefusedError: the server refuses.
    """
    kind = {"ContentType": content_type} if content_type else {}
    await ask_s3(url, methodcaller("put_object", Bucket=bucket, Key=key, Body=body, **kind))


@anywhere
async def remove_object(url: S3Url, bucket: str, key: str) -> None:
    """Remove an object; one that is not there stays so.

    Raises:
        OSError: no server listens, or the connection broke.
        S3RefusedError: the server refuses.
    """
    await ask_s3(url, methodcaller("delete_object", Bucket=bucket, Key=key))


@anywhere
async def remove_bucket(url: S3Url, bucket: str) -> None:
    """Remove a bucket with everything in it."""
    for each in await list_objects(url, bucket):
        await ask_s3(url, methodcaller("delete_object", Bucket=bucket, Key=each.key))
    await ask_s3(url, methodcaller("delete_bucket", Bucket=bucket))


async def _tags(url: S3Url, bucket: str, key: str) -> dict[str, str]:
    try:
        answer = await ask_s3(url, methodcaller("get_object_tagging", Bucket=bucket, Key=key))
    except S3RefusedError:
        return {}  # a server without tags: rclone's answers 501 or 404
    # rclone's answers with the object itself; an empty one is read as an answer without tags.
    return {each["Key"]: each["Value"] for each in answer.get("TagSet", ())}
