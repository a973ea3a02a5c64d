"""How an answer leaves: written in the caller's dialect, passed on as it comes, or cut short."""

from __future__ import annotations

from contextlib import aclosing

from harness_core.doubles.model._backend import Call, Relay
from harness_core.doubles.model._exchange import Exchange
from harness_core.doubles.model._reply import Reply, new_id, shown_block
from harness_core.doubles.model._stream import AnswerReader


async def send_reply(exchange: Exchange, call: Call, reply: Reply, *, cut: int | None) -> None:
    """Write a message, whole or as a stream.

    Args:
        exchange: where it goes.
        call: what it answers.
        reply: the message.
        cut: break off after this many events; ``None`` for never.
    """
    entry, dialect = exchange.entry, exchange.dialect
    entry.usage = reply.usage
    entry.stop_reason = reply.stop_reason
    entry.called = tuple(block["name"] for block in reply.calls)
    entry.answer = "\n".join(map(shown_block, reply.content))
    entry.missing, entry.unrehearsed = reply.missing, reply.unrehearsed
    message_id = new_id("msg", entry.sequence, call.now, call.raw)
    named = {"request-id": message_id}
    if call.request.stream:
        await exchange.start_answer(named, stream=True)
        *events, last = dialect.events(reply, call.request, message_id)
        for event in events[:cut]:
            await exchange.write(event)
        if cut is None or cut > len(events):
            await exchange.finish(last)
    elif cut is not None:
        await exchange.start_answer({"content-length": "1000"}, stream=False)
    else:
        await exchange.send(dialect.whole(reply, call.request.model, message_id), headers=named)


async def pass_on(exchange: Exchange, relay: Relay, *, cut: int | None) -> None:
    """Pass an upstream's answer on as it comes, and read it on the way.

    Args:
        exchange: where it goes.
        relay: the answer.
        cut: break off after this many events; ``None`` for never.
    """
    streaming = relay.headers.get("content-type", "").startswith("text/event-stream")
    reader = AnswerReader(streaming=streaming)
    events = 0
    try:
        await exchange.start(relay.status, relay.headers)
        async with aclosing(relay.chunks()) as chunks:
            async for chunk in chunks:
                if cut is not None and events >= cut:
                    return
                events += chunk.count(b"\n\n")
                begun = reader.reply is None
                reader.feed(chunk)
                # After every chunk: a stream that breaks off is priced by what was seen of it.
                _read(exchange, reader)
                if begun and reader.reply is not None:
                    relay.seen(reader)
                    exchange.close()
                await exchange.write(chunk)
        if not streaming:
            reader.end()
            _read(exchange, reader)
            relay.seen(reader)
        await exchange.finish()
    finally:
        await relay.aclose()


def _read(exchange: Exchange, reader: AnswerReader) -> None:
    entry = exchange.entry
    entry.usage, entry.stop_reason = reader.usage, reader.stop_reason
    entry.called, entry.error = reader.called, reader.error
