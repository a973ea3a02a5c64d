"""Tables of Markdown, from rows of text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from harness_core.front.pages._keys import Key

__all__ = ["key_table", "markdown", "table"]

#: ``:class:`~harness_core.base.errors.BadInput```; of a name with ``~`` the last part is shown.
_ROLE: Final = re.compile(r":\w+:`(?:~[\w.]+\.)?([\w.]+)`")


def key_table(keys: Iterable[Key]) -> str:
    """A row for each key: how it is written, its type, its default, what it means."""
    rows = [(f"`{key.name}`", key.kind, key.default, key.meaning) for key in keys]
    return table(("key", "type", "default", "meaning"), rows)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; ends with a new line."""
    lines = [f"| {' | '.join(heads)} |", f"|{'|'.join('---' for _ in heads)}|"]
    lines += [f"| {' | '.join(_cell(cell) for cell in row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def markdown(text: str) -> str:
    """The text of a docstring: code and names are marked otherwise there."""
    return _ROLE.sub(r"`\1`", text).replace("``", "`")


def _cell(text: str) -> str:
    return markdown(" ".join(text.split())).replace("|", "\\|")
