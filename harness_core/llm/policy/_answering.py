"""The offline answer to a request, turn by turn.

Calls while there is something to call, then a short true report.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from harness_core.llm._reply import new_id
from harness_core.llm._request import Block, MessagesRequest, TextBlock, Tool, ToolUseBlock
from harness_core.llm.policy._arguments import fill
from harness_core.llm.policy._classification import classify
from harness_core.llm.policy._parameters import Parameter, read_parameters
from harness_core.llm.policy._prompt import Done, Prompt, read_prompt
from harness_core.llm.policy._tools import Goal, ToolView, goals_of, source_for, view_tools
from harness_core.llm.policy._verbs import Act
from harness_core.llm.policy._words import identifier_words, stem, tokens

__all__ = ["respond"]

#: Answers with tool calls to one message. Look up, create, use: three; one to spare.
_ROUNDS: Final = 4

#: Characters of a result and of a message repeated in a report.
_SHOWN_CHARS: Final = 400

_TITLE_WORDS: Final = 5


def respond(request: MessagesRequest, *, now: dt.datetime) -> tuple[tuple[Block, ...], str]:
    """Answer a request.

    Args:
        request: what was asked.
        now: the clock, for prompts that do not state the time; with a zone.

    Returns:
        Content blocks and the stop reason.
    """
    prompt = read_prompt(request, now=now)
    if request.tools and request.tool_choice != "none":
        calls = _calls(request, prompt)
        if calls:
            return calls, "tool_use"
        return (TextBlock(text=_report(request, prompt)),), "end_turn"
    if request.output_schema is not None:
        answer = json.dumps(_by_schema(request.output_schema, prompt), ensure_ascii=False)
        return (TextBlock(text=answer),), "end_turn"
    classified = classify(prompt)
    if classified is not None:
        return (TextBlock(text=classified),), "end_turn"
    return (TextBlock(text=_plain(prompt)),), "end_turn"


def _calls(request: MessagesRequest, prompt: Prompt) -> tuple[Block, ...]:
    """Calls to make now; empty when all is done, or nothing more can be."""
    if prompt.rounds >= _ROUNDS:
        return ()
    views = view_tools(request.tools)
    if request.tool_choice in ("any", "tool") and not prompt.rounds:
        return _forced(request, prompt, views)
    wanted: list[tuple[str, Mapping[str, Any]]] = []
    for goal in _open_goals(goals_of(prompt, views), prompt.done):
        if goal.filled.missing:
            wanted += _towards(goal, prompt, views)
        else:
            wanted.append((goal.view.tool.name, goal.filled.arguments))
    made = {_signature(call.name, call.input) for call in prompt.done}
    calls: list[Block] = []
    for name, arguments in wanted:
        signature = _signature(name, arguments)
        # The same call again would get the same answer.
        if signature not in made:
            made.add(signature)
            call_id = new_id("toolu", signature, prompt.message, prompt.rounds)
            calls.append(ToolUseBlock(id=call_id, name=name, input=arguments))
    return tuple(calls)


def _signature(name: str, arguments: Mapping[str, Any]) -> str:
    return name + json.dumps(arguments, sort_keys=True, ensure_ascii=False)


def _open_goals(goals: Sequence[Goal], done: Sequence[Done]) -> list[Goal]:
    """Goals not yet attempted: the n-th goal for a tool is settled by the n-th call of it."""
    attempts: dict[str, int] = {}
    for call in done:
        attempts[call.name] = attempts.get(call.name, 0) + 1
    still_open: list[Goal] = []
    for goal in goals:
        name = goal.view.tool.name
        if attempts.get(name, 0) > 0:
            attempts[name] -= 1
        else:
            still_open.append(goal)
    return still_open


def _towards(
    goal: Goal, prompt: Prompt, views: Sequence[ToolView]
) -> list[tuple[str, Mapping[str, Any]]]:
    """A call that may provide the id a goal lacks: look it up, and if that failed, create it."""
    nouns = {
        stem(word)
        for name in goal.filled.missing
        for word in identifier_words(name)
        if word not in ("id", "ids")
    } or goal.view.nouns
    called = {call.name for call in prompt.done}
    for act in (Act.READ, Act.CREATE):
        for view in views:
            if view.act is not act or not view.nouns & nouns or view is goal.view:
                continue
            if view.tool.name in called:
                continue
            filled = fill(view.parameters, source_for(view, goal.text, prompt, supporting=True))
            if not filled.missing and (act is Act.READ or filled.evidence):
                return [(view.tool.name, filled.arguments)]
    return []


def _forced(
    request: MessagesRequest, prompt: Prompt, views: Sequence[ToolView]
) -> tuple[Block, ...]:
    """The caller demands a call: the named tool, or the one that fits best, or the first."""
    if request.tool_choice == "tool":
        view = next(view for view in views if view.tool.name == request.tool_name)
        filled = fill(view.parameters, source_for(view, prompt.message, prompt))
    else:
        goals = [goal for goal in goals_of(prompt, views) if not goal.filled.missing]
        best = max(goals, key=lambda goal: goal.score, default=None)
        view = best.view if best is not None else views[0]
        filled = (
            best.filled
            if best is not None
            else fill(view.parameters, source_for(view, prompt.message, prompt))
        )
    call_id = new_id("toolu", view.tool.name, prompt.message)
    return (ToolUseBlock(id=call_id, name=view.tool.name, input=filled.arguments),)


def _report(request: MessagesRequest, prompt: Prompt) -> str:
    """What happened, and nothing that did not."""
    if not prompt.done:
        return (
            "I did nothing: none of the tools I have fits this message, or it does not say all that"
            f" one needs. The message was: {_shorten(prompt.message)}"
        )
    lines = [_line(call, request.tools) for call in prompt.done]
    for goal in _open_goals(goals_of(prompt, view_tools(request.tools)), prompt.done):
        missing = ", ".join(goal.filled.missing) or "another turn"
        lines.append(f"Not done: {goal.view.bare_name}, for want of {missing}.")
    return "\n".join(lines)


def _line(call: Done, tools: Sequence[Tool]) -> str:
    view = next((ToolView(tool=tool) for tool in tools if tool.name == call.name), None)
    name = view.bare_name if view is not None else call.name
    if call.is_error:
        return f"Failed: {name} answered with an error: {_shorten(call.result)}"
    if not call.answered:
        return f"Unknown: {name} was called and gave no result."
    if view is not None and view.act is Act.READ:
        return f"{name} answered: {_shorten(call.result)}"
    told = ", ".join(f"{key} {_shorten(str(value))}" for key, value in call.input.items())
    return f"Done: {name}" + (f" ({told})." if told else ".")


def _shorten(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= _SHOWN_CHARS else plain[: _SHOWN_CHARS - 1] + "…"


def _plain(prompt: Prompt) -> str:
    return f"Understood: {_shorten(prompt.message)}"


def _by_schema(schema: Mapping[str, Any], prompt: Prompt) -> Any:
    """An object of the demanded schema: what the message says, neutral values for the rest."""
    wrapped = {"type": "object", "properties": {"answer": schema}, "required": ["answer"]}
    parameter = read_parameters(wrapped)[0]
    return _conform(parameter, prompt)


def _conform(parameter: Parameter, prompt: Prompt) -> Any:  # noqa: PLR0911 - one per JSON type
    if parameter.has_const:
        return parameter.const
    if parameter.enum:
        text = prompt.message.lower()
        return next((v for v in parameter.enum if str(v).lower() in text), parameter.enum[0])
    kind = parameter.types[0] if parameter.types else "string"
    if kind == "object":
        return {inner.name: _conform(inner, prompt) for inner in parameter.fields if inner.required}
    if kind == "array":
        return [_conform(parameter.items, prompt)] if parameter.items is not None else []
    if kind == "boolean":
        return False
    if kind in ("integer", "number"):
        low = parameter.minimum if parameter.minimum is not None else 0
        return int(low) if kind == "integer" else low
    if "title" in parameter.words:
        words = [token.text for token in tokens(prompt.message) if token.kind != "number"]
        return " ".join(words[:_TITLE_WORDS]).capitalize() or "Untitled"
    return _shorten(prompt.message)
