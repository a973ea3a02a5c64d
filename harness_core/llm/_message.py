"""A finished message in the provider's own terms, read from a whole body or from its stream."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from harness_core.llm._reply import OtherBlock, Reply, Usage, usage_from_body
from harness_core.llm._request import Block, TextBlock, ToolUseBlock
from harness_core.llm._sse import EventDecoder

__all__ = ["Message", "StreamReader", "message_from_body"]

#: Field of a delta → field of its block that it continues.
_CONTINUED: Final = {"text": "text", "thinking": "thinking", "signature": "signature"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """An assistant message.

    Attributes:
        content: its blocks as the API writes them, kinds we never heard of included.
    """

    content: tuple[Mapping[str, Any], ...]
    stop_reason: str = "end_turn"
    stop_sequence: str | None = None
    usage: Usage = field(default_factory=Usage)

    def as_reply(self, *, tool_ids: tuple[str, ...]) -> Reply:
        """As an answer of the gateway.

        Args:
            tool_ids: ids for its tool calls, in order.
        """
        ids = iter(tool_ids)
        return Reply(
            blocks=tuple(_block(part, ids) for part in self.content),
            stop_reason=self.stop_reason,
            stop_sequence=self.stop_sequence,
            usage=self.usage,
        )

    @property
    def tool_calls(self) -> int:
        """How many tools it calls."""
        return sum(part.get("type") == "tool_use" for part in self.content)


def _block(part: Mapping[str, Any], ids: Any) -> Block | OtherBlock:
    if part.get("type") == "text":
        return TextBlock(text=part["text"])
    if part.get("type") == "tool_use":
        return ToolUseBlock(id=next(ids), name=part["name"], input=part["input"])
    return OtherBlock(body=part)


def message_from_body(body: Mapping[str, Any]) -> Message | None:
    """Read a whole response; ``None`` when it is no message."""
    content = body.get("content")
    if body.get("type") != "message" or not isinstance(content, list):
        return None
    usage = body.get("usage")
    return Message(
        content=tuple(part for part in content if isinstance(part, dict)),
        stop_reason=str(body.get("stop_reason") or "end_turn"),
        stop_sequence=body.get("stop_sequence"),
        usage=usage_from_body(usage if isinstance(usage, dict) else {}),
    )


class StreamReader:
    """Puts a streamed message together again.

    Attributes:
        message: the message, once its end has been seen.
    """

    def __init__(self) -> None:
        self._decoder = EventDecoder()
        self._blocks: dict[int, dict[str, Any]] = {}
        self._inputs: dict[int, str] = {}
        self._usage = Usage()
        self._stop: Mapping[str, Any] = {}
        self.message: Message | None = None

    def feed(self, chunk: bytes) -> None:
        """Look at the next bytes."""
        for event in self._decoder.feed(chunk):
            self._take(event.json())

    def _take(self, body: Mapping[str, Any]) -> None:
        kind, index = body.get("type"), body.get("index", 0)
        if kind == "message_start":
            started = body.get("message") or {}
            self._usage = usage_from_body(started.get("usage") or {})
        elif kind == "content_block_start":
            self._blocks[index] = dict(body.get("content_block") or {})
        elif kind == "content_block_delta":
            self._continue(index, body.get("delta") or {})
        elif kind == "message_delta":
            self._stop = body.get("delta") or {}
            self._usage = usage_from_body(body.get("usage") or {}, base=self._usage)
        elif kind == "message_stop":
            self.message = self._whole()

    def _continue(self, index: int, delta: Mapping[str, Any]) -> None:
        block = self._blocks.setdefault(index, {})
        if "partial_json" in delta:
            self._inputs[index] = self._inputs.get(index, "") + str(delta["partial_json"])
        elif "citation" in delta:
            block["citations"] = [*(block.get("citations") or []), delta["citation"]]
        for source, target in _CONTINUED.items():
            if source in delta:
                block[target] = str(block.get(target, "")) + str(delta[source])

    def _whole(self) -> Message | None:
        for index, text in self._inputs.items():
            try:
                self._blocks[index]["input"] = json.loads(text or "{}")
            except ValueError:
                return None  # a tool call cut in its middle is no answer to keep
        return Message(
            content=tuple(self._blocks[index] for index in sorted(self._blocks)),
            stop_reason=str(self._stop.get("stop_reason") or "end_turn"),
            stop_sequence=self._stop.get("stop_sequence"),
            usage=self._usage,
        )
