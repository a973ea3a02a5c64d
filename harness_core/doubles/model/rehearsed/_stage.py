"""The rehearsals that were loaded, and which of them a prompt is about."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Any

from harness_core.doubles.model.rehearsed._prompt import Prompt
from harness_core.doubles.turns import Message, Rehearsal, Route, Turn, as_read, with_kinds

#: Characters of a message by which a piece of it is known for one.
_PIECE_CHARS = 12

#: From here on one text is another one with something changed.
_ALIKE = 0.8

#: Of two texts, how much is compared.
_COMPARED = 400

#: A word of letters and digits this long is a rare one.
_RARE_CHARS = 10

#: Rehearsals kept; the oldest go first, as messages long answered.
_KEPT = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Cue:
    """What a prompt is about.

    Attributes:
        rehearsal: of the message, its placeholders filled.
        part: the route whose part of the message the prompt holds; ``None`` for the whole message.
        whole: the prompt holds it whole and unchanged.
    """

    rehearsal: Rehearsal
    part: Route | None = None
    whole: bool = True

    @property
    def text(self) -> str:
        """The message, or the part of it, that the prompt should hold."""
        return (self.part.prompt if self.part else "") or self.rehearsal.message

    @property
    def routes(self) -> tuple[Route, ...]:
        """Who the message is for."""
        return tuple(turn for turn in self.rehearsal.turns if isinstance(turn, Route))

    def turns_for(self, part: Route | None) -> tuple[Turn, ...]:
        """The turns of one target's session; those before the first route without one."""
        found: list[Turn] = []
        current: Route | None = None
        for turn in self.rehearsal.turns:
            if isinstance(turn, Route):
                current = turn
            elif current is part:
                found.append(turn)
        return tuple(found)


class Stage:
    """What was rehearsed."""

    def __init__(self) -> None:
        self._exact: dict[str, Cue] = {}
        self._open: list[tuple[Message, Route | None, Rehearsal]] = []

    def forget(self) -> None:
        """Forget all that was rehearsed."""
        self._exact.clear()
        self._open.clear()

    def load(self, rehearsal: Rehearsal) -> None:
        """Add one; it goes before those that were loaded earlier."""
        parts = [turn for turn in rehearsal.turns if isinstance(turn, Route) and turn.prompt]
        for part in (None, *parts):
            text = part.prompt if part else rehearsal.message
            message = Message(text=with_kinds(text, like=rehearsal.message))
            if message.is_literal:
                # Anew at the end, so that the oldest stand first.
                self._exact.pop(as_read(text), None)
                self._exact[as_read(text)] = Cue(rehearsal=rehearsal, part=part)
            else:
                self._open.insert(0, (message, part, rehearsal))
        while len(self._exact) > _KEPT:
            del self._exact[next(iter(self._exact))]

    def find(self, prompt: Prompt) -> Cue | None:
        """What a prompt is about; a cue that is not ``whole`` when it holds a piece of a message."""
        message, said = as_read(prompt.message), as_read(prompt.said)
        return (
            self._exact.get(message)
            or self._exact.get(said)
            or self._held(said)
            or self._changed(message)
            or self._matching(message)
            or self._held(as_read(prompt.whole))
            or self._changed(message, alike=0.0)
        )

    def _held(self, text: str) -> Cue | None:
        """The message that stands last in a text as it is: what was said before stands before it."""
        held = [said for said in self._exact if said and said in text]
        last = max(held, key=lambda said: (text.rfind(said) + len(said), len(said)), default=None)
        return None if last is None else self._exact[last]

    def _matching(self, text: str) -> Cue | None:
        """The latest message with placeholders that a text is, with these filled."""
        for message, part, rehearsal in self._open:
            if (values := message.match(text)) is not None:
                return _filled(rehearsal, part, values)
        return None

    def _changed(self, said: str, *, alike: float = _ALIKE) -> Cue | None:
        """The latest message that was said in part, or with a rare word of it and much like it."""
        for text, cue in reversed(self._exact.items()):
            piece = len(said) >= _PIECE_CHARS and said in text
            if piece or (_shares_rare_word(text, said) and _ratio(text, said) >= alike):
                return Cue(rehearsal=cue.rehearsal, whole=False)
        return None


def _filled(rehearsal: Rehearsal, part: Route | None, values: dict[str, Any]) -> Cue:
    filled = rehearsal.with_values(values)
    before = [turn for turn in rehearsal.turns if isinstance(turn, Route)]
    after = [turn for turn in filled.turns if isinstance(turn, Route)]
    return Cue(rehearsal=filled, part=after[before.index(part)] if part else None)


def _ratio(text: str, said: str) -> float:
    """How alike two texts are, from 0 to 1."""
    return difflib.SequenceMatcher(None, text[:_COMPARED], said[:_COMPARED]).ratio()


def _shares_rare_word(text: str, said: str) -> bool:
    """Whether a word of one is in the other that is no word of a language, as tokens are."""
    words = (word.strip("()[]{}<>.,;:!?\"'") for word in text.split())
    return any(
        len(word) >= _RARE_CHARS
        and word.isalnum()
        and not word.isalpha()
        and not word.isdigit()
        and word in said
        for word in words
    )
