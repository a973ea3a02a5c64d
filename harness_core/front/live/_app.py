"""The routes of the page."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

import msgspec

from harness_core.base.errors import HarnessError
from harness_core.doubles.http import OwnHosts
from harness_core.doubles.serving import (
    ASGIApp,
    HTMLResponse,
    PlainTextResponse,
    Request,
    Response,
    Route,
    Starlette,
)
from harness_core.front.live._board import Board
from harness_core.front.live._guard import Guard
from harness_core.front.live._stream import Listener
from harness_core.front.live.page import render_live, render_locked

__all__ = ["live_app"]

#: Streams at a time: a person has a few tabs, a team may look together.
_CLIENTS: Final = 200

#: Longest body; a message is a few sentences.
_BODY_BYTES: Final = 16_384


class _Act(msgspec.Struct, forbid_unknown_fields=True):
    """What is done to a part."""

    part: str
    verb: str


class _Send(msgspec.Struct, forbid_unknown_fields=True):
    """What is sent."""

    offer: str = ""
    text: str = ""
    title: str = ""


def live_app(board: Board, *, token: str, own: OwnHosts, port: int) -> ASGIApp:
    """The ASGI application of the page.

    Args:
        board: what is shown.
        token: opens it.
        own: its names.
        port: where it listens.
    """
    page = render_live(title=board.title)

    async def index(request: Request) -> Response:  # noqa: ARG001 - a route's signature
        return HTMLResponse(page.html, headers={"content-security-policy": page.policy})

    async def events(request: Request) -> Any:
        if board.clients >= _CLIENTS:
            return _said(HTTPStatus.SERVICE_UNAVAILABLE, f"{_CLIENTS} clients look already")
        after = request.query_params.get("after", "0")
        # An ASGI application, as every response is one.
        return Listener(board, after=int(after) if after.isdecimal() else 0)

    async def event(request: Request) -> Response:
        found = board.feed.numbered(int(request.path_params["number"]))
        if found is None:
            return _said(HTTPStatus.NOT_FOUND, "it is not kept any more")
        data = found.data or b"null"
        source = msgspec.json.encode(found.source)
        return _json(b'{"source":' + source + b',"data":' + data + b"}")

    async def act(request: Request) -> Response:
        asked = await _read(request, _Act)
        await board.act(asked.part, asked.verb)
        return _json(b"null")

    async def send(request: Request) -> Response:
        asked = await _read(request, _Send)
        sent = await board.send(asked.offer, asked.text, title=asked.title[:200])
        return _json(msgspec.json.encode({"id": sent}))

    app = Starlette(
        routes=[
            Route("/", index, methods=["GET"]),
            Route("/events", events, methods=["GET"]),
            Route("/event/{number:int}", event, methods=["GET"]),
            Route("/act", act, methods=["POST"]),
            Route("/send", send, methods=["POST"]),
        ],
        exception_handlers={HarnessError: _refused},
    )
    locked = render_locked()
    answer = HTMLResponse(
        locked.html,
        status_code=HTTPStatus.UNAUTHORIZED,
        headers={"content-security-policy": locked.policy},
    )
    return Guard(app, token=token, own=own, port=port, locked=answer)


async def _read(request: Request, kind: Any) -> Any:
    """The body of a request.

    Raises:
        HarnessError: it is too long, or not of the shape.
    """
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > _BODY_BYTES:
            raise _unread(f"it has over {_BODY_BYTES} bytes")
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as error:
        raise _unread(str(error)) from error


def _unread(why: str) -> HarnessError:
    return HarnessError("take a request", observed=f"cannot read the request: {why}")


async def _refused(request: Request, error: Exception) -> Response:  # noqa: ARG001
    assert isinstance(error, HarnessError)
    return _said(HTTPStatus.CONFLICT, error.observed)


def _said(status: int, text: str) -> Response:
    return PlainTextResponse(text, status_code=status)


def _json(body: bytes) -> Response:
    return Response(body, media_type="application/json")
