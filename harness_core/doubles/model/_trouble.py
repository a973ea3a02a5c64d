"""What a planted fault does to a call: late, refused, garbled, without an end, or the wrong answer."""

from __future__ import annotations

from typing import Final

import trio
from msgspec import structs

from harness_core.doubles.model._backend import Call
from harness_core.doubles.model._exchange import Exchange
from harness_core.doubles.model._faults import Fault, Planted, planted_refusal
from harness_core.doubles.model._reply import Reply, call_block, reply_to, text_block
from harness_core.doubles.model._request import MessagesRequest

#: What an endless answer repeats: one word, so that no dialect splits it over two events.
_REFRAIN: Final = b"again"

#: Between two words: as fast as a model talks.
_PACE_S: Final = 0.05


async def make_trouble(planted: Planted, exchange: Exchange, call: Call) -> bool:
    """Do what a fault does before an answer, or in its place; whether that was all.

    Raises:
        Refusal: the fault is one.
    """
    fault = planted.fault
    if fault.kind == "latency":
        await _pause(fault.latency_s)
    elif fault.kind == "hold":
        await planted.withdrawn.wait()
    elif fault.kind == "hang":
        await trio.sleep_forever()
    elif fault.kind == "status":
        raise planted_refusal(fault.status, retry_after_s=fault.retry_after_s, text=fault.text)
    elif fault.kind == "malformed":
        await exchange.send(fault.body.encode())
    elif fault.kind == "answer":
        await exchange.reply(call, _planted(fault, call.request))
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
    reply = reply_to(request, *content)
    cached = structs.replace(
        reply.usage,
        cache_read_tokens=fault.cache_read_tokens,
        cache_write_tokens=fault.cache_write_tokens,
    )
    return structs.replace(reply, usage=cached)


async def _never_end(exchange: Exchange, call: Call) -> None:
    """Say the same word again and again, until the client leaves and the exchange is cancelled."""
    reply = Reply(content=(text_block(_REFRAIN.decode()),))
    # Without what was asked: a dialect that repeats it could repeat the word.
    request = structs.replace(call.request, body={}, received={})
    parts = exchange.dialect.parts(reply, request, "msg_endless")
    if not call.request.stream:
        opening, refrain, _ = parts[0].partition(_REFRAIN)
        parts = [opening, refrain]
    await exchange.start_answer(call.request)
    last = next(at for at, part in enumerate(parts) if _REFRAIN in part)
    for part in parts[:last]:
        await exchange.write(part)
    while True:
        await exchange.write(parts[last])
        await _pause(_PACE_S)
