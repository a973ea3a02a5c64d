"""One HTTP exchange, seen by the desk.

A body within bounds, an answer that may be cut, a client that may leave before the end, and the
ledger's entry of it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Final

import trio
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from harness_core.base import limits
from harness_core.doubles.model._budget import Reservation
from harness_core.doubles.model._dialect import Dialect
from harness_core.doubles.model._ledger import LedgerEntry
from harness_core.doubles.model._refusal import Refusal

_JSON: Final = {"content-type": "application/json"}
_EVENTS: Final = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}


class Exchange:
    """A request being answered.

    Args:
        scope: the ASGI scope.
        receive: the ASGI receiver.
        send: the ASGI sender.
        dialect: how the request is read and the answer written.
        entry: what the ledger is to say of it.
        closing: called once, before the client can know that its answer is complete. Whoever asks
            the ledger right after an answer then finds it there.

    Attributes:
        began_s: monotonic clock at its arrival.
        reservation: money set aside for it.
        status: status sent so far; 0 before the first byte.
        finished: the response was sent to its end.
        gone: the client left first.
    """

    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        dialect: Dialect,
        entry: LedgerEntry,
        closing: Callable[[Exchange], None],
    ) -> None:
        self._closing: Callable[[Exchange], None] | None = closing
        self.request = Request(scope, receive)
        self._receive = receive
        self._send = send
        self.dialect = dialect
        self.entry = entry
        self.began_s = time.perf_counter()
        self.reservation: Reservation | None = None
        self.status = 0
        self.finished = False
        self.gone = False

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
            message = await self._receive()
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
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.gone = not self.finished
        answering.cancel()

    async def start(self, status: int, headers: Mapping[str, str]) -> None:
        """Send the status line and headers."""
        self.status = status
        pairs = [
            (name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()
        ]
        await self._send({"type": "http.response.start", "status": status, "headers": pairs})

    async def start_answer(self, headers: Mapping[str, str], *, stream: bool) -> None:
        """Begin an answer that is sent in parts: events of a stream, or a JSON text."""
        await self.start(200, {**(_EVENTS if stream else _JSON), **headers})

    def close(self) -> None:
        """Call ``closing`` unless it has been called."""
        closing, self._closing = self._closing, None
        if closing is not None:
            closing(self)

    async def write(self, chunk: bytes) -> None:
        """Send a part of the body."""
        await self._send({"type": "http.response.body", "body": chunk, "more_body": True})

    async def finish(self, chunk: bytes = b"") -> None:
        """Send the end of the body. Without it the connection is cut, which is what a fault wants."""
        self.close()
        self.finished = True
        await self._send({"type": "http.response.body", "body": chunk, "more_body": False})

    async def send(
        self, body: object, *, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        """Send a whole response: a value as JSON, or bytes that are said to be JSON."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        length = {"content-length": str(len(content))}
        await self.start(status, {**_JSON, **length, **(headers or {})})
        await self.finish(content)

    async def refuse(self, refusal: Refusal) -> None:
        """Send a refusal, as an event when a stream has already begun."""
        body = self.dialect.error(refusal)
        if self.status:
            await self.finish(f"event: error\ndata: {json.dumps(body)}\n\n".encode())
        else:
            await self.send(body, status=refusal.status, headers=refusal.headers)
