"""An answer on the wire: a message whole or as server-sent events, and read again as it passes.

Sans-I/O: bytes in, values out.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from harness_core.doubles.model._reply import BYTES_PER_TOKEN, Reply, Usage
from harness_core.doubles.model._request import MessagesRequest

#: Characters per delta: small enough that a message of a sentence is several events, so that a
#: client which keeps only the last one is found out.
_DELTA_CHARS: Final = 24

#: An event, or an answer that is not streamed, larger than this is not read.
_READ_BYTES: Final = 8 * 1024 * 1024

#: Type of a block → the delta that continues it, and the field of that which grows.
_DELTAS: Final = {
    "text": ("text_delta", "text"),
    "thinking": ("thinking_delta", "thinking"),
    "tool_use": ("input_json_delta", "partial_json"),
}


def pieces(text: str) -> Iterator[str]:
    """A text as deltas of a stream bring it."""
    return (text[at : at + _DELTA_CHARS] for at in range(0, len(text), _DELTA_CHARS))


def message_parts(reply: Reply, request: MessagesRequest, message_id: str) -> list[bytes]:
    """A message as the Messages API sends it: the events of a stream, or one JSON text."""
    whole = {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": request.model,
        "content": list(reply.content),
        "stop_reason": reply.stop_reason,
        "stop_sequence": reply.stop_sequence,
        "usage": msgspec.to_builtins(reply.usage),
    }
    if not request.stream:
        return [json.dumps(whole).encode()]
    return [
        f"event: {body['type']}\ndata: {json.dumps(body, separators=(',', ':'))}\n\n".encode()
        for body in _events(whole)
    ]


def _events(whole: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    began = {"content": [], "stop_reason": None, "usage": whole["usage"] | {"output_tokens": 1}}
    yield {"type": "message_start", "message": {**whole, **began}}
    yield {"type": "ping"}
    for index, block in enumerate(whole["content"]):
        delta, key = _DELTAS.get(block["type"], ("", ""))
        if block["type"] == "tool_use":
            text, empty = json.dumps(block["input"], ensure_ascii=False), {**block, "input": {}}
        else:
            text, empty = block.get(key, ""), {**block, key: ""} if key else dict(block)
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        for piece in pieces(text):
            yield {
                "type": "content_block_delta",
                "index": index,
                "delta": {"type": delta, key: piece},
            }
        yield {"type": "content_block_stop", "index": index}
    end = {"stop_reason": whole["stop_reason"], "stop_sequence": whole["stop_sequence"]}
    yield {"type": "message_delta", "delta": end, "usage": whole["usage"]}
    yield {"type": "message_stop"}


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
                yield parsed("\n".join(self._data))
                self._data = []


class AnswerReader:
    """Reads a provider's answer while it passes, whole or streamed.

    What is not shaped as the API says is left unread.

    Args:
        streaming: it is a stream of events.

    Attributes:
        reply: the message, once all of it has been seen.
        usage: its tokens. Of a stream that broke off, with the output estimated: the provider
            bills what it has generated, also when its client did not read it to the end.
        stop_reason: empty until it is known.
        error: the type of the error that came instead.
        problem: the text of that error.
        ids: of the answer and its blocks, by which a later request may refer to them.
    """

    def __init__(self, *, streaming: bool) -> None:
        self.reply: Reply | None = None
        self.usage = Usage()
        self.stop_reason = ""
        self.error = self.problem = ""
        self.ids: tuple[str, ...] = ()
        self._decoder = EventDecoder() if streaming else None
        self._whole = bytearray()
        self._blocks: dict[int, dict[str, Any]] = {}
        self._inputs: dict[int, str] = {}
        self._stop: Mapping[str, Any] = {}
        self._seen_bytes = 0

    @property
    def called(self) -> tuple[str, ...]:
        """Names of the tools that it calls, so far."""
        calls = (block for block in self._blocks.values() if block.get("type") == "tool_use")
        return tuple(str(block.get("name")) for block in calls)

    def feed(self, chunk: bytes) -> None:
        """Read the next bytes."""
        if self._decoder is None:
            self._whole += chunk[: _READ_BYTES - len(self._whole)]
            return
        for body in self._decoder.feed(chunk):
            self._take(body)

    def end(self) -> None:
        """All bytes have been seen: an answer that is not streamed can be read."""
        body = parsed(self._whole)
        if body.get("type") != "message":
            self._take(body)
            return
        with contextlib.suppress(LookupError, TypeError, ValueError):
            self._blocks = {index: dict(block) for index, block in enumerate(body["content"])}
            self._take({"type": "message_delta", "delta": body, "usage": body.get("usage")})
            self._take({"type": "message_stop"})

    def _take(self, body: Mapping[str, Any]) -> None:
        with contextlib.suppress(LookupError, TypeError, ValueError, AttributeError):
            self._read(body)

    def _read(self, body: Mapping[str, Any]) -> None:
        kind = body.get("type")
        if kind == "message_start":
            self.usage = self.usage.updated(body["message"]["usage"])
        elif kind == "content_block_start":
            self._blocks[body["index"]] = dict(body["content_block"])
        elif kind == "content_block_delta":
            self._continue(body["index"], body["delta"])
        elif kind == "message_delta":
            self.usage = self.usage.updated(body.get("usage"))
            self._stop = body["delta"]
            self.stop_reason = str(self._stop.get("stop_reason") or "")
        elif kind == "message_stop":
            self._finish()
        elif "error" in body:
            self.error = str(body["error"].get("type") or "error")
            self.problem = str(body["error"].get("message") or "refused")

    def _continue(self, index: int, delta: Mapping[str, Any]) -> None:
        block = self._blocks[index]
        for key, value in delta.items():
            if key == "partial_json":
                self._inputs[index] = self._inputs.get(index, "") + str(value)
            elif key == "citation":
                block["citations"] = [*(block.get("citations") or []), value]
            elif key != "type":
                block[key] = str(block.get(key, "")) + str(value)
            self._seen_bytes += len(str(value).encode()) if key != "type" else 0
        estimate = max(self.usage.output_tokens, -(-self._seen_bytes // BYTES_PER_TOKEN))
        self.usage = msgspec.structs.replace(self.usage, output_tokens=estimate)

    def _finish(self) -> None:
        # A tool call cut in its middle is no JSON: such an answer is not kept.
        for index, text in self._inputs.items():
            self._blocks[index]["input"] = json.loads(text or "{}")
        self.reply = Reply(
            content=tuple(self._blocks[index] for index in sorted(self._blocks)),
            stop_reason=self.stop_reason or "end_turn",
            stop_sequence=self._stop.get("stop_sequence"),
            usage=self.usage,
        )


def parsed(text: str | bytearray) -> dict[str, Any]:
    """The JSON object that a text is; an empty one for anything else."""
    with contextlib.suppress(ValueError):
        body = json.loads(text)
        if isinstance(body, dict):
            return body
    return {}
