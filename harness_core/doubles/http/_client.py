"""A client that records every exchange: the request, its answer, how long it took.

It adds no header of its own, follows no redirect, retries nothing and keeps no connection: what is
seen is the server's answer to this one request. It may be awaited in any event loop.

A server that does not answer has failed its user, so that is an assertion, of a kind that a test of
an outage can expect: :class:`Unanswered`.
"""

from __future__ import annotations

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
from harness_core.doubles.http._exchange import exchange, request_bytes
from harness_core.doubles.http._misdirected import Addressed
from harness_core.doubles.http._recorded import header_texts, shown_body, shown_headers, utc_now
from harness_core.ports import reason_of

if TYPE_CHECKING:
    from harness_core.base.evidence import Evidence

#: An answer of a server on this machine that does no long work takes milliseconds; on a loaded one
#: with two cores, seconds.
_ANSWER_S: Final = 30.0

_BAD_REQUEST: Final = 400
_REFUSED: Final = "connection refused"
_OK: Final = 200
_REDIRECT: Final = 300


class Silence(StrEnum):
    """How an answer failed to come."""

    #: No process accepts connections.
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
        duration_s: seconds from the beginning of the request to the last byte.
    """

    method: str
    url: str
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes = dataclasses.field(repr=False)
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
        """The body as JSON; a field that its objects lack is an assertion that shows the answer.

        Raises:
            AssertionError: it is none.
        """

        def read(pairs: list[tuple[str, Any]]) -> _Fields:
            fields = _Fields(pairs)
            fields.answer = self
            return fields

        try:
            return json.loads(self.body, object_pairs_hook=read)
        except ValueError as error:
            raise AssertionError(f"expected JSON from {self}, found {self.text[:400]!r}") from error

    def __str__(self) -> str:
        """``POST http://127.0.0.1:1/x -> 422 {"detail": …}``, as an assertion shows it."""
        return f"{self.method} {self.url} -> {self.status} {self.text[:600]}"


class _Fields(dict[str, Any]):
    """An object of an answer: a field that it lacks is the product's fault, not the test's.

    Attributes:
        answer: where it stood.
    """

    answer: Response

    def __missing__(self, name: str) -> Any:
        known = ", ".join(self) or "none"
        raise AssertionError(f"expected the field {name!r}, found {known} in {self.answer}")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """One request, as the evidence keeps it.

    Attributes:
        data: all of it, as sent.
        reads_any_length: an answer that may be without end is read to its end, too.
    """

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    data: bytes
    reads_any_length: bool = True

    def may_end_at(self, head: h11.Response) -> bool:
        """Whether the answer is read no further than its head, since it may have no end."""
        endless = head.status_code < _BAD_REQUEST and b"content-length" not in dict(head.headers)
        return endless and not self.reads_any_length


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
        body = content if json is None else _json(json)
        sent = {"host": self._authority, **self._headers(method, json, body, headers or {})}
        try:
            data = request_bytes(method, target, sent.items(), body)
        except h11.LocalProtocolError as error:
            raise BadInput("request", found=f"{method} {path}", expected=str(error)) from error
        url, headers_sent = f"{self.base_url}{target}", tuple(sent.items())
        request = _Request(method=method, url=url, headers=headers_sent, body=body, data=data)
        return await self._ask(request, seconds=seconds)

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
        body = b"" if json is None else _json(json)
        sent = self._headers(method, json, body, {})
        request = _Request(
            method=method,
            url=f"{addressed.origin or self.base_url}{path}",
            headers=(
                *(("host", host) for host in addressed.hosts),
                *sent.items(),
                *addressed.headers,
            ),
            body=body,
            data=addressed.request(method, path, headers=sent, body=body),
            reads_any_length=False,
        )
        return await self._ask(request, seconds=seconds)

    def _headers(
        self, method: str, json: Any, body: bytes, further: Mapping[str, str]
    ) -> dict[str, str]:
        """Names in lower case → values, without ``Host``."""
        sent = {name.lower(): value for name, value in {**self.headers, **further}.items()}
        if json is not None:
            sent.setdefault("content-type", "application/json")
        if body or method in {"POST", "PUT", "PATCH"}:
            sent["content-length"] = str(len(body))
        return sent | {"connection": "close"}

    async def _ask(self, request: _Request, *, seconds: float | None) -> Response:
        limit_s = self._seconds if seconds is None else seconds
        began_s, at = time.monotonic(), utc_now()
        how, problem, response = Silence.BROKEN, "", None
        try:
            with trio.fail_after(limit_s):
                head, body = await exchange(
                    self._host,
                    self._port,
                    request.data,
                    method=request.method,
                    head_suffices=request.may_end_at,
                )
            response = Response(
                method=request.method,
                url=request.url,
                status=head.status_code,
                headers=header_texts(head.headers),
                body=body,
                duration_s=time.monotonic() - began_s,
            )
        except trio.TooSlowError:
            how, problem = Silence.LATE, f"nothing came within {limit_s:g} s"
        except (OSError, trio.BrokenResourceError, h11.RemoteProtocolError) as error:
            problem = f"{type(error).__name__}: {error}"
            if isinstance(error, OSError) and reason_of(error) == _REFUSED:
                how, problem = Silence.REFUSED, _REFUSED
        self._write(at, request, response, problem, time.monotonic() - began_s)
        if response is None:
            text = (
                f"expected an answer to {request.method} {request.url} from {self.name}, "
                f"found none: {problem}"
            )
            raise Unanswered(text, how=how)
        return response

    def _write(
        self,
        at: str,
        request: _Request,
        response: Response | None,
        problem: str,
        duration_s: float,
    ) -> None:
        if self._evidence is None:
            return
        redactor = self._evidence.redactor
        row: dict[str, Any] = {
            "at": at,
            "duration_s": round(duration_s, 4),
            "method": request.method,
            "url": redactor.redact(request.url),
            "headers": shown_headers(request.headers, redactor),
            "body": shown_body(request.body, redactor),
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


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()
