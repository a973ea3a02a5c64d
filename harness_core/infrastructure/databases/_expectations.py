"""What an assertion on rows looks at, and what its failure shows.

The expected row is usually there, with one value that differs: a failure shows the rows
that meet most conditions, newest first, and names for each the conditions it misses.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg
from psycopg import sql

from harness_core.base import limits
from harness_core.base.errors import BadInput
from harness_core.infrastructure.databases._conditions import Condition, all_met, conditions_on
from harness_core.infrastructure.databases._connection import Connection
from harness_core.infrastructure.databases._schema import Table, find_table, require_columns
from harness_core.infrastructure.services import redacted_url

#: Values longer than this are cut in messages; prompts and results run to kilobytes.
_VALUE_CHARS = 160

_MET = "harness_conditions_met"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """Conditions on the rows of one table."""

    connection: Connection
    table: Table
    conditions: tuple[Condition, ...]

    async def newest_match(self) -> dict[str, Any] | None:
        """The newest row that meets every condition."""
        query = sql.SQL("select t.* from {} t where {}{} limit 1").format(
            self.table.identifier, self._met("where", "columns"), _newest_first(self.table)
        )
        rows = await self._rows(query)
        return rows[0] if rows else None

    async def count(self, *groups: str) -> int:
        """Rows that meet the conditions of ``groups``; all rows without any group."""
        query = sql.SQL("select count(*) as n from {} t where {}").format(
            self.table.identifier, self._met(*groups)
        )
        return int((await self._rows(query))[0]["n"])

    async def nearest(self) -> list[tuple[dict[str, Any], list[Condition]]]:
        """Rows that meet most conditions, newest first, each with those it misses."""
        flags = sql.SQL(", ").join(condition.met for condition in self.conditions)
        query = sql.SQL(
            "select t.*, array[{flags}]::boolean[] as {met} from {table} t "
            "order by cardinality(array_remove(array[{flags}]::boolean[], false)) desc{newest} "
            "limit {limit}"
        ).format(
            flags=flags,
            met=sql.Identifier(_MET),
            table=self.table.identifier,
            newest=_newest_first(self.table, first=False),
            limit=sql.Literal(limits.ROWS_SHOWN),
        )
        found = []
        for row in await self._rows(query):
            met = row.pop(_MET)
            missed = [one for one, flag in zip(self.conditions, met, strict=True) if not flag]
            found.append((row, missed))
        return found

    async def describe(self, expected: str, observed: str) -> str:
        """The text of a failed assertion."""
        total = await self.count()
        lines = [f"expected {expected} in table {self.table.name!r}, {observed}"]
        lines += [f"  {condition.group}: {condition}" for condition in self.conditions]
        if total:
            chosen = await self.count("where")
            lines.append(f"the table has {total} row(s), {chosen} of them meet every `where`")
            lines.append("nearest rows (most conditions met, newest first):")
            for number, (row, missed) in enumerate(await self.nearest(), start=1):
                lines.append(f"  {number}. {_row_text(row)}")
                lines += [f"     misses {_missed_text(one, row)}" for one in missed]
                if not missed:
                    lines.append("     meets every condition")
        else:
            lines.append("the table is empty")
        lines.append(f"database: {redacted_url(self.connection.url)}")
        return "\n".join(lines)

    def _met(self, *groups: str) -> sql.Composable:
        return all_met([one for one in self.conditions if one.group in groups])

    async def _rows(self, query: sql.Composable) -> list[dict[str, Any]]:
        try:
            return await self.connection.rows(query)
        except (psycopg.DataError, psycopg.ProgrammingError) as error:
            raise await self._blame(error) from error

    async def _blame(self, error: psycopg.Error) -> Exception:
        """The condition whose value the server cannot compare with its column."""
        for condition in self.conditions:
            query = sql.SQL("select 1 from {} t where {}").format(
                self.table.identifier, condition.met
            )
            try:
                await self.connection.rows(query)
            except (psycopg.DataError, psycopg.ProgrammingError) as reason:
                kind = self.table.columns[condition.column]
                return BadInput(
                    "row assertion",
                    key=f"{self.table.name}.{condition.column}",
                    found=condition.expected,
                    expected=f"something to compare with the type {kind} "
                    f"({str(reason).splitlines()[0]})",
                )
        return error


async def expectation(
    connection: Connection,
    table: str,
    *,
    where: Mapping[str, Any],
    columns: Mapping[str, Any] | None = None,
) -> Expectation:
    """Look the table up and translate the conditions.

    Raises:
        AssertionError: the product has no such table or column.
        BadInput: a condition is malformed.
    """
    groups = {"where": where, "columns": columns or {}}
    for group, wanted in groups.items():
        if not isinstance(wanted, Mapping):
            raise BadInput("row assertion", key=group, found=wanted, expected="{column: expected}")
    found = await find_table(connection, table)
    conditions: list[Condition] = []
    for group, wanted in groups.items():
        require_columns(found, wanted)
        conditions += conditions_on(found, group=group, wanted=wanted)
    return Expectation(connection=connection, table=found, conditions=tuple(conditions))


def _newest_first(table: Table, *, first: bool = True) -> sql.Composable:
    """Order by age: the transaction that wrote the row, then its place in the table."""
    if not table.stored:
        return sql.SQL("")
    return sql.SQL("{} age(t.xmin), t.ctid desc").format(sql.SQL(" order by" if first else ","))


def _row_text(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={_short(value)}" for name, value in row.items())


def _missed_text(condition: Condition, row: Mapping[str, Any]) -> str:
    found = _short(row[condition.column])
    return f"{condition.column}: expected {_short(condition.expected)}, found {found}"


def _short(value: Any) -> str:
    text = str(value) if isinstance(value, dt.date | dt.time | UUID) else repr(value)
    return text if len(text) <= _VALUE_CHARS else f"{text[:_VALUE_CHARS]}… ({len(text)} characters)"
