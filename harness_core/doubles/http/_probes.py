"""Probes of an HTTP server: whether it answers, whether its event stream opens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

import h11
import trio

from harness_core.base.errors import BadInput
from harness_core.doubles.http._exchange import exchange, request_bytes
from harness_core.ports import LOOK_S, Probe, reason_of

_OK: Final = 200

#: What is wrong with the head of an answer: status and content type → the end of a sentence.
_Judge = Callable[[int, str], str]


def http_answers(url: str) -> Probe:
    """A GET of ``url`` answers with 200; only the headers are read.

    Raises:
        BadInput: no URL that a GET over plain HTTP could reach.
    """
    return _probe(url, lambda status, _kind: f"{status}, expected 200" if status != _OK else "")


def sse_opens(url: str) -> Probe:
    """A GET of ``url`` starts an event stream; its body, which never ends, is not read.

    Raises:
        BadInput: no URL that a GET over plain HTTP could reach.
    """

    def judge(status: int, kind: str) -> str:
        opens = status == _OK and kind.lower().startswith("text/event-stream")
        return "" if opens else f"{status} {kind or 'without a content type'}"

    return _probe(url, judge, accept="text/event-stream")


def _probe(url: str, judge: _Judge, *, accept: str = "*/*") -> Probe:
    try:
        parts = urlsplit(url)
        port = parts.port or 80
    except ValueError as error:
        raise BadInput("url", found=url, expected=f"a URL ({error})") from error
    host, path = parts.hostname, (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    plain = path.isascii() and path.isprintable() and " " not in path
    if parts.scheme != "http" or not host or not plain:
        raise BadInput("url", found=url, expected="http://HOST[:PORT]/PATH, percent-encoded")
    headers = {"Host": parts.netloc.rpartition("@")[2], "Accept": accept, "Connection": "close"}
    data = request_bytes("GET", path, headers.items())

    async def probe() -> str:
        with trio.move_on_after(LOOK_S):
            try:
                head, _ = await exchange(
                    host,
                    port,
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
            problem = judge(head.status_code, kind)
            return problem and f"GET {url} answered {problem}"
        return f"GET {url}: no response headers within {LOOK_S:g} s"

    return probe
