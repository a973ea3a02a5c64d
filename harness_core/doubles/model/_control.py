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


#: Answers with a value that becomes JSON.
Handler = Callable[[Desk, Request], Awaitable[Any]]


def control_routes(desk: Desk, *, token: str) -> list[Route]:
    """Routes of the control API for a desk."""
    handlers: tuple[tuple[str, str, Handler], ...] = (
        ("GET", "health", _health),
        ("POST", "scope", _scope),
        ("GET", "ledger", _ledger),
        ("GET", "mark", _mark),
        ("GET", "totals", _totals),
        ("POST", "rehearsals", _rehearse),
        ("GET", "unmatched", _unmatched),
        ("GET", "faults", _faults),
        ("POST", "faults", _add_fault),
        ("DELETE", "faults", _withdraw_fault),
        ("POST", "clear", _clear),
    )
    return [
        Route(f"/_gateway/{path}", _guarded(desk, handler, token=token), methods=[method])
        for method, path, handler in handlers
    ]


def _guarded(
    desk: Desk, handler: Handler, *, token: str
) -> Callable[[Request], Awaitable[JSONResponse]]:
    """The handler behind the token, with bad input reported as JSON."""

    async def guard(request: Request) -> JSONResponse:
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(given.encode(), token.encode()):
            text = "the control API wants its token as a bearer token"
            return JSONResponse({"error": text}, status_code=401)
        try:
            return JSONResponse(msgspec.to_builtins(await handler(desk, request)))
        except BadInput as error:
            fields = ("where", "key", "found", "expected", "next_step")
            body = {"error": str(error)} | {name: getattr(error, name) for name in fields}
            return JSONResponse(body, status_code=400)

    return guard


async def _health(desk: Desk, _: Request) -> Any:
    return {"mode": desk.backend.name}


async def _scope(desk: Desk, request: Request) -> Any:
    desk.test = (await _read(request, _Scope, where="scope")).test
    return {}


async def _ledger(desk: Desk, request: Request) -> Any:
    return desk.ledger.since(_number(request, "since", default="0"))


async def _mark(desk: Desk, _: Request) -> Any:
    return desk.ledger.last_sequence


async def _totals(desk: Desk, _: Request) -> Any:
    return desk.totals()


async def _rehearse(desk: Desk, request: Request) -> Any:
    if not isinstance(desk.backend, RehearsedBackend):
        expected = "a gateway started with --mode rehearsed"
        raise BadInput("rehearsals", key="mode", found=desk.backend.name, expected=expected)
    rows = json_value(await request.body(), where="rehearsals")
    for rehearsal in rehearsals_from_json(rows, where="rehearsals"):
        desk.backend.stage.load(rehearsal)
    return {}


async def _unmatched(desk: Desk, _: Request) -> Any:
    return desk.backend.misses if isinstance(desk.backend, ReplayBackend) else []


async def _faults(desk: Desk, _: Request) -> Any:
    return [
        {
            "number": planted.number,
            "does": planted.fault.describe(),
            "left": planted.left,
            "met": planted.met,
        }
        for planted in desk.faults.planted()
    ]


async def _add_fault(desk: Desk, request: Request) -> Any:
    return desk.faults.add(await _read(request, Fault, where="fault"))


async def _withdraw_fault(desk: Desk, request: Request) -> Any:
    return desk.faults.withdraw(_number(request, "number"))


async def _clear(desk: Desk, _: Request) -> Any:
    desk.faults.clear()
    desk.test = ""
    return {}


async def _read(request: Request, kind: type[T], *, where: str) -> T:
    value = json_value(await request.body(), where=where)
    return convert(value, kind, where=where, words=JSON_WORDS)


def _number(request: Request, name: str, *, default: str = "") -> int:
    given = request.query_params.get(name, default)
    if not given.isdecimal():
        raise BadInput(request.url.path, key=name, found=given, expected="a number")
    return int(given)
