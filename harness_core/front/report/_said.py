"""What was expected and what was found, as far as the sentence of a failure says so."""

from __future__ import annotations

import re
from typing import Final

#: Ways in which sentences of tests say both; the named groups are the two.
_WAYS: Final = tuple(
    re.compile(pattern, re.DOTALL)
    for pattern in (
        r"\bexpected (?P<expected>.+?)[,;:.]? (?:but )?(?:was )?found (?:that )?(?P<found>.+)",
        r"\bfound (?P<found>.+?)[,;] expected (?P<expected>.+)",
        r"(?P<found>[^:]+?) instead of (?P<expected>.+)",
        r"(?P<found>[^:]+?), expected (?P<expected>.+)",
        r"(?P<found>[^:]+?), not (?P<expected>.+)",
    )
)

#: What pytest shows of ``assert expected == found``, as tests here are written.
_COMPARED: Final = re.compile(r"^assert (?P<expected>.+?) == (?P<found>.+)$", re.MULTILINE)

#: Of each, so much stands in its box.
_CHARS: Final = 4000


def expected_and_found(said: str) -> tuple[str, str]:
    """Both, by the first line of what a failure says, else by the values it compared; or empty."""
    first = next((line for line in said.splitlines() if " " in line.strip()), "")
    for way in _WAYS:
        if found := way.search(first):
            return _trimmed(found["expected"]), _trimmed(found["found"])
    if found := _COMPARED.search(said):
        return _trimmed(found["expected"]), _trimmed(found["found"])
    return "", ""


def _trimmed(text: str) -> str:
    return text.strip(" .;,")[:_CHARS]
