"""Which tools a message asks for: each clause to the tool that fits it best, or to none."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from harness_core.llm._request import Tool
from harness_core.llm.policy._arguments import Filled, fill
from harness_core.llm.policy._filling import ITEM_WORDS, PLACE_WORDS, Source
from harness_core.llm.policy._kinds import kinds_of
from harness_core.llm.policy._parameters import Parameter, read_parameters
from harness_core.llm.policy._phrases import object_and_place
from harness_core.llm.policy._pieces import Piece, split_pieces
from harness_core.llm.policy._prompt import Prompt
from harness_core.llm.policy._pronouns import resolve
from harness_core.llm.policy._quantities import find_quantities
from harness_core.llm.policy._scoring import Index, weigh
from harness_core.llm.policy._steering import honest, steers
from harness_core.llm.policy._verbs import (
    Act,
    act_of_clause,
    act_of_tool,
    command_verb,
    is_verb,
    strip_courtesy,
)
from harness_core.llm.policy._words import identifier_words, stem, stems

__all__ = ["Goal", "ToolView", "goals_of", "view_tools"]

#: Share of a tool's score by what the clause asks for and what the tool does; pairs that are
#: absent never meet.
_COMPATIBLE: Final = {
    (Act.CREATE, Act.CREATE): 1.0,
    (Act.CREATE, Act.OTHER): 0.9,
    (Act.CREATE, Act.UPDATE): 0.4,
    (Act.READ, Act.READ): 1.0,
    (Act.READ, Act.OTHER): 0.5,
    (Act.UPDATE, Act.UPDATE): 1.0,
    (Act.UPDATE, Act.OTHER): 0.7,
    (Act.DELETE, Act.DELETE): 1.0,
    (Act.SEND, Act.SEND): 1.0,
    (Act.SEND, Act.CREATE): 0.5,
    (Act.RUN, Act.RUN): 1.0,
    (Act.RUN, Act.OTHER): 0.9,
}

#: Acts that change or run something beyond a new record: the clause must name what.
_GUARDED: Final = frozenset([Act.DELETE, Act.SEND, Act.RUN, Act.UPDATE])

_NAME_WEIGHT: Final = 2.0
_VERB_WEIGHT: Final = 0.3

#: From this score on a tool is considered. Lower than for registries: the tools of one system
#: share their words, and a call needs its arguments besides.
_FITS: Final = 0.35

#: "Don't log this", "I no longer have a headache": a statement that asks for nothing.
_DENIED: Final = re.compile(
    r"\b(?:do not|don't|don\u2019t|did not|didn't|never|no longer|haven't|have not|without)\s+"
    r"(?:\w+\s+){0,1}?(?:have|had|feel|felt|log|record|add|save|store|create|call|use|make|do|take|took"
    r"|having|feeling|remind)\b",
    re.IGNORECASE,
)

#: What an argument that is said in so many words adds to a tool's score, and a place that is.
_EVIDENCE: Final = 0.15
_PLACING: Final = 0.5

#: What separates the things of an enumeration.
_ENUMERATED: Final = re.compile(r"\s*,\s*(?:and\s+)?|\s+and\s+")

#: Score at which half a sentence may become a call of its own.
_OWN_CALL: Final = 0.8


@dataclass(frozen=True, kw_only=True)
class ToolView:
    """A tool as the policy sees it."""

    tool: Tool

    @cached_property
    def bare_name(self) -> str:
        """Its name without the prefix of its MCP server."""
        name = self.tool.name
        return name.split("__", 2)[-1] if name.startswith("mcp__") else name

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """Its parameters."""
        return read_parameters(self.tool.input_schema)

    @cached_property
    def act(self) -> Act:
        """What it does."""
        return act_of_tool(self.bare_name, self.tool.description)

    @cached_property
    def nouns(self) -> frozenset[str]:
        """Stems of the words of its name that are no verbs."""
        words = identifier_words(self.bare_name)
        return frozenset(stem(word) for word in words if not is_verb(word))

    @cached_property
    def noun(self) -> str:
        """The first of them, as written."""
        words = identifier_words(self.bare_name)
        return next((word for word in words if not is_verb(word)), "")

    @cached_property
    def values(self) -> tuple[str, ...]:
        """Values its schema names, but for proper names: an example's Alice is not a subject."""
        words = (text for p in self.parameters for text in p.vocabulary)
        return tuple(text for text in words if text == text.lower())

    @cached_property
    def places(self) -> bool:
        """Whether it puts one thing into another: it wants a place besides the thing."""
        required = [p for p in self.parameters if p.required]
        return len(required) > 1 and any(p.words & PLACE_WORDS for p in required)

    @cached_property
    def weights(self) -> dict[str, float]:
        """Its words for scoring: name before values before prose."""
        values = [word for text in self.values for word in stems(text)]
        spoken = re.sub(r"\b(?:not|never|except|without)\b[^.;:\n]*", " ", self.tool.description)
        words = [stem(word) for word in identifier_words(self.bare_name)]
        return weigh(
            # "log" or "add" is in half of all names; the noun tells tools apart.
            (words, _VERB_WEIGHT if self.nouns else _NAME_WEIGHT),
            (self.nouns, _NAME_WEIGHT),
            (values, 1.2),
            (stems(spoken), 1.0),
            ([word for p in self.parameters for word in p.name_stems], 0.7),
            ([word for p in self.parameters for word in p.description_stems], 0.4),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """A call that the message asks for.

    Attributes:
        text: the part of the message that asks for it.
        filled: arguments, and what is missing for the call to be possible.
    """

    view: ToolView
    text: str
    score: float
    filled: Filled


def view_tools(tools: Sequence[Tool]) -> tuple[ToolView, ...]:
    """Views of tools, in the order offered."""
    return tuple(ToolView(tool=tool) for tool in tools)


def goals_of(prompt: Prompt, views: Sequence[ToolView]) -> tuple[Goal, ...]:
    """The calls a message asks for, in the order it asks for them."""
    if not views:
        return ()
    index = Index([view.weights for view in views])
    resolved = resolve(prompt.message)
    prompt = dataclasses.replace(prompt, message=resolved.text)
    steering = steers(prompt.message)
    goals: list[Goal] = []
    spans = _asking_spans(prompt, views, index, context=resolved.context, steering=steering)
    for start, end in spans:
        text = prompt.message[start:end].strip()
        goal = best_goal(text, prompt, views, index, steering=steering)
        if goal is not None:
            goals += _spread(goal)
    return tuple(goals)


def _asking_spans(
    prompt: Prompt,
    views: Sequence[ToolView],
    index: Index,
    *,
    context: tuple[int, int] | None,
    steering: bool,
) -> list[tuple[int, int]]:
    """Parts of the message that each ask for a call, in order."""
    spans: list[tuple[int, int]] = []
    pending: int | None = None
    last: Goal | None = None
    for piece in honest(split_pieces(prompt.message)):
        told = context is not None and context[0] <= piece.start and piece.end <= context[1]
        if told and command_verb(piece.text) is None:
            continue  # it only says what the command after it is about
        goal = best_goal(piece.text, prompt, views, index, steering=steering)
        if goal is None and pending is not None:
            # "Dizzy since yesterday, about 4 out of 10": two pieces say together what one lacks.
            together = prompt.message[pending : piece.end]
            goal = best_goal(together, prompt, views, index, steering=steering)
        if goal is not None and _stands_alone(piece, goal, before=last):
            spans.append((piece.start if pending is None else pending, piece.end))
            pending, last = None, goal
        elif spans:
            spans[-1] = (spans[-1][0], piece.end)
        elif pending is None:
            pending = piece.start
    return spans


def _stands_alone(piece: Piece, goal: Goal, *, before: Goal | None) -> bool:
    """Whether a piece asks for a call by itself, rather than adding to the one before."""
    if before is None or piece.hard:
        return True
    if command_verb(piece.text) is not None:
        return not goal.filled.missing
    if goal.view is before.view:
        # "…, about 450 kcal" adds; "… and nausea" names another.
        required = {p.name for p in goal.view.parameters if p.required}
        return bool(required & goal.filled.evident)
    return goal.score >= _OWN_CALL and goal.filled.evidence > 0


def _spread(goal: Goal) -> list[Goal]:
    """One goal per thing where a tool takes one thing and the message enumerates several."""
    wanted = ITEM_WORDS | ({"name"} if goal.view.places else set())
    items = {p.name for p in goal.view.parameters if p.words & wanted}
    for name in sorted(items & set(goal.filled.arguments)):
        value = goal.filled.arguments[name]
        parts = (
            [part for part in _ENUMERATED.split(value) if part] if isinstance(value, str) else []
        )
        if len(parts) > 1:
            return [
                dataclasses.replace(
                    goal,
                    filled=dataclasses.replace(
                        goal.filled, arguments={**goal.filled.arguments, name: part}
                    ),
                )
                for part in parts
            ]
    return [goal]


def _missing_values(goal: Goal) -> tuple[str, ...]:
    """Missing parameters other than ids, which an earlier call may still provide."""
    return tuple(name for name in goal.filled.missing if "id" not in identifier_words(name))


def best_goal(
    text: str, prompt: Prompt, views: Sequence[ToolView], index: Index, *, steering: bool
) -> Goal | None:
    """The call that fits a text best and can be made, now or once an id is known."""
    asked = act_of_clause(text)
    said = _said(text)
    scores = index.scores(said)
    if asked is Act.CREATE and _DENIED.search(strip_courtesy(text)):
        return None
    placed = object_and_place(text) is not None
    best: Goal | None = None
    sure: Goal | None = None
    for view, raw in zip(views, scores, strict=True):
        share = _COMPATIBLE.get((asked, view.act), 0.0)
        if raw * share < _FITS or (view.act in _GUARDED and not _named(view, text, steering)):
            continue
        filled = fill(view.parameters, source_for(view, text, prompt))
        score = raw * share + _EVIDENCE * filled.evidence
        if placed and view.places and not filled.missing:
            score += _PLACING  # "add milk to my list" is about milk, not about a list
        goal = Goal(view=view, text=text, score=score, filled=filled)
        if not _speaks_of(view, said, filled) or (
            _missing_values(goal) and not view.nouns & _with_kinds(said)
        ):
            continue
        if best is None or goal.score > best.score:
            best = goal
        required = {parameter.name for parameter in view.parameters if parameter.required}
        certain = bool(required) and required <= filled.evident
        if certain and (sure is None or goal.score > sure.score):
            sure = goal
    if best is None or not _missing_values(best):
        return best
    # The tool that is spoken of lacks an argument. Another is the wrong one, unless the text says
    # all that it needs.
    return sure


def source_for(view: ToolView, text: str, prompt: Prompt, *, supporting: bool = False) -> Source:
    """Where a tool's values come from."""
    return Source(
        text=text,
        message=prompt.message,
        now=prompt.now,
        done=prompt.done,
        tool_words=view.nouns,
        tool_noun=view.noun,
        act=view.act,
        supporting=supporting,
    )


def _said(text: str) -> tuple[str, ...]:
    """Stems of a text, its units included: "80 kg" speaks of a weight."""
    words = [*stems(text), *(stem(q.unit_text) for q in find_quantities(text) if q.unit_text)]
    if any(q.second is not None and q.second > 20 for q in find_quantities(text)):  # noqa: PLR2004
        words.append(stem("mmhg"))
    return tuple(words)


def _named(view: ToolView, text: str, steering: bool) -> bool:  # noqa: FBT001 - a private leaf
    """Whether a command names a guarded tool's act and its object."""
    if steering:
        return False
    verb = command_verb(text)
    if verb is None:
        return False
    if not view.nouns:
        name = {stem(word) for word in identifier_words(view.bare_name)}
        if act_of_clause(text) is view.act is Act.SEND:
            return bool(name & _with_kinds(stems(text)))  # "write an email" is a message_send
        return verb.stem in name
    return bool(view.nouns & _with_kinds(stems(text)))


def _with_kinds(words: Sequence[str]) -> set[str]:
    return set(words) | {kind for word in words for kind in kinds_of(word)}


def _speaks_of(view: ToolView, said: Sequence[str], filled: Filled) -> bool:
    """Whether the text names the tool's subject, or a value only this tool would take.

    One word of its description in common is not yet a reason to act.
    """
    words = _with_kinds(said)
    if words & (view.nouns or {stem(word) for word in identifier_words(view.bare_name)}):
        return True
    values = {word for text in view.values for word in stems(text)}
    if words & values:
        return True
    required = {p.name for p in view.parameters if p.required}
    described = bool(words & set(stems(view.tool.description)))
    return described and bool(required & filled.evident)
