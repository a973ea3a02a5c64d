"""What lies in a bucket, as anybody with the keys sees it; lists and objects may be read in any event loop."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote
from xml.sax.saxutils import unescape

from harness_core.bridge import anywhere
from harness_core.services._s3_protocol import S3RefusedError, ask_s3
from harness_core.services._s3_url import S3Url

__all__ = ["S3Object", "S3Summary", "fetch_object", "list_objects", "remove_bucket"]

_META: Final = "x-amz-meta-"
_CONTENTS: Final = re.compile(r"<Contents>(.*?)</Contents>", re.DOTALL)
_NEXT: Final = re.compile(r"<NextContinuationToken>([^<]+)</NextContinuationToken>")
_TAG: Final = re.compile(
    r"<Tag>\s*(?:<Key>(?P<key>[^<]*)</Key>\s*<Value>(?P<value>[^<]*)</Value>"
    r"|<Value>(?P<value2>[^<]*)</Value>\s*<Key>(?P<key2>[^<]*)</Key>)\s*</Tag>"
)
_ENTITIES: Final = {"&quot;": '"', "&#34;": '"', "&apos;": "'", "&#39;": "'"}
_SAFE_IN_KEY: Final = "-_.~/"


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
    """An object and everything the server says of it.

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
        OSError: nobody listens, or the connection broke.
        S3RefusedError: the server refuses; no such bucket, say.
    """
    found: list[S3Summary] = []
    query = {"list-type": "2", "prefix": prefix}
    while True:
        _, body = await ask_s3(url, "GET", f"/{quote(bucket, safe='')}", query=query)
        text = body.decode("utf-8")
        found.extend(
            S3Summary(
                key=_inside(row, "Key"),
                size_bytes=int(_inside(row, "Size") or 0),
                etag=_inside(row, "ETag").strip('"'),
            )
            for row in _CONTENTS.findall(text)
        )
        following = _NEXT.search(text)
        if following is None:
            return tuple(found)
        query["continuation-token"] = unescape(following[1], _ENTITIES)


@anywhere
async def fetch_object(url: S3Url, bucket: str, key: str) -> S3Object:
    """One object, whole.

    Raises:
        OSError: nobody listens, or the connection broke.
        S3RefusedError: the server refuses; ``code`` is ``NoSuchKey`` when there is none.
    """
    path = f"/{quote(bucket, safe='')}/{quote(key, safe=_SAFE_IN_KEY)}"
    headers, body = await ask_s3(url, "GET", path)
    return S3Object(
        bucket=bucket,
        key=key,
        body=body,
        etag=headers.get("etag", "").strip('"'),
        version=headers.get("x-amz-version-id", ""),
        content_type=headers.get("content-type", ""),
        metadata={
            name.removeprefix(_META): value
            for name, value in headers.items()
            if name.startswith(_META)
        },
        tags=await _tags(url, path),
    )


async def remove_bucket(url: S3Url, bucket: str) -> None:
    """Remove a bucket with everything in it."""
    for each in await list_objects(url, bucket):
        path = f"/{quote(bucket, safe='')}/{quote(each.key, safe=_SAFE_IN_KEY)}"
        await ask_s3(url, "DELETE", path)
    await ask_s3(url, "DELETE", f"/{quote(bucket, safe='')}")


async def _tags(url: S3Url, path: str) -> dict[str, str]:
    try:
        _, body = await ask_s3(url, "GET", path, query={"tagging": ""})
    except S3RefusedError:
        return {}  # a server without tags: rclone's answers 501 or 404
    return {
        unescape(match["key"] or match["key2"] or "", _ENTITIES): unescape(
            match["value"] or match["value2"] or "", _ENTITIES
        )
        for match in _TAG.finditer(body.decode("utf-8", errors="replace"))
    }


def _inside(row: str, name: str) -> str:
    match = re.search(rf"<{name}>([^<]*)</{name}>", row)
    return unescape(match[1], _ENTITIES) if match else ""
