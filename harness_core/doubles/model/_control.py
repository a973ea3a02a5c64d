"""The control API under ``/_gateway/``: how the harness steers and reads a gateway.

It wants the control token, which the system under test never sees: a system could otherwise
rewrite its own ledger or rehearse its own answers.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from harness_core.base.errors import BadInput
from harness_core.base.reading import JSON_WORDS, Table, convert, json_value
from harness_core.doubles.model._desk import Desk
from harness_core.doubles.model._faults import Fault
from harness_core.doubles.model._replay import ReplayBackend
from harness_core.doubles.model.rehearsed import RehearsedBackend
from harness_core.doubles.serving import JSONResponse, Request, Route
from harness_core.doubles.turns import rehearsals_from_json

T = TypeVar("T")


class _Scope(Table, frozen=True):
    """The id of the test that is running; empty for none."""

    test: str


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request of the control API."""

    path: str
    query: Mapping[str, str]
    body: bytes

    def number(self, name: str, *, default: str = "") -> int:
        """A number in its query."""
        given = self.query.get(name, default)
        if not given.isdecimal():
            raise BadInput(self.path, key=name, found=given, expected="a number")
        return int(given)

    def read(self, kind: type[T], *, where: str) -> T:
        """Its body."""
        value = json_value(self.body, where=where)
        return convert(value, kind, where=where, words=JSON_WORDS)


#: Answers with a value that becomes JSON.
Handler = Callable[[_Asked], Any]


def control_routes(desk: Desk, *, token: str) -> list[Route]:
    """Routes of the control API for a desk."""

    def set_scope(asked: _Asked) -> None:
        desk.test = asked.read(_Scope, where="scope").test

    def rehearse(asked: _Asked) -> None:
        if not isinstance(desk.backend, RehearsedBackend):
            expected = "a gateway started with --mode rehearsed"
            raise BadInput("rehearsals", key="mode", found=desk.backend.name, expected=expected)
        rows = json_value(asked.body, where="rehearsals")
        for rehearsal in rehearsals_from_json(rows, where="rehearsals"):
            desk.backend.stage.load(rehearsal)

    def forget(_: _Asked) -> None:
        if isinstance(desk.backend, RehearsedBackend):
            desk.backend.stage.forget()

    def unmatched(_: _Asked) -> list[str]:
        return desk.backend.misses if isinstance(desk.backend, ReplayBackend) else []

    def faults(_: _Asked) -> list[dict[str, Any]]:
        return [
            {
                "number": planted.number,
                "does": planted.fault.describe(),
                "left": planted.left,
                "met": planted.met,
            }
            for planted in desk.faults.planted()
        ]

    def clear(_: _Asked) -> None:
        desk.faults.clear()
        desk.test = ""

    handlers: tuple[tuple[str, str, Handler], ...] = (
        ("GET", "health", lambda _: {"mode": desk.backend.name}),
        ("POST", "scope", set_scope),
        ("GET", "ledger", lambda asked: desk.ledger.since(asked.number("since", default="0"))),
        ("GET", "mark", lambda _: desk.ledger.last_sequence),
        ("GET", "totals", lambda _: desk.totals()),
        ("POST", "rehearsals", rehearse),
        ("DELETE", "rehearsals", forget),
        ("GET", "unmatched", unmatched),
        ("GET", "faults", faults),
        ("POST", "faults", lambda asked: desk.faults.add(asked.read(Fault, where="fault"))),
        ("DELETE", "faults", lambda asked: desk.faults.withdraw(asked.number("number"))),
        ("POST", "clear", clear),
    )
    return [
        Route(f"/_gateway/{path}", _guarded(handler, token=token), methods=[method])
        for method, path, handler in handlers
    ]


def _guarded(handler: Handler, *, token: str) -> Callable[[Request], Awaitable[JSONResponse]]:
    """The handler behind the token, with bad input reported as JSON."""

    async def guard(request: Request) -> JSONResponse:
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(given.encode(), token.encode()):
            text = "the control API wants its token as a bearer token"
            return JSONResponse({"error": text}, status_code=401)
        asked = _Asked(request.url.path, request.query_params, await request.body())
        try:
            return JSONResponse(msgspec.to_builtins(handler(asked)))
        except BadInput as error:
            fields = ("where", "key", "found", "expected", "next_step")
            body = {"error": str(error)} | {name: getattr(error, name) for name in fields}
            return JSONResponse(body, status_code=400)

    return guard
