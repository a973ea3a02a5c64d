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
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote

import trio

from harness_core.errors import HarnessError
from harness_core.services._connection import connect
from harness_core.services._s3_url import S3Url

__all__ = ["S3RefusedError", "list_buckets", "make_bucket"]

#: Longest answer read; a list of a thousand buckets has some 100 kB.
_ANSWER_BYTES: Final = 1024 * 1024

_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_SIGNED: Final = "host;x-amz-content-sha256;x-amz-date"
_OK: Final = 200
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
    body = await _request(url, "GET", "/")
    return tuple(name.decode() for name in _BUCKET.findall(body))


async def make_bucket(url: S3Url, name: str) -> None:
    """Make a bucket; nothing happens when it is there already.

    Raises:
        OSError: nobody listens, or the connection broke.
        S3RefusedError: it listens and refuses.
    """
    try:
        await _request(url, "PUT", f"/{quote(name, safe='')}")
    except S3RefusedError as error:
        if error.status != _CONFLICT:
            raise


async def _request(url: S3Url, method: str, path: str) -> bytes:
    head = [f"{method} {path} HTTP/1.0"]  # the answer ends with the connection
    head += [f"{name}: {value}" for name, value in _headers(url, method, path).items()]
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
    body = answer.partition(b"\r\n\r\n")[2]
    if int(status[1]) != _OK:
        code = _CODE.search(body)
        raise S3RefusedError(status=int(status[1]), code=code[1].decode() if code else "")
    return body


async def _everything(stream: trio.abc.ReceiveStream) -> bytes:
    read = b""
    while data := await stream.receive_some():
        read += data
        if len(read) > _ANSWER_BYTES:
            raise ConnectionResetError(f"the answer has more than {_ANSWER_BYTES} bytes")
    return read


def _headers(url: S3Url, method: str, path: str) -> dict[str, str]:
    """Those that are signed, and the signature (AWS: Signature Version 4 signing process)."""
    now = datetime.now(UTC)
    stamp, date = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
    digest = hashlib.sha256(b"").hexdigest()
    signed = {"host": url.address, "x-amz-content-sha256": digest, "x-amz-date": stamp}
    lines = "".join(f"{name}:{value}\n" for name, value in signed.items())
    canonical = f"{method}\n{path}\n\n{lines}\n{_SIGNED}\n{digest}"
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
