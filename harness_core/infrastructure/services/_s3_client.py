"""An S3 server as boto3 reaches it: one client for each server, no retries, nothing of the user's.

boto3 blocks, so every call runs in a thread of its own, and it is imported by the first of them:
0.2 to 0.4 s of CPU time and 25 MB, which a run without S3 does not pay.
"""

from __future__ import annotations

import functools
import os
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import methodcaller
from typing import Any, Final, TypeVar

from harness_core.base import limits
from harness_core.base.bridge import Mutex, reading
from harness_core.base.errors import HarnessError
from harness_core.base.machine import need_extra
from harness_core.infrastructure.services._s3_url import S3Url

T = TypeVar("T")

#: Servers of one run: a client takes 5 ms and 0.3 MB, the first one 0.2 s and 13 MB.
_CLIENTS: Final = 16

_CONFLICT: Final = 409

_making: Final = Mutex()


class S3RefusedError(HarnessError):
    """The server answered, with an error.

    Attributes:
        status: of HTTP.
        code: S3's own, e.g. ``"InvalidAccessKeyId"``; empty when there is none.
    """

    def __init__(self, *, status: int, code: str, message: str = "") -> None:
        words = f"it answers {status} {code}".rstrip()
        super().__init__("talk to S3", observed=f"{words}: {message}" if message else words)
        self.status = status
        self.code = code


async def ask_s3(url: S3Url, call: Callable[[Any], T]) -> T:
    """Call ``call`` with the client of a server, in a thread.

    A cancelled wait ends at once; the request itself ends ``limits.S3_CALL_S`` after the last byte.

    Raises:
        OSError: no server listens, the connection broke, or what answers there is no S3.
        S3RefusedError: the server refuses.
        HarnessError: no server would take it: the name of a bucket that can be none, say.
        Unavailable: the extra ``s3`` is not installed.
    """

    def ask() -> T:
        client = s3_client(url)
        with _as_our_errors():
            return call(client)

    return await reading(ask)


async def list_buckets(url: S3Url) -> tuple[str, ...]:
    """The names of all buckets.

    Raises:
        OSError: no server listens, or the connection broke.
        S3RefusedError: it listens and refuses.
    """
    answer = await ask_s3(url, methodcaller("list_buckets"))
    return tuple(each["Name"] for each in answer.get("Buckets", ()))


async def make_bucket(url: S3Url, name: str) -> None:
    """Make a bucket; nothing happens when it is there already.

    Raises:
        OSError: no server listens, or the connection broke.
        S3RefusedError: it listens and refuses.
    """
    try:
        await ask_s3(url, methodcaller("create_bucket", Bucket=name))
    except S3RefusedError as error:
        if error.status != _CONFLICT:
            raise


def s3_client(url: S3Url) -> Any:
    """The harness's own client of boto3 for a server; it may be used by several threads at once.

    Raises:
        Unavailable: the extra ``s3`` is not installed.
    """
    with _making:  # a session is not for several threads at once
        return _client(url)


@functools.lru_cache(maxsize=_CLIENTS)
def _client(url: S3Url) -> Any:
    need_extra("s3", action="talk to S3")
    from botocore.config import Config

    client = _session_of_nobody().client(
        "s3",
        endpoint_url=url.endpoint,
        aws_access_key_id=url.access_key,
        aws_secret_access_key=url.secret_key,
        region_name=url.region,
        # The machine's own authorities, as of every other connection; else those of certifi.
        verify=ssl.get_default_verify_paths().cafile or True,
        config=Config(
            connect_timeout=limits.S3_CALL_S,
            read_timeout=limits.S3_CALL_S,
            retries={"total_max_attempts": 1},
            signature_version="s3v4",
            s3={"addressing_style": "path"},
            proxies={},
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        ),
    )
    client.meta.events.register("before-send.s3", _close_afterwards)
    return client


@functools.cache
def _session_of_nobody() -> Any:
    """A session that takes its settings from neither environment nor home directory."""
    import boto3
    from botocore.session import Session

    known = {
        name: (None, None, default, convert)
        for name, (_, _, default, convert) in Session.SESSION_VARIABLES.items()
    }
    files = dict.fromkeys(("config_file", "credentials_file"), (None, None, os.devnull, None))
    sections: dict[str, Any] = {name: (None, None, {}, None) for name in ("s3", "proxies_config")}
    return boto3.Session(botocore_session=Session(session_vars=known | files | sections))


def _close_afterwards(request: Any, **_: object) -> None:
    """A connection of its own for each request: one that was kept may have died with the server."""
    request.headers["Connection"] = "close"


@contextmanager
def _as_our_errors() -> Iterator[None]:
    """What boto3 raises, as what callers of the harness know."""
    from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError
    from botocore.parsers import ResponseParserError
    from urllib3.exceptions import HTTPError  # boto3 lets those pass that break off a body

    try:
        yield
    except ClientError as error:
        status = error.response["ResponseMetadata"]["HTTPStatusCode"]
        code, message = (error.response["Error"].get(key, "") for key in ("Code", "Message"))
        code = "" if code == str(status) else code  # botocore's own, for an answer without one
        raise S3RefusedError(status=status, code=code, message=message) from error
    except ParamValidationError as error:
        raise HarnessError("talk to S3", observed=str(error)) from error
    except (BotoCoreError, HTTPError, ResponseParserError) as error:
        raise _reason(error) from error


def _reason(error: BaseException) -> OSError:
    """The operating system's error, below the layers of libraries; else theirs."""
    below: BaseException | None = error
    while below is not None:
        if isinstance(below, OSError) and not isinstance(below, ssl.SSLError) and below.errno:
            return OSError(below.errno, below.strerror)
        last, below = below, below.__cause__ or below.__context__
    return ConnectionResetError(f"{error} ({last})" if last is not error else str(error))
