"""Whom the page answers: a browser of the person who holds the system, and nobody else.

The token comes as a header. No cookie carries it: cookies go to every port of a host, and so to the
system that is held, whose addresses the page shows. Source: decision 0171.
"""

from __future__ import annotations

import hmac
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qs

from harness_core.doubles.http import OwnHosts
from harness_core.doubles.serving import (
    ASGIApp,
    Headers,
    Message,
    MutableHeaders,
    PlainTextResponse,
    Receive,
    Response,
    Scope,
    Send,
)

__all__ = ["Guard"]

#: Besides the policy of each page.
_HEADERS: Final = {
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


class Guard:
    """Checks a request before anything behind it sees it.

    Args:
        app: what answers then.
        token: what a request must carry, in ``Authorization: Bearer`` or, for the page itself, in its
            address.
        own: the names of this server.
        port: where it listens.
        locked: answers the page's address to one without the token.
    """

    def __init__(
        self, app: ASGIApp, *, token: str, own: OwnHosts, port: int, locked: Response
    ) -> None:
        self._app = app
        self._token = token.encode()
        self._own = own
        self._origins = {f"http://127.0.0.1:{port}", f"http://localhost:{port}"}
        self._locked = locked

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or refuse it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        answer = self._refusal(scope) or self._app
        await answer(scope, receive, with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        astray = self._own.refuse(target=scope["raw_path"], hosts=hosts)
        if astray is not None:
            return _said(astray.status, astray.problem)
        origins = headers.getlist("origin")
        if any(origin not in self._origins for origin in origins):
            return _said(HTTPStatus.FORBIDDEN, "it comes from a page of another origin")
        if self._knows(headers, scope):
            return None
        if scope["method"] == "GET" and scope["path"] == "/":
            return self._locked
        return _said(HTTPStatus.UNAUTHORIZED, "it has no token, or a wrong one")

    def _knows(self, headers: Headers, scope: Scope) -> bool:
        given = headers.get("authorization", "").removeprefix("Bearer ")
        if not given and scope["path"] == "/":
            given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        return hmac.compare_digest(given.encode(), self._token)


def _said(status: int, problem: str) -> Response:
    return PlainTextResponse(f"cannot take this request: {problem}\n", status_code=status)
