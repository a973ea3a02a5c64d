"""A database as a test sees it: it reads, writes, and asserts on rows and on infrastructure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Self

import trio

from harness_core.base import limits
from harness_core.base.bridge import anywhere, blocking
from harness_core.base.slowness import patience
from harness_core.base.wait import until
from harness_core.infrastructure.databases._asyncpg import open_asyncpg_pool
from harness_core.infrastructure.databases._connection import Connection, Params, Query, plain_url
from harness_core.infrastructure.databases._expectations import expectation
from harness_core.infrastructure.databases._migrations import (
    MigrationChain,
    applied_revisions,
    chain_heads,
)
from harness_core.infrastructure.databases._relations import Relation, check, statement_of
from harness_core.infrastructure.databases._schema import find_table, require_columns
from harness_core.infrastructure.services import redacted_url

if TYPE_CHECKING:
    from asyncpg import Pool
    from sqlalchemy import Engine


class Database:
    """A handle on one database; it connects on first use and reconnects after an outage.

    Every method may be awaited in a task of trio, asyncio or anyio. Leave it as an async context
    manager, or call :meth:`close`, so that no connection is left behind.

    Args:
        url: ``postgresql://…``; a ``+driver`` after the scheme is accepted.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._connection = Connection(url)
        self._engine: Engine | None = None

    def __repr__(self) -> str:
        return f"Database({redacted_url(self.url)!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @anywhere
    async def close(self) -> None:
        """Close the connection, and those of :attr:`sqlalchemy`; a later call opens it again."""
        engine, self._engine = self._engine, None
        with trio.CancelScope(shield=True):
            await self._connection.close()
            if engine is not None:
                await blocking(engine.dispose)

    @anywhere
    async def read_as(self, relations: Mapping[str, Relation], *, where: str) -> None:
        """From now on, read what a product keeps elsewhere under the names of a contract.

        Args:
            relations: by the name under which each is read.
            where: what says so, a file, for the error.

        Raises:
            BadInput: a query that the database refuses, or that lacks a column.
        """
        await self._connection.close()
        self._connection.prepared = ()
        statements = []
        for name, relation in relations.items():
            types = await check(self._connection, name, relation, where=where)
            statements.append(statement_of(name, relation, types))
        await self._connection.close()
        self._connection.prepared = tuple(statements)

    @anywhere
    async def rows(self, sql: Query, params: Params | None = None) -> list[dict[str, Any]]:
        """Run a query and return its rows as dictionaries.

        Args:
            sql: one statement, with ``%s`` or ``%(name)s`` where parameters go.
            params: its parameters.

        Raises:
            Unavailable: the database cannot be reached.
            NotReady: it did not answer within 30 s.
            psycopg.Error: it refuses the statement.
        """
        return await self._connection.rows(sql, params)

    async def one(self, sql: Query, params: Params | None = None) -> dict[str, Any]:
        """Run a query that must have exactly one row.

        Raises:
            AssertionError: it has none, or several.
        """
        rows = await self.rows(sql, params)
        if len(rows) != 1:
            raise AssertionError(
                f"expected one row, found {len(rows)}, from {sql!r} with {params!r}"
                f"\ndatabase: {redacted_url(self.url)}"
            )
        return rows[0]

    async def execute(self, sql: Query, params: Params | None = None) -> None:
        """Run a statement for its effect."""
        await self.rows(sql, params)

    @property
    def sqlalchemy(self) -> Engine:
        """An engine of SQLAlchemy on this very database, driven by psycopg.

        It is the same one until :meth:`close`, which closes what it holds idle. For SQLAlchemy's
        asyncio, give ``create_async_engine`` the :meth:`driver_url` of ``"asyncpg"``.
        """
        if self._engine is None:
            from sqlalchemy import create_engine

            self._engine = create_engine(self.driver_url("psycopg"))
        return self._engine

    def driver_url(self, driver: str) -> str:
        """The URL as SQLAlchemy takes it: ``postgresql+DRIVER://…``."""
        return plain_url(self.url).replace("postgresql://", f"postgresql+{driver}://", 1)

    def asyncpg_pool(self, *, connections: int = 4) -> AbstractAsyncContextManager[Pool]:
        """A pool of asyncpg on this very database, for a test that runs on asyncio.

        Args:
            connections: how many it opens at most.

        Raises:
            Unavailable: the extra ``asyncpg`` is not installed, or the database cannot be reached.
            HarnessError: the caller's task is trio's; or a connection was not given back in the
                block, and was ended.
        """
        return open_asyncpg_pool(self.url, connections=connections)

    @anywhere
    async def expect_row(
        self,
        table: str,
        *,
        where: Mapping[str, Any],
        columns: Mapping[str, Any] | None = None,
        within_s: float = limits.ROW_WAIT_S,
    ) -> dict[str, Any]:
        """At least one row meets every condition, now or soon.

        Args:
            table: ``name`` or ``schema.name``.
            where: which rows are meant: column to value or matcher.
            columns: what one of them must hold.
            within_s: how long to wait for it, in seconds of a calm machine.

        Returns:
            The newest such row.

        Raises:
            AssertionError: there was none in time; shows the nearest rows.
            BadInput: a condition is malformed.
        """
        wanted = await expectation(self._connection, table, where=where, columns=columns)
        row: dict[str, Any] | None = await wanted.newest_match()
        within_s = patience(within_s)
        with trio.move_on_after(within_s):
            row = row or await until(wanted.newest_match)
        if row is None:
            raise AssertionError(
                await wanted.describe("at least one row", f"found none within {within_s:g} s")
            )
        return row

    @anywhere
    async def expect_no_row(
        self, table: str, *, where: Mapping[str, Any], during_s: float = 0.0
    ) -> None:
        """No row meets the conditions: not now, and not for ``during_s`` seconds.

        Call it after the event that would have written the row; a look before that proves nothing.

        Raises:
            AssertionError: there is one; shows it.
        """
        unwanted = await expectation(self._connection, table, where=where)
        row = await unwanted.newest_match()
        with trio.move_on_after(during_s):
            row = row or await until(unwanted.newest_match)
        if row is not None:
            count = await unwanted.count("where")
            raise AssertionError(await unwanted.describe("no row", f"found {count}"))

    @anywhere
    async def expect_count(
        self,
        table: str,
        *,
        count: int,
        where: Mapping[str, Any] | None = None,
        within_s: float = limits.ROW_WAIT_S,
    ) -> None:
        """Exactly ``count`` rows meet the conditions, now or soon.

        Raises:
            AssertionError: their number was another one until the end; shows the nearest rows.
        """
        wanted = await expectation(self._connection, table, where=where or {})
        seen = await wanted.count("where")

        async def probe() -> bool:
            nonlocal seen
            seen = await wanted.count("where")
            return seen == count

        within_s = patience(within_s)
        if seen != count:
            with trio.move_on_after(within_s):
                await until(probe)
        if seen != count:
            raise AssertionError(
                await wanted.describe(
                    f"exactly {count} row(s)", f"found {seen} after {within_s:g} s"
                )
            )

    @anywhere
    async def expect_table(self, *tables: str) -> None:
        """Every one of ``tables`` exists.

        Raises:
            AssertionError: one does not; names those that do.
        """
        for table in tables:
            await find_table(self._connection, table)

    @anywhere
    async def expect_columns(
        self, table: str, columns: Mapping[str, str] | Collection[str]
    ) -> None:
        """The table has these columns, and of these types when types are given.

        Args:
            table: ``name`` or ``schema.name``.
            columns: names, or name to type as ``format_type`` writes it (``"jsonb"``,
                ``"timestamp with time zone"``).

        Raises:
            AssertionError: a column is missing or has another type.
        """
        found = await find_table(self._connection, table)
        require_columns(found, columns)
        if isinstance(columns, Mapping):
            wrong = {
                name: (expected, found.columns[name])
                for name, expected in columns.items()
                if found.columns[name] != expected
            }
            if wrong:
                listed = "; ".join(
                    f"{name}: expected {expected}, found {actual}"
                    for name, (expected, actual) in wrong.items()
                )
                raise AssertionError(f"types differ in table {table!r}: {listed}")

    @anywhere
    async def expect_migration_head(self, chain: MigrationChain) -> None:
        """Every head of the chain's files is applied, and nothing beside it.

        Raises:
            AssertionError: the version table is missing or differs.
        """
        expected = chain_heads(chain)
        await find_table(self._connection, chain.version_table)
        found = await applied_revisions(self.url, version_table=chain.version_table)
        if set(expected) != set(found):
            raise AssertionError(
                f"expected the migration head(s) {_listed(expected)} of {chain.name!r} in "
                f"{chain.version_table!r}, found {_listed(found)}"
                f"\ndatabase: {redacted_url(self.url)}"
            )


def _listed(revisions: Sequence[str]) -> str:
    return ", ".join(revisions) or "none"
