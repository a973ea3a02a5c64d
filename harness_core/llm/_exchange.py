"""One HTTP exchange, seen by the desk.

A body within bounds, an answer that may be cut, a client that may leave before the end.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import trio
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from harness_core import limits
from harness_core.llm._refusal import Refusal

__all__ = ["Exchange"]


class Exchange:
    """A request being answered.

    Args:
        closing: called once, before the client can know that its answer is complete. Whoever asks
            the ledger right after an answer then finds it there.

    Attributes:
        status: status sent so far; 0 before the first byte.
        finished: the response was sent to its end.
        gone: the client left first.
    """

    def __init__(
        self, scope: Scope, receive: Receive, send: Send, *, closing: Callable[[Exchange], None]
    ) -> None:
        self._closing: Callable[[Exchange], None] | None = closing
        self.request = Request(scope, receive)
        self._receive = receive
        self._send = send
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
        parts: list[bytes] = []
        size = 0
        more = True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                self.gone = True
                raise Refusal(400, "the client left before its request was whole", reason="gone")
            chunk = message.get("body", b"")
            more = message.get("more_body", False)
            size += len(chunk)
            if size > limits.HTTP_BODY_BYTES:
                raise Refusal(413, f"Request exceeds the maximum of {limits.HTTP_BODY_BYTES} bytes")
            parts.append(chunk)
        return b"".join(parts)

    async def watch(self, answering: trio.CancelScope) -> None:
        """Cancel the answer when the client goes away."""
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                self.gone = not self.finished
                answering.cancel()
                return

    async def start(self, status: int, headers: Mapping[str, str]) -> None:
        """Send the status line and headers."""
        self.status = status
        pairs = [
            (name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()
        ]
        await self._send({"type": "http.response.start", "status": status, "headers": pairs})

    def close(self) -> None:
        """Call ``closing`` unless it has been called."""
        closing, self._closing = self._closing, None
        if closing is not None:
            closing(self)

    async def write(self, chunk: bytes) -> None:
        """Send a part of the body."""
        await self._send({"type": "http.response.body", "body": chunk, "more_body": True})

    async def finish(self) -> None:
        """End the body. Without it the connection is cut, which is what a fault wants."""
        self.close()
        self.finished = True
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def send_json(
        self, status: int, body: object, *, headers: Mapping[str, str] | None = None
    ) -> None:
        """Send a whole JSON response."""
        await self.send_bytes(status, json.dumps(body).encode(), headers=headers)

    async def send_bytes(
        self, status: int, content: bytes, *, headers: Mapping[str, str] | None = None
    ) -> None:
        """Send a whole response, JSON unless ``headers`` says otherwise."""
        length = {"content-type": "application/json", "content-length": str(len(content))}
        await self.start(status, length | dict(headers or {}))
        self.close()
        if content:
            await self.write(content)
        await self.finish()

    async def refuse(self, refusal: Refusal, *, body: Mapping[str, Any] | None = None) -> None:
        """Send a refusal, as an event when a stream has already begun."""
        content = dict(body or refusal.body())
        if self.status:
            self.close()
            await self.write(f"event: error\ndata: {json.dumps(content)}\n\n".encode())
            await self.finish()
        else:
            await self.send_json(refusal.status, content, headers=refusal.headers)
