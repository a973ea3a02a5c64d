"""An answer without an end: well-formed all the way, and the last word never comes."""

from __future__ import annotations

import json
from typing import Final

import trio

from harness_core.llm._backend import Call
from harness_core.llm._dialect import Dialect
from harness_core.llm._exchange import Exchange
from harness_core.llm._reply import Reply, Usage, new_id
from harness_core.llm._request import TextBlock

__all__ = ["never_end"]

#: One word, so that no dialect splits it over two events.
_REFRAIN: Final = "again"

#: Between two words: as fast as a model talks.
_PACE_S: Final = 0.05


async def never_end(dialect: Dialect, exchange: Exchange, call: Call) -> None:
    """Say the same word again and again, until the client leaves and the exchange is cancelled."""
    reply = Reply(blocks=(TextBlock(text=_REFRAIN),), stop_reason="end_turn", usage=Usage())
    message_id = new_id("msg", "endless", call.now, call.raw)
    if call.request.stream:
        kind = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
        events = dialect.events(reply, request=call.request, message_id=message_id)
    else:
        kind = {"content-type": "application/json"}
        body = dialect.whole(reply, model=call.request.model, message_id=message_id)
        opening, refrain, _ = json.dumps(body).partition(_REFRAIN)
        events = iter((opening.encode(), refrain.encode()))
    await exchange.start(200, kind)
    again = b""
    while _REFRAIN.encode() not in again:
        again = next(events)
        await exchange.write(again)
    while True:
        # The pace of the answer is part of the trouble, not a way to wait for something.
        with trio.move_on_after(_PACE_S):
            await trio.sleep_forever()
        await exchange.write(again)
