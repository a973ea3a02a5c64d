"""Conditions on a column other than plain equality, as values that print as they were written.

Rows of scenarios hold them, so they are checked when they are made and they compare by value.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness_core.base.errors import BadInput

__all__ = [
    "AnyOf",
    "AtLeast",
    "AtMost",
    "Between",
    "Contains",
    "IsNull",
    "JsonAt",
    "Matcher",
    "NotNull",
    "Regex",
    "Text",
]


@dataclass(frozen=True, slots=True)
class NotNull:
    """The column has a value."""


@dataclass(frozen=True, slots=True)
class IsNull:
    """The column has no value; ``None`` in ``where`` says the same."""


@dataclass(frozen=True, slots=True)
class Text:
    """The text is equal under looser rules than ``=``.

    Args:
        value: the expected text.
        ignore_case: letters may differ in case.
        trim: white space at both ends does not count, runs of it inside count as one space.
    """

    value: str
    ignore_case: bool = True
    trim: bool = True

    def __post_init__(self) -> None:
        _require(self, "value", self.value, str, "a text")


@dataclass(frozen=True, slots=True)
class Contains:
    """A text holds another; an array holds an element; a jsonb value holds a part (``@>``).

    Args:
        part: what must be inside. On jsonb a text is looked for anywhere in the value's text,
            an object or a list is compared by structure.
        ignore_case: for texts: letters may differ in case.
    """

    part: Any
    ignore_case: bool = True

    def __post_init__(self) -> None:
        if self.part is None or self.part == "":
            raise _malformed(self, "part", self.part, "something to look for; '' is in every text")


@dataclass(frozen=True, slots=True)
class Regex:
    """The text matches a regular expression somewhere (PostgreSQL's own dialect).

    Args:
        pattern: the expression.
        ignore_case: letters may differ in case.
    """

    pattern: str
    ignore_case: bool = False

    def __post_init__(self) -> None:
        _require(self, "pattern", self.pattern, str, "a regular expression")
        try:
            re.compile(self.pattern)
        except re.error as error:
            raise _malformed(
                self, "pattern", self.pattern, f"a regular expression ({error})"
            ) from error


@dataclass(frozen=True, slots=True)
class AnyOf:
    """The column equals one of several values, or meets one of several matchers.

    Args:
        options: at least one.
    """

    options: Collection[Any]

    def __post_init__(self) -> None:
        if isinstance(self.options, str | Mapping) or not self.options:
            raise _malformed(self, "options", self.options, "a list of at least one value")
        object.__setattr__(self, "options", tuple(self.options))


@dataclass(frozen=True, slots=True)
class AtLeast:
    """The column is ``minimum`` or more."""

    minimum: Any

    def __post_init__(self) -> None:
        _ordered(self, "minimum", self.minimum)


@dataclass(frozen=True, slots=True)
class AtMost:
    """The column is ``maximum`` or less."""

    maximum: Any

    def __post_init__(self) -> None:
        _ordered(self, "maximum", self.maximum)


@dataclass(frozen=True, slots=True)
class Between:
    """The column lies between two values, both included."""

    minimum: Any
    maximum: Any

    def __post_init__(self) -> None:
        _ordered(self, "minimum", self.minimum)
        _ordered(self, "maximum", self.maximum)
        try:
            empty = self.maximum < self.minimum
        except TypeError as error:
            raise _malformed(self, "maximum", self.maximum, "the type of minimum") from error
        if empty:
            raise _malformed(self, "maximum", self.maximum, f"at least {self.minimum!r}")


@dataclass(frozen=True, slots=True)
class JsonAt:
    """The value at a path inside a jsonb column equals a value or meets a matcher.

    Args:
        path: keys and indexes, e.g. ``("segments", 0, "butler")``, or ``"segments.0.butler"``.
        value: what is expected there.
    """

    path: str | Sequence[str | int]
    value: Any

    def __post_init__(self) -> None:
        path = self.path
        keys = path.split(".") if isinstance(path, str) else [str(part) for part in path]
        if not keys or not all(keys):
            raise _malformed(self, "path", path, "keys and indexes, e.g. 'segments.0.butler'")
        if isinstance(self.value, JsonAt):
            raise _malformed(self, "value", self.value, "one path; join the two")
        object.__setattr__(self, "path", ".".join(keys) if isinstance(path, str) else tuple(keys))

    @property
    def keys(self) -> tuple[str, ...]:
        """The path in its parts."""
        path = self.path
        return tuple(path.split(".")) if isinstance(path, str) else tuple(map(str, path))


Matcher = NotNull | IsNull | Text | Contains | Regex | AnyOf | AtLeast | AtMost | Between | JsonAt


def _require(matcher: object, key: str, value: Any, kind: type, expected: str) -> None:
    if not isinstance(value, kind):
        raise _malformed(matcher, key, value, expected)


def _ordered(matcher: object, key: str, value: Any) -> None:
    if value is None or isinstance(value, bool | dict | list | tuple | set):
        raise _malformed(matcher, key, value, "a value that has an order: a number, a date, a text")


def _malformed(matcher: object, key: str, found: Any, expected: str) -> BadInput:
    return BadInput(type(matcher).__name__, key=key, found=found, expected=expected)
