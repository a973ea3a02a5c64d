"""A piece of a long text, for people: cut where no half of a secret is left.

What is shown is redacted later, and half a key is not known for one any more.
"""

from __future__ import annotations

import re
from typing import Final

#: What keys and tokens are made of.
_WORD: Final = r"[A-Za-z0-9_+/=.~-]+"
_HALF_AT_END: Final = re.compile(_WORD + r"\Z")
_HALF_AT_START: Final = re.compile(r"\A" + _WORD)


def shown(text: str, *, chars: int) -> str:
    """A text in one line, and of a long one its beginning."""
    plain = " ".join(text.split())
    return plain if len(plain) <= chars else _HALF_AT_END.sub("", plain[: chars - 1]) + "…"


def shown_end(text: str, *, chars: int) -> str:
    """Of a long text its end, lines and all."""
    return text if len(text) <= chars else "…" + _HALF_AT_START.sub("", text[1 - chars :])
