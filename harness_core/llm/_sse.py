"""Server-sent events of the Messages API: a finished message to events, and events back.

Sans-I/O: bytes in, values out. ``live`` uses the decoder to read the usage out of a stream that
passes through; modes without a provider use the encoder.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from harness_core.llm._reply import (
    BYTES_PER_TOKEN,
    Reply,
    Usage,
    block_body,
    message_body,
    usage_body,
    usage_from_body,
)
from harness_core.llm._request import ToolUseBlock

__all__ = ["Event", "EventDecoder", "UsageReader", "encode_event", "message_events"]

#: Characters per delta: small enough that a message of a sentence is several events, so that a
#: client which keeps only the last one is found out.
_DELTA_CHARS = 24

#: An event larger than this is not one; the decoder gives up on the line.
_EVENT_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One server-sent event; ``data`` is the text of its data lines."""

    name: str
    data: str

    def json(self) -> dict[str, Any]:
        """The data as a JSON object; empty when it is none."""
        try:
            value = json.loads(self.data)
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}


def encode_event(body: dict[str, Any]) -> bytes:
    """One event whose name is the ``type`` of its body."""
    data = json.dumps(body, ensure_ascii=True, separators=(",", ":"))
    return f"event: {body['type']}\ndata: {data}\n\n".encode("ascii")


def message_events(reply: Reply, *, model: str, message_id: str) -> Iterator[bytes]:
    """A finished message as the stream the API would have sent."""
    start = message_body(reply, model=model, message_id=message_id)
    start |= {"content": [], "stop_reason": None}
    start["usage"] = usage_body(reply.usage) | {"output_tokens": 1}
    yield encode_event({"type": "message_start", "message": start})
    yield encode_event({"type": "ping"})
    for index, block in enumerate(reply.blocks):
        full = block_body(block)
        text, empty, kind, key = "", full, "", ""
        if isinstance(block, ToolUseBlock):
            text = json.dumps(full["input"], ensure_ascii=False)
            empty, kind, key = full | {"input": {}}, "input_json_delta", "partial_json"
        elif full["type"] in ("text", "thinking"):
            key = full["type"]
            text, empty, kind = full[key], full | {key: ""}, f"{key}_delta"
        yield encode_event({"type": "content_block_start", "index": index, "content_block": empty})
        for at in range(0, len(text), _DELTA_CHARS):
            delta = {"type": kind, key: text[at : at + _DELTA_CHARS]}
            yield encode_event({"type": "content_block_delta", "index": index, "delta": delta})
        yield encode_event({"type": "content_block_stop", "index": index})
    yield encode_event(
        {
            "type": "message_delta",
            "delta": {"stop_reason": reply.stop_reason, "stop_sequence": reply.stop_sequence},
            "usage": usage_body(reply.usage),
        }
    )
    yield encode_event({"type": "message_stop"})


class EventDecoder:
    """Bytes of an event stream, in pieces of any size, to events."""

    def __init__(self) -> None:
        self._rest = b""
        self._name = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[Event]:
        """Events completed by these bytes."""
        self._rest = (self._rest + chunk)[-_EVENT_BYTES:]
        events: list[Event] = []
        while (end := self._rest.find(b"\n")) >= 0:
            line = self._rest[:end].removesuffix(b"\r").decode("utf-8", "replace")
            self._rest = self._rest[end + 1 :]
            if line:
                self._field(line)
            elif self._data:
                events.append(Event(name=self._name or "message", data="\n".join(self._data)))
                self._name, self._data = "", []
        return events

    def _field(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._name = value
        elif name == "data":
            self._data.append(value)


class UsageReader:
    """Reads tokens, stop reason, tool names and errors from a stream that passes by.

    Attributes:
        usage: as reported so far.
        called: names of the tools the message calls.
        complete: the end of the message has been seen.
    """

    def __init__(self) -> None:
        self._decoder = EventDecoder()
        self.usage = Usage()
        self.stop_reason = ""
        self.error = ""
        self.called: list[str] = []
        self.complete = False
        self._seen_bytes = 0
        self._final = False

    def feed(self, chunk: bytes) -> None:
        """Look at the next bytes."""
        for event in self._decoder.feed(chunk):
            body = event.json()
            kind = body.get("type")
            if kind == "message_start":
                self.usage = usage_from_body(_object(_object(body, "message"), "usage"))
            elif kind == "content_block_start":
                block = _object(body, "content_block")
                if block.get("type") == "tool_use":
                    self.called.append(str(block.get("name")))
            elif kind == "content_block_delta":
                texts = (t for t in _object(body, "delta").values() if isinstance(t, str))
                self._seen_bytes += max((len(text.encode()) for text in texts), default=0)
            elif kind == "message_delta":
                self._final = True
                self.usage = usage_from_body(_object(body, "usage"), base=self.usage)
                self.stop_reason = str(_object(body, "delta").get("stop_reason") or "")
            elif kind == "message_stop":
                self.complete = True
            elif kind == "error":
                self.error = str(_object(body, "error").get("type") or "error")

    def best_usage(self) -> Usage:
        """Usage as reported, or, of a stream that broke off, with its output estimated.

        The provider bills what it has generated, also when nobody read it to the end.
        """
        if self._final:
            return self.usage
        estimate = -(-self._seen_bytes // BYTES_PER_TOKEN)
        return dataclasses.replace(
            self.usage, output_tokens=max(self.usage.output_tokens, estimate)
        )


def _object(body: dict[str, Any], key: str) -> dict[str, Any]:
    value = body.get(key)
    return value if isinstance(value, dict) else {}
