"""A message in pieces: sentences, and the parts of a sentence that may speak of different things."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from harness_core.llm.policy._words import tokens, word_set

__all__ = ["Piece", "leans_on_previous", "split_pieces"]

#: A full stop after one of these ends no sentence.
_ABBREVIATION: Final = re.compile(
    r"(?:\b(?:dr|mr|mrs|ms|st|vs|etc|no|approx|dept|e\.g|i\.e|a\.m|p\.m)|\b[A-Z])$", re.IGNORECASE
)

_HARD: Final = re.compile(r"[.!?]+(?=[\s\"'”\u2019)]|$)|;|\n+")
_SOFT: Final = re.compile(
    r",\s*(?:and|but|then|also|plus|so)?\s+(?:then\s+|also\s+)?"
    r"|\s+(?:and|but|then|plus|as well as)\s+(?:then\s+|also\s+)?",
    re.IGNORECASE,
)

#: Where no border is looked for.
_QUOTED: Final = re.compile(r"\"[^\"\n]*\"|“[^”\n]*”|(?<!\w)'[^'\n]+'(?!\w)|\([^()\n]*\)")

#: A sentence that begins with one of these speaks of what was said before.
_LEANING: Final = word_set(
    """
    it it's its this that that's these those they them he she his her the which same also ref
    reference code token id tag marker
    """
)

#: Content words below which a sentence of its own is taken as part of its neighbour.
_SHORT_WORDS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a message.

    Attributes:
        start: offset of its first character in the message.
        hard: begins a sentence (or line), rather than following a comma or conjunction.
    """

    text: str
    start: int
    end: int
    hard: bool


def split_pieces(message: str) -> tuple[Piece, ...]:
    """Pieces of a message, in order; empty ones are left out."""
    protected = [(match.start(), match.end()) for match in _QUOTED.finditer(message)]
    borders = [(m.start(), m.end(), True) for m in _HARD.finditer(message) if _ends(message, m)]
    borders += [(m.start(), m.end(), False) for m in _SOFT.finditer(message)]
    pieces: list[Piece] = []
    at, hard = 0, True
    for start, end, is_hard in sorted(borders):
        inside = any(low < start < high - 1 for low, high in protected)
        if inside or start < at:
            continue
        _add(pieces, message, at, start, hard=hard)
        # A comma right after a full stop, or a blank line, must not turn the border soft again.
        hard = is_hard or (hard and not pieces) or (hard and pieces[-1].end <= at)
        at = end
    _add(pieces, message, at, len(message), hard=hard)
    return tuple(pieces)


def _ends(message: str, match: re.Match[str]) -> bool:
    return match[0] != "." or not _ABBREVIATION.search(message[: match.start()])


def _add(pieces: list[Piece], message: str, start: int, end: int, *, hard: bool) -> None:
    text = message[start:end]
    stripped = text.strip()
    if re.search(r"\w", stripped):
        begin = start + text.index(stripped)
        pieces.append(Piece(text=stripped, start=begin, end=begin + len(stripped), hard=hard))


def leans_on_previous(piece: Piece) -> bool:
    """Whether a piece says too little, or points back too much, to stand alone."""
    words = tokens(piece.text)
    content = [token for token in words if token.is_content]
    points_back = bool(words) and words[0].lower in _LEANING
    return not piece.hard or points_back or len(content) < _SHORT_WORDS
