"""A condition on a column, as a test writes it and as a boolean expression in SQL.

The server compares: it knows how its types equal one another (a uuid and its text, a timestamp
and its ISO form), and it can look through a large table.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from psycopg import sql
from psycopg.types.json import Jsonb

from harness_core.base.errors import BadInput
from harness_core.infrastructure.databases._schema import Table

_JSON = ("json", "jsonb")


@dataclass(frozen=True, slots=True)
class Contains:
    """The column's text holds another, in capitals or not; that of jsonb is its whole document.

    Args:
        part: what must be inside.
    """

    part: Any

    def __post_init__(self) -> None:
        if not isinstance(self.part, str) or not self.part:
            expected = "a text to look for; '' is in every text"
            raise BadInput("Contains", key="part", found=self.part, expected=expected)


@dataclass(frozen=True, slots=True)
class Regex:
    """The column's text matches a regular expression somewhere (PostgreSQL's own dialect).

    Args:
        pattern: the expression; capitals matter.
    """

    pattern: str

    def __post_init__(self) -> None:
        try:
            re.compile(self.pattern)
        except (re.error, TypeError) as error:
            expected = f"a regular expression ({error})"
            raise BadInput("Regex", key="pattern", found=self.pattern, expected=expected) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One expectation on one column.

    Args:
        group: ``"where"`` (selects rows) or ``"columns"`` (checks them).
        column: its name.
        expected: a value, :class:`Contains` or :class:`Regex`, as the test wrote it.
        met: SQL that is true for a row that meets it; never null.
    """

    group: str
    column: str
    expected: Any
    met: sql.Composable

    def __str__(self) -> str:
        return f"{self.column} = {self.expected!r}"


def conditions_on(table: Table, *, group: str, wanted: Mapping[str, Any]) -> list[Condition]:
    """Translate ``{column: expected}``; the columns exist."""
    return [
        Condition(
            group=group,
            column=column,
            expected=expected,
            met=sql.SQL("coalesce({}, false)").format(
                _meets(sql.Identifier("t", column), table.columns[column], expected)
            ),
        )
        for column, expected in wanted.items()
    ]


def all_met(conditions: list[Condition]) -> sql.Composable:
    """SQL that is true for a row that meets every condition."""
    if not conditions:
        return sql.SQL("true")
    return sql.SQL(" and ").join(condition.met for condition in conditions)


def _meets(value: sql.Composable, kind: str, expected: Any) -> sql.Composable:
    """``expected`` about an expression ``value`` of the type ``kind``."""
    match expected:
        case None:
            return sql.SQL("{} is null").format(value)
        case Contains():
            return sql.SQL("position(lower({}::text) in lower({})) > 0").format(
                sql.Literal(expected.part), _as_text(value, kind)
            )
        case Regex():
            return sql.SQL("{} ~ {}").format(_as_text(value, kind), sql.Literal(expected.pattern))
    plain = expected.value if isinstance(expected, enum.Enum) else expected
    if kind in _JSON:
        return sql.SQL("({}::jsonb = {})").format(value, sql.Literal(Jsonb(plain)))
    if isinstance(plain, list | tuple):
        # The cast gives an empty list its type.
        return sql.SQL("({} = {}::{})").format(value, sql.Literal(list(plain)), sql.SQL(kind))
    return sql.SQL("({} = {})").format(value, sql.Literal(plain))


def _as_text(value: sql.Composable, kind: str) -> sql.Composable:
    """The text of a value; a JSON string without its quotes."""
    if kind in _JSON:
        return sql.SQL("({}::jsonb #>> '{{}}')").format(value)
    return sql.SQL("({}::text)").format(value)
