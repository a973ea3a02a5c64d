"""Who should handle a message: clauses of it to entries of the registry the prompt holds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from harness_core.llm.policy._pieces import Piece, leans_on_previous, split_pieces
from harness_core.llm.policy._prompt import Prompt
from harness_core.llm.policy._pronouns import speaks_back
from harness_core.llm.policy._registry import Entry, read_registry
from harness_core.llm.policy._scoring import MATCH, Index
from harness_core.llm.policy._shape import Shape, read_shape
from harness_core.llm.policy._steering import honest
from harness_core.llm.policy._verbs import Act, act_of_clause, command_verb
from harness_core.llm.policy._words import identifier_words, stems, word_set

__all__ = ["Segment", "assign", "classify"]

#: By how much another entry must be ahead before half a sentence changes its target.
_SWITCH: Final = 0.3

#: How much an entry must describe itself as a catch-all; "any" alone, in "any symptom", is not it.
_CATCHES_ALL: Final = 2.0

#: How much more the verb of a command counts.
_COMMANDED: Final = 0.5

#: Words in key names that ask for a number of certainty, and for a reason.
_NUMBER_WORDS: Final = frozenset(["confidence", "score", "probability", "certainty"])
_REASON_WORDS: Final = frozenset(["reason", "rationale", "why", "explanation", "reasoning"])
_TARGET_WORDS: Final = word_set(
    """
    butler target agent name route recipient service domain handler assistant category class
    label destination to specialist
    """
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A part of the message and its target; ``score`` is 0 for what fell to the catch-all."""

    target: str
    text: str
    score: float


@dataclass(slots=True, kw_only=True)
class _Run:
    """Neighbouring pieces of one target; ``None`` while nothing has spoken for any."""

    start: int
    end: int
    target: int | None
    score: float


def classify(prompt: Prompt) -> str | None:
    """The JSON text that answers a classification prompt; ``None`` when it is not one.

    A prompt without a registry gets an empty answer: nobody can be chosen from nothing.
    """
    shape = read_shape(prompt.instructions)
    if shape is None:
        return None
    entries = read_registry(prompt.instructions)
    segments = assign(prompt.message, entries)
    items = [_item(shape, segment) for segment in segments]
    answer: Any = items if shape.is_array else (items[0] if items else {})
    if shape.wrapper:
        answer = {shape.wrapper: items}
    return json.dumps(answer, ensure_ascii=False)


def assign(message: str, entries: Sequence[Entry]) -> tuple[Segment, ...]:
    """Parts of a message by target, in the order targets first appear, each target once."""
    if not entries or not message.strip():
        return ()
    index = Index([entry.weights() for entry in entries])
    catch_all = _catch_all(entries)
    runs: list[_Run] = []
    pieces = split_pieces(message)
    for piece in tuple(honest(pieces)) or pieces:
        _place(runs, piece, _scores(index, piece.text), catch_all=catch_all)
    _settle_openings(runs)
    gathered: dict[int, list[_Run]] = {}
    for run in runs:
        target = run.target if run.target is not None else catch_all
        if target is not None:
            gathered.setdefault(target, []).append(run)
    if len(gathered) == 1:
        target, only = next(iter(gathered.items()))
        score = max(run.score for run in only)
        return (Segment(target=entries[target].name, text=message.strip(), score=score),)
    return tuple(
        Segment(
            target=entries[target].name,
            text=" ".join(_sentence(message, run) for run in parts),
            score=max(run.score for run in parts),
        )
        for target, parts in gathered.items()
    )


def _scores(index: Index, text: str) -> tuple[float, ...]:
    """How well a piece fits each entry; what it commands counts more than what it mentions."""
    verb = command_verb(text)
    words = list(stems(text))
    if verb is None:
        return index.scores(words)
    if act_of_clause(text) in (Act.READ, Act.UPDATE, Act.DELETE):
        # "List my reminders" speaks of reminders, not of lists.
        words = [word for word in words if word != verb.stem]
        return index.scores(words)
    commanded = index.scores([verb.stem])
    return tuple(a + _COMMANDED * b for a, b in zip(index.scores(words), commanded, strict=True))


def _catch_all(entries: Sequence[Entry]) -> int | None:
    best = max(range(len(entries)), key=lambda at: (entries[at].catches_all(), -at))
    return best if entries[best].catches_all() >= _CATCHES_ALL else None


def _place(
    runs: list[_Run], piece: Piece, scores: Sequence[float], *, catch_all: int | None
) -> None:
    best = max(range(len(scores)), key=lambda at: (scores[at], -at))
    target: int | None = best if scores[best] >= MATCH else None
    last = runs[-1] if runs else None
    if last is not None and speaks_back(piece.text):
        if command_verb(piece.text) is None and not piece.hard:
            target = None  # "… and loved it" is about what was said, whatever love is a kind of
        elif target is not None and not last.score:
            # "I saw Solaris. Add it to my films": the command says where both belong.
            last.target, last.end, last.score = target, piece.end, scores[best]
            return
    if target is None and last is not None and leans_on_previous(piece):
        if piece.hard or last.target is None or command_verb(piece.text) is None:
            last.end = piece.end
        else:
            # "…, and add eggs, milk and bread to my list": a new command opens before it says
            # what for.
            runs.append(_Run(start=piece.start, end=piece.end, target=None, score=0.0))
        return
    if target is None and not leans_on_previous(piece):
        target = catch_all
    if last is not None and last.target is None:
        # What came before said nothing by itself ("Hi!", "add milk"): it belongs to this.
        last.target, last.end, last.score = target, piece.end, scores[best]
        return
    if last is not None and last.target is not None and target is not None:
        ahead = scores[target] - scores[last.target]
        same = target == last.target or (not piece.hard and 0 <= ahead < _SWITCH)
        if same:
            last.end, last.score = piece.end, max(last.score, scores[last.target])
            return
    fits = scores[best] if scores[best] >= MATCH else 0.0
    runs.append(_Run(start=piece.start, end=piece.end, target=target, score=fits))


def _settle_openings(runs: list[_Run]) -> None:
    """A command that never said what for belongs to what came before it."""
    for at in range(len(runs) - 1, 0, -1):
        if runs[at].target is None and runs[at - 1].target is not None:
            runs[at - 1].end = runs[at].end
            del runs[at]


def _sentence(message: str, run: _Run) -> str:
    end = run.end
    while end < len(message) and message[end] in ".!?":
        end += 1
    stripped = message[run.start : end].strip().rstrip(",;")
    return stripped if stripped[-1:] in ".!?" else stripped + "."


def _item(shape: Shape, segment: Segment) -> dict[str, Any]:
    target_key = next(
        (key for key in shape.keys if set(identifier_words(key)) & _TARGET_WORDS),
        next(iter(shape.keys)),
    )
    return {
        key: segment.target if key == target_key else _value(key, example, segment)
        for key, example in shape.keys.items()
    }


def _value(key: str, example: object, segment: Segment) -> Any:
    words = set(identifier_words(key))
    if isinstance(example, dict):
        return {inner: _value(inner, value, segment) for inner, value in example.items()}
    if words & _NUMBER_WORDS or isinstance(example, (int, float)):
        return round(segment.score / (1 + segment.score), 2)
    if words & _REASON_WORDS:
        return (
            "its description shares words with the message"
            if segment.score
            else "nothing else fits"
        )
    if isinstance(example, list):
        return [segment.text]
    return segment.text
