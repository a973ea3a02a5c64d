"""Enough of the S3 protocol to know that a server answers: signed requests, one connection each.

A server that accepts connections may still refuse every request. Asking for the list of buckets,
signed (AWS Signature Version 4), proves protocol, credentials and storage at once, without a
client library that retries for seconds by itself.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote

import trio

from harness_core.errors import HarnessError
from harness_core.services._connection import connect
from harness_core.services._s3_url import S3Url

__all__ = ["S3RefusedError", "ask_s3", "list_buckets", "make_bucket"]

#: Longest answer read: an object that a test compares byte by byte, a render or a small video.
_ANSWER_BYTES: Final = 256 * 1024 * 1024

_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_SIGNED: Final = "host;x-amz-content-sha256;x-amz-date"
_OK: Final = 200
_REDIRECT: Final = 300
_CONFLICT: Final = 409
_STATUS: Final = re.compile(rb"HTTP/1\.[01] (\d{3})")
_BUCKET: Final = re.compile(rb"<Bucket>.*?<Name>([^<]+)</Name>", re.DOTALL)
_CODE: Final = re.compile(rb"<Code>([^<]+)</Code>")


class S3RefusedError(HarnessError):
    """The server answered, with an error.

    Attributes:
        status: of HTTP.
        code: S3's own, e.g. ``"InvalidAccessKeyId"``; empty when there is none.
    """

    def __init__(self, *, status: int, code: str) -> None:
        super().__init__("talk to S3", observed=f"it answers {status} {code}".rstrip())
        self.status = status
        self.code = code


async def list_buckets(url: S3Url) -> tuple[str, ...]:
    """The names of all buckets.

    Raises:
        OSError: nobody listens, or the connection broke.
        S3RefusedError: it listens and refuses.
    """
    _, body = await ask_s3(url, "GET", "/")
    return tuple(name.decode() for name in _BUCKET.findall(body))


async def make_bucket(url: S3Url, name: str) -> None:
    """Make a bucket; nothing happens when it is there already.

    Raises:
        OSError: nobody listens, or the connection broke.
        S3RefusedError: it listens and refuses.
    """
    try:
        await ask_s3(url, "PUT", f"/{quote(name, safe='')}")
    except S3RefusedError as error:
        if error.status != _CONFLICT:
            raise


async def ask_s3(
    url: S3Url, method: str, path: str, *, query: Mapping[str, str] | None = None
) -> tuple[dict[str, str], bytes]:
    """One signed request without a body.

    Args:
        url: the server and our keys there.
        method: ``GET``, ``HEAD``, ``PUT`` or ``DELETE``.
        path: percent-encoded, ``/bucket/key``.
        query: its parameters.

    Returns:
        The headers of the answer, their names in lower case, and its body.

    Raises:
        OSError: nobody listens, or the connection broke.
        S3RefusedError: it listens and refuses.
    """
    terms = "&".join(
        f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}"
        for name, value in sorted((query or {}).items())
    )
    target = f"{path}?{terms}" if terms else path
    head = [f"{method} {target} HTTP/1.0"]  # the answer ends with the connection
    head += [f"{name}: {value}" for name, value in _headers(url, method, path, terms).items()]
    request = "\r\n".join([*head, "Content-Length: 0", "", ""]).encode()
    stream: trio.abc.Stream = await connect(url.address)
    if url.secure:
        stream = trio.SSLStream(
            stream,
            ssl.create_default_context(),
            server_hostname=url.host,
            https_compatible=True,
        )
    async with stream:
        try:
            await stream.send_all(request)
            answer = await _everything(stream)
        except (trio.BrokenResourceError, ssl.SSLError) as error:
            raise ConnectionResetError(f"the server broke the connection: {error}") from error
    status = _STATUS.match(answer)
    if status is None:
        raise ConnectionResetError(f"expected HTTP, the server said {answer[:40]!r}")
    told, _, body = answer.partition(b"\r\n\r\n")
    if not _OK <= int(status[1]) < _REDIRECT:
        code = _CODE.search(body)
        raise S3RefusedError(status=int(status[1]), code=code[1].decode() if code else "")
    headers = {
        name.strip().lower(): value.strip()
        for name, _, value in (
            line.partition(":") for line in told.decode("latin-1").split("\r\n")[1:]
        )
    }
    length = headers.get("content-length", "")
    if method != "HEAD" and length.isdigit() and len(body) < int(length):
        raise ConnectionResetError(f"the body ended after {len(body)} of {length} bytes")
    return headers, body


async def _everything(stream: trio.abc.ReceiveStream) -> bytes:
    read = bytearray()
    while data := await stream.receive_some():
        read += data
        if len(read) > _ANSWER_BYTES:
            raise ConnectionResetError(f"the answer has more than {_ANSWER_BYTES} bytes")
    return bytes(read)


def _headers(url: S3Url, method: str, path: str, query: str) -> dict[str, str]:
    """Those that are signed, and the signature (AWS: Signature Version 4 signing process)."""
    now = datetime.now(UTC)
    stamp, date = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
    digest = hashlib.sha256(b"").hexdigest()
    signed = {"host": url.address, "x-amz-content-sha256": digest, "x-amz-date": stamp}
    lines = "".join(f"{name}:{value}\n" for name, value in signed.items())
    canonical = f"{method}\n{path}\n{query}\n{lines}\n{_SIGNED}\n{digest}"
    scope = f"{date}/{url.region}/s3/aws4_request"
    hashed = hashlib.sha256(canonical.encode()).hexdigest()
    key = f"AWS4{url.secret_key}".encode()
    for part in (date, url.region, "s3", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    text = f"{_ALGORITHM}\n{stamp}\n{scope}\n{hashed}"
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    credential = f"Credential={url.access_key}/{scope}"
    authorization = f"{_ALGORITHM} {credential}, SignedHeaders={_SIGNED}, Signature={signature}"
    return {**signed, "authorization": authorization}
