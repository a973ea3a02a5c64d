"""What a planted fault does to a call: late, refused, garbled, without an end, or the wrong answer."""

from __future__ import annotations

import json
from typing import Final

import trio

from harness_core.doubles.model._answering import send_reply
from harness_core.doubles.model._backend import Call
from harness_core.doubles.model._exchange import Exchange
from harness_core.doubles.model._faults import Fault, planted_refusal
from harness_core.doubles.model._reply import Reply, call_block, new_id, reply_to, text_block
from harness_core.doubles.model._request import MessagesRequest

#: What an endless answer repeats: one word, so that no dialect splits it over two events.
_REFRAIN: Final = "again"

#: Between two words: as fast as a model talks.
_PACE_S: Final = 0.05


async def make_trouble(fault: Fault, exchange: Exchange, call: Call) -> bool:
    """Do what a fault does before an answer, or in its place; whether that was all.

    Raises:
        Refusal: the fault is one.
    """
    if fault.kind == "latency":
        await _pause(fault.latency_s)
    elif fault.kind == "hang":
        await trio.sleep_forever()
    elif fault.kind == "status":
        raise planted_refusal(fault.status, retry_after_s=fault.retry_after_s)
    elif fault.kind == "malformed":
        await exchange.send(b'{"type": "message", "content": [{"type": "te')
    elif fault.kind == "answer":
        await send_reply(exchange, call, _planted(fault, call.request), cut=None)
    elif fault.kind == "endless":
        await _never_end(exchange, call)
    return fault.kind in ("malformed", "answer")


async def _pause(seconds: float) -> None:
    # The time is part of the trouble, not a way to wait for something.
    with trio.move_on_after(seconds):
        await trio.sleep_forever()


def _planted(fault: Fault, request: MessagesRequest) -> Reply:
    """The message of a fault of kind ``answer``; no backend is asked."""
    content = [text_block(fault.text)] if fault.text or not fault.tool else []
    if fault.tool:
        offered = [tool.name for tool in request.tools if tool.name.endswith(f"__{fault.tool}")]
        content.append(call_block((offered or [fault.tool])[0], fault.input, request.body))
    return reply_to(request, *content)


async def _never_end(exchange: Exchange, call: Call) -> None:
    """Say the same word again and again, until the client leaves and the exchange is cancelled."""
    reply = Reply(content=(text_block(_REFRAIN),))
    message_id = new_id("msg", "endless", call.now, call.raw)
    stream = call.request.stream
    if stream:
        parts = exchange.dialect.events(reply, call.request, message_id)
    else:
        body = json.dumps(exchange.dialect.whole(reply, call.request.model, message_id))
        opening, refrain, _ = body.partition(_REFRAIN)
        parts = iter((opening.encode(), refrain.encode()))
    await exchange.start_answer({}, stream=stream)
    again = b""
    while _REFRAIN.encode() not in again:
        again = next(parts)
        await exchange.write(again)
    while True:
        await _pause(_PACE_S)
        await exchange.write(again)
