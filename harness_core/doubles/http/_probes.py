"""One look each at a server of HTTP: does it answer, does its event stream open?"""

from __future__ import annotations

import dataclasses
from urllib.parse import urlsplit

import h11
import trio

from harness_core.base.errors import BadInput
from harness_core.doubles.http._exchange import exchange, request_bytes
from harness_core.ports import LOOK_S, Probe, reason_of


def http_answers(url: str, *, status: int = 200) -> Probe:
    """A GET of ``url`` answers with ``status``; only the headers are read.

    Raises:
        BadInput: no URL that a GET over plain HTTP could reach.
    """
    target = _target(url)

    async def look() -> str:
        seen = await _get_head(target)
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
        seen = await _get_head(target, accept="text/event-stream")
        if isinstance(seen, str):
            return seen
        kind = seen.content_type
        if seen.status != 200 or not kind.lower().startswith("text/event-stream"):  # noqa: PLR2004
            return f"GET {url} answered {seen.status} {kind or 'without a content type'}"
        return ""

    return look


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Head:
    """What is looked at of an answer; an empty ``content_type`` where it names none."""

    status: int
    content_type: str


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


async def _get_head(target: _Target, *, accept: str = "*/*") -> _Head | str:
    """The head of the answer to one GET, or what went wrong."""
    url = target.url
    headers = [("Host", target.authority), ("Accept", accept), ("Connection", "close")]
    data = request_bytes("GET", target.path, headers)
    with trio.move_on_after(LOOK_S):
        try:
            head, _ = await exchange(
                target.host,
                target.port,
                data,
                method="GET",
                head_suffices=lambda head: True,  # noqa: ARG005 - its body may never end
            )
        except OSError as error:
            return f"GET {url}: {reason_of(error)}"
        except trio.BrokenResourceError:
            return f"GET {url}: connection reset"
        except h11.RemoteProtocolError as error:
            return f"GET {url}: not HTTP ({error})"
        kind = dict(head.headers).get(b"content-type", b"").decode("latin-1")
        return _Head(status=head.status_code, content_type=kind)
    return f"GET {url}: no response headers within {LOOK_S:g} s"
