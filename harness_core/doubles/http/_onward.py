"""Spans that recorders take, sent on to a collector of the user's, as the product sent them.

In a thread and by the standard library: a collector may be anywhere, behind TLS or a proxy, and what it
does may hold nothing up. The official exporter takes spans of its own SDK, and these are encoded already.
"""

from __future__ import annotations

import os
import queue
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final
from urllib.parse import unquote, urlsplit

from harness_core.base.bridge import beside
from harness_core.base.errors import BadInput
from harness_core.doubles.http._recorded import Recorded
from harness_core.doubles.http._watchers import watching

__all__ = ["check_endpoint", "sending_on"]

#: Where exporters send traces to, below an endpoint (OTLP over HTTP).
_TRACES: Final = "/v1/traces"

#: Headers for the collector, a key say, as exporters have them: ``name=value,name=value``.
_HEADERS_VARIABLE: Final = "OTEL_EXPORTER_OTLP_HEADERS"

#: Exports that wait; a product sends one every few seconds.
_WAITING: Final = 1000

#: One export. At the end all that waits gets as long together.
_SEND_S: Final = 5.0

#: What sends them; a recorder of ours that is sent such an export does not send it on again.
_AGENT: Final = "staging-harness"


class _Onward:
    """A queue of exports, and the thread that sends them."""

    def __init__(self, endpoint: str, say: Callable[[str], None]) -> None:
        self._url = f"{endpoint.rstrip('/')}{_TRACES}"
        self._endpoint = endpoint
        self._say = say
        self._trouble = False
        self._waiting: queue.Queue[Recorded | None] = queue.Queue(_WAITING)
        self._thread = beside(self._work, name="otlp")

    def take(self, request: Recorded) -> None:
        """Send an export on, as soon as may be; what does not fit is left out."""
        exports = request.method == "POST" and request.path.endswith(_TRACES)
        if exports and not request.problem and request.header("user-agent") != _AGENT:
            try:
                self._waiting.put_nowait(request)
            except queue.Full:
                self._tell("it takes them slower than they come")

    def end(self) -> None:
        """Wait a moment for what is under way."""
        try:
            self._waiting.put(None, timeout=_SEND_S)
        except queue.Full:
            return
        self._thread.join(timeout=_SEND_S)

    def _work(self) -> None:
        while (request := self._waiting.get()) is not None:
            own = {"content-type": request.header("content-type"), "user-agent": _AGENT}
            onward = urllib.request.Request(  # noqa: S310 - checked to be of http or https
                self._url, data=request.body, headers={**_further(), **own}, method="POST"
            )
            try:
                with urllib.request.urlopen(onward, timeout=_SEND_S) as answer:  # noqa: S310
                    answer.read(1)
            except urllib.error.HTTPError as error:
                error.close()
                self._tell(f"it answers {error.code}")
            except (OSError, ValueError) as error:
                self._tell(str(getattr(error, "reason", error)))

    def _tell(self, reason: str) -> None:
        if not self._trouble:
            self._trouble = True
            self._say(f"spans do not reach {_plain(self._endpoint)}: {reason}; all else goes on")


def check_endpoint(url: str) -> str:
    """The endpoint, as ``OTEL_EXPORTER_OTLP_ENDPOINT`` has it.

    Raises:
        BadInput: it is no address of http or https.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        expected = "http://HOST:PORT or https://HOST, without /v1/traces"
        raise BadInput("--otlp", found=_plain(url), expected=expected)
    return url.removesuffix("/").removesuffix(_TRACES)


@contextmanager
def sending_on(endpoint: str, *, say: Callable[[str], None]) -> Iterator[None]:
    """Send spans on, during the block.

    Args:
        endpoint: of :func:`check_endpoint`.
        say: gets one line, from any thread, the first time that it cannot be reached.
    """
    onward = _Onward(endpoint, say)
    try:
        with watching(onward.take):
            yield
    finally:
        onward.end()


def _further() -> dict[str, str]:
    pairs = (pair.partition("=") for pair in os.environ.get(_HEADERS_VARIABLE, "").split(","))
    return {
        unquote(name.strip()): unquote(value.strip()) for name, _, value in pairs if name.strip()
    }


def _plain(url: str) -> str:
    """Without a password that stands in it."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
