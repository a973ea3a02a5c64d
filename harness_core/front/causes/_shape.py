"""The shape of a sentence: the same for all tests that tell the same thing of other values."""

from __future__ import annotations

import re
from typing import Final

#: What differs between two tests that tell the same; the first that matches wins.
_VALUES: Final = re.compile(
    r"""
    '[^']*'                                     # quoted
    | "[^"]*"
    | `[^`]*`
    | \{.*\} | \[.*\] | \(.*\)                  # values as Python and JSON write them
    | \b[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}\b       # ids
    | \b(?=\w*\d)[\w.:-]+                       # whatever has a digit: tokens, numbers, times, ports
    | (?<!\w)/[\w./-]+                          # paths
    """,
    re.VERBOSE,
)

_PLACE: Final = "…"

#: With fewer words than these, what is left of a sentence says nothing: its values are its meaning.
_WORDS: Final = 3


def shape_of(sentence: str, *, name: str = "") -> str:
    """A sentence without the values that it names; as it is where little else would be left.

    Args:
        sentence: the first line of a failure, or a line of a log.
        name: one more value: of the row of a table that the test is.
    """
    if name:
        sentence = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", _PLACE, sentence)
    words = _VALUES.sub(_PLACE, sentence)
    shape = re.sub(r"(?:…[\s,;:]*)+", f"{_PLACE} ", words).strip().casefold()
    if len(re.findall(r"[^\W\d_]{2,}", shape)) < _WORDS:
        return sentence.strip().casefold()
    return shape
