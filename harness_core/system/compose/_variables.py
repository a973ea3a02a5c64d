"""``${NAME}`` in a compose file, as compose itself fills it in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from harness_core.base.errors import BadInput

__all__ = ["substituted"]

_VARIABLE: Final = re.compile(
    r"\$(?:(?P<escaped>\$)|(?P<named>[A-Za-z_]\w*)"
    r"|\{(?P<braced>[A-Za-z_]\w*)(?:(?P<how>:?[-?])(?P<default>[^}]*))?\}|(?P<bad>))"
)


def substituted(text: str, variables: Mapping[str, str], *, path: Path, key: str) -> str:
    """``text`` with its variables filled in; one that is not set is empty, as compose has it.

    Raises:
        BadInput: a ``$`` that begins no variable, or a variable that must be set and is not.
    """

    def fill(match: re.Match[str]) -> str:
        if match["escaped"]:
            return "$"
        if match["bad"] is not None:
            raise BadInput(path, key=key, found=text, expected="$NAME, ${NAME} or $$ for a dollar")
        name, how = match["named"] or match["braced"], match["how"] or ""
        value = variables.get(name)
        there = bool(value) if how.startswith(":") else value is not None
        if how.endswith("?") and not there:
            reason = match["default"] or "it must be set"
            raise BadInput(path, key=key, found=f"no variable {name}", expected=reason)
        if how and not there:
            return match["default"] or ""
        return value or ""

    return _VARIABLE.sub(fill, text)
