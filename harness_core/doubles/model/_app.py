"""The routes of the gateway."""

from __future__ import annotations

from functools import partial
from typing import Any

from harness_core.doubles.http import OwnHosts
from harness_core.doubles.model._control import control_routes
from harness_core.doubles.model._desk import Desk
from harness_core.doubles.model._dialect import CHAT, EMBEDDINGS, MESSAGES, Dialect, responses
from harness_core.doubles.model._refusal import Refusal
from harness_core.doubles.serving import (
    ASGIApp,
    HTTPException,
    JSONResponse,
    Receive,
    Request,
    Response,
    Route,
    Scope,
    Send,
    Starlette,
)


class _Addressed:
    """Refuses what is meant for another host, before anything behind it sees the request."""

    def __init__(self, app: ASGIApp, own: OwnHosts) -> None:
        self._app = app
        self._own = own

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            hosts = [value for name, value in scope["headers"] if name == b"host"]
            astray = self._own.refuse(target=scope["raw_path"], hosts=hosts)
            if astray is not None:
                refusal = Refusal(astray.status, f"cannot take this request: {astray.problem}")
                response = JSONResponse(refusal.body(), status_code=refusal.status)
                await response(scope, receive, send)
                return
        await self._app(scope, receive, send)


def gateway_app(desk: Desk, *, control_token: str, own: OwnHosts) -> ASGIApp:
    """The ASGI application of a gateway."""
    app = Starlette(
        routes=[
            _answering("/v1/messages", desk, MESSAGES),
            _answering("/v1/messages/count_tokens", desk, MESSAGES, counting=True),
            _answering("/v1/chat/completions", desk, CHAT),
            _answering("/v1/responses", desk, responses()),
            _answering("/v1/embeddings", desk, EMBEDDINGS),
            # Claude Code looks whether its base URL is there before it asks anything.
            Route("/", _hello, methods=["GET", "HEAD"]),
            Route("/api/hello", _hello, methods=["GET", "HEAD"]),
            *control_routes(desk, token=control_token),
        ],
        exception_handlers={404: _refused, 405: _refused},
    )
    return _Addressed(app, own)


def _answering(path: str, desk: Desk, dialect: Dialect, *, counting: bool = False) -> Route:
    """A route whose calls pass the desk."""

    async def answer(_: Request) -> Any:
        # An ASGI application, as every response is one.
        return partial(desk.serve, dialect, counting=counting)

    return Route(path, answer, methods=["POST"])


async def _hello(request: Request) -> Response:  # noqa: ARG001 - a route's signature
    return JSONResponse({"message": "hello"})


async def _refused(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 404
    refusal = Refusal(status, f"{request.method} {request.url.path} is not served here")
    return JSONResponse(refusal.body(), status_code=status)
