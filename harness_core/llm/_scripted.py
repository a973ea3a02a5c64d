"""Mode ``scripted``: transcripts loaded over HTTP, played back strictly in order.

A script is a list of turns. A turn says what it expects to be asked and what to answer. Several
scripts may be loaded; a call takes the first script whose *next* turn matches it. A call that no
script expects is refused and remembered, and so is a turn that nobody asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from harness_core.errors import BadInput
from harness_core.llm._backend import Answer, Call, Trouble
from harness_core.llm._faults import Fault, fault_from_json
from harness_core.llm._refusal import Refusal
from harness_core.llm._reply import Reply, Usage, new_id, prompt_tokens, reply_tokens
from harness_core.llm._request import (
    Block,
    MessagesRequest,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
)

__all__ = ["Script", "ScriptTurn", "ScriptedBackend", "Unmatched", "script_from_json"]

#: Characters of each part shown when a call matches nothing.
_SHOWN_CHARS: Final = 160

_MATCH_KEYS: Final = ("conversation", "system", "user", "tool_result", "tools", "model")
_TURN_KEYS: Final = ("match", "reply", "fault", "stop_reason")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptTurn:
    """One expected call and its answer.

    Attributes:
        conversation: text that must be somewhere in it: in the system prompt or in any turn. With
            a text of its own a script finds the calls of its own test among those of others.
        system: text the system prompt must contain.
        user: text the last user message must contain.
        tool_result: text a result in the last user message must contain.
        tools: names that must be among the tools offered.
        model: the model it must ask for.
        reply: content blocks of the answer.
        fault: trouble instead of an answer.
    """

    conversation: str = ""
    system: str = ""
    user: str = ""
    tool_result: str = ""
    tools: tuple[str, ...] = ()
    model: str = ""
    reply: tuple[Block, ...] = ()
    stop_reason: str = ""
    fault: Fault | None = None

    def matches(self, request: MessagesRequest) -> bool:
        """Whether this turn expects that call."""
        last = request.turns[-1]
        results = [block.text for block in last.blocks if isinstance(block, ToolResultBlock)]
        return (
            (not self.conversation or self.conversation in _whole(request))
            and self.system in request.system_text
            and self.user in last.text
            and (not self.tool_result or any(self.tool_result in text for text in results))
            and set(self.tools) <= {tool.name for tool in request.tools}
            and self.model in ("", request.model)
        )

    def describe(self) -> str:
        """What it expects, for the message about a call that it did not get."""
        wants = [
            f"{key} contains {value!r}"
            for key, value in (
                ("conversation", self.conversation),
                ("system", self.system),
                ("user", self.user),
                ("tool_result", self.tool_result),
            )
            if value
        ]
        wants += [f"tool {name} is offered" for name in self.tools]
        wants += [f"model is {self.model}"] if self.model else []
        return " and ".join(wants) or "any call"


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A named transcript."""

    name: str
    turns: tuple[ScriptTurn, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmatched:
    """What did not go by the scripts.

    Attributes:
        calls: what was asked that no script expected.
        unused: turns that were never asked for.
    """

    calls: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """True when anything is amiss."""
        return bool(self.calls or self.unused)


class ScriptedBackend:
    """Plays scripts back."""

    name = "scripted"
    charges = False

    def __init__(self) -> None:
        self._scripts: list[tuple[Script, int]] = []
        self._unmatched: list[str] = []

    def load(self, script: Script) -> None:
        """Add a script; it is consulted after those already loaded."""
        self._scripts.append((script, 0))

    def clear(self) -> None:
        """Forget scripts and what did not match them."""
        self._scripts.clear()
        self._unmatched.clear()

    def unmatched(self) -> Unmatched:
        """Unexpected calls and unused turns so far."""
        unused = [
            f"{script.name}[{index}]: {turn.describe()}"
            for script, position in self._scripts
            for index, turn in enumerate(script.turns[position:], start=position)
        ]
        return Unmatched(calls=tuple(self._unmatched), unused=tuple(unused))

    async def answer(self, call: Call) -> Answer:
        """Answer by the first script whose next turn matches.

        Raises:
            Refusal: 500 when none does; says what was asked and what was expected next.
        """
        for at, (script, position) in enumerate(self._scripts):
            if position < len(script.turns) and script.turns[position].matches(call.request):
                self._scripts[at] = (script, position + 1)
                return _played(script, position, call.request)
        asked = _describe_call(call.request)
        self._unmatched.append(asked)
        expected = [
            f"{script.name}[{position}] ({script.turns[position].describe()})"
            for script, position in self._scripts
            if position < len(script.turns)
        ]
        message = (
            f"no script expects this call: {asked}. Expected next:"
            f" {'; '.join(expected) or 'nothing, every turn has been used'}."
        )
        # Without the header, clients would ask an answer of a script again and again for minutes.
        raise Refusal(500, message, headers={"x-should-retry": "false"}, reason="unmatched")


def _played(script: Script, position: int, request: MessagesRequest) -> Answer:
    turn = script.turns[position]
    if turn.fault is not None:
        return Trouble(fault=turn.fault)
    called = any(isinstance(block, ToolUseBlock) for block in turn.reply)
    # A script may be written without ids; they must still differ from call to call.
    blocks = tuple(
        ToolUseBlock(
            id=block.id or new_id("toolu", script.name, position, index),
            name=block.name,
            input=block.input,
        )
        if isinstance(block, ToolUseBlock)
        else block
        for index, block in enumerate(turn.reply)
    )
    return Reply(
        blocks=blocks,
        stop_reason=turn.stop_reason or ("tool_use" if called else "end_turn"),
        usage=Usage(input_tokens=prompt_tokens(request), output_tokens=reply_tokens(blocks)),
    )


def _whole(request: MessagesRequest) -> str:
    """Every text of a conversation, tool results included."""
    results = (
        block.text
        for turn in request.turns
        for block in turn.blocks
        if isinstance(block, ToolResultBlock)
    )
    return "\n".join((request.system_text, *(turn.text for turn in request.turns), *results))


def _describe_call(request: MessagesRequest) -> str:
    last = request.turns[-1]
    results = [block.text for block in last.blocks if isinstance(block, ToolResultBlock)]
    parts = [f"system {_shorten(request.system_text)!r}", f"user {_shorten(last.text)!r}"]
    parts += [f"tool_result {_shorten(text)!r}" for text in results]
    if request.tools:
        parts.append(f"tools {', '.join(tool.name for tool in request.tools)}")
    return ", ".join(parts)


def _shorten(text: str) -> str:
    # The end of a prompt says more about the call than its beginning, which all calls share.
    return text if len(text) <= _SHOWN_CHARS else "…" + text[-_SHOWN_CHARS:]


def script_from_json(body: object) -> Script:
    """Read a script ``{"name", "turns": [{"match", "reply" | "fault", "stop_reason"?}]}``.

    Raises:
        BadInput: names the turn's index and the key.
    """
    if not isinstance(body, dict):
        raise BadInput("script", found=body, expected="an object with name and turns")
    name, turns = body.get("name"), body.get("turns")
    if not isinstance(name, str) or not name:
        raise BadInput("script", key="name", found=name, expected="a non-empty string")
    if not isinstance(turns, list) or not turns:
        raise BadInput(f"script {name}", key="turns", found=turns, expected="a non-empty array")
    return Script(
        name=name,
        turns=tuple(
            _turn(turn, where=f"script {name}", at=f"turns[{i}]") for i, turn in enumerate(turns)
        ),
    )


def _turn(body: object, *, where: str, at: str) -> ScriptTurn:
    if not isinstance(body, dict):
        raise BadInput(where, key=at, found=body, expected="an object")
    _known(body, _TURN_KEYS, where=where, at=at)
    if ("reply" in body) == ("fault" in body):
        raise BadInput(where, key=at, found=sorted(body), expected="either reply or fault")
    match = body.get("match", {})
    if not isinstance(match, dict):
        raise BadInput(where, key=f"{at}.match", found=match, expected="an object")
    _known(match, _MATCH_KEYS, where=where, at=f"{at}.match")
    for key in ("conversation", "system", "user", "tool_result", "model"):
        if not isinstance(match.get(key, ""), str):
            raise BadInput(where, key=f"{at}.match.{key}", found=match[key], expected="a string")
    stop_reason = body.get("stop_reason", "")
    if not isinstance(stop_reason, str):
        raise BadInput(where, key=f"{at}.stop_reason", found=stop_reason, expected="a string")
    fault = None
    if "fault" in body:
        try:
            fault = fault_from_json(body["fault"])
        except BadInput as error:
            raise BadInput(
                where, key=f"{at}.fault.{error.key}", found=error.found, expected=error.expected
            ) from error
    return ScriptTurn(
        conversation=match.get("conversation", ""),
        system=match.get("system", ""),
        user=match.get("user", ""),
        tool_result=match.get("tool_result", ""),
        model=match.get("model", ""),
        tools=_names(match.get("tools", []), where=where, at=f"{at}.match.tools"),
        reply=_reply(body.get("reply", []), where=where, at=f"{at}.reply"),
        stop_reason=stop_reason,
        fault=fault,
    )


def _known(body: Mapping[str, Any], keys: Sequence[str], *, where: str, at: str) -> None:
    for key in body:
        if key not in keys:
            raise BadInput(
                where, key=f"{at}.{key}", found=key, expected=f"one of {', '.join(keys)}"
            )


def _names(value: object, *, where: str, at: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise BadInput(where, key=at, found=value, expected="an array of tool names")
    return tuple(value)


def _reply(value: object, *, where: str, at: str) -> tuple[Block, ...]:
    if isinstance(value, str):
        return (TextBlock(text=value),)
    if not isinstance(value, list):
        raise BadInput(where, key=at, found=value, expected="a text or an array of content blocks")
    return tuple(_reply_block(part, where=where, at=f"{at}[{i}]") for i, part in enumerate(value))


def _reply_block(part: object, *, where: str, at: str) -> Block:
    if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str):
        return TextBlock(text=part["text"])
    if isinstance(part, dict) and part.get("type") == "tool_use":
        name, arguments, block_id = part.get("name"), part.get("input", {}), part.get("id", "")
        if not isinstance(name, str) or not name:
            raise BadInput(where, key=f"{at}.name", found=name, expected="a tool name")
        if not isinstance(arguments, dict):
            raise BadInput(where, key=f"{at}.input", found=arguments, expected="an object")
        if not isinstance(block_id, str):
            raise BadInput(where, key=f"{at}.id", found=block_id, expected="a string")
        return ToolUseBlock(id=block_id, name=name, input=arguments)
    raise BadInput(where, key=at, found=part, expected="a text block or a tool_use block")
