"""Where every model call passes: key, faults, budget, backend, ledger, in that order.

A call is recorded when it ends, however it ends: answered, refused, cut by a fault, or left by
its client. Nothing reaches a backend without a reservation when the backend costs money.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import hmac
import json
import time
import traceback
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec
import trio
from msgspec import Struct

from harness_core.base.evidence import Redactor
from harness_core.doubles.model._backend import Answer, Backend, Call
from harness_core.doubles.model._budget import Budget
from harness_core.doubles.model._dialect import Dialect
from harness_core.doubles.model._exchange import Exchange
from harness_core.doubles.model._faults import FaultBoard, Planted
from harness_core.doubles.model._ledger import (
    ANSWER_CHARS,
    PROMPT_CHARS,
    Ledger,
    LedgerEntry,
    Totals,
)
from harness_core.doubles.model._prices import price_usd
from harness_core.doubles.model._refusal import Refusal
from harness_core.doubles.model._reply import Reply, Usage, prompt_tokens
from harness_core.doubles.model._report import KEY_MISSING, WRONG_BEARER, WRONG_KEY
from harness_core.doubles.model._request import MessagesRequest, parse_body
from harness_core.doubles.model._trouble import make_trouble
from harness_core.doubles.model.rehearsed._prompt import message_of
from harness_core.doubles.serving import Receive, Request, Scope, Send

#: Status of a call whose client left, as web servers log it.
_CLIENT_GONE: Final = 499

_OK: Final = 200


@dataclass(kw_only=True, eq=False)
class Desk:
    """The gateway without its HTTP routes.

    Attributes:
        backend: its mode.
        ledger: where calls are recorded.
        budget: what calls that cost may spend.
        api_key: what callers must present.
        models: models that may be asked for; empty for all.
        redactor: removes secrets from the prompts kept in the ledger.
        faults: what waits for its calls.
        test: id of the test that is running; empty for none.
    """

    backend: Backend
    ledger: Ledger
    budget: Budget
    api_key: str
    models: Collection[str] = ()
    redactor: Redactor = field(default_factory=Redactor)
    faults: FaultBoard = field(default_factory=FaultBoard)
    test: str = ""

    def totals(self) -> Totals:
        """The ledger added up, with the state of the budget."""
        return replace(
            self.ledger.totals(),
            mode=self.backend.name,
            budget_usd=self.budget.limit_usd,
            spent_usd=self.budget.spent_usd,
            reserved_usd=self.budget.reserved_usd,
            budget_exceeded=self.budget.refused > 0,
        )

    async def serve(
        self,
        dialect: Dialect,
        scope: Scope,
        receive: Receive,
        send: Send,
        *,
        counting: bool = False,
    ) -> None:
        """Answer one call in its dialect and record it.

        Args:
            dialect: how its request is read and its answer written.
            scope: the ASGI scope.
            receive: the ASGI receiver.
            send: the ASGI sender.
            counting: count its tokens instead of answering it.
        """
        now = dt.datetime.now(dt.UTC)
        entry = LedgerEntry(
            sequence=self.ledger.next_sequence(),
            arrived_at=now.isoformat(timespec="milliseconds"),
            mode=self.backend.name,
            kind="count_tokens" if counting else dialect.kind,
            test=self.test,
        )
        exchange = Exchange(
            request=Request(scope, receive),
            send_asgi=send,
            dialect=dialect,
            entry=entry,
            closing=self._close,
        )
        try:
            async with trio.open_nursery() as nursery:
                try:
                    await self._answer(exchange, now, nursery)
                except Refusal as refusal:
                    entry.error, entry.fault = refusal.reason, refusal.fault or entry.fault
                    # A stream that has begun is never declared whole; the client sees the error event.
                    await exchange.refuse(refusal)
                nursery.cancel_scope.cancel()
        finally:
            exchange.close()

    async def _answer(self, exchange: Exchange, now: dt.datetime, nursery: trio.Nursery) -> None:
        headers, entry = exchange.request.headers, exchange.entry
        entry.traceparent = headers.get("traceparent", "")
        entry.session = headers.get("x-claude-code-session-id", "")
        refused = self._key_refused(headers.get("x-api-key", ""), headers.get("authorization", ""))
        raw = await exchange.body()
        if refused is not None:
            raise refused
        nursery.start_soon(exchange.watch, nursery.cancel_scope)
        body = parse_body(raw)
        counting = entry.kind == "count_tokens"
        request = exchange.dialect.parse({**body, "max_tokens": 1} if counting else body)
        self._describe(entry, request)
        if counting:
            # Nothing is answered, so nothing limits it.
            entry.input_tokens = prompt_tokens(request)
            await exchange.send(json.dumps({"input_tokens": entry.input_tokens}).encode())
            return
        if self.models and request.model not in self.models:
            allowed = ", ".join(self.models)
            problem = f"model {request.model!r} is not allowed in this run; allowed: {allowed}"
            # Clients do not retry a 403.
            raise Refusal(403, problem, reason="model_not_allowed")
        call = Call(
            request=request,
            raw=raw,
            path=exchange.path,
            now=now,
            headers={name: headers[name] for name in headers if name != "x-api-key"},
        )
        text = raw.decode("utf-8", "replace")
        names = [tool.name for tool in request.tools]
        says = not request.dimensions
        planted = self.faults.take(model=request.model, text=text, tools=names, says=says)
        await self._dispatch(exchange, call, planted)

    def _key_refused(self, api_key: str, authorization: str) -> Refusal | None:
        scheme, _, token = authorization.partition(" ")
        bearer = token.strip() if scheme.lower() == "bearer" else ""
        given = api_key or bearer
        if hmac.compare_digest(given.encode(), self.api_key.encode()):
            return None
        if not given:
            return Refusal(401, "x-api-key header is required", reason=KEY_MISSING)
        return Refusal(401, "invalid x-api-key", reason=WRONG_KEY if api_key else WRONG_BEARER)

    def _describe(self, entry: LedgerEntry, request: MessagesRequest) -> None:
        entry.model = request.model
        entry.stream = request.stream
        entry.tools = tuple(tool.name for tool in request.tools)
        entry.session = entry.session or _session_of(request.user_id)
        # Redacted before it is cut: half a secret is still a secret the shapes would not see.
        entry.prompt = self.redactor.redact(message_of(request))[:PROMPT_CHARS]

    async def _dispatch(self, exchange: Exchange, call: Call, planted: Planted | None) -> None:
        cut = None
        if planted is not None:
            exchange.entry.fault = planted.fault.describe()
            if await make_trouble(planted, exchange, call):
                return
            cut = planted.fault.after_events if planted.fault.kind == "cut" else None
        await self._reserve(exchange, call.request)
        answer = await self._asked(call, exchange.entry)
        if isinstance(answer, Reply):
            await exchange.reply(call, answer, cut=cut)
        else:
            await exchange.pass_on(call, answer, cut=cut)

    async def _asked(self, call: Call, entry: LedgerEntry) -> Answer:
        """The backend's answer; a mistake of ours is recorded as ours, and ends as a refusal."""
        try:
            return await self.backend.answer(call)
        except Refusal:
            raise
        except Exception as error:
            entry.unrehearsed = f"the gateway itself failed: {error!r}"
            traceback.print_exception(error)
            message = "the gateway itself failed; its log says where"
            raise Refusal(500, message, headers={"x-should-retry": "false"}) from error

    async def _reserve(self, exchange: Exchange, request: MessagesRequest) -> None:
        if not self.backend.charges:
            return
        worst = Usage(input_tokens=prompt_tokens(request), output_tokens=request.max_tokens)
        price = price_usd(request.model, worst)
        if price is None:
            message = (
                f"the price of model {request.model!r} is unknown, so the budget could not be kept;"
                " choose a model that the price table knows"
            )
            raise Refusal(403, message, reason="unpriced_model")
        await self.budget.reserve(price)
        exchange.reserved_usd = price

    def _close(self, exchange: Exchange) -> None:
        """Settle what was reserved and record the call."""
        entry, reserved_usd = exchange.entry, exchange.reserved_usd
        unused = entry.usage == Usage()
        if entry.kind != "count_tokens" and not unused:
            entry.usd = price_usd(entry.model, entry.usage)
        if reserved_usd is not None:
            if unused:
                # The provider was asked and what it counted was not seen: the worst is assumed.
                unseen = exchange.status in (0, _OK) or bool(entry.unrehearsed)
                entry.usd = reserved_usd if unseen else 0.0
            self.budget.settle(reserved_usd, entry.usd or 0.0)
            entry.charged = True
        gone = exchange.gone or not exchange.status
        entry.status = _CLIENT_GONE if gone else exchange.status
        entry.latency_ms = round((time.perf_counter() - exchange.began_s) * 1000, 3)
        entry.answer = self.redactor.redact(entry.answer)[:ANSWER_CHARS]
        entry.missing = self.redactor.redact(entry.missing)
        entry.unrehearsed = self.redactor.redact(entry.unrehearsed)
        self.ledger.add(entry)


class _User(Struct):
    """What today's CLI writes into ``metadata.user_id``, as JSON."""

    session_id: str


def _session_of(user_id: str) -> str:
    """The session that a user's id names; the id itself where it names none apart from it."""
    with contextlib.suppress(msgspec.MsgspecError):
        return msgspec.json.decode(user_id, type=_User).session_id
    return user_id
