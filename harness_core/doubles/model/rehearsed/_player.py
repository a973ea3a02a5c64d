"""Does a rehearsed turn when the very request gives a reader what it needs, and says what was missing.

Every decision is made from the conversation in the request alone: asked again, it answers the same.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from harness_core.doubles.model._faults import planted_refusal
from harness_core.doubles.model._reply import Reply, call_block, reply_to, text_block
from harness_core.doubles.model._request import MessagesRequest, Tool, bare
from harness_core.doubles.model.rehearsed._classifying import Wanted, read_wanted
from harness_core.doubles.model.rehearsed._form import Form
from harness_core.doubles.model.rehearsed._prompt import Done, Prompt, read_prompt
from harness_core.doubles.model.rehearsed._shown import shown, shown_end
from harness_core.doubles.model.rehearsed._stage import Cue, Stage
from harness_core.doubles.model.rehearsed._template import filled, parts_of
from harness_core.doubles.model.rehearsed._tools import Missing, call_of, offered
from harness_core.doubles.turns import (
    Ask,
    Fail,
    Given,
    Obey,
    Route,
    Say,
    Turn,
    Use,
    as_read,
    fill_in,
)

#: The answer of a model that does not know what is wanted: nothing that could be acted on.
_LOST: Final = "I am not sure what you would like me to do here."

#: The answer where nothing was rehearsed; whoever holds a staging reads it there.
_SILENT: Final = (
    "Nothing was rehearsed for this: I am no model. Say what I do (docs/how-to/gateway.md), or start with"
    " --llm live."
)

_SHOWN_CHARS: Final = 160

#: Of a prompt that we have no turn for: its end, where the message stands.
_PROMPT_CHARS: Final = 1500


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """One answer on the way: the calls it makes, or the error that the provider gives."""

    uses: tuple[Use, ...] = ()
    fail: Fail | None = None
    obeyed: bool = False


def play(request: MessagesRequest, stage: Stage, form: Form, *, cli: bool) -> Reply:
    """The answer to one request.

    Args:
        request: what the model is asked.
        stage: what was rehearsed.
        form: what the subject says of its prompts.
        cli: the caller is a command line that offers tools of its own beside the subject's.

    Raises:
        Refusal: the provider was rehearsed to fail.
    """
    prompt = read_prompt(request, form)
    cue = stage.find(prompt)
    prompt_end = repr(shown_end(prompt.whole, chars=_PROMPT_CHARS))
    if cue is None:
        ours = f"no turn was rehearsed for this prompt: {prompt_end}"
        return _reply(request, _SILENT, unrehearsed=ours)
    if cue.whole and cue.part is None:
        prompt = prompt.around(cue.rehearsal.message)
    tools = offered(request, cli=cli, servers=form.servers)
    wanted = read_wanted(request, prompt, form, tools)
    routed = bool(cue.routes) and cue.part is None
    if wanted is not None and routed and not _works(request, cue, cli=cli):
        return _classify(request, prompt, cue, wanted)
    if not cue.whole:
        return _reply(request, _LOST, missing=f"the prompt {_not_whole(cue, prompt)}")
    if routed and not request.tools and form == Form():
        ours = (
            "this prompt offers no tool, and how it names those who may be chosen, or wants its"
            " answer, is not understood. Say so under [model] in the subject file"
            f" (docs/how-to/gateway.md): {prompt_end}"
        )
        return _reply(request, _SILENT, unrehearsed=ours)
    try:
        return _work(request, prompt, cue, tools)
    except Missing as missing:
        return _reply(request, _LOST, missing=str(missing))


def _works(request: MessagesRequest, cue: Cue, *, cli: bool) -> bool:
    """Whether the request offers a tool that a session of the message needs: it is such a session."""
    names = {bare(tool.name) for tool in offered(request, cli=cli, servers=frozenset())}
    return any(use.tool in names for turn in cue.rehearsal.turns for use in _uses(turn))


def _uses(turn: Turn) -> tuple[Use, ...]:
    if isinstance(turn, tuple):
        return turn
    if isinstance(turn, Given):
        return tuple(use for inner in turn.turns for use in _uses(inner))
    return (turn,) if isinstance(turn, Use) else ()


# --- classifying ------------------------------------------------------------------------------------


def _classify(request: MessagesRequest, prompt: Prompt, cue: Cue, wanted: Wanted) -> Reply:
    if prompt.rounds and wanted.template.tool:
        return _reply(request, "Handed over.")
    parts = parts_of(cue.rehearsal.message, _obeyed_routes(cue, prompt) or cue.routes)
    missing = wanted.lacks(parts) if cue.whole else _not_whole(cue, prompt)
    if missing:
        return _reply(request, _LOST, missing=f"the classifying prompt {missing}")
    template = wanted.template.value
    if wanted.tool is None:
        return _reply(request, json.dumps(filled(template, parts), ensure_ascii=False))
    name = wanted.tool.name
    calls = enumerate(fill_in(template, part) for part in parts)
    return reply_to(request, *(call_block(name, each, name, each, at) for at, each in calls))


def _obeyed_routes(cue: Cue, prompt: Prompt) -> tuple[Route, ...]:
    return tuple(
        inner
        for turn in cue.rehearsal.turns
        if isinstance(turn, Obey) and _obeys(turn, cue, prompt)
        for inner in turn.turns
        if isinstance(inner, Route)
    )


def _obeys(turn: Obey, cue: Cue, prompt: Prompt) -> bool:
    if turn.unless == "never":
        return True
    quoted = prompt.quotation is not None and as_read(cue.text) in as_read(prompt.quotation)
    return not quoted or (turn.unless == "warned" and not prompt.warns)


# --- working ----------------------------------------------------------------------------------------


def _work(request: MessagesRequest, prompt: Prompt, cue: Cue, tools: Sequence[Tool]) -> Reply:
    turns = cue.turns_for(_part(cue, tools))
    steps, last = _plan(turns, cue, prompt, {bare(tool.name) for tool in tools})
    if prompt.rounds >= len(steps):
        return _reply(request, _last_words(last, prompt))
    step = steps[prompt.rounds]
    if step.fail is not None:
        raise planted_refusal(step.fail.status)
    calls = []
    for number, use in enumerate(step.uses):
        name, arguments = call_of(use, tools, prompt.done, obeyed=step.obeyed)
        calls.append(call_block(name, arguments, name, cue.text, prompt.rounds, number))
    return reply_to(request, *calls)


def _part(cue: Cue, tools: Sequence[Tool]) -> Route | None:
    """Whose session this is: the one whose part stands there, or whose next tool is offered."""
    if cue.part is not None or not cue.routes:
        return cue.part
    names = {bare(tool.name) for tool in tools}
    asked = [
        (route, [use for turn in cue.turns_for(route) for use in _uses(turn)])
        for route in cue.routes
    ]
    fitting = [route for route, uses in asked if uses and {use.tool for use in uses} <= names]
    some = [route for route, uses in asked if {use.tool for use in uses} & names]
    return (fitting or some or [cue.routes[0]])[0]


def _plan(
    turns: Sequence[Turn], cue: Cue, prompt: Prompt, names: set[str]
) -> tuple[list[_Step], Say | Ask | None]:
    """The calls to make, in order, and the last words; what is not known is left out."""
    steps: list[_Step] = []
    last: Say | Ask | None = None
    for turn in turns:
        if isinstance(turn, Say | Ask):
            last = turn
        elif isinstance(turn, Given):
            if as_read(turn.text) not in as_read(prompt.whole):
                message = f"the prompt never said {turn.text!r}, which the model had to know"
                raise Missing(message)
            inner, said = _plan(turn.turns, cue, prompt, names)
            steps += inner
            last = said or last
        elif isinstance(turn, Obey):
            if _obeys(turn, cue, prompt):
                # A tool that is not there cannot be called, however gullible one is.
                steps += [
                    _Step(uses=(use,), obeyed=True)
                    for inner_turn in turn.turns
                    for use in _uses(inner_turn)
                    if use.tool in names
                ]
        elif isinstance(turn, Fail):
            steps.append(_Step(fail=turn))
        elif not isinstance(turn, Route):
            steps.append(_Step(uses=_uses(turn)))
    return steps, last


def _last_words(last: Say | Ask | None, prompt: Prompt) -> str:
    failed = [
        f"Failed: {bare(done.name)} answered with an error: {_shorten(done.result or '')}"
        for done in prompt.done
        if done.is_error
    ]
    if failed:
        return "\n".join(failed)
    if last is not None:
        return last.text
    if not prompt.done:
        return "There is nothing that I have to do."
    return "\n".join(f"Done: {bare(done.name)}{_arguments(done)}." for done in prompt.done)


def _arguments(done: Done) -> str:
    given = ", ".join(f"{key} {_shorten(str(value))}" for key, value in done.input.items())
    return f" ({given})" if given else ""


# --- answers ----------------------------------------------------------------------------------------


def _reply(request: MessagesRequest, words: str, **why: str) -> Reply:
    return reply_to(request, text_block(words), **why)


def _not_whole(cue: Cue, prompt: Prompt) -> str:
    expected, found = as_read(cue.text), as_read(prompt.message)
    return (
        f"does not hold the message whole: expected {len(expected)} characters"
        f" {_shorten(expected)!r}, found {len(found)}: {_shorten(found)!r}"
    )


def _shorten(text: str) -> str:
    return shown(text, chars=_SHOWN_CHARS)
