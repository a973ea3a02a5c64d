"""Which tables and columns a database has, as the server's catalogue tells it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from psycopg import sql
from psycopg.errors import UndefinedColumn, UndefinedTable

from harness_core.base.errors import BadInput
from harness_core.infrastructure.databases._connection import Connection

#: What a statement of a test is refused with, where a product has no such table or column.
UNDEFINED = (UndefinedTable, UndefinedColumn)

_COLUMNS = """
select c.relkind::text as kind, n.nspname as schema, a.attname as name,
       format_type(case when t.typtype = 'd' then t.typbasetype else a.atttypid end, null) as type
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
join pg_type t on t.oid = a.atttypid
where c.relkind in ('r', 'p', 'v', 'm', 'f') and c.relname = %s
  and n.oid = coalesce(
    (select relnamespace from pg_class where %s = 'public' and relname = %s and relnamespace = pg_my_temp_schema()),
    (select oid from pg_namespace where nspname = %s))
order by a.attnum
"""

_TABLES = """
select case when schemaname = 'public' then tablename else schemaname || '.' || tablename end as name
from pg_tables where schemaname not in ('pg_catalog', 'information_schema') order by 1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table, or a view, that exists.

    Args:
        schema: its schema.
        name: its name.
        columns: column name to type, in the order of the table; domains as their base type.
        stored: it has rows of its own (a view has none), so their age can be asked for.
    """

    schema: str
    name: str
    columns: dict[str, str]
    stored: bool

    @property
    def identifier(self) -> sql.Identifier:
        """Its name in SQL, quoted."""
        return sql.Identifier(self.schema, self.name)


def split_name(table: str) -> tuple[str, str]:
    """Schema and name of ``"name"`` or ``"schema.name"``.

    Raises:
        BadInput: neither.
    """
    match str(table).split("."):
        case [name] if name:
            return "public", name
        case [schema, name] if schema and name:
            return schema, name
    raise BadInput("row assertion", key="table", found=table, expected="name or schema.name")


async def table_names(connection: Connection) -> tuple[str, ...]:
    """Every table outside the system schemas; those of ``public`` without their schema."""
    return tuple(row["name"] for row in await connection.rows(_TABLES))


async def find_table(connection: Connection, table: str) -> Table:
    """Look a table up.

    Raises:
        AssertionError: the product has no such table; names those it has.
    """
    schema, name = split_name(table)
    # A relation of the connection's own stands before a table of that name, as it does in SQL.
    rows = await connection.rows(_COLUMNS, (name, schema, name, schema))
    if not rows:
        existing = await table_names(connection)
        raise AssertionError(
            f"expected a table {table!r}, found {_listed(existing, 'tables')}"
            f"{_suggestion(table, existing)}"
        )
    return Table(
        schema=rows[0]["schema"],
        name=name,
        columns={row["name"]: row["type"] for row in rows},
        stored=rows[0]["kind"] in {"r", "m"},
    )


def require_columns(table: Table, names: Iterable[str]) -> None:
    """Every one of ``names`` is a column of ``table``.

    Raises:
        AssertionError: it lacks one; names those it has.
    """
    for name in names:
        if name not in table.columns:
            existing = tuple(table.columns)
            raise AssertionError(
                f"expected a column {name!r} in table {table.name!r}, found "
                f"{_listed(existing, 'columns')}{_suggestion(name, existing)}"
            )


def _listed(names: tuple[str, ...], kind: str) -> str:
    return f"the {kind} {', '.join(names)}" if names else f"no {kind} at all"


def _suggestion(name: str, existing: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(name, existing, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
