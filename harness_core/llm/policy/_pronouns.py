"""What "it" stands for when a command says what to do with it: the thing that was spoken of before.

Only commands that move a thing are resolved ("add it to my films", "put them on the list"), since
there a pronoun stands where an argument must be; elsewhere it changes nothing that is looked for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from harness_core.llm.policy._phrases import names, noun_phrase, quoted
from harness_core.llm.policy._verbs import is_verb

__all__ = ["Resolved", "resolve", "speaks_back"]

_COMMAND: Final = re.compile(
    r"\b(?P<verb>[^\W\d_]+)\s+(?P<pronoun>it|them|this|that|these|those|him|her)\s+"
    r"(?:(?:to|on|onto|in|into|under|down)\b)",
    re.IGNORECASE,
)

_POINTING: Final = re.compile(r"\b(?:it|them|this|that|these|those|him|her)\b", re.IGNORECASE)

#: Where the clause that is searched for the thing ends, seen from its end.
_CLAUSE: Final = re.compile(r"[.!?;\n]+\s*|,\s+(?:so|and|then|please)\b|,\s+|\s+and\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """A message with its pronouns replaced.

    Attributes:
        context: the part that only says what is spoken of; ``None`` when nothing was replaced.
    """

    text: str
    context: tuple[int, int] | None = None


def resolve(message: str) -> Resolved:
    """Replace the pronoun of the first command that moves a thing by what it stands for."""
    for match in _COMMAND.finditer(message):
        if not is_verb(match["verb"]):
            continue
        before = message[: match.start()]
        thing = _thing(before)
        if thing is not None:
            start, end = match.span("pronoun")
            return Resolved(
                text=message[:start] + thing + message[end:], context=(0, len(before.rstrip(" ,")))
            )
    return Resolved(text=message)


def _thing(text: str) -> str | None:
    """What a text speaks of: a quotation, else a name, else the object of its first clause."""
    quotation = quoted(text)
    if quotation is not None:
        return f'"{quotation[0]}"'
    for clause in _CLAUSE.split(text):
        named = names(clause)
        if named:
            return named[0][0]
        phrase = noun_phrase(re.sub(r"^\W*(?:I|we)\s+[^\W\d_]+\s+", "", clause))
        if phrase is not None:
            tail = re.match(
                r"\s+(?=\S*\d)[^\W_]+", clause[clause.find(phrase[0]) + len(phrase[0]) :]
            )
            return phrase[0] + (tail[0] if tail else "")
    return None


def speaks_back(text: str) -> bool:
    """Whether a clause is about what was said before rather than about a thing of its own."""
    return _POINTING.search(text) is not None and quoted(text) is None and not names(text)
