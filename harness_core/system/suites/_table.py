"""Read a TOML table key by key, so that every mistake names file, key and value.

A reader takes what it knows out of a :class:`Table` and calls :meth:`Table.done`, which refuses
what is left: a misspelt key is an error, not a default.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from math import inf
from pathlib import Path
from typing import Any

from harness_core.base.errors import BadInput

__all__ = ["Table", "closest", "read_toml"]


def read_toml(path: Path) -> Table:
    """Read a TOML file.

    Raises:
        BadInput: the file is missing, is not UTF-8 or is not TOML.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(
            path, found=error.strerror or str(error), expected="a readable file"
        ) from error
    except UnicodeDecodeError as error:
        raise BadInput(path, found=error.reason, expected="UTF-8 text") from error
    except tomllib.TOMLDecodeError as error:
        raise BadInput(path, found=str(error), expected="TOML") from error
    return Table(content, where=path)


class Table:
    """One table of a TOML file.

    Args:
        content: keys and values as parsed.
        where: the file, for messages.
        prefix: how keys of this table are written in messages, e.g. ``"suite."``.
    """

    def __init__(self, content: Mapping[str, object], *, where: Path, prefix: str = "") -> None:
        self._left = dict(content)
        self._present = frozenset(content)
        self._known: list[str] = []
        self.where = where
        self.prefix = prefix

    def text(self, key: str, *, default: str | None = None, pattern: str = "") -> str:
        """A non-empty string that matches ``pattern`` in full; required unless there is a default."""
        value = self._take(key, default)
        if not isinstance(value, str) or (not value.strip() and value != default):
            raise self.bad(key, value, expected="a non-empty string")
        if pattern and value != default and not re.fullmatch(pattern, value):
            raise self.bad(key, value, expected=f"a string like {pattern}")
        return value

    def texts(
        self, key: str, *, default: tuple[str, ...] | None = None, pattern: str = ""
    ) -> tuple[str, ...]:
        """A list of distinct non-empty strings; required, with at least one, unless defaulted."""
        value = self._take(key, default)
        items = list(value) if isinstance(value, list | tuple) else []
        well_formed = all(
            isinstance(item, str) and item.strip() and re.fullmatch(pattern or r"(?s).+", item)
            for item in items
        )
        if not isinstance(value, list | tuple) or not well_formed:
            like = f"strings like {pattern}" if pattern else "non-empty strings"
            raise self.bad(key, value, expected=f"a list of {like}")
        if len(set(items)) != len(items):
            raise self.bad(key, value, expected="a list without repetition")
        if not items and default is None:
            raise self.bad(key, value, expected="at least one entry")
        return tuple(items)

    def flag(self, key: str, *, default: bool) -> bool:
        """``true`` or ``false``."""
        value = self._take(key, default)
        if not isinstance(value, bool):
            raise self.bad(key, value, expected="true or false")
        return value

    def number(self, key: str, *, default: int | None = None) -> int:
        """A whole number; required unless there is a default."""
        value = self._take(key, default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.bad(key, value, expected="a whole number")
        return value

    def called(self, name: str) -> Table:
        """The rest of this table, with ``name`` in its messages."""
        table = Table(self._left, where=self.where, prefix=f"{self.prefix.rstrip('.')}({name}).")
        table._known = [*self._known]
        return table

    def seconds(self, key: str, *, default: float) -> float:
        """A positive number of seconds."""
        value = self._take(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            raise self.bad(key, value, expected="a positive number of seconds")
        return float(value)

    def usd(self, key: str, *, default: float | None) -> float | None:
        """An amount of USD, from 0 on."""
        value = self._take(key, default)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < inf:
            raise self.bad(key, value, expected="USD, from 0 on")
        return float(value)

    def mapping(self, key: str, *, default: Mapping[str, str] | None = None) -> dict[str, str]:
        """A non-empty table of strings; required unless there is a default."""
        value = self._take(key, default)
        if not isinstance(value, Mapping) or not (value or value is default):
            raise self.bad(key, value, expected="a table of strings with at least one entry")
        for name, item in value.items():
            if not isinstance(item, str):
                raise self.bad(f"{key}.{name}", item, expected="a string")
        return dict(value)

    def phrases(self, key: str) -> dict[str, str]:
        """A table of non-empty strings; empty when it is absent."""
        value = self._take(key, {})
        if not isinstance(value, Mapping):
            raise self.bad(key, value, expected="a table of strings")
        for name, phrase in value.items():
            if not isinstance(phrase, str) or not phrase.strip():
                raise self.bad(f"{key}.{name}", phrase, expected="a non-empty string")
        return dict(value)

    def table(self, key: str) -> Table:
        """A required sub-table."""
        value = self._take(key, None)
        if not isinstance(value, Mapping):
            raise self.bad(key, value, expected="a table")
        return Table(value, where=self.where, prefix=f"{self.prefix}{key}.")

    def inner(self, key: str) -> Table:
        """A sub-table that may be absent."""
        return Table(self.optional(key), where=self.where, prefix=f"{self.prefix}{key}.")

    def optional(self, key: str) -> Mapping[str, object]:
        """A table that may be absent, as parsed; for files this harness does not own."""
        value = self._take(key, {})
        if not isinstance(value, Mapping):
            raise self.bad(key, value, expected="a table")
        return value

    def tables(self, key: str, *, default: tuple[Table, ...] | None = None) -> tuple[Table, ...]:
        """An array of tables with at least one entry; required unless defaulted."""
        value = self._take(key, None)
        if value is None and default is not None:
            return default
        if (
            not isinstance(value, list)
            or not value
            or not all(isinstance(item, Mapping) for item in value)
        ):
            raise self.bad(key, value, expected=f"at least one [[{self.prefix}{key}]]")
        return tuple(
            Table(item, where=self.where, prefix=f"{self.prefix}{key}[{index}].")
            for index, item in enumerate(value)
        )

    def content(self) -> dict[str, Any]:
        """Everything that was not asked for yet, as parsed: for :func:`check_shape`."""
        return dict(self._left)

    def done(self) -> None:
        """Refuse keys nobody asked for.

        Raises:
            BadInput: a key is left; the nearest known one is suggested.
        """
        for key, value in self._left.items():
            near = closest(key, self._known)
            known = ", ".join(sorted(self._known))
            raise BadInput(
                self.where,
                key=f"{self.prefix}{key}",
                found=_short(value),
                expected=f"one of the keys {known}",
                next_step=f"Did you mean {near}?" if near else "",
            )

    def done_but_for_others(self) -> None:
        """Of a file that is somebody else's too, refuse what is nearly a key that is not there.

        A key of another length (``scheduler`` beside ``schedule``) may well be theirs.

        Raises:
            BadInput: a key is left that is one of ours, misspelt.
        """
        absent = set(self._known) - self._present
        for key, value in self._left.items():
            near = closest(key, absent)
            if near and len(near) == len(key):
                raise self.bad(key, value, expected=near, next_step=f"Did you mean {near}?")

    def bad(self, key: str, found: object, *, expected: str, next_step: str = "") -> BadInput:
        """The error for a value of this table; the caller raises it.

        A key that is not there, where one of nearly that name is, is taken to be misspelt.
        """
        if found is None and (near := closest(key, set(self._left) - set(self._known))):
            found, expected = self._left[near], f"{expected}, as {key}"
            key, next_step = near, f"Did you mean {key}?"
        return BadInput(
            self.where,
            key=f"{self.prefix}{key}",
            found=None if found is None else _short(found),
            expected=expected,
            next_step=next_step,
        )

    def _take(self, key: str, default: object) -> object:
        self._known.append(key)
        return self._left.pop(key, default)


def closest(word: str, known: Iterable[str]) -> str:
    """The one of ``known`` that was probably meant; empty when none is near."""
    return next(iter(difflib.get_close_matches(word, list(known), n=1)), "")


#: A value of a configuration file longer than this says no more when it is shown whole.
_SHOWN_CHARACTERS = 80


def _short(value: object) -> object:
    text = str(value)
    return value if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "..."
