"""A condition on a column as a boolean expression in SQL, chosen by the type of the column.

The server compares: it knows how its types equal one another (a uuid and its text, a timestamp
and its ISO form), and it can look through a large table.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from psycopg import sql
from psycopg.types.json import Jsonb

from harness_core.base.errors import BadInput
from harness_core.infrastructure.databases._matchers import (
    AnyOf,
    AtLeast,
    AtMost,
    Between,
    Contains,
    IsNull,
    JsonAt,
    NotNull,
    Regex,
    Text,
)
from harness_core.infrastructure.databases._schema import Table

__all__ = ["Condition", "all_met", "conditions_on"]

_JSON = ("json", "jsonb")


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One expectation on one column.

    Args:
        group: ``"where"`` (selects rows) or ``"columns"`` (checks them).
        column: its name.
        expected: a value or a matcher, as the test wrote it.
        met: SQL that is true for a row that meets it; never null.
    """

    group: str
    column: str
    expected: Any
    met: sql.Composable

    def __str__(self) -> str:
        return f"{self.column} = {self.expected!r}"


def conditions_on(table: Table, *, group: str, wanted: Mapping[str, Any]) -> list[Condition]:
    """Translate ``{column: expected}``; the columns exist.

    Raises:
        BadInput: a matcher does not fit the type of its column.
    """
    found = []
    for column, expected in wanted.items():
        met = _meets(
            sql.Identifier("t", column),
            table.columns[column],
            expected,
            where=f"{table.name}.{column}",
        )
        found.append(
            Condition(
                group=group,
                column=column,
                expected=expected,
                met=sql.SQL("coalesce({}, false)").format(met),
            )
        )
    return found


def all_met(conditions: list[Condition]) -> sql.Composable:
    """SQL that is true for a row that meets every condition."""
    if not conditions:
        return sql.SQL("true")
    return sql.SQL(" and ").join(condition.met for condition in conditions)


def _meets(  # noqa: C901, PLR0911 - one case per matcher, each a line or two
    value: sql.Composable, kind: str, expected: Any, *, where: str
) -> sql.Composable:
    """``expected`` about an expression ``value`` of the type ``kind``."""
    as_text = _as_text(value, kind)
    match expected:
        case None | IsNull():
            return sql.SQL("{} is null").format(value)
        case NotNull():
            return sql.SQL("{} is not null").format(value)
        case AnyOf():
            parts = [_meets(value, kind, option, where=where) for option in expected.options]
            return sql.SQL("({})").format(sql.SQL(" or ").join(parts))
        case Text():
            return _loosely_equal(as_text, expected)
        case Regex():
            operator = sql.SQL("~*" if expected.ignore_case else "~")
            return sql.SQL("{} {} {}").format(as_text, operator, sql.Literal(expected.pattern))
        case Contains():
            return _contains(value, kind, expected, where=where)
        case AtLeast():
            return _compared(value, kind, ">=", expected.minimum, where=where)
        case AtMost():
            return _compared(value, kind, "<=", expected.maximum, where=where)
        case Between():
            lower = _compared(value, kind, ">=", expected.minimum, where=where)
            upper = _compared(value, kind, "<=", expected.maximum, where=where)
            return sql.SQL("({} and {})").format(lower, upper)
        case JsonAt():
            if kind not in _JSON:
                raise _unfit(where, expected, f"a matcher for the type {kind}; this needs jsonb")
            inner = sql.SQL("({}::jsonb #> {}::text[])").format(
                value, sql.Literal(list(expected.keys))
            )
            return _meets(inner, "jsonb", expected.value, where=where)
        case _:
            return _equal(value, kind, expected)


def _as_text(value: sql.Composable, kind: str) -> sql.Composable:
    """The text of a value; a JSON string without its quotes."""
    if kind in _JSON:
        return sql.SQL("({}::jsonb #>> '{{}}')").format(value)
    return sql.SQL("({}::text)").format(value)


def _equal(value: sql.Composable, kind: str, expected: Any) -> sql.Composable:
    plain = expected.value if isinstance(expected, enum.Enum) else expected
    if kind in _JSON:
        return sql.SQL("({}::jsonb = {})").format(value, sql.Literal(Jsonb(plain)))
    if isinstance(plain, list | tuple):
        # The cast gives an empty list its type.
        return sql.SQL("({} = {}::{})").format(value, sql.Literal(list(plain)), sql.SQL(kind))
    return sql.SQL("({} = {})").format(value, sql.Literal(plain))


def _loosely_equal(as_text: sql.Composable, expected: Text) -> sql.Composable:
    def loosened(side: sql.Composable) -> sql.Composable:
        if expected.trim:
            side = sql.SQL(r"regexp_replace(btrim({}, E' \t\r\n'), '\s+', ' ', 'g')").format(side)
        return sql.SQL("lower({})").format(side) if expected.ignore_case else side

    literal = sql.SQL("{}::text").format(sql.Literal(expected.value))
    return sql.SQL("({} = {})").format(loosened(as_text), loosened(literal))


def _contains(
    value: sql.Composable, kind: str, expected: Contains, *, where: str
) -> sql.Composable:
    part = expected.part
    if kind in _JSON and not isinstance(part, str):
        return sql.SQL("({}::jsonb @> {})").format(value, sql.Literal(Jsonb(part)))
    if kind.endswith("[]"):
        return sql.SQL("({} = any({}))").format(sql.Literal(part), value)
    if not isinstance(part, str):
        raise _unfit(where, expected, f"Contains of a text for the type {kind}")
    text = _as_text(value, kind)
    needle = sql.SQL("{}::text").format(sql.Literal(part))
    if expected.ignore_case:
        return sql.SQL("(position(lower({}) in lower({})) > 0)").format(needle, text)
    return sql.SQL("(position({} in {}) > 0)").format(needle, text)


def _compared(
    value: sql.Composable, kind: str, operator: str, bound: Any, *, where: str
) -> sql.Composable:
    if kind not in _JSON:
        return sql.SQL("({} {} {})").format(value, sql.SQL(operator), sql.Literal(bound))
    if isinstance(bound, str):
        return sql.SQL("({} {} {})").format(
            _as_text(value, kind), sql.SQL(operator), sql.Literal(bound)
        )
    if not isinstance(bound, int | float):
        raise _unfit(where, bound, "a number or a text, which is what jsonb can hold")
    return sql.SQL(
        "(case when jsonb_typeof({0}::jsonb) = 'number' "
        "then ({0}::jsonb)::numeric {1} {2} else false end)"
    ).format(value, sql.SQL(operator), sql.Literal(bound))


def _unfit(where: str, found: Any, expected: str) -> BadInput:
    return BadInput("row assertion", key=where, found=found, expected=expected)
