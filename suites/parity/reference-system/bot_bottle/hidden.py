"""What no message repeats: the values of the environments that a launcher knows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from bot_bottle import faults

#: What stands in a message instead of a value.
_INSTEAD = "[hidden]"

#: A shorter value is one only where it stands by itself: its letters are in other words as well.
_LONG_CHARACTERS = 6


class Hidden:
    """The values that are known so far; it shows none of them."""

    def __init__(self) -> None:
        self._spellings: set[str] = set()

    def add(self, values: Iterable[str]) -> None:
        """Values, which a tool may print as they are, quoted, or a line of them alone."""
        for value in values:
            for piece in (value, *value.splitlines()):
                piece = piece.strip()
                self._spellings |= {piece, repr(piece)[1:-1], json.dumps(piece)[1:-1]}
                self._spellings |= {json.dumps(piece, ensure_ascii=False)[1:-1]}
        self._spellings.discard("")

    def taken_out(self, output: bytes) -> str:
        """What a tool printed, as a text for a message."""
        text = output.decode(errors="surrogateescape")
        # The longest first: one may hold another.
        for spelling in sorted(self._spellings, key=len, reverse=True):
            if not faults.on("tools-words-unredacted"):
                text = re.sub(_pattern(spelling), _INSTEAD, text)
        return text.encode(errors="surrogateescape").decode(errors="replace").strip()


def _pattern(spelling: str) -> str:
    whole = len(spelling) < _LONG_CHARACTERS
    return rf"(?<!\w){re.escape(spelling)}(?!\w)" if whole else re.escape(spelling)
