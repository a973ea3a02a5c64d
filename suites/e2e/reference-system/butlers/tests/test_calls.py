"""A butler that stops lets every answer out before it closes its streams."""

import asyncio
import json
from typing import Any

from butlers.server import Calls

STREAM = "ab" * 16


def event(body: str) -> dict[str, Any]:
    return {"type": "http.response.body", "body": f"event: message\r\ndata: {body}\r\n\r\n".encode()}


def test_an_answer_counts_when_it_is_written() -> None:
    """Neither another answer on the stream, nor the same id on another one, is that answer."""

    async def play() -> list[bool]:
        calls = Calls()
        written: list[Any] = []
        slow = asyncio.Event()

        async def send(message: Any) -> None:
            if b'"id":7' in message.get("body", b""):
                await slow.wait()
            written.append(message)

        found = []
        with calls.watched(send) as mine, calls.watched(send) as other:
            for each, stream in ((mine, STREAM), (other, "cd" * 16)):
                await each({"body": f"event: endpoint\r\ndata: /m/?session_id={stream}\r\n\r\n".encode()})
            calls.begun(STREAM, 7)
            await mine(event(json.dumps({"jsonrpc": "2.0", "id": 6, "result": {}})))
            await mine(event("no json"))
            waiting = asyncio.create_task(calls.ended(60))
            answer = json.dumps({"jsonrpc": "2.0", "id": 7, "result": {}}, separators=(",", ":"))
            sending = asyncio.create_task(mine(event(answer)))
            for _ in range(500):
                await asyncio.sleep(0)
            found.append(waiting.done())
            slow.set()
            await sending
            await asyncio.wait_for(waiting, 5)
            found.append(waiting.done())
        return found

    assert [False, True] == asyncio.run(play()), (
        "whether the wait had ended before, and after, the answer was written"
    )


def test_a_stream_that_is_gone_owes_nothing() -> None:
    """The client of a call hung up: no stop waits for that answer."""

    async def play() -> bool:
        calls = Calls()

        async def send(_: Any) -> None:
            pass

        with calls.watched(send) as mine:
            await mine({"body": f"data: /m/?session_id={STREAM}\r\n\r\n".encode()})
            calls.begun(STREAM, 1)
        waiting = asyncio.create_task(calls.ended(60))
        done, _ = await asyncio.wait({waiting}, timeout=5)
        return bool(done)

    assert asyncio.run(play()), "the wait for answers goes on, and the stream is gone"
