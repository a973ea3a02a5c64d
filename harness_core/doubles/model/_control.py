"""The control API under ``/_gateway/``: how the harness steers and reads a gateway.

It wants the control token, which the system under test never sees: a system could otherwise
rewrite its own ledger or rehearse its own answers.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from harness_core.base.errors import BadInput
from harness_core.base.reading import JSON_WORDS, Table, convert, json_value
from harness_core.doubles.model._desk import Desk
from harness_core.doubles.model._faults import Fault
from harness_core.doubles.model._replay import ReplayBackend
from harness_core.doubles.model.rehearsed import RehearsedBackend
from harness_core.doubles.turns import rehearsals_from_json

T = TypeVar("T")


class _Scope(Table, frozen=True):
    """The id of the test that is running; empty for none."""

    test: str


#: What is answered, as a value that becomes JSON.
Handler = Callable[[Request], Awaitable[Any]]


def control_routes(desk: Desk, *, token: str) -> list[Route]:
    """Routes of the control API for a desk."""
    control = _Control(desk)
    handlers: dict[str, tuple[Handler, list[str]]] = {
        "health": (control.health, ["GET"]),
        "scope": (control.scope, ["POST"]),
        "ledger": (control.ledger, ["GET"]),
        "mark": (control.mark, ["GET"]),
        "totals": (control.totals, ["GET"]),
        "rehearsals": (control.rehearsals, ["POST"]),
        "unmatched": (control.unmatched, ["GET"]),
        "faults": (control.faults, ["GET", "POST", "DELETE"]),
        "clear": (control.clear, ["POST"]),
    }
    return [
        Route(f"/_gateway/{path}", _guarded(handler, token=token), methods=methods)
        for path, (handler, methods) in handlers.items()
    ]


def _guarded(handler: Handler, *, token: str) -> Callable[[Request], Awaitable[JSONResponse]]:
    """The handler behind the token, with bad input reported as JSON."""

    async def guard(request: Request) -> JSONResponse:
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(given.encode(), token.encode()):
            text = "the control API wants its token as a bearer token"
            return JSONResponse({"error": text}, status_code=401)
        try:
            return JSONResponse(msgspec.to_builtins(await handler(request)))
        except BadInput as error:
            fields = ("where", "key", "found", "expected", "next_step")
            body = {"error": str(error)} | {name: getattr(error, name) for name in fields}
            return JSONResponse(body, status_code=400)

    return guard


class _Control:
    """Handlers of the control API."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def health(self, _: Request) -> Any:
        return {"mode": self._desk.backend.name}

    async def scope(self, request: Request) -> Any:
        self._desk.test = (await _read(request, _Scope, where="scope")).test
        return {}

    async def ledger(self, request: Request) -> Any:
        return self._desk.ledger.since(_number(request, "since", default="0"))

    async def mark(self, _: Request) -> Any:
        return self._desk.ledger.last_sequence

    async def totals(self, _: Request) -> Any:
        return self._desk.totals()

    async def rehearsals(self, request: Request) -> Any:
        backend = self._desk.backend
        if not isinstance(backend, RehearsedBackend):
            expected = "a gateway started with --mode rehearsed"
            raise BadInput("rehearsals", key="mode", found=backend.name, expected=expected)
        rows = json_value(await request.body(), where="rehearsals")
        for rehearsal in rehearsals_from_json(rows, where="rehearsals"):
            backend.stage.load(rehearsal)
        return {}

    async def unmatched(self, _: Request) -> Any:
        backend = self._desk.backend
        return backend.misses if isinstance(backend, ReplayBackend) else []

    async def faults(self, request: Request) -> Any:
        board = self._desk.faults
        if request.method == "POST":
            return board.add(await _read(request, Fault, where="fault"))
        if request.method == "DELETE":
            return board.withdraw(_number(request, "number"))
        return [
            {
                "number": planted.number,
                "does": planted.fault.describe(),
                "left": planted.left,
                "met": planted.met,
            }
            for planted in board.planted()
        ]

    async def clear(self, _: Request) -> Any:
        self._desk.faults.clear()
        self._desk.test = ""
        return {}


async def _read(request: Request, kind: type[T], *, where: str) -> T:
    value = json_value(await request.body(), where=where)
    return convert(value, kind, where=where, words=JSON_WORDS)


def _number(request: Request, name: str, *, default: str = "") -> int:
    given = request.query_params.get(name, default)
    if not given.isdecimal():
        raise BadInput(request.url.path, key=name, found=given, expected="a number")
    return int(given)
