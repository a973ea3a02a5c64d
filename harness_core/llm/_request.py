"""A Messages API request, parsed once: what is accepted, and what is refused with which field.

Only what the gateway reads is typed; the body as received stays beside it, so that ``live``
forwards fields this module has never heard of.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness_core.llm._refusal import Refusal, invalid

__all__ = [
    "Block",
    "MessagesRequest",
    "TextBlock",
    "Tool",
    "ToolResultBlock",
    "ToolUseBlock",
    "Turn",
    "parse_request",
]

#: Block types accepted in a conversation without a look inside: they carry no text we read.
_OPAQUE_BLOCKS = frozenset(
    {
        "image",
        "document",
        "thinking",
        "redacted_thinking",
        "search_result",
        "server_tool_use",
        "web_search_tool_result",
        "mcp_tool_use",
        "mcp_tool_result",
        "container_upload",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextBlock:
    """Text of either side."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUseBlock:
    """The model's wish to call a tool."""

    id: str
    name: str
    input: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResultBlock:
    """What a tool answered; ``text`` joins its text parts."""

    tool_use_id: str
    text: str
    is_error: bool = False


Block = TextBlock | ToolUseBlock | ToolResultBlock


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One message of the conversation: ``role`` is ``user`` or ``assistant``."""

    role: str
    blocks: tuple[Block, ...]

    @property
    def text(self) -> str:
        """Its text blocks, one per line."""
        return "\n".join(block.text for block in self.blocks if isinstance(block, TextBlock))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool offered to the model."""

    name: str
    description: str = ""
    input_schema: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagesRequest:
    """One request for a message.

    Attributes:
        max_tokens: 0 when it was not given (``count_tokens``).
        output_schema: JSON schema the answer must follow, when the request demands one.
        tool_choice: ``auto``, ``any``, ``none``, or ``tool`` with ``tool_name``.
        body: the request as received.
    """

    model: str
    turns: tuple[Turn, ...]
    system: tuple[str, ...] = ()
    tools: tuple[Tool, ...] = ()
    max_tokens: int = 0
    stream: bool = False
    stop_sequences: tuple[str, ...] = ()
    output_schema: Mapping[str, Any] | None = None
    tool_choice: str = "auto"
    tool_name: str = ""
    user_id: str = ""
    body: Mapping[str, Any] = field(default_factory=dict)

    @property
    def system_text(self) -> str:
        """All system blocks, one per line."""
        return "\n".join(self.system)


def parse_request(raw: bytes, *, counting: bool = False) -> MessagesRequest:
    """Read a request body as the provider would.

    Args:
        raw: the body as received.
        counting: for ``count_tokens``, which takes no ``max_tokens``.

    Raises:
        Refusal: 400 with the offending field named.
    """
    try:
        body = json.loads(raw)
    except (ValueError, UnicodeDecodeError) as error:
        message = f"The request body is not valid JSON: {error}"
        raise Refusal(400, message) from error
    if not isinstance(body, dict):
        raise Refusal(400, "The request body must be a JSON object")
    tool_choice, tool_name = _tool_choice(body)
    tools = _tools(body)
    if tool_choice in ("any", "tool") and not tools:
        raise invalid("tool_choice", "tools are required when tool_choice demands one")
    if tool_name and tool_name not in {tool.name for tool in tools}:
        raise invalid("tool_choice.name", f"tool {tool_name!r} not found in provided tools")
    metadata = _typed(body, "metadata", dict) or {}
    return MessagesRequest(
        model=_model(body),
        turns=_turns(body),
        system=_system(body),
        tools=tools,
        max_tokens=0 if counting else _max_tokens(body),
        stream=bool(_typed(body, "stream", bool)),
        stop_sequences=tuple(_typed(body, "stop_sequences", list) or ()),
        output_schema=_output_schema(body),
        tool_choice=tool_choice,
        tool_name=tool_name,
        user_id=str(metadata.get("user_id") or ""),
        body=body,
    )


def _typed(body: Mapping[str, Any], key: str, kind: type, *, at: str = "") -> Any:
    value = body.get(key)
    if value is not None and not isinstance(value, kind):
        names = {dict: "object", list: "array", str: "string", bool: "boolean"}
        raise invalid(f"{at}{key}", f"Input should be a valid {names.get(kind, kind.__name__)}")
    return value


def _model(body: Mapping[str, Any]) -> str:
    if "model" not in body:
        raise invalid("model", "Field required")
    model = _typed(body, "model", str)
    if not model:
        raise invalid("model", "String should have at least 1 character")
    return str(model)


def _max_tokens(body: Mapping[str, Any]) -> int:
    if "max_tokens" not in body:
        raise invalid("max_tokens", "Field required")
    value = body["max_tokens"]
    if not isinstance(value, int) or isinstance(value, bool):
        raise invalid("max_tokens", "Input should be a valid integer")
    if value < 1:
        raise invalid("max_tokens", "Input should be greater than or equal to 1")
    return value


def _system(body: Mapping[str, Any]) -> tuple[str, ...]:
    system = body.get("system")
    if system is None:
        return ()
    if isinstance(system, str):
        return (system,)
    if not isinstance(system, list):
        raise invalid("system", "Input should be a string or an array of text blocks")
    return tuple(_text_part(part, at=f"system.{index}") for index, part in enumerate(system))


def _text_part(part: object, *, at: str) -> str:
    if not isinstance(part, dict) or part.get("type") != "text":
        raise invalid(f"{at}.type", "Input should be 'text'")
    text = part.get("text")
    if not isinstance(text, str):
        raise invalid(
            f"{at}.text", "Field required" if text is None else "Input should be a string"
        )
    return text


def _turns(body: Mapping[str, Any]) -> tuple[Turn, ...]:
    if "messages" not in body:
        raise invalid("messages", "Field required")
    messages = _typed(body, "messages", list)
    if not messages:
        raise invalid("messages", "at least one message is required")
    turns: list[Turn] = []
    for index, message in enumerate(messages):
        turns.append(_turn(message, index=index, before=turns[-1] if turns else None))
    if turns[0].role != "user":
        raise invalid("messages.0.role", 'first message must use the "user" role')
    return tuple(turns)


def _turn(message: object, *, index: int, before: Turn | None) -> Turn:
    at = f"messages.{index}"
    if not isinstance(message, dict):
        raise invalid(at, "Input should be an object")
    role = message.get("role")
    if role not in ("user", "assistant", "system"):
        raise invalid(f"{at}.role", "Input should be 'user' or 'assistant'")
    content = message.get("content")
    if isinstance(content, str):
        if not content:
            raise invalid(f"{at}.content", "text content must be non-empty")
        _check_results((), before, at=at)
        return Turn(role=role, blocks=(TextBlock(text=content),))
    if not isinstance(content, list):
        problem = "Field required" if content is None else "Input should be a string or an array"
        raise invalid(f"{at}.content", problem)
    if not content and role == "user":
        raise invalid(f"{at}.content", "user messages must have non-empty content")
    blocks = tuple(
        block
        for number, part in enumerate(content)
        if (block := _block(part, at=f"{at}.content.{number}")) is not None
    )
    _check_results(blocks, before, at=at)
    return Turn(role=role, blocks=blocks)


def _block(part: object, *, at: str) -> Block | None:
    if not isinstance(part, dict):
        raise invalid(at, "Input should be an object")
    kind = part.get("type")
    if kind == "text":
        return TextBlock(text=_text_part(part, at=at))
    if kind == "tool_use":
        for key in ("id", "name"):
            if not isinstance(part.get(key), str):
                raise invalid(f"{at}.tool_use.{key}", "Field required")
        if not isinstance(part.get("input"), dict):
            raise invalid(f"{at}.tool_use.input", "Input should be an object")
        return ToolUseBlock(id=part["id"], name=part["name"], input=part["input"])
    if kind == "tool_result":
        if not isinstance(part.get("tool_use_id"), str):
            raise invalid(f"{at}.tool_result.tool_use_id", "Field required")
        return ToolResultBlock(
            tool_use_id=part["tool_use_id"],
            text=_result_text(part.get("content"), at=f"{at}.tool_result.content"),
            is_error=part.get("is_error") is True,
        )
    if kind in _OPAQUE_BLOCKS:
        return None
    raise invalid(f"{at}.type", f"Input tag {kind!r} does not match any of the expected tags")


def _result_text(content: object, *, at: str) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise invalid(at, "Input should be a string or an array")
    texts = [part.get("text") for part in content if isinstance(part, dict)]
    return "\n".join(text for text in texts if isinstance(text, str))


def _check_results(blocks: Sequence[Block], before: Turn | None, *, at: str) -> None:
    """A result must answer a call of the message before: the provider refuses anything else."""
    asked = {b.id for b in before.blocks if isinstance(b, ToolUseBlock)} if before else set()
    for block in blocks:
        if isinstance(block, ToolResultBlock) and block.tool_use_id not in asked:
            raise invalid(
                at,
                f"unexpected `tool_use_id` found in `tool_result` blocks: {block.tool_use_id}. Each"
                " `tool_result` block must have a corresponding `tool_use` block in the previous"
                " message",
            )
    answered = {b.tool_use_id for b in blocks if isinstance(b, ToolResultBlock)}
    if before is not None and asked - answered and before.role == "assistant":
        missing = ", ".join(sorted(asked - answered))
        raise invalid(
            at,
            f"`tool_use` ids were found without `tool_result` blocks immediately after: {missing}",
        )


def _tools(body: Mapping[str, Any]) -> tuple[Tool, ...]:
    tools: list[Tool] = []
    for index, item in enumerate(_typed(body, "tools", list) or ()):
        at = f"tools.{index}"
        if not isinstance(item, dict):
            raise invalid(at, "Input should be an object")
        if item.get("type") not in (None, "custom"):
            continue  # a server tool: the provider runs it, nobody here can
        name = item.get("name")
        if not isinstance(name, str) or not name:
            raise invalid(f"{at}.name", "Field required")
        schema = item.get("input_schema")
        if not isinstance(schema, dict):
            raise invalid(f"{at}.input_schema", "Field required")
        if schema.get("type") != "object":
            raise invalid(f"{at}.input_schema.type", "Input should be 'object'")
        if any(tool.name == name for tool in tools):
            raise invalid("tools", "Tool names must be unique.")
        description = _typed(item, "description", str, at=f"{at}.") or ""
        tools.append(Tool(name=name, description=description, input_schema=schema))
    return tuple(tools)


def _tool_choice(body: Mapping[str, Any]) -> tuple[str, str]:
    choice = _typed(body, "tool_choice", dict)
    if choice is None:
        return "auto", ""
    kind = choice.get("type")
    if kind not in ("auto", "any", "none", "tool"):
        raise invalid("tool_choice.type", "Input should be 'auto', 'any', 'none' or 'tool'")
    name = choice.get("name", "")
    if kind == "tool" and not isinstance(name, str):
        raise invalid("tool_choice.name", "Field required")
    return kind, name if kind == "tool" else ""


def _output_schema(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    config = _typed(body, "output_config", dict) or {}
    wanted = config.get("format") or body.get("output_format")
    if isinstance(wanted, dict) and wanted.get("type") == "json_schema":
        schema = wanted.get("schema")
        return schema if isinstance(schema, dict) else None
    return None
