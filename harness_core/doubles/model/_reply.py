"""What a backend answers: a finished message, and what it cost in tokens."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from harness_core.doubles.model._request import MessagesRequest

#: A block of a message as the API writes it, kinds we never heard of included.
Content = Mapping[str, Any]

#: English and JSON run at about four bytes a token; the estimate only has to be deterministic and
#: of the right order, since an offline token costs nothing.
BYTES_PER_TOKEN = 4


class Usage(
    Struct,
    frozen=True,
    kw_only=True,
    rename={
        "cache_read_tokens": "cache_read_input_tokens",
        "cache_write_tokens": "cache_creation_input_tokens",
    },
):
    """Tokens of one call; as JSON under the names of the Messages API.

    As there, tokens read from and written to the cache are not in the input.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    def updated(self, body: object) -> Usage:
        """With the counts that the API reports; a name that is absent keeps its value."""
        names = zip(self.__struct_fields__, self.__struct_encode_fields__, strict=True)
        given = body if isinstance(body, Mapping) else {}
        counts = {field: given.get(name) for field, name in names}
        return msgspec.structs.replace(
            self, **{field: count for field, count in counts.items() if type(count) is int}
        )


class Reply(Struct, frozen=True, kw_only=True):
    """A finished assistant message.

    Attributes:
        content: its blocks, in order.
        stop_reason: ``end_turn``, ``tool_use``, ``max_tokens`` or ``stop_sequence``.
        stop_sequence: which one it was.
        missing: what the request lacked of what a rehearsed turn needed; empty for nothing.
        unrehearsed: why nothing could be rehearsed for the request; empty when something was.
    """

    content: tuple[Content, ...]
    stop_reason: str = "end_turn"
    stop_sequence: str | None = None
    usage: Usage = Usage()
    missing: str = ""
    unrehearsed: str = ""

    @property
    def calls(self) -> tuple[Content, ...]:
        """Its blocks that call a tool."""
        return tuple(block for block in self.content if block.get("type") == "tool_use")


def reply_to(
    request: MessagesRequest, *content: Content, missing: str = "", unrehearsed: str = ""
) -> Reply:
    """An answer that costs nothing, its tokens estimated."""
    output = sum(estimate_tokens(shown_block(block)) for block in content)
    usage = Usage(input_tokens=prompt_tokens(request), output_tokens=max(1, output))
    reply = Reply(content=content, usage=usage, missing=missing, unrehearsed=unrehearsed)
    return msgspec.structs.replace(reply, stop_reason="tool_use") if reply.calls else reply


def text_block(words: str) -> Content:
    """A block of text."""
    return {"type": "text", "text": words}


def call_block(name: str, arguments: Mapping[str, Any], *parts: object) -> Content:
    """A block that calls a tool; what else is given makes its id."""
    return {"type": "tool_use", "id": new_id("toolu", *parts), "name": name, "input": arguments}


def shown_block(block: Content) -> str:
    """A block for people: its text, or the call of a tool."""
    if block["type"] == "tool_use":
        return f"{block['name']}({json.dumps(block['input'], ensure_ascii=False)})"
    return str(block.get("text", block["type"]))


def estimate_tokens(words: str) -> int:
    """Tokens of a text: its UTF-8 bytes divided by four, rounded up."""
    return -(-len(words.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN)


def prompt_tokens(request: MessagesRequest) -> int:
    """Estimated input tokens of a request: system, messages and tools as compact JSON."""
    read = {
        key: request.body[key] for key in ("system", "messages", "tools") if key in request.body
    }
    return max(1, estimate_tokens(json.dumps(read, ensure_ascii=False, separators=(",", ":"))))


def new_id(prefix: str, *parts: object) -> str:
    """An id in the provider's style, the same for the same parts."""
    digest = hashlib.sha256("\0".join(map(str, parts)).encode("utf-8", "surrogatepass"))
    return f"{prefix}_01{digest.hexdigest()[:22]}"
