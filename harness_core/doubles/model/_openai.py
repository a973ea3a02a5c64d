"""OpenAI's chat completions API as a dialect: translated, then answered like any call.

What its other APIs have in common with it is here, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct

from harness_core.doubles.model._refusal import Refusal, invalid
from harness_core.doubles.model._reply import Reply
from harness_core.doubles.model._request import (
    MessagesRequest,
    parse_fields,
    parse_request,
    text_of,
)
from harness_core.doubles.model._stream import pieces

#: Output limit of a request that names none; what the budget reserves for it.
DEFAULT_MAX_TOKENS: Final = 4096

_FINISH: Final = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
}

#: What the Messages API calls a choice of tools.
_CHOICES: Final = {"auto": "auto", "none": "none", "required": "any"}

#: Status → the code by which this provider names its error.
_CODES: Final = {401: "invalid_api_key", 429: "rate_limit_exceeded"}


class _Function(Struct):
    """A function as it is offered, or as it was called."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    arguments: str | None = None


class _Tool(Struct):
    """A tool, or a call of one."""

    function: _Function
    id: str = ""


class _Message(Struct):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[dict[str, Any]] | None = None
    tool_calls: list[_Tool] | None = None
    tool_call_id: str | None = None


class _Body(Struct):
    """The fields of a request whose inside is read."""

    messages: Annotated[list[_Message], Meta(min_length=1, description="a non-empty array")]
    tools: list[_Tool] | None = None
    response_format: dict[str, Any] | None = None


def parse_chat(body: Mapping[str, Any]) -> MessagesRequest:
    """Read a chat request as a Messages request; raises ``Refusal`` 400 with the field."""
    return parse_request(_translated(body, parse_fields(body, _Body, dotted=False)))


def chat_parts(reply: Reply, request: MessagesRequest, message_id: str) -> list[bytes]:
    """A message as this API sends it: the chunks of a stream, or one JSON text."""
    head: dict[str, Any] = {
        "id": f"chatcmpl-{message_id.removeprefix('msg_')}",
        "object": "chat.completion.chunk" if request.stream else "chat.completion",
        "created": 0,
        "model": request.model,
    }
    text = "".join(block["text"] for block in reply.content if block["type"] == "text")
    calls = _calls(reply)
    finish = _FINISH.get(reply.stop_reason, "stop")
    if not request.stream:
        message: dict[str, Any] = {"role": "assistant", "content": text or None}
        if calls:
            message["tool_calls"] = calls
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return [json.dumps(head | {"choices": [choice], "usage": _usage(reply)}).encode()]
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": piece} for piece in pieces(text)]
    deltas += [{"tool_calls": [{"index": index, **call}]} for index, call in enumerate(calls)]
    ends = [*((delta, None) for delta in deltas), ({}, finish)]
    chunks = [
        head | {"choices": [{"index": 0, "delta": delta, "finish_reason": end}]}
        for delta, end in ends
    ]
    if (request.body.get("stream_options") or {}).get("include_usage"):
        chunks.append(head | {"choices": [], "usage": _usage(reply)})
    return [f"data: {data}\n\n".encode() for data in (*map(json.dumps, chunks), "[DONE]")]


def openai_error(refusal: Refusal) -> dict[str, Any]:
    """The body of a refusal, as all APIs of this provider have it."""
    error = {"message": refusal.message, "type": refusal.type, "param": refusal.field or None}
    return {"error": error | {"code": _CODES.get(refusal.status, refusal.reason)}}


def add_turn(turns: list[dict[str, Any]], role: str, blocks: list[dict[str, Any]]) -> None:
    """Join neighbours of one role: results of one round belong into one message."""
    if turns and turns[-1]["role"] == role:
        turns[-1]["content"] += blocks
    else:
        turns.append({"role": role, "content": blocks})


def call_arguments(text: str | None, *, at: str) -> Any:
    """The arguments of a call that the request repeats; raises ``Refusal`` 400 for no JSON."""
    try:
        return json.loads(text or "{}")
    except ValueError as error:
        raise invalid(at, f"not valid JSON: {error}") from error


def tool_choice(choice: object) -> dict[str, Any] | None:
    """What the Messages API has for a choice by its word; ``None`` for another."""
    return {"type": _CHOICES[choice]} if isinstance(choice, str) and choice in _CHOICES else None


def _translated(body: Mapping[str, Any], read: _Body) -> dict[str, Any]:
    system: list[str] = []
    turns: list[dict[str, Any]] = []
    for index, message in enumerate(read.messages):
        if message.content is None and message.role != "assistant":
            raise invalid(f"messages[{index}].content", "Field required")
        text = text_of(message.content or "")
        if message.role in ("system", "developer"):
            system.append(text)
        elif message.role == "user":
            add_turn(turns, "user", [{"type": "text", "text": text}])
        elif message.role == "assistant":
            add_turn(turns, "assistant", _assistant(message, text, index))
        else:
            result = {"type": "tool_result", "tool_use_id": str(message.tool_call_id)}
            add_turn(turns, "user", [result | {"content": text}])
    limit = body.get("max_completion_tokens") or body.get("max_tokens") or DEFAULT_MAX_TOKENS
    translated = {
        "model": body.get("model"),
        "max_tokens": limit,
        "messages": turns,
        "stream": body.get("stream"),
        "stream_options": body.get("stream_options"),
        "system": "\n".join(system) or None,
        "metadata": {"user_id": body["user"]} if body.get("user") else None,
        "tools": [_tool(tool.function) for tool in read.tools or ()] or None,
        "tool_choice": _choice(body.get("tool_choice")),
        "output_config": _format(read.response_format or {}),
    }
    return {key: value for key, value in translated.items() if value is not None}


def _assistant(message: _Message, text: str, index: int) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    for number, call in enumerate(message.tool_calls or ()):
        at = f"messages[{index}].tool_calls[{number}].function.arguments"
        arguments = call_arguments(call.function.arguments, at=at)
        name = call.function.name
        blocks.append({"type": "tool_use", "id": call.id, "name": name, "input": arguments})
    return blocks


def _tool(function: _Function) -> dict[str, Any]:
    return {
        "name": function.name,
        "description": function.description or "",
        "input_schema": function.parameters or {"type": "object", "properties": {}},
    }


def _choice(choice: object) -> dict[str, Any] | None:
    if isinstance(choice, dict):
        return {"type": "tool", "name": (choice.get("function") or {}).get("name")}
    return tool_choice(choice)


def _format(wanted: Mapping[str, Any]) -> dict[str, Any] | None:
    if wanted.get("type") != "json_schema":
        return None
    schema = (wanted.get("json_schema") or {}).get("schema")
    return {"format": {"type": "json_schema", "schema": schema}}


def _calls(reply: Reply) -> list[dict[str, Any]]:
    return [
        {
            "id": block["id"],
            "type": "function",
            "function": {"name": block["name"], "arguments": json.dumps(block["input"])},
        }
        for block in reply.calls
    ]


def _usage(reply: Reply) -> dict[str, int]:
    usage = reply.usage
    prompt = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    return {
        "prompt_tokens": prompt,
        "completion_tokens": usage.output_tokens,
        "total_tokens": prompt + usage.output_tokens,
    }
