"""One HTTP exchange, seen by the desk.

A body within bounds, an answer that may be cut, a client that may leave before the end, and the
ledger's entry of it.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final, cast

import httpx
import trio

from harness_core.base import limits
from harness_core.doubles.model._backend import Call, Relay
from harness_core.doubles.model._dialect import Dialect
from harness_core.doubles.model._ledger import LedgerEntry
from harness_core.doubles.model._refusal import Refusal
from harness_core.doubles.model._reply import Reply, new_id, shown_block
from harness_core.doubles.model._request import MessagesRequest
from harness_core.doubles.model._stream import AnswerReader
from harness_core.doubles.serving import Request, Send

_JSON: Final = {"content-type": "application/json"}
_EVENTS: Final = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}

#: Response headers of a provider that its client acts on.
_RETURNED: Final = (
    "content-type",
    "retry-after",
    "retry-after-ms",
    "x-should-retry",
    "request-id",
    "anthropic-ratelimit-requests-reset",
    "anthropic-ratelimit-tokens-reset",
)


@dataclass(kw_only=True, eq=False)
class Exchange:
    """A request being answered.

    Attributes:
        request: the request, of which the body was not read yet.
        send_asgi: the ASGI sender.
        dialect: how the request is read and the answer written.
        entry: what the ledger records of it.
        closing: called once, before the client can know that its answer is complete, so that the
            ledger has the call when its client asks for it right after the answer.
        began_s: monotonic clock at its arrival.
        reserved_usd: money set aside for it; ``None`` where it costs nothing.
        status: status sent so far; 0 before the first byte.
        finished: the response was sent to its end.
        gone: the client left first.
    """

    request: Request
    send_asgi: Send
    dialect: Dialect
    entry: LedgerEntry
    closing: Callable[[Exchange], None]
    began_s: float = field(default_factory=time.perf_counter)
    reserved_usd: float | None = None
    status: int = 0
    finished: bool = False
    gone: bool = False
    _closed: bool = False

    # --- the request --------------------------------------------------------------------------------

    @property
    def path(self) -> str:
        """Path and query as received."""
        query = self.request.url.query
        return self.request.url.path + (f"?{query}" if query else "")

    async def body(self) -> bytes:
        """The request body.

        Raises:
            Refusal: 413 when it is larger than ``limits.HTTP_BODY_BYTES``.
        """
        body = bytearray()
        more = True
        while more:
            message = await self.request.receive()
            if message["type"] == "http.disconnect":
                self.gone = True
                raise Refusal(400, "the client left before its request was whole", reason="gone")
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > limits.HTTP_BODY_BYTES:
                raise Refusal(413, f"Request exceeds the maximum of {limits.HTTP_BODY_BYTES} bytes")
        return bytes(body)

    async def watch(self, answering: trio.CancelScope) -> None:
        """Cancel the answer when the client goes away."""
        while (await self.request.receive())["type"] != "http.disconnect":
            pass
        self.gone = not self.finished
        answering.cancel()

    # --- the answer ---------------------------------------------------------------------------------

    async def start(self, status: int, headers: Mapping[str, str]) -> None:
        """Send the status line and headers."""
        self.status = status
        pairs = [
            (name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()
        ]
        await self.send_asgi({"type": "http.response.start", "status": status, "headers": pairs})

    async def start_answer(
        self, request: MessagesRequest, headers: Mapping[str, str] | None = None
    ) -> None:
        """Begin an answer that is sent in parts: events of a stream, or a JSON text."""
        await self.start(200, {**(_EVENTS if request.stream else _JSON), **(headers or {})})

    async def write(self, chunk: bytes) -> None:
        """Send a part of the body."""
        await self.send_asgi({"type": "http.response.body", "body": chunk, "more_body": True})

    async def finish(self, chunk: bytes = b"") -> None:
        """Send the end of the body. Without it the connection is cut, which is what a fault wants."""
        self.close()
        self.finished = True
        await self.send_asgi({"type": "http.response.body", "body": chunk, "more_body": False})

    async def send(
        self, body: bytes, *, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        """Send a whole response of JSON."""
        length = {"content-length": str(len(body))}
        await self.start(status, {**_JSON, **length, **(headers or {})})
        await self.finish(body)

    async def reply(self, call: Call, reply: Reply, *, cut: int | None = None) -> None:
        """Send a message in the dialect of the call; ``cut`` breaks it off after that many events."""
        entry = self.entry
        entry.usage = reply.usage
        entry.stop_reason = reply.stop_reason
        entry.called = tuple(block["name"] for block in reply.calls)
        entry.answer = "\n".join(map(shown_block, reply.content))
        entry.missing, entry.unrehearsed = reply.missing, reply.unrehearsed
        message_id = new_id("msg", entry.sequence, call.now, call.raw)
        *events, last = self.dialect.parts(reply, call.request, message_id)
        if self.dialect.keep is not None and cut is None:
            self.dialect.keep(call.request, reply, self.dialect.ids(reply, message_id))
        length = {} if events else {"content-length": str(len(last))}
        await self.start_answer(call.request, {"request-id": message_id, **length})
        for event in events[:cut]:
            await self.write(event)
        if cut is None or (events and cut > len(events)):
            await self.finish(last)

    async def pass_on(self, call: Call, relay: Relay, *, cut: int | None = None) -> None:
        """Send a provider's answer as it comes, and read it on the way.

        Args:
            call: what was asked.
            relay: the answer.
            cut: break off after this many events.

        Raises:
            Refusal: 502 when the provider breaks off.
        """
        response, entry = relay.response, self.entry
        headers = {name: response.headers[name] for name in _RETURNED if name in response.headers}
        streaming = headers.get("content-type", "").startswith("text/event-stream")
        reader = self.dialect.reader(streaming=streaming)
        events = 0
        try:
            await self.start(response.status_code, headers)
            body = cast("AsyncGenerator[bytes, None]", response.aiter_bytes())
            async with aclosing(body) as chunks:
                async for chunk in chunks:
                    if cut is not None and events >= cut:
                        return
                    events += chunk.count(b"\n\n")
                    begun = reader.reply is None
                    reader.feed(chunk)
                    # After every chunk: a stream that breaks off is priced by what was seen of it.
                    entry.read(reader)
                    if begun and reader.reply is not None:
                        self._saw(call, relay, reader)
                        self.close()
                    await self.write(chunk)
            if not streaming:
                reader.end()
                entry.read(reader)
                self._saw(call, relay, reader)
            await self.finish()
        except httpx.HTTPError as error:
            raise Refusal(502, f"the upstream broke off: {type(error).__name__}") from error
        finally:
            until = trio.current_time() + limits.CHILD_STOP_KILL_S
            with trio.CancelScope(shield=True, deadline=until):
                await response.aclose()

    def _saw(self, call: Call, relay: Relay, reader: AnswerReader) -> None:
        relay.seen(reader)
        if self.dialect.keep is not None and reader.reply is not None:
            self.dialect.keep(call.request, reader.reply, reader.ids)

    async def refuse(self, refusal: Refusal) -> None:
        """Send a refusal, as an event when a stream has already begun."""
        body = self.dialect.error(refusal)
        if self.status:
            event = json.dumps({"type": "error", **body})
            await self.finish(f"event: error\ndata: {event}\n\n".encode())
        else:
            sent = json.dumps(body).encode()
            await self.send(sent, status=refusal.status, headers=refusal.headers)

    def close(self) -> None:
        """Call ``closing`` unless it has been called."""
        if not self._closed:
            self._closed = True
            self.closing(self)
