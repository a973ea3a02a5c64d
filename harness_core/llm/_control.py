"""The control API under ``/_gateway/``: how the harness steers and reads a gateway.

It wants the control token, which the system under test never sees: a system could otherwise
rewrite its own ledger or rehearse its own answers.
"""

from __future__ import annotations

import dataclasses
import hmac
import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from harness_core.errors import BadInput
from harness_core.llm._desk import Desk
from harness_core.llm._faults import fault_as_json, fault_from_json
from harness_core.llm._replay import ReplayBackend
from harness_core.llm._scopes import Scope
from harness_core.llm.rehearsed import RehearsedBackend
from harness_core.turns import Rehearsal

__all__ = ["control_routes"]

Handler = Callable[[Request], Awaitable[JSONResponse]]


def control_routes(desk: Desk, *, token: str) -> list[Route]:
    """Routes of the control API for a desk."""
    control = _Control(desk)
    handlers: dict[str, tuple[Handler, list[str]]] = {
        "health": (control.health, ["GET"]),
        "scope": (control.scope, ["POST"]),
        "ledger": (control.ledger, ["GET"]),
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


def _guarded(handler: Handler, *, token: str) -> Handler:
    """The handler behind the token, with bad input told as JSON."""

    async def guard(request: Request) -> JSONResponse:
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(given.encode(), token.encode()):
            text = "the control API wants its token as a bearer token"
            return JSONResponse({"error": text}, status_code=401)
        try:
            return await handler(request)
        except BadInput as error:
            body = {
                "error": str(error),
                "where": error.where,
                "key": error.key,
                "found": error.found,
                "expected": error.expected,
            }
            return JSONResponse(body, status_code=400)

    return guard


class _Control:
    """Handlers of the control API."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def health(self, request: Request) -> JSONResponse:  # noqa: ARG002 - a handler
        return JSONResponse({"mode": self._desk.backend.name})

    async def scope(self, request: Request) -> JSONResponse:
        self._desk.scopes.set(_scope(await _object(request, "scope")))
        return JSONResponse({})

    async def ledger(self, request: Request) -> JSONResponse:
        since = request.query_params.get("since", "0")
        if not since.isdecimal():
            raise BadInput("ledger", key="since", found=since, expected="a sequence number")
        entries = [dataclasses.asdict(entry) for entry in self._desk.ledger.since(int(since))]
        return JSONResponse({"entries": entries})

    async def totals(self, request: Request) -> JSONResponse:  # noqa: ARG002
        return JSONResponse(dataclasses.asdict(self._desk.totals()))

    async def rehearsals(self, request: Request) -> JSONResponse:
        backend = self._desk.backend
        if not isinstance(backend, RehearsedBackend):
            expected = "a gateway started with --mode rehearsed"
            raise BadInput("rehearsals", key="mode", found=backend.name, expected=expected)
        body = await _object(request, "rehearsals")
        rows = body.get("rehearsals")
        if not isinstance(rows, list):
            raise BadInput("rehearsals", key="rehearsals", found=rows, expected="a list")
        read = [
            Rehearsal.from_json(row, where="rehearsals", at=f"[{number}]")
            for number, row in enumerate(rows)
        ]
        for rehearsal in read:
            backend.stage.load(rehearsal)
        return JSONResponse({"loaded": len(read)})

    async def unmatched(self, request: Request) -> JSONResponse:  # noqa: ARG002
        backend = self._desk.backend
        calls = backend.unmatched() if isinstance(backend, ReplayBackend) else ()
        return JSONResponse({"calls": calls})

    async def faults(self, request: Request) -> JSONResponse:
        board = self._desk.faults
        answer: dict[str, Any] = {}
        if request.method == "POST":
            answer["number"] = board.add(fault_from_json(await _object(request, "fault")))
        elif request.method == "DELETE":
            number = request.query_params.get("number", "")
            if not number.isdecimal():
                raise BadInput("fault", key="number", found=number, expected="a fault's number")
            answer["withdrawn"] = board.withdraw(int(number))
        answer["planted"] = [fault_as_json(planted) for planted in board.planted()]
        return JSONResponse(answer)

    async def clear(self, request: Request) -> JSONResponse:  # noqa: ARG002
        self._desk.faults.clear()
        self._desk.scopes.clear()
        return JSONResponse({})


async def _object(request: Request, where: str) -> dict[str, Any]:
    raw = await request.body()
    try:
        body = json.loads(raw)
    except ValueError as error:
        raise BadInput(where, found=raw[:80].decode("utf-8", "replace"), expected="JSON") from error
    if not isinstance(body, dict):
        raise BadInput(where, found=body, expected="an object")
    return body


def _scope(body: dict[str, Any]) -> Scope:
    for key, value in body.items():
        if key not in ("test", "contains", "trace_id"):
            raise BadInput("scope", key=key, found=value, expected="test, contains or trace_id")
        if not isinstance(value, str):
            raise BadInput("scope", key=key, found=value, expected="a string")
    if "test" not in body:
        raise BadInput("scope", key="test", found=None, expected="the id of the test, or empty")
    return Scope(**body)
