"""OpenAI's Responses API as a dialect: read with the conversation that it goes on with.

A request may name an earlier response in place of what was said before; those conversations are
kept here, and the request is translated whole. So a rehearsed turn, a recording and the ledger see
the same whether a client repeats its conversation or refers to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from msgspec import Struct, structs

from harness_core.doubles.model._openai import (
    DEFAULT_MAX_TOKENS,
    add_turn,
    call_arguments,
    tool_choice,
)
from harness_core.doubles.model._refusal import Refusal, invalid
from harness_core.doubles.model._reply import Content, Reply
from harness_core.doubles.model._request import (
    MessagesRequest,
    parse_fields,
    parse_request,
    text_of,
)

#: Responses that later requests may name; the oldest are forgotten first.
_KEPT: Final = 10_000

#: What no mode of a gateway does.
_UNSERVED: Final = ("background", "conversation", "prompt")

#: Fields that steer a model and have no other name in the Messages API.
_STEERING: Final = ("temperature", "top_p", "reasoning")


class _Item(Struct):
    """One item of the input, of any kind."""

    type: str | None = None
    role: Literal["system", "developer", "user", "assistant"] | None = None
    content: str | list[dict[str, Any]] | None = None
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    output: Any = None


class _Output(Struct):
    """What a function returned."""

    output: str | list[dict[str, Any]]


class _Tool(Struct):
    type: str
    name: str | None = None
    description: str | None = None
    parameters: dict[str, Any] | None = None


class _Text(Struct):
    format: dict[str, Any] | None = None


class _Body(Struct):
    """The fields of a request whose inside is read."""

    model: str
    input: str | list[_Item] | None = None
    instructions: str | None = None
    previous_response_id: str | None = None
    tools: list[_Tool] | None = None
    text: _Text | None = None
    stream: bool | None = None
    max_output_tokens: int | None = None


class Conversations:
    """Reads requests, and keeps what later ones may refer to for as long as the gateway lives."""

    def __init__(self) -> None:
        self._turns: dict[str, Sequence[Mapping[str, Any]]] = {}
        self._items: dict[str, Content] = {}

    def parse(self, body: Mapping[str, Any]) -> MessagesRequest:
        """Read a request as a Messages request; raises ``Refusal`` 400 with the field."""
        read = parse_fields(body, _Body, dotted=False)
        for name in _UNSERVED:
            if body.get(name):
                problem = "a gateway of the harness does not serve this; leave it out"
                raise invalid(name, problem)
        translated = self._translated(body, read)
        return structs.replace(parse_request(translated, user_first=False), received=body)

    def keep(self, request: MessagesRequest, reply: Reply, ids: Sequence[str]) -> None:
        """Remember an answered request, unless it says otherwise.

        Args:
            request: of :meth:`parse`.
            reply: the answer.
            ids: of the response, then of the items of its output, one for each block of the answer.
        """
        if request.received.get("store") is False:
            return
        response, *items = ids
        turns = _copied(request.body["messages"])
        add_turn(turns, "assistant", [dict(block) for block in reply.content])
        self._turns[response] = turns
        self._items |= dict(zip(items, reply.content, strict=True))
        for kept in (self._turns, self._items):
            while len(kept) > _KEPT:
                del kept[next(iter(kept))]

    def _translated(self, body: Mapping[str, Any], read: _Body) -> dict[str, Any]:
        system = [read.instructions] if read.instructions else []
        turns = self._earlier(read.previous_response_id)
        given = read.input or ()
        items = [_Item(role="user", content=given)] if isinstance(given, str) else given
        for index, item in enumerate(items):
            self._add(item, turns, system, at=f"input[{index}]")
        if not items or not turns:
            raise invalid("input", "Field required: at least one message of a user")
        _check_calls(turns)
        user = body.get("user") or body.get("safety_identifier")
        wanted = read.text.format if read.text is not None else None
        translated = {
            "model": read.model,
            "max_tokens": read.max_output_tokens or DEFAULT_MAX_TOKENS,
            "messages": turns,
            "stream": read.stream,
            "system": "\n".join(system) or None,
            "metadata": {"user_id": user} if user else None,
            "tools": _tools(read.tools or ()) or None,
            "tool_choice": _choice(body.get("tool_choice")),
            "output_config": {"format": wanted} if wanted else None,
            **{name: body.get(name) for name in _STEERING},
        }
        return {key: value for key, value in translated.items() if value is not None}

    def _earlier(self, response: str | None) -> list[dict[str, Any]]:
        if response is None:
            return []
        if response not in self._turns:
            raise Refusal(
                400,
                f"Previous response with id '{response}' not found: this gateway did not answer it"
                ' in this run, or was told "store": false.',
                reason="previous_response_not_found",
                field="previous_response_id",
            )
        return _copied(self._turns[response])

    def _add(self, item: _Item, turns: list[dict[str, Any]], system: list[str], *, at: str) -> None:
        """Add one item of the input to what was said so far."""
        if item.type == "function_call":
            call = {"type": "tool_use", "id": _needed(item.call_id, f"{at}.call_id")}
            call["name"] = _needed(item.name, f"{at}.name")
            arguments = call_arguments(item.arguments, at=f"{at}.arguments")
            add_turn(turns, "assistant", [{**call, "input": arguments}])
        elif item.type == "function_call_output":
            result = {"type": "tool_result", "tool_use_id": _needed(item.call_id, f"{at}.call_id")}
            returned = parse_fields({"output": item.output}, _Output, at, dotted=False)
            add_turn(turns, "user", [{**result, "content": text_of(returned.output)}])
        elif item.type == "item_reference":
            if (block := self._items.get(item.id or "")) is not None:
                add_turn(turns, "assistant", [dict(block)])
            elif not (item.id or "").startswith("rs_"):
                raise invalid(at, f"Item with id '{item.id}' not found")
        elif item.type in (None, "message"):
            role = _needed(item.role, f"{at}.role")
            text = text_of(_needed(item.content, f"{at}.content"))
            if role in ("system", "developer"):
                system.append(text)
            else:
                add_turn(turns, role, [{"type": "text", "text": text}])
        # Anything else is reasoning, or of tools that the provider runs: nothing that is read here.


def _copied(turns: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The same turns, to which more may be added."""
    return [{**turn, "content": list(turn["content"])} for turn in turns]


def _needed(value: Any, at: str) -> Any:
    if value is None:
        raise invalid(at, "Field required")
    return value


def _check_calls(turns: Sequence[Mapping[str, Any]]) -> None:
    """Every call has its output and every output its call, in the words of this provider."""
    blocks = [block for turn in turns for block in turn["content"]]
    called = {block["id"] for block in blocks if block["type"] == "tool_use"}
    answered = {block["tool_use_id"] for block in blocks if block["type"] == "tool_result"}
    for words, ids in (
        ("No tool output found for function call", called - answered),
        ("No tool call found for function call output with call_id", answered - called),
    ):
        if ids:
            raise Refusal(400, f"{words} {min(ids)}.", field="input")


def _tools(tools: Sequence[_Tool]) -> list[dict[str, Any]]:
    """Functions alone: other tools are run by the provider."""
    read = []
    for index, tool in enumerate(tools):
        if tool.type != "function":
            continue
        schema = tool.parameters or {"type": "object", "properties": {}}
        if schema.get("type") != "object":
            raise invalid(f"tools[{index}].parameters", "Input should be of type 'object'")
        name = _needed(tool.name, f"tools[{index}].name")
        read.append({"name": name, "description": tool.description or "", "input_schema": schema})
    return read


def _choice(choice: object) -> dict[str, Any] | None:
    if isinstance(choice, Mapping) and choice.get("type") == "function":
        return {"type": "tool", "name": choice.get("name")}
    # Of tools that are allowed, whether one must be called.
    return tool_choice(choice.get("mode") if isinstance(choice, Mapping) else choice)
