"""Where every model call passes: key, faults, budget, backend, ledger, in that order.

A call is recorded when it ends, however it ends: answered, refused, cut by a fault, or left by
its client. Nothing reaches a backend without a reservation when the backend costs money.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import hmac
import json
import re
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import trio
from starlette.types import Receive, Scope, Send

from harness_core.evidence import Redactor
from harness_core.llm._backend import Answer, Backend, Call, Relay, Trouble
from harness_core.llm._budget import Budget, Reservation
from harness_core.llm._dialect import Dialect
from harness_core.llm._endless import never_end
from harness_core.llm._exchange import Exchange
from harness_core.llm._faults import Fault, FaultBoard, Planted
from harness_core.llm._ledger import ANSWER_CHARS, PROMPT_CHARS, Ledger, LedgerEntry, Totals
from harness_core.llm._models import ModelRule
from harness_core.llm._prices import price_usd
from harness_core.llm._refusal import Refusal
from harness_core.llm._refused import KEY_MISSING, WRONG_BEARER, WRONG_KEY
from harness_core.llm._reply import (
    Reply,
    Usage,
    new_id,
    prompt_tokens,
    reply_tokens,
    usage_from_body,
)
from harness_core.llm._request import Block, MessagesRequest, TextBlock, ToolUseBlock
from harness_core.llm._scopes import Scopes
from harness_core.llm._sse import UsageReader
from harness_core.llm.rehearsed._prompt import message_of

__all__ = ["Desk"]

#: Bytes of a non-streamed upstream answer looked at for its usage.
_MESSAGE_BYTES: Final = 4 * 1024 * 1024

#: Status of a call whose client left, as web servers log it.
_CLIENT_GONE: Final = 499

_OK: Final = 200


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


@dataclass(slots=True, kw_only=True)
class _Record:
    """What is known of a call while it runs; becomes its ledger entry."""

    sequence: int
    kind: str
    arrived: dt.datetime
    started_s: float
    model: str = ""
    test: str = ""
    session: str = ""
    traceparent: str = ""
    stream: bool = False
    usage: Usage = field(default_factory=Usage)
    reservation: Reservation | None = None
    asked: bool = False
    stop_reason: str = ""
    error: str = ""
    fault: str = ""
    tools: tuple[str, ...] = ()
    called: tuple[str, ...] = ()
    prompt: str = ""
    answer: str = ""
    missing: str = ""
    unrehearsed: str = ""


class Desk:
    """The gateway without its HTTP routes.

    Args:
        api_key: what callers must present.
        models: models that may be asked for; all when not given.
        charge_offline: calls of backends that cost nothing count against the budget as well.
        redactor: removes secrets from the prompts kept in the ledger.
        now: clock of arrivals.
    """

    def __init__(  # noqa: PLR0913 - the parts it joins
        self,
        *,
        backend: Backend,
        ledger: Ledger,
        budget: Budget,
        api_key: str,
        models: ModelRule | None = None,
        charge_offline: bool = False,
        redactor: Redactor | None = None,
        now: Callable[[], dt.datetime] = _now,
    ) -> None:
        self.backend = backend
        self.ledger = ledger
        self.budget = budget
        self.faults = FaultBoard()
        self.scopes = Scopes()
        self._api_key = api_key
        self._models = models or ModelRule()
        self._charges = backend.charges or charge_offline
        self._redactor = redactor or Redactor()
        self._now = now

    def totals(self) -> Totals:
        """The ledger added up, with the state of the budget."""
        return dataclasses.replace(
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
        record = _Record(
            sequence=self.ledger.next_sequence(),
            kind="count_tokens" if counting else dialect.kind,
            arrived=self._now(),
            started_s=time.perf_counter(),
        )
        exchange = Exchange(
            scope, receive, send, closing=lambda exchange: self._close(record, exchange)
        )
        try:
            async with trio.open_nursery() as nursery:
                await self._answer(dialect, exchange, record, nursery, counting=counting)
                nursery.cancel_scope.cancel()
        finally:
            exchange.close()

    async def _answer(
        self,
        dialect: Dialect,
        exchange: Exchange,
        record: _Record,
        nursery: trio.Nursery,
        *,
        counting: bool,
    ) -> None:
        try:
            headers = exchange.request.headers
            record.traceparent = headers.get("traceparent", "")
            record.session = headers.get("x-claude-code-session-id", "")
            refused = self._key_refused(
                headers.get("x-api-key", ""), headers.get("authorization", "")
            )
            raw = await exchange.body()
            if refused is not None:
                # What it asks is not looked at, but for whose call it is.
                record.test = self._test_of(record, raw)
                raise refused
            nursery.start_soon(exchange.watch, nursery.cancel_scope)
            request = dialect.parse(raw, counting=counting)
            self._describe(record, request, raw)
            if counting:
                await self._count(exchange, record, request)
                return
            request, raw = self._models.apply(request, raw)
            record.model = request.model
            call = Call(
                request=request,
                raw=raw,
                path=exchange.path,
                now=record.arrived,
                headers={name: headers[name] for name in headers if name != "x-api-key"},
                test=record.test,
            )
            planted = self.faults.take(
                test=record.test,
                model=request.model,
                text=raw.decode("utf-8", "replace"),
                tools=bool(request.tools),
            )
            await self._dispatch(dialect, exchange, record, call, planted)
        except Refusal as refusal:
            record.error = refusal.reason
            # A stream that has begun is never declared whole; the client sees the error event.
            await exchange.refuse(refusal, body=dialect.error(refusal))

    def _key_refused(self, api_key: str, authorization: str) -> Refusal | None:
        scheme, _, token = authorization.partition(" ")
        bearer = token.strip() if scheme.lower() == "bearer" else ""
        given = api_key or bearer
        if hmac.compare_digest(given.encode(), self._api_key.encode()):
            return None
        if not given:
            return Refusal(401, "x-api-key header is required", reason=KEY_MISSING)
        return Refusal(401, "invalid x-api-key", reason=WRONG_KEY if api_key else WRONG_BEARER)

    def _test_of(self, record: _Record, raw: bytes) -> str:
        text = raw.decode("utf-8", "replace")
        return self.scopes.of(text=text, traceparent=record.traceparent)

    def _describe(self, record: _Record, request: MessagesRequest, raw: bytes) -> None:
        record.model = request.model
        record.stream = request.stream
        record.tools = tuple(tool.name for tool in request.tools)
        record.session = record.session or _session_of(request.user_id)
        record.test = self._test_of(record, raw)
        # Redacted before it is cut: half a secret is still a secret the shapes would not see.
        record.prompt = self._redactor.redact(message_of(request))[:PROMPT_CHARS]

    async def _count(self, exchange: Exchange, record: _Record, request: MessagesRequest) -> None:
        record.usage = Usage(input_tokens=prompt_tokens(request))
        await exchange.send_json(200, {"input_tokens": record.usage.input_tokens})

    async def _dispatch(
        self,
        dialect: Dialect,
        exchange: Exchange,
        record: _Record,
        call: Call,
        planted: Planted | None,
    ) -> None:
        fault = planted.fault if planted is not None else None
        if planted is not None and fault is not None:
            record.fault = fault.describe()
            if fault.kind == "hold":
                await planted.withdrawn.wait()
            if await _trouble(fault, exchange):
                return
            if fault.kind == "answer":
                await _send_reply(
                    dialect, exchange, record, call, _planted(fault, call.request), cut=None
                )
                return
            if fault.kind == "endless":
                await never_end(dialect, exchange, call)
        record.reservation = await self._reserve(call.request)
        record.asked = self.backend.charges
        answer = await self._asked(call, record)
        if isinstance(answer, Trouble):
            record.fault = answer.fault.describe()
            if not await _trouble(answer.fault, exchange) and answer.fault.kind == "answer":
                reply = _planted(answer.fault, call.request)
                await _send_reply(dialect, exchange, record, call, reply, cut=None)
            return
        cut = fault.after_events if fault is not None and fault.kind == "cut" else None
        if isinstance(answer, Reply):
            await _send_reply(dialect, exchange, record, call, answer, cut=cut)
        else:
            await _pass_on(exchange, record, answer, cut=cut)

    async def _asked(self, call: Call, record: _Record) -> Answer:
        """The backend's answer; a mistake of ours is recorded as ours, and ends as a refusal."""
        try:
            return await self.backend.answer(call)
        except Refusal:
            raise
        except Exception as error:
            record.unrehearsed = f"the gateway itself failed: {error!r}"
            traceback.print_exception(error)
            message = "the gateway itself failed; its log says where"
            raise Refusal(500, message, headers={"x-should-retry": "false"}) from error

    async def _reserve(self, request: MessagesRequest) -> Reservation | None:
        if not self._charges:
            return None
        worst = Usage(input_tokens=prompt_tokens(request), output_tokens=request.max_tokens)
        price = price_usd(request.model, worst)
        if price is None:
            message = (
                f"the price of model {request.model!r} is unknown, so the budget could not be kept;"
                " choose a model that the price table knows"
            )
            raise Refusal(403, message, reason="unpriced_model")
        return await self.budget.reserve(price)

    def _close(self, record: _Record, exchange: Exchange) -> None:
        """Settle what was reserved and write the call down."""
        free = record.kind == "count_tokens" or record.usage == Usage()
        usd = 0.0 if free else price_usd(record.model, record.usage)
        if record.reservation is not None and record.usage == Usage() and record.asked:
            # The provider was asked and nobody saw what it counted: the worst is assumed.
            unseen = exchange.status in (0, _OK) or bool(record.unrehearsed)
            usd = record.reservation.amount_usd if unseen else 0.0
        if record.reservation is not None:
            record.reservation.settle(usd or 0.0)
        self.ledger.add(
            LedgerEntry(
                sequence=record.sequence,
                arrived_at=record.arrived.isoformat(timespec="milliseconds"),
                mode=self.backend.name,
                kind=record.kind,
                model=record.model,
                status=_CLIENT_GONE if exchange.gone or not exchange.status else exchange.status,
                test=record.test,
                session=record.session,
                traceparent=record.traceparent,
                stream=record.stream,
                input_tokens=record.usage.input_tokens,
                output_tokens=record.usage.output_tokens,
                cache_read_tokens=record.usage.cache_read_tokens,
                cache_write_tokens=record.usage.cache_write_tokens,
                usd=usd,
                charged=record.reservation is not None,
                latency_ms=round((time.perf_counter() - record.started_s) * 1000, 3),
                stop_reason=record.stop_reason,
                error=record.error,
                fault=record.fault,
                tools=record.tools,
                called=record.called,
                prompt=record.prompt,
                answer=self._redactor.redact(record.answer)[:ANSWER_CHARS],
                missing=self._redactor.redact(record.missing),
                unrehearsed=self._redactor.redact(record.unrehearsed),
                hit=not self.backend.charges,
            )
        )


def _session_of(user_id: str) -> str:
    """The session in ``metadata.user_id``: a JSON object in today's CLI, ``…_session_ID`` before."""
    with contextlib.suppress(ValueError):
        body = json.loads(user_id)
        if isinstance(body, dict) and isinstance(body.get("session_id"), str):
            return str(body["session_id"])
    found = re.search(r"_session_([0-9a-zA-Z-]+)$", user_id)
    return found[1] if found else user_id


async def _trouble(fault: Fault, exchange: Exchange) -> bool:
    """Make the trouble that comes before an answer; whether there is to be no answer."""
    if fault.kind == "latency":
        # The wait is the fault itself, not a way to wait for something.
        with trio.move_on_after(fault.latency_s):
            await trio.sleep_forever()
        return False
    if fault.kind == "hang":
        await trio.sleep_forever()
    if fault.kind == "status":
        headers = {}
        if fault.retry_after_s is not None:
            headers["retry-after"] = f"{fault.retry_after_s:g}"
        raise Refusal(fault.status, "planted by the harness", headers=headers, reason="fault")
    if fault.kind == "malformed":
        await exchange.send_bytes(200, b'{"type": "message", "content": [{"type": "te')
        return True
    return False


def _planted(fault: Fault, request: MessagesRequest) -> Reply:
    """The message of a fault of kind ``answer``; no backend is asked."""
    blocks: tuple[Block, ...] = (
        (TextBlock(text=fault.text),) if fault.text or not fault.tool else ()
    )
    if fault.tool:
        offered = [tool.name for tool in request.tools if tool.name.endswith(f"__{fault.tool}")]
        call = ToolUseBlock(
            id=new_id("toolu", request.body), name=(offered or [fault.tool])[0], input=fault.input
        )
        blocks = (*blocks, call)
    usage = Usage(input_tokens=prompt_tokens(request), output_tokens=reply_tokens(blocks))
    return Reply(blocks=blocks, usage=usage, stop_reason="tool_use" if fault.tool else "end_turn")


async def _send_reply(
    dialect: Dialect,
    exchange: Exchange,
    record: _Record,
    call: Call,
    reply: Reply,
    *,
    cut: int | None,
) -> None:
    record.usage = reply.usage
    record.stop_reason = reply.stop_reason
    record.called = tuple(block.name for block in reply.blocks if isinstance(block, ToolUseBlock))
    record.answer = "\n".join(map(_shown, reply.blocks))
    record.missing, record.unrehearsed = reply.missing, reply.unrehearsed
    message_id = new_id("msg", record.sequence, record.arrived, call.raw)
    model = call.request.model
    if not call.request.stream:
        if cut is not None:
            await exchange.start(
                200, {"content-type": "application/json", "content-length": "1000"}
            )
            return
        body: dict[str, Any] = dialect.whole(reply, model=model, message_id=message_id)
        await exchange.send_json(200, body, headers={"request-id": message_id})
        return
    headers = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
    await exchange.start(200, headers | {"request-id": message_id})
    events = list(dialect.events(reply, request=call.request, message_id=message_id))
    for number, event in enumerate(events):
        if number == cut:
            return
        if number == len(events) - 1:
            exchange.close()
        await exchange.write(event)
    await exchange.finish()


def _shown(block: object) -> str:
    if isinstance(block, TextBlock):
        return block.text
    if isinstance(block, ToolUseBlock):
        return f"{block.name}({json.dumps(block.input, ensure_ascii=False)})"
    return type(block).__name__


async def _pass_on(exchange: Exchange, record: _Record, relay: Relay, *, cut: int | None) -> None:
    """Pass an upstream's answer on as it comes, and read its usage on the way."""
    streaming = relay.headers.get("content-type", "").startswith("text/event-stream")
    reader = UsageReader()
    whole = bytearray()
    try:
        await exchange.start(relay.status, relay.headers)
        number = 0
        async for chunk in relay.chunks():
            if cut is not None and number >= cut:
                return
            number += chunk.count(b"\n\n")
            if streaming:
                reader.feed(chunk)
                _read_stream(record, reader)
                if reader.complete:
                    exchange.close()
            elif len(whole) < _MESSAGE_BYTES:
                whole += chunk
            await exchange.write(chunk)
        if not streaming:
            _read_whole(record, bytes(whole))
        await exchange.finish()
    finally:
        await relay.aclose()


def _read_stream(record: _Record, reader: UsageReader) -> None:
    """After every chunk, so that a stream that breaks off is priced by what was seen of it."""
    record.usage, record.stop_reason = reader.best_usage(), reader.stop_reason
    record.called = tuple(reader.called)
    record.error = reader.error


def _read_whole(record: _Record, content: bytes) -> None:
    try:
        body = json.loads(content)
    except ValueError:
        return
    if not isinstance(body, dict):
        return
    if isinstance(body.get("usage"), dict):
        record.usage = usage_from_body(body["usage"])
    record.stop_reason = str(body.get("stop_reason") or "")
    error = body.get("error")
    if isinstance(error, dict):
        record.error = str(error.get("type") or "error")
    content_blocks = body.get("content")
    if isinstance(content_blocks, list):
        record.called = tuple(
            str(part.get("name"))
            for part in content_blocks
            if isinstance(part, dict) and part.get("type") == "tool_use"
        )
