"""The unguessable token: what only this run could have written.

A row or reply that carries the token of this run was caused by this run's message: not by a
fixture, an earlier run, or a product that always answers the same.
"""

from __future__ import annotations

import re
import secrets
from typing import Any, Final

from harness_core.base.texts import map_texts

#: What stands for the token in a scenario's texts.
TOKEN_FIELD: Final = "{token}"  # noqa: S105 - a placeholder, no secret

#: Letters and digits that no tokenizer splits into words with a meaning, and no reader mixes up.
_ALPHABET: Final = "bcdfghjkmnpqrstvwxz23456789"

_DIGITS: Final = "23456789"

_TOKEN: Final = re.compile(rf"zx[{_ALPHABET}]{{8}}")


def new_token() -> str:
    """A fresh word of ten characters, about 45 bits, that begins with ``zx`` and holds a digit.

    Without a digit it might be a word or a name, and be read differently from run to run.
    """
    before, after = ("".join(secrets.choice(_ALPHABET) for _ in range(n)) for n in (3, 4))
    return f"zx{before}{secrets.choice(_DIGITS)}{after}"


def tokens_in(text: str) -> frozenset[str]:
    """The tokens that a text holds, wherever in it."""
    return frozenset(_TOKEN.findall(text))


def fill(value: Any, token: str) -> Any:
    """``value`` with ``{token}`` replaced in every text inside it, matchers and turns included."""
    return map_texts(value, lambda text: text.replace(TOKEN_FIELD, token))
