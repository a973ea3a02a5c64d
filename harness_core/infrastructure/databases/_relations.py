"""Relations: what a product keeps elsewhere or otherwise, read under the names that tests know.

A relation is a temporary view of the harness's own connection: the product sees nothing of it, and its
database stays as it is. Temporary names come first when a name is looked up, so every query of a test reads
``sessions`` as the subject file says it, whatever table of that name the product has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import psycopg
from psycopg import sql

from harness_core.base.errors import BadInput
from harness_core.infrastructure.databases._connection import Connection

__all__ = ["Relation", "check", "statement_of"]


#: Kind of a column → the types that are read as that; of no kind: any type.
_TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    "time": ("timestamp with time zone",),
    "truth": ("boolean",),
    "number": ("integer", "bigint", "smallint", "numeric", "double precision", "real"),
    "json": ("jsonb", "json", "text"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """How a product's rows are read as those of a contract.

    Attributes:
        columns: those of the contract, which the query must yield, and the kind of each: ``time``,
            ``truth``, ``number``, ``json`` or nothing. None at all: whatever the query yields.
        select: a query in the product's own terms.
        values: column → value of the product → value of the contract; others stay as they are.
    """

    columns: Mapping[str, str]
    select: str
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


async def check(
    connection: Connection, name: str, relation: Relation, *, where: str
) -> Mapping[str, str]:
    """The product's database has what a relation asks for, and that is what the contract names.

    Args:
        connection: to that database.
        name: under which it is read.
        relation: what it reads.
        where: the file that says so.

    Returns:
        What the query yields: column → type.

    Raises:
        BadInput: the query is refused, or lacks a column.
    """
    key = f"tables.{name}"
    for column in relation.values:
        if column not in relation.columns:
            expected = f"a column of {name}: {', '.join(relation.columns)}"
            raise BadInput(where, key=f"{key}.values", found=column, expected=expected)
    try:
        found = await connection.columns(_query(relation))
    except psycopg.Error as error:
        first = str(error).partition("\n")[0]
        raise BadInput(
            where,
            key=f"{key}.select",
            found=first,
            expected="a query that the product's database runs",
        ) from error
    wrong = list(_wrong(relation, found))
    if wrong:
        raise BadInput(
            where,
            key=f"{key}.select",
            found="; ".join(each for each, _ in wrong),
            expected="; ".join(each for _, each in wrong),
        )
    return found


def _wrong(relation: Relation, found: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Of each column that is not as it must be: what there is, and what was expected."""
    for column, kind in relation.columns.items():
        types = _TYPES.get(kind, ())
        if column not in found:
            yield f"no {column}", f"{column} ({types[0]})" if types else column
        elif types and found[column] not in types:
            yield f"{column} is {found[column]}", f"{column} as {types[0]}"


def statement_of(name: str, relation: Relation, types: Mapping[str, str]) -> str:
    """The statement that makes a relation in a connection.

    Args:
        name: under which it is read.
        relation: one that :func:`check` has passed.
        types: what that has returned.
    """
    columns = [
        # Python does not count with decimals and floats together.
        sql.SQL("{}::double precision").format(_column(column, {}))
        + sql.SQL(" as ")
        + sql.Identifier(column)
        if kind == "number" and types[column] == "numeric"
        else _column(column, relation.values.get(column, {}))
        for column, kind in relation.columns.items()
    ]
    columns = columns or [sql.SQL("*")]
    made = sql.SQL("create temporary view {} as select {} from ({}) as given").format(
        sql.Identifier(name),
        sql.SQL(", ").join(columns),
        sql.SQL(_query(relation)),
    )
    return made.as_string()


def _query(relation: Relation) -> str:
    return relation.select.strip().removesuffix(";")


def _column(name: str, values: Mapping[str, str]) -> sql.Composable:
    given = sql.Identifier("given", name)
    if not values:
        return given
    cases = [
        sql.SQL("when {} then {}").format(sql.Literal(theirs), sql.Literal(ours))
        for theirs, ours in values.items()
    ]
    return sql.SQL("case {}::text {} else {}::text end as {}").format(
        given, sql.SQL(" ").join(cases), given, sql.Identifier(name)
    )
