"""An answer on the wire: a finished message as server-sent events, and read again as it passes.

Sans-I/O: bytes in, values out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import structs

from harness_core.doubles.model._reply import BYTES_PER_TOKEN, Reply, Usage, message_body
from harness_core.doubles.model._request import MessagesRequest

#: Characters per delta: small enough that a message of a sentence is several events, so that a
#: client which keeps only the last one is found out.
DELTA_CHARS: Final = 24

#: An event, or an answer that is not streamed, larger than this is not read.
_READ_BYTES: Final = 8 * 1024 * 1024

#: Type of a block → the delta that continues it, and the field of that which grows.
_DELTAS: Final = {
    "text": ("text_delta", "text"),
    "thinking": ("thinking_delta", "thinking"),
    "tool_use": ("input_json_delta", "partial_json"),
}


def encode_event(body: Mapping[str, Any]) -> bytes:
    """One event whose name is the ``type`` of its body."""
    data = json.dumps(body, separators=(",", ":"))
    return f"event: {body['type']}\ndata: {data}\n\n".encode("ascii")


def message_events(reply: Reply, request: MessagesRequest, message_id: str) -> Iterator[bytes]:
    """A finished message as the stream the API would have sent."""
    whole = message_body(reply, request.model, message_id)
    began = {"content": [], "stop_reason": None, "usage": whole["usage"] | {"output_tokens": 1}}
    yield encode_event({"type": "message_start", "message": whole | began})
    yield encode_event({"type": "ping"})
    for index, block in enumerate(reply.content):
        delta, key = _DELTAS.get(block["type"], ("", ""))
        if block["type"] == "tool_use":
            text, empty = json.dumps(block["input"], ensure_ascii=False), {**block, "input": {}}
        else:
            text, empty = block.get(key, ""), {**block, key: ""} if key else dict(block)
        yield encode_event({"type": "content_block_start", "index": index, "content_block": empty})
        for at in range(0, len(text), DELTA_CHARS):
            part = {"type": delta, key: text[at : at + DELTA_CHARS]}
            yield encode_event({"type": "content_block_delta", "index": index, "delta": part})
        yield encode_event({"type": "content_block_stop", "index": index})
    end = {"stop_reason": reply.stop_reason, "stop_sequence": reply.stop_sequence}
    yield encode_event({"type": "message_delta", "delta": end, "usage": whole["usage"]})
    yield encode_event({"type": "message_stop"})


class EventDecoder:
    """Bytes of an event stream, in pieces of any size, to the JSON objects in it."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> Iterator[dict[str, Any]]:
        """Bodies of the events completed by these bytes."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        self._rest = self._rest[-_READ_BYTES:]
        for line in lines:
            name, _, value = line.removesuffix(b"\r").decode("utf-8", "replace").partition(":")
            if name == "data":
                self._data.append(value.removeprefix(" "))
            elif not name and not value and self._data:
                yield _parsed("\n".join(self._data))
                self._data = []


class AnswerReader:
    """Reads a provider's answer while it passes, whole or streamed.

    Args:
        streaming: it is a stream of events.

    Attributes:
        reply: the message, once all of it has been seen.
        usage: its tokens. Of a stream that broke off, with the output estimated: the provider
            bills what it has generated, also when nobody read it to the end.
        stop_reason: empty until it is known.
        called: names of the tools it calls.
        error: the type of the error that came instead.
        problem: the text of that error.
    """

    def __init__(self, *, streaming: bool) -> None:
        self.reply: Reply | None = None
        self.usage = Usage()
        self.stop_reason = ""
        self.called: tuple[str, ...] = ()
        self.error = self.problem = ""
        self._decoder = EventDecoder() if streaming else None
        self._whole = bytearray()
        self._blocks: dict[int, dict[str, Any]] = {}
        self._inputs: dict[int, str] = {}
        self._stop: Mapping[str, Any] = {}
        self._seen_bytes = 0

    def feed(self, chunk: bytes) -> None:
        """Look at the next bytes."""
        if self._decoder is None:
            self._whole += chunk[: _READ_BYTES - len(self._whole)]
            return
        for body in self._decoder.feed(chunk):
            self._take(body)

    def end(self) -> None:
        """All bytes have been seen: an answer that is not streamed can be read."""
        body = _parsed(self._whole) if self._decoder is None else {}
        if body.get("type") == "message" and isinstance(body.get("content"), list):
            self._begin(body)
            for index, block in enumerate(body["content"]):
                self._open(index, block)
            self._stop = body
            self._finish()
        self._fail(body)

    def _take(self, body: Mapping[str, Any]) -> None:
        kind, index, delta = body.get("type"), body.get("index", 0), _object(body.get("delta"))
        if kind == "message_start":
            self._begin(_object(body.get("message")))
        elif kind == "content_block_start":
            self._open(index, body.get("content_block"))
        elif kind == "content_block_delta":
            self._continue(index, delta)
        elif kind == "message_delta":
            self._begin(body)
            self._stop = delta
            self.stop_reason = str(delta.get("stop_reason") or "")
        elif kind == "message_stop":
            self._finish()
        self._fail(body)

    def _begin(self, message: Mapping[str, Any]) -> None:
        self.usage = self.usage.updated(message.get("usage"))

    def _open(self, index: int, block: object) -> None:
        self._blocks[index] = opened = dict(_object(block))
        if opened.get("type") == "tool_use":
            self.called += (str(opened.get("name")),)

    def _continue(self, index: int, delta: Mapping[str, Any]) -> None:
        block = self._blocks.setdefault(index, {})
        for key, value in delta.items():
            if key == "partial_json":
                self._inputs[index] = self._inputs.get(index, "") + str(value)
            elif key == "citation":
                block["citations"] = [*(block.get("citations") or []), value]
            elif key != "type":
                block[key] = str(block.get(key, "")) + str(value)
            self._seen_bytes += len(str(value).encode()) if key != "type" else 0
        estimate = max(self.usage.output_tokens, -(-self._seen_bytes // BYTES_PER_TOKEN))
        self.usage = structs.replace(self.usage, output_tokens=estimate)

    def _finish(self) -> None:
        for index, text in self._inputs.items():
            try:
                self._blocks[index]["input"] = json.loads(text or "{}")
            except ValueError:
                return  # a tool call cut in its middle is no answer to keep
        self.stop_reason = str(self._stop.get("stop_reason") or "")
        self.reply = Reply(
            content=tuple(self._blocks[index] for index in sorted(self._blocks)),
            stop_reason=self.stop_reason or "end_turn",
            stop_sequence=self._stop.get("stop_sequence"),
            usage=self.usage,
        )

    def _fail(self, body: Mapping[str, Any]) -> None:
        if body.get("type") == "error" or "error" in body:
            error = _object(body.get("error"))
            self.error = str(error.get("type") or "error")
            self.problem = str(error.get("message") or "refused")


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _parsed(text: str | bytearray) -> dict[str, Any]:
    try:
        return _object(json.loads(text))
    except ValueError:
        return {}
