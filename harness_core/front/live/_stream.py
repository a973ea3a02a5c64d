"""One client that listens: what is new, as server-sent events, at the pace at which it reads.

A client has a place in the feed and no queue, so one that is slow misses what has left the feed, and
one that reads nothing costs what the kernel keeps for it until it gives the client up (``_open.py``).
"""

from __future__ import annotations

from collections.abc import Iterator

import trio

from harness_core.doubles.serving import Message, Receive, Scope, Send
from harness_core.front.live._board import Board

__all__ = ["Listener"]

#: A client that is gone without a word is found out by sending to it.
_SILENCE_S = 15.0


class Listener:
    """Answers one request with a stream that ends with its client.

    Args:
        board: what is shown.
        after: number of the last event that the client has.
    """

    def __init__(self, board: Board, *, after: int) -> None:
        self._board = board
        # One of another run, at the same address: from the beginning.
        self._after = after if after <= board.feed.last else 0
        self._seen: dict[str, int] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Stream until the client is gone."""
        headers = [(b"content-type", b"text/event-stream; charset=utf-8")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        with self._board.looking():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_end_with, receive, nursery.cancel_scope)
                while True:
                    changed = self._board.changed
                    news = b"".join(self._news())
                    if not news:
                        news = b": nothing new\n\n"
                        with trio.move_on_after(_SILENCE_S):
                            await changed.wait()
                            continue
                    await send(_body(news))

    def _news(self) -> Iterator[bytes]:
        events, missed = self._board.feed.after(self._after)
        if missed and self._after:
            yield _event("gap", str(missed).encode())
        if events:
            self._after = events[-1].number
            yield _event("rows", b"[" + b",".join(event.row for event in events) + b"]")
        for name, (version, text) in self._board.since(self._seen).items():
            self._seen[name] = version
            yield _event(name, text)


async def _end_with(receive: Receive, scope: trio.CancelScope) -> None:
    """End the stream when its client has gone."""
    while (await receive())["type"] != "http.disconnect":
        continue
    scope.cancel()


def _event(name: str, data: bytes) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + data + b"\n\n"


def _body(data: bytes) -> Message:
    return {"type": "http.response.body", "body": data, "more_body": True}
