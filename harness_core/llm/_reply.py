"""What a backend answers: a finished message, and what it cost in tokens."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness_core.llm._request import Block, MessagesRequest, TextBlock, ToolUseBlock

__all__ = [
    "OtherBlock",
    "Reply",
    "Usage",
    "estimate_tokens",
    "message_body",
    "new_id",
    "prompt_tokens",
]

#: English and JSON run at about four bytes a token; the estimate only has to be deterministic and
#: of the right order, since nobody pays for an offline token.
BYTES_PER_TOKEN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one call, as the Messages API counts them (cache tokens are not in the input)."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherBlock:
    """A block that only the provider and its client understand, e.g. ``thinking``.

    Attributes:
        body: the block as the API writes it.
    """

    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A finished assistant message.

    Attributes:
        blocks: text and tool calls, in order.
        stop_reason: ``end_turn``, ``tool_use``, ``max_tokens`` or ``stop_sequence``.
        stop_sequence: which one it was.
        missing: what the request lacked of what a rehearsed turn needed; empty for nothing.
        unrehearsed: why nothing could be rehearsed for the request; empty when something was.
    """

    blocks: tuple[Block | OtherBlock, ...]
    stop_reason: str = "end_turn"
    stop_sequence: str | None = None
    usage: Usage = field(default_factory=Usage)
    missing: str = ""
    unrehearsed: str = ""


def estimate_tokens(text: str) -> int:
    """Tokens of ``text``: its UTF-8 bytes divided by four, rounded up."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN)


def prompt_tokens(request: MessagesRequest) -> int:
    """Estimated input tokens of a request: system, messages and tools as compact JSON."""
    read = {
        key: request.body[key] for key in ("system", "messages", "tools") if key in request.body
    }
    return max(1, estimate_tokens(json.dumps(read, ensure_ascii=False, separators=(",", ":"))))


def reply_tokens(blocks: Sequence[Block | OtherBlock]) -> int:
    """Estimated output tokens of a message."""
    total = 0
    for block in blocks:
        if isinstance(block, TextBlock):
            total += estimate_tokens(block.text)
        elif isinstance(block, ToolUseBlock):
            total += estimate_tokens(block.name + json.dumps(block.input, ensure_ascii=False))
    return max(1, total)


def new_id(prefix: str, *parts: object) -> str:
    """An id in the provider's style, the same for the same parts."""
    digest = hashlib.sha256("\0".join(map(str, parts)).encode("utf-8", "surrogatepass"))
    return f"{prefix}_01{digest.hexdigest()[:22]}"


def block_body(block: Block | OtherBlock) -> dict[str, Any]:
    """One content block as the API writes it."""
    if isinstance(block, OtherBlock):
        return dict(block.body)
    if isinstance(block, ToolUseBlock):
        return {
            "type": "tool_use",
            "id": block.id,
            "name": block.name,
            "input": dict(block.input),
        }
    if isinstance(block, TextBlock):
        return {"type": "text", "text": block.text}
    message = f"an assistant message holds no {type(block).__name__}"
    raise TypeError(message)


def usage_body(usage: Usage) -> dict[str, int]:
    """Token counts under the API's names."""
    return {
        "input_tokens": usage.input_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "output_tokens": usage.output_tokens,
    }


def message_body(reply: Reply, *, model: str, message_id: str) -> dict[str, Any]:
    """The whole message as the API writes it when nothing is streamed."""
    return {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [block_body(block) for block in reply.blocks],
        "stop_reason": reply.stop_reason,
        "stop_sequence": reply.stop_sequence,
        "usage": usage_body(reply.usage),
    }


def usage_from_body(body: Mapping[str, Any], *, base: Usage | None = None) -> Usage:
    """Read the API's counts; names that are absent keep their value of ``base``."""
    start = base or Usage()

    def count(name: str, default: int) -> int:
        value = body.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else default

    return Usage(
        input_tokens=count("input_tokens", start.input_tokens),
        output_tokens=count("output_tokens", start.output_tokens),
        cache_read_tokens=count("cache_read_input_tokens", start.cache_read_tokens),
        cache_write_tokens=count("cache_creation_input_tokens", start.cache_write_tokens),
    )
