"""One look each at a server: does it accept, does it answer, does its stream open?

A probe answers ``""`` when it saw what it wants, else what it saw instead, in a few words. It
looks once and bounds itself; waiting and deadlines are the business of ``_readiness.py``.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import urlsplit

import trio

from harness_core.errors import BadInput
from harness_core.http import Head, NotHttp, get_head

__all__ = ["Probe", "http_answers", "sse_opens", "tcp_accepts"]

Probe = Callable[[], Awaitable[str]]

#: One look may not take longer: a paused server accepts into its backlog and never answers.
_LOOK_S: Final = 2.0


def tcp_accepts(port: int, *, host: str = "127.0.0.1") -> Probe:
    """The port accepts a connection."""

    async def look() -> str:
        with trio.move_on_after(_LOOK_S):
            try:
                stream = await trio.open_tcp_stream(host, port)
            except OSError as error:
                return f"port {port}: {_reason(error)}"
            await stream.aclose()
            return ""
        return f"port {port}: no answer to a connection within {_LOOK_S:g} s"

    return look


def http_answers(url: str, *, status: int = 200) -> Probe:
    """A GET of ``url`` answers with ``status``; only the headers are read.

    Raises:
        BadInput: no URL that a GET over plain HTTP could reach.
    """
    target = _target(url)

    async def look() -> str:
        seen = await _get_headers(target)
        if isinstance(seen, str):
            return seen
        if seen.status != status:
            return f"GET {url} answered {seen.status}, expected {status}"
        return ""

    return look


def sse_opens(url: str) -> Probe:
    """A GET of ``url`` starts an event stream; its body, which never ends, is not read.

    Raises:
        BadInput: no URL that a GET over plain HTTP could reach.
    """
    target = _target(url)

    async def look() -> str:
        seen = await _get_headers(target, accept="text/event-stream")
        if isinstance(seen, str):
            return seen
        kind = seen.content_type
        if seen.status != 200 or not kind.lower().startswith("text/event-stream"):  # noqa: PLR2004
            return f"GET {url} answered {seen.status} {kind or 'without a content type'}"
        return ""

    return look


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    url: str
    host: str
    port: int
    authority: str
    path: str


def _target(url: str) -> _Target:
    """Take a URL apart once, before anybody waits for it."""
    try:
        parts = urlsplit(url)
        port = parts.port or 80
    except ValueError as error:
        raise BadInput("url", found=url, expected=f"a URL ({error})") from error
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    plain = path.isascii() and path.isprintable() and " " not in path
    if parts.scheme != "http" or not parts.hostname or not plain:
        raise BadInput("url", found=url, expected="http://HOST[:PORT]/PATH, percent-encoded")
    return _Target(
        url=url,
        host=parts.hostname,
        port=port,
        authority=parts.netloc.rpartition("@")[2],
        path=path,
    )


async def _get_headers(target: _Target, *, accept: str = "*/*") -> Head | str:
    """The response head of one GET, or what went wrong."""
    url = target.url
    with trio.move_on_after(_LOOK_S):
        try:
            return await get_head(
                host=target.host,
                port=target.port,
                authority=target.authority,
                target=target.path,
                accept=accept,
            )
        except OSError as error:
            return f"GET {url}: {_reason(error)}"
        except trio.BrokenResourceError:
            return f"GET {url}: connection reset"
        except NotHttp as error:
            return f"GET {url}: not HTTP ({error})"
    return f"GET {url}: no response headers within {_LOOK_S:g} s"


def _reason(error: OSError) -> str:
    """What the system said; trio wraps the attempts of a connection in a group."""
    cause = error.__cause__
    while isinstance(cause, BaseExceptionGroup) and cause.exceptions:
        cause = cause.exceptions[0]
    inner = cause if isinstance(cause, OSError) else error
    said = os.strerror(inner.errno) if inner.errno and inner.errno > 0 else str(inner)
    return said.lower()
