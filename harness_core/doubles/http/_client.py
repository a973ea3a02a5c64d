"""A client that writes down every exchange: what a test asked, what it was answered, how long it took.

It adds no header of its own, follows no redirect, retries nothing and keeps no connection: what is
seen is what the server said to this one request. It may be awaited in any event loop.

A server that does not answer has failed its user, so that is an assertion, of a kind that a test of
an outage can expect: :class:`Unanswered`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import time
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode, urlsplit

import h11
import trio

from harness_core.base.bridge import anywhere
from harness_core.base.errors import BadInput
from harness_core.doubles.http._misdirected import Addressed
from harness_core.doubles.http._recorded import shown_body, shown_headers

if TYPE_CHECKING:
    from harness_core.base.evidence import Evidence

__all__ = ["HttpClient", "Response", "Silence", "Unanswered"]

_READ_BYTES: Final = 65_536
_HEAD_BYTES: Final = 262_144
#: Renders and small videos fit; a body without end does not.
_BODY_BYTES: Final = 256 * 1024 * 1024

#: An answer of a server on this machine that does no long work takes milliseconds; on a loaded one
#: with two cores, seconds.
_ANSWER_S: Final = 30.0

_BAD_REQUEST: Final = 400
_OK: Final = 200
_REDIRECT: Final = 300


class Silence(StrEnum):
    """How an answer failed to come."""

    #: Nobody accepts connections.
    REFUSED = "refused"
    #: The connection broke, or what came was no HTTP, or not all of it.
    BROKEN = "broken"
    #: Nothing came in time.
    LATE = "late"


class Unanswered(AssertionError):  # noqa: N818 - names what was seen
    """A request got no whole answer.

    Attributes:
        how: in which way.
    """

    def __init__(self, text: str, *, how: Silence) -> None:
        super().__init__(text)
        self.how = how


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """One answer.

    Attributes:
        method: of the request.
        url: of the request, with its query.
        status: HTTP status.
        headers: names in lower case, in the order sent, repeated ones repeated.
        body: the bytes.
        began_s: monotonic clock when the request was begun.
        duration_s: seconds from there to the last byte.
    """

    method: str
    url: str
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes = dataclasses.field(repr=False)
    began_s: float
    duration_s: float

    @property
    def ok(self) -> bool:
        """Whether the status says success."""
        return _OK <= self.status < _REDIRECT

    @property
    def refused(self) -> bool:
        """Whether the status says that the request was refused, or failed."""
        return self.status >= _BAD_REQUEST

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode("utf-8", errors="replace")

    @property
    def content_type(self) -> str:
        """Without parameters, in lower case."""
        return self.header("content-type").partition(";")[0].strip().lower()

    def header(self, name: str) -> str:
        """The values of a header, joined by commas; empty without one."""
        return ", ".join(value for key, value in self.headers if key == name.lower())

    def json(self) -> Any:
        """The body as JSON.

        Raises:
            AssertionError: it is none.
        """
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise AssertionError(f"expected JSON from {self}, found {self.text[:400]!r}") from error

    def __str__(self) -> str:
        """``POST http://127.0.0.1:1/x -> 422 {"detail": …}``, as an assertion shows it."""
        return f"{self.method} {self.url} -> {self.status} {self.text[:600]}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """One request, as the evidence keeps it.

    Attributes:
        head_suffices: an answer that may be without end is read no further than its head.
    """

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    head_suffices: bool = False


class HttpClient:
    """Asks one server.

    Args:
        base_url: ``http://HOST:PORT``, without a path.
        name: of the server; names the file of its exchanges, ``<name>.exchanges.jsonl``.
        headers: sent with every request.
        evidence: where exchanges are written, secrets redacted; nowhere when left out.
        seconds: how long an answer may take, unless a request says otherwise.
    """

    def __init__(
        self,
        base_url: str,
        *,
        name: str = "http",
        headers: Mapping[str, str] | None = None,
        evidence: Evidence | None = None,
        seconds: float = _ANSWER_S,
    ) -> None:
        parts = urlsplit(base_url)
        if parts.scheme != "http" or not parts.hostname or parts.path.strip("/"):
            raise BadInput(
                "HttpClient", key="base_url", found=base_url, expected="http://HOST:PORT"
            )
        self.base_url = base_url.rstrip("/")
        self.name = name
        self.headers = dict(headers or {})
        self._host, self._port, self._authority = parts.hostname, parts.port or 80, parts.netloc
        self._evidence = evidence
        self._seconds = seconds

    def having(self, **changes: str | None) -> HttpClient:
        """The same client with other headers: ``having(x_api_key=None)`` leaves one out.

        Args:
            changes: header names with ``_`` for ``-``; ``None`` removes one.
        """
        named = {name.replace("_", "-").lower(): value for name, value in changes.items()}
        kept = {key: value for key, value in self.headers.items() if key.lower() not in named}
        added = {key: value for key, value in named.items() if value is not None}
        return HttpClient(
            self.base_url,
            name=self.name,
            headers={**kept, **added},
            evidence=self._evidence,
            seconds=self._seconds,
        )

    async def get(self, path: str, **options: Any) -> Response:
        """GET; see :meth:`request`."""
        return await self.request("GET", path, **options)

    async def post(self, path: str, body: Any = None, **options: Any) -> Response:
        """POST ``body`` as JSON, or nothing; see :meth:`request`."""
        return await self.request("POST", path, json=body, **options)

    @anywhere
    async def request(  # noqa: PLR0913 - what a request has, all but two with defaults
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str | int] | None = None,
        json: Any = None,
        content: bytes = b"",
        headers: Mapping[str, str] | None = None,
        seconds: float | None = None,
    ) -> Response:
        """Ask once.

        Args:
            method: of HTTP.
            path: beginning with ``/``; characters that a URL cannot hold are encoded, ``%`` is not.
            params: the query.
            json: sent as the body, unless ``None``.
            content: sent as the body instead.
            headers: more headers for this request; they win over the client's.
            seconds: how long the answer may take.

        Raises:
            Unanswered: no whole answer came.
        """
        target = quote(path, safe="/%:@!$&'()*+,;=~?-._") + (
            f"?{urlencode(params)}" if params else ""
        )
        body = _json(json) if json is not None else content
        sent = {"host": self._authority}
        for name, value in {**self.headers, **(headers or {})}.items():
            sent[name.lower()] = value
        if json is not None:
            sent.setdefault("content-type", "application/json")
        if body or method in {"POST", "PUT", "PATCH"}:
            sent["content-length"] = str(len(body))
        sent["connection"] = "close"
        try:
            data = _serialised(
                h11.Request(method=method, target=target, headers=list(sent.items())), body
            )
        except h11.LocalProtocolError as error:
            raise BadInput("request", found=f"{method} {path}", expected=str(error)) from error
        asked = _Asked(
            method=method, url=f"{self.base_url}{target}", headers=tuple(sent.items()), body=body
        )
        return await self._ask(asked, data, seconds=seconds)

    @anywhere
    async def send(
        self,
        addressed: Addressed,
        method: str,
        path: str,
        *,
        json: Any = None,
        seconds: float | None = None,
    ) -> Response:
        """Ask once, with the ``Host`` headers and the form of target that ``addressed`` has.

        An answer that says yes and does not say how long it is, is read no further than its head:
        it may be a stream without end.

        Args:
            addressed: whom the request says that it is for.
            method: of HTTP.
            path: beginning with ``/``, sent as it is.
            json: sent as the body, unless ``None``.
            seconds: how long the answer may take.

        Raises:
            Unanswered: no answer came.
        """
        body = _json(json) if json is not None else b""
        sent = {name.lower(): value for name, value in self.headers.items()}
        if json is not None:
            sent["content-type"] = "application/json"
        if body or method in {"POST", "PUT", "PATCH"}:
            sent["content-length"] = str(len(body))
        sent["connection"] = "close"
        data = addressed.request(method, path, headers=sent, body=body)
        named = tuple(("host", host) for host in addressed.hosts)
        asked = _Asked(
            method=method,
            url=f"{addressed.origin or self.base_url}{path}",
            headers=(*named, *sent.items(), *addressed.headers),
            body=body,
            head_suffices=True,
        )
        return await self._ask(asked, data, seconds=seconds)

    async def _ask(self, asked: _Asked, data: bytes, *, seconds: float | None) -> Response:
        limit_s = self._seconds if seconds is None else seconds
        began_s, stamp = time.monotonic(), time.time()
        response: Response | None = None
        problem = ""
        try:
            with trio.move_on_after(limit_s) as scope:
                head, answer = await self._exchange(asked, data)
                response = Response(
                    method=asked.method,
                    url=asked.url,
                    status=head.status_code,
                    headers=tuple(
                        (name.decode("latin-1").lower(), value.decode("latin-1"))
                        for name, value in head.headers
                    ),
                    body=answer,
                    began_s=began_s,
                    duration_s=time.monotonic() - began_s,
                )
            how = Silence.LATE
            if response is None and scope.cancelled_caught:
                problem = f"nothing came within {limit_s:g} s"
        except ConnectionRefusedError:
            how, problem = Silence.REFUSED, "nobody accepts connections"
        except (OSError, trio.BrokenResourceError, h11.RemoteProtocolError) as error:
            refused = _was_refused(error)
            how = Silence.REFUSED if refused else Silence.BROKEN
            problem = (
                "nobody accepts connections" if refused else f"{type(error).__name__}: {error}"
            )
        self._write(stamp, asked, response, problem, time.monotonic() - began_s)
        if response is None:
            text = (
                f"expected an answer to {asked.method} {asked.url} from {self.name}, "
                f"found none: {problem}"
            )
            raise Unanswered(text, how=how)
        return response

    async def _exchange(self, asked: _Asked, data: bytes) -> tuple[h11.Response, bytes]:
        connection = h11.Connection(our_role=h11.CLIENT, max_incomplete_event_size=_HEAD_BYTES)
        # What was sent may be no HTTP; how the answer is read depends on the method alone.
        connection.send(h11.Request(method=asked.method, target="/", headers=[("host", "")]))
        connection.send(h11.EndOfMessage())
        async with await trio.open_tcp_stream(self._host, self._port) as stream:
            # It may have answered before it had read everything: an answer of 413, say.
            with contextlib.suppress(trio.BrokenResourceError):
                await stream.send_all(data)
            head: h11.Response | None = None
            answer = bytearray()
            while True:
                event = connection.next_event()
                if event is h11.NEED_DATA:
                    connection.receive_data(await stream.receive_some(_READ_BYTES))
                elif isinstance(event, h11.Response):
                    head = event
                    if asked.head_suffices and _endless(head):
                        return head, b""
                elif isinstance(event, h11.Data):
                    answer += event.data
                    if len(answer) > _BODY_BYTES:
                        raise h11.RemoteProtocolError(f"a body of more than {_BODY_BYTES} bytes")
                elif isinstance(event, h11.EndOfMessage) and head is not None:
                    return head, bytes(answer)
                elif isinstance(event, h11.ConnectionClosed):
                    raise h11.RemoteProtocolError("it closed the connection without an answer")

    def _write(
        self,
        stamp: float,
        asked: _Asked,
        response: Response | None,
        problem: str,
        duration_s: float,
    ) -> None:
        if self._evidence is None:
            return
        redactor = self._evidence.redactor
        row: dict[str, Any] = {
            "at": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(stamp))
            + f".{int(stamp % 1 * 1000):03d}Z",
            "duration_s": round(duration_s, 4),
            "method": asked.method,
            "url": redactor.redact(asked.url),
            "headers": shown_headers(asked.headers, redactor),
            "body": shown_body(asked.body, redactor),
        }
        if response is None:
            row["problem"] = problem
        else:
            row["answer"] = {
                "status": response.status,
                "headers": shown_headers(response.headers, redactor),
                "body": shown_body(response.body, redactor),
            }
        self._evidence.append_json(f"{self.name}.exchanges.jsonl", row)


def _serialised(request: h11.Request, body: bytes) -> bytes:
    connection = h11.Connection(our_role=h11.CLIENT)
    data = connection.send(request) or b""
    if body:
        data += connection.send(h11.Data(data=body)) or b""
    return data + (connection.send(h11.EndOfMessage()) or b"")


def _endless(head: h11.Response) -> bool:
    """Whether an answer that says yes does not say how long it is."""
    return head.status_code < _BAD_REQUEST and b"content-length" not in dict(head.headers)


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _was_refused(error: BaseException) -> bool:
    """Trio wraps the reasons of a failed connection in a group."""
    cause = error.__cause__
    while isinstance(cause, BaseExceptionGroup) and cause.exceptions:
        cause = cause.exceptions[0]
    return isinstance(error, ConnectionRefusedError) or isinstance(cause, ConnectionRefusedError)
