"""Where a value that must stay hidden can be read."""

from __future__ import annotations

import base64
import json
import shlex
from collections.abc import Iterable, Mapping
from urllib.parse import quote

__all__ = ["exposures"]

#: Shorter values occur by chance; a canary is longer than this.
_SHORTEST_CHARACTERS = 6


def exposures(
    values: Mapping[str, str], places: Mapping[str, Iterable[str]]
) -> dict[str, tuple[str, ...]]:
    """Find values, and the usual spellings of them, in texts.

    Args:
        values: name → the value that must not be seen; at least six characters long.
        places: name of a place → the texts that can be read there.

    Returns:
        Place → names of the values seen there; a place where none is seen is left out.

    Raises:
        ValueError: a value is too short to be distinguished from chance.
    """
    for name, value in values.items():
        if len(value) < _SHORTEST_CHARACTERS:
            message = f"the value of {name} has {len(value)} characters, which occur by chance"
            raise ValueError(message)
    seen: dict[str, tuple[str, ...]] = {}
    for place, texts in places.items():
        read = list(texts)
        names = tuple(
            name
            for name, value in values.items()
            if any(spelling in text for spelling in _spellings(value) for text in read)
        )
        if names:
            seen[place] = names
    return seen


def _spellings(value: str) -> set[str]:
    encoded = value.encode(errors="surrogateescape")
    return {
        value,
        repr(value)[1:-1],
        shlex.quote(value),
        json.dumps(value)[1:-1],
        quote(encoded, safe=""),
        encoded.hex(),
        *(_in_base64(encoded, behind) for behind in range(3)),
    }


def _in_base64(encoded: bytes, behind: int) -> str:
    """The characters that only these bytes decide, when ``behind`` bytes stand before them."""
    text = base64.b64encode(bytes(behind) + encoded).decode().rstrip("=")
    whole = (behind + len(encoded)) * 8 // 6
    return text[-(-behind * 8 // 6) : whole]
