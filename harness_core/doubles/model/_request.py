"""A Messages API request, parsed once: what is accepted, and what is refused with which field.

Only what the gateway reads is typed; the body as received stays beside it, so that ``live``
forwards fields this module has never heard of.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal, TypeVar, Union

from msgspec import Meta, Struct, defstruct, field, inspect

from harness_core.base.reading import Misfit, Step, parse
from harness_core.doubles.model._refusal import Refusal, invalid

T = TypeVar("T")

#: How Claude Code names the tools of a server: ``mcp__<server>__<tool>``.
MCP: Final = "mcp__"

#: What providers call the types of fields.
_WORDS: Final[Mapping[type, str]] = {
    inspect.StrType: "a valid string",
    inspect.IntType: "a valid integer",
    inspect.FloatType: "a valid number",
    inspect.BoolType: "a valid boolean",
    inspect.DictType: "an object",
    inspect.ListType: "a valid array",
}

_Name = Annotated[str, Meta(min_length=1, description="a string of at least 1 character")]
_Positive = Annotated[int, Meta(ge=1, description="a valid integer of at least 1")]


class TextBlock(Struct, frozen=True, kw_only=True, tag="text"):
    """Text of either side."""

    text: str


class ToolUseBlock(Struct, frozen=True, kw_only=True, tag="tool_use"):
    """The model's wish to call a tool."""

    id: str
    name: str
    input: Mapping[str, Any]


class ToolResultBlock(Struct, frozen=True, kw_only=True, tag="tool_result"):
    """What a tool answered."""

    tool_use_id: str
    content: str | list[dict[str, Any]] | None = None
    is_error: bool | None = False

    @property
    def text(self) -> str:
        """Its text parts, one per line."""
        return text_of(self.content or "")


Block = TextBlock | ToolUseBlock | ToolResultBlock

#: Blocks accepted in a conversation without a look inside: they carry no text we read.
_OPAQUE: Final = tuple(
    defstruct(name, [], tag=name)
    for name in (
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
    )
)

_AnyBlock: Final = Union[(TextBlock, ToolUseBlock, ToolResultBlock, *_OPAQUE)]


class Turn(Struct, frozen=True, kw_only=True):
    """One message of the conversation."""

    role: Annotated[
        Literal["user", "assistant", "system"], Meta(description="'user' or 'assistant'")
    ]
    content: str | list[_AnyBlock]  # type: ignore[valid-type]

    @property
    def blocks(self) -> tuple[Block, ...]:
        """What it says, calls and returns."""
        if isinstance(self.content, str):
            return (TextBlock(text=self.content),)
        return tuple(block for block in self.content if not isinstance(block, _OPAQUE))

    @property
    def text(self) -> str:
        """Its text blocks, one per line."""
        return "\n".join(block.text for block in self.blocks if isinstance(block, TextBlock))


def bare(name: str) -> str:
    """A tool's own name, without the prefix of its server."""
    return name.rpartition("__")[2] if name.startswith(MCP) else name


class Tool(Struct, frozen=True, kw_only=True):
    """A tool offered to the model."""

    name: _Name
    input_schema: dict[str, Any]
    description: str | None = None


class MessagesRequest(Struct, frozen=True, kw_only=True):
    """One request for a message.

    Attributes:
        output_schema: JSON schema the answer must follow, when the request demands one.
        tool_choice: ``auto``, ``any``, ``none`` or ``tool``.
        user_id: of its metadata.
        dimensions: length of the vectors that it wants of its turns in place of a message; 0 for none.
        body: the request as a Messages request.
        received: the request as received, where that is another dialect's.
    """

    model: str
    turns: tuple[Turn, ...]
    max_tokens: int
    system: tuple[str, ...] = ()
    tools: tuple[Tool, ...] = ()
    stream: bool = False
    output_schema: Mapping[str, Any] | None = None
    tool_choice: str = "auto"
    user_id: str = ""
    dimensions: int = 0
    body: Mapping[str, Any] = field(default_factory=dict)
    received: Mapping[str, Any] = field(default_factory=dict)


class _Choice(Struct):
    type: Literal["auto", "any", "none", "tool"]
    name: str = ""


class _Body(Struct):
    """The fields of a request that are read."""

    model: _Name
    max_tokens: _Positive
    messages: Annotated[list[Turn], Meta(min_length=1, description="a non-empty array")]
    system: str | list[TextBlock] | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: _Choice | None = None
    stream: bool | None = None
    metadata: dict[str, Any] | None = None
    output_config: dict[str, Any] | None = None
    output_format: Any = None


def parse_body(raw: bytes) -> dict[str, Any]:
    """The JSON object that a body holds.

    Raises:
        Refusal: 400 for anything else.
    """
    try:
        body = json.loads(raw)
    except ValueError as error:
        raise Refusal(400, f"The request body is not valid JSON: {error}") from error
    if not isinstance(body, dict):
        raise Refusal(400, "The request body must be a JSON object")
    return body


def parse_fields(value: object, kind: type[T], *at: Step, dotted: bool = True) -> T:
    """Read a part of a request.

    Args:
        value: the part.
        kind: the type wanted.
        at: where it stands in the request.
        dotted: positions are named as ``messages.0``, else as ``messages[0]``.

    Raises:
        Refusal: 400 with the offending field named as the provider names it.
    """
    try:
        return parse(value, kind, at=at, words=_WORDS)
    except Misfit as misfit:
        named = ".".join(map(str, misfit.path)) if dotted else misfit.key
        expected = f"Input should be {misfit.expected}"
        raise invalid(named, "Field required" if misfit.missing else expected) from None


def parse_request(body: Mapping[str, Any], *, user_first: bool = True) -> MessagesRequest:
    """Read a request as the provider would.

    Args:
        body: the JSON object.
        user_first: refuse a conversation that the model begins.

    Raises:
        Refusal: 400 with the offending field named.
    """
    read = parse_fields(body, _Body)
    _check_turns(read.messages, user_first=user_first)
    tools = _tools(read.tools or ())
    choice = read.tool_choice or _Choice("auto")
    if choice.type in ("any", "tool") and not tools:
        raise invalid("tool_choice", "tools are required when tool_choice demands one")
    if choice.type == "tool" and choice.name not in {tool.name for tool in tools}:
        raise invalid("tool_choice.name", f"tool {choice.name!r} not found in provided tools")
    system = read.system or []
    return MessagesRequest(
        model=read.model,
        turns=tuple(read.messages),
        max_tokens=read.max_tokens,
        system=(system,) if isinstance(system, str) else tuple(part.text for part in system),
        tools=tools,
        stream=bool(read.stream),
        output_schema=_output_schema(
            (read.output_config or {}).get("format") or read.output_format
        ),
        tool_choice=choice.type,
        user_id=str((read.metadata or {}).get("user_id") or ""),
        body=body,
    )


def text_of(content: str | Sequence[Mapping[str, Any]]) -> str:
    """A text, or the texts of its parts, one per line."""
    if isinstance(content, str):
        return content
    texts = [part.get("text") for part in content]
    return "\n".join(text for text in texts if isinstance(text, str))


def _check_turns(turns: Sequence[Turn], *, user_first: bool) -> None:
    if user_first and turns[0].role != "user":
        raise invalid("messages.0.role", 'first message must use the "user" role')
    for index, turn in enumerate(turns):
        at = f"messages.{index}"
        if not turn.content and (turn.role == "user" or turn.content == ""):
            raise invalid(f"{at}.content", f"{turn.role} messages must have non-empty content")
        _check_results(turn, turns[index - 1] if index else None, at=at)


def _check_results(turn: Turn, before: Turn | None, *, at: str) -> None:
    """A result must answer a call of the message before: the provider refuses anything else."""
    asked = {b.id for b in before.blocks if isinstance(b, ToolUseBlock)} if before else set()
    answered = {b.tool_use_id for b in turn.blocks if isinstance(b, ToolResultBlock)}
    if stray := sorted(answered - asked):
        raise invalid(
            at,
            f"unexpected `tool_use_id` found in `tool_result` blocks: {', '.join(stray)}. Each"
            " `tool_result` block must have a corresponding `tool_use` block in the previous"
            " message",
        )
    if before is not None and before.role == "assistant" and (missing := sorted(asked - answered)):
        raise invalid(
            at,
            "`tool_use` ids were found without `tool_result` blocks immediately after: "
            + ", ".join(missing),
        )


def _tools(tools: Sequence[Mapping[str, Any]]) -> tuple[Tool, ...]:
    read: list[Tool] = []
    for index, item in enumerate(tools):
        if item.get("type") not in (None, "custom"):
            continue  # a server tool: the provider runs it
        tool = parse_fields(item, Tool, "tools", index)
        if tool.input_schema.get("type") != "object":
            raise invalid(f"tools.{index}.input_schema.type", "Input should be 'object'")
        if any(tool.name == other.name for other in read):
            raise invalid("tools", "Tool names must be unique.")
        read.append(tool)
    return tuple(read)


def _output_schema(wanted: object) -> Mapping[str, Any] | None:
    if isinstance(wanted, Mapping) and wanted.get("type") == "json_schema":
        schema = wanted.get("schema")
        return schema if isinstance(schema, dict) else None
    return None
