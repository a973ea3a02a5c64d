"""The OpenAI chat completions API as a second dialect: translated, then answered like any call."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from harness_core.llm._refusal import Refusal, invalid
from harness_core.llm._reply import Reply
from harness_core.llm._request import MessagesRequest, TextBlock, ToolUseBlock, parse_request

__all__ = ["ChatDialect"]

#: Output limit of a request that names none; what the budget reserves for it.
_DEFAULT_MAX_TOKENS: Final = 4096

_FINISH: Final = {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length"}

_DELTA_CHARS: Final = 24


class ChatDialect:
    """``/v1/chat/completions``, streamed and not, with function tools."""

    kind = "chat_completions"

    def parse(self, raw: bytes, *, counting: bool = False) -> MessagesRequest:
        """Read a chat request as a Messages request; raises ``Refusal`` 400 with the field."""
        try:
            body = json.loads(raw)
        except ValueError as error:
            raise Refusal(400, f"The request body is not valid JSON: {error}") from error
        if not isinstance(body, dict):
            raise Refusal(400, "The request body must be a JSON object")
        return parse_request(json.dumps(_translated(body)).encode(), counting=counting)

    def whole(self, reply: Reply, *, model: str, message_id: str) -> dict[str, Any]:
        """The body of an answer that is not streamed."""
        message: dict[str, Any] = {"role": "assistant", "content": _text(reply) or None}
        calls = _calls(reply)
        if calls:
            message["tool_calls"] = calls
        choice = {"index": 0, "message": message, "finish_reason": _finish(reply)}
        head = _head(message_id, model=model, kind="chat.completion")
        return head | {"choices": [choice], "usage": _usage(reply)}

    def events(self, reply: Reply, *, request: MessagesRequest, message_id: str) -> Iterator[bytes]:
        """The same answer as a stream of chunks."""
        head = _head(message_id, model=request.model, kind="chat.completion.chunk")

        def chunk(delta: Mapping[str, Any], finish: str | None = None) -> bytes:
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            return f"data: {json.dumps(head | {'choices': [choice]})}\n\n".encode()

        yield chunk({"role": "assistant", "content": ""})
        text = _text(reply)
        for at in range(0, len(text), _DELTA_CHARS):
            yield chunk({"content": text[at : at + _DELTA_CHARS]})
        for index, call in enumerate(_calls(reply)):
            yield chunk({"tool_calls": [{"index": index, **call}]})
        yield chunk({}, _finish(reply))
        options = request.body.get("stream_options")
        if isinstance(options, dict) and options.get("include_usage"):
            yield f"data: {json.dumps(head | {'choices': [], 'usage': _usage(reply)})}\n\n".encode()
        yield b"data: [DONE]\n\n"

    def error(self, refusal: Refusal) -> dict[str, Any]:
        """The body of a refusal."""
        return {"error": {"message": refusal.message, "type": refusal.type, "code": refusal.reason}}


def _translated(body: Mapping[str, Any]) -> dict[str, Any]:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise invalid("messages", "a non-empty array is required")
    system: list[str] = []
    turns: list[dict[str, Any]] = []
    for index, message in enumerate(messages):
        role = message.get("role") if isinstance(message, dict) else None
        if role in ("system", "developer"):
            system.append(_content(message, index))
        elif role == "user":
            _add(turns, "user", [{"type": "text", "text": _content(message, index)}])
        elif role == "assistant":
            _add(turns, "assistant", _assistant(message, index))
        elif role == "tool":
            call_id = str(message.get("tool_call_id"))
            result = {"type": "tool_result", "tool_use_id": call_id}
            _add(turns, "user", [result | {"content": _content(message, index)}])
        else:
            raise invalid(f"messages[{index}].role", f"{role!r} is no role")
    limit = body.get("max_completion_tokens") or body.get("max_tokens") or _DEFAULT_MAX_TOKENS
    translated: dict[str, Any] = {
        "model": body.get("model"),
        "max_tokens": limit,
        "messages": turns,
        "stream": body.get("stream") or False,
        "stream_options": body.get("stream_options"),
    }
    if system:
        translated["system"] = "\n".join(system)
    if body.get("user"):
        translated["metadata"] = {"user_id": body["user"]}
    return translated | _tools(body) | _format(body)


def _add(turns: list[dict[str, Any]], role: str, blocks: list[dict[str, Any]]) -> None:
    """Join neighbours of one role: results of one round belong into one message."""
    if turns and turns[-1]["role"] == role:
        turns[-1]["content"] += blocks
    else:
        turns.append({"role": role, "content": blocks})


def _content(message: Mapping[str, Any], index: int) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return "\n".join(part for part in parts if isinstance(part, str))
    raise invalid(f"messages[{index}].content", "a string or an array of parts is required")


def _assistant(message: Mapping[str, Any], index: int) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if message.get("content"):
        blocks.append({"type": "text", "text": _content(message, index)})
    for number, call in enumerate(message.get("tool_calls") or ()):
        at = f"messages[{index}].tool_calls[{number}]"
        try:
            function = call["function"]
            arguments = json.loads(function.get("arguments") or "{}")
            block = {"type": "tool_use", "id": call["id"], "name": function["name"]}
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise invalid(at, f"not a function call: {error}") from error
        blocks.append(block | {"input": arguments})
    return blocks


def _tools(body: Mapping[str, Any]) -> dict[str, Any]:
    tools = []
    for index, tool in enumerate(body.get("tools") or ()):
        function = tool.get("function") if isinstance(tool, dict) else None
        if not isinstance(function, dict):
            raise invalid(f"tools[{index}].function", "Field required")
        schema = function.get("parameters") or {"type": "object", "properties": {}}
        tools.append(
            {
                "name": function.get("name"),
                "description": function.get("description") or "",
                "input_schema": schema,
            }
        )
    choice = body.get("tool_choice")
    translated: dict[str, Any] = {"tools": tools} if tools else {}
    if isinstance(choice, dict):
        name = (choice.get("function") or {}).get("name")
        translated["tool_choice"] = {"type": "tool", "name": name}
    elif choice in ("auto", "none", "required"):
        translated["tool_choice"] = {"type": "any" if choice == "required" else choice}
    return translated


def _format(body: Mapping[str, Any]) -> dict[str, Any]:
    wanted = body.get("response_format")
    if isinstance(wanted, dict) and wanted.get("type") == "json_schema":
        schema = (wanted.get("json_schema") or {}).get("schema")
        return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}
    return {}


def _text(reply: Reply) -> str:
    return "".join(block.text for block in reply.blocks if isinstance(block, TextBlock))


def _calls(reply: Reply) -> list[dict[str, Any]]:
    return [
        {
            "id": block.id,
            "type": "function",
            "function": {"name": block.name, "arguments": json.dumps(dict(block.input))},
        }
        for block in reply.blocks
        if isinstance(block, ToolUseBlock)
    ]


def _finish(reply: Reply) -> str:
    return "tool_calls" if _calls(reply) else _FINISH.get(reply.stop_reason, "stop")


def _head(message_id: str, *, model: str, kind: str) -> dict[str, Any]:
    return {
        "id": message_id.replace("msg_", "chatcmpl-"),
        "object": kind,
        "created": 0,
        "model": model,
    }


def _usage(reply: Reply) -> dict[str, int]:
    usage = reply.usage
    prompt = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    return {
        "prompt_tokens": prompt,
        "completion_tokens": usage.output_tokens,
        "total_tokens": prompt + usage.output_tokens,
    }
