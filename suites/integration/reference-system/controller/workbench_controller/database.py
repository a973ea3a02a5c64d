"""The pool of connections to PostgreSQL."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import asyncpg

_CONNECTIONS = 8

#: What asking a database that is away raises.
AWAY = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError)

_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")


class _Connection(asyncpg.Connection):
    """One that is given up as soon as a query of it took too long.

    Otherwise its driver asks the server to cancel the query and waits for that just as long before
    anybody is told: of a server that hangs, twice in vain.
    """

    async def fetch(self, *args: Any, **options: Any) -> list[asyncpg.Record]:
        """As its parent's."""
        with self._given_up_when_late():
            return await super().fetch(*args, **options)

    async def fetchrow(self, *args: Any, **options: Any) -> asyncpg.Record | None:
        """As its parent's."""
        with self._given_up_when_late():
            return await super().fetchrow(*args, **options)

    async def fetchval(self, *args: Any, **options: Any) -> Any:
        """As its parent's."""
        with self._given_up_when_late():
            return await super().fetchval(*args, **options)

    async def execute(self, *args: Any, **options: Any) -> str:
        """As its parent's; also what begins and ends a transaction."""
        with self._given_up_when_late():
            return await super().execute(*args, **options)

    @contextmanager
    def _given_up_when_late(self) -> Iterator[None]:
        try:
            yield
        except TimeoutError:
            self.terminate()
            raise


async def open_pool(url: str, *, query_s: float) -> asyncpg.Pool:
    """A pool that connects when it is used: a server that is away shows at its first use.

    Args:
        url: as SQLAlchemy takes it; the driver's name is not for the server.
        query_s: a query that takes longer hangs: the server is gone, or a lock is held for ever.
    """
    plain = url.replace("postgresql+asyncpg://", "postgresql://", 1)
    return await asyncpg.create_pool(
        plain,
        min_size=0,
        max_size=_CONNECTIONS,
        command_timeout=query_s,
        timeout=query_s,
        init=_set_codecs,
        connection_class=_Connection,
    )


async def each_row(
    pool: asyncpg.Pool, table: str, condition: str, *, key: str, at_once: int
) -> AsyncIterator[asyncpg.Record]:
    """Every row of a table that meets a condition, oldest first, however many there are.

    Args:
        table: with a column ``created_at``.
        condition: in SQL.
        key: of the table.
        at_once: how many are read by one query.
    """
    after: tuple[datetime | None, str] = (None, "")
    while True:
        rows = await pool.fetch(
            f"SELECT * FROM {table} WHERE {condition} AND ($1::timestamptz IS NULL"
            f" OR (created_at, {key}) > ($1::timestamptz, $2::text))"
            f" ORDER BY created_at, {key} LIMIT $3",
            *(*after, at_once),
        )
        for row in rows:
            yield row
        if len(rows) < at_once:
            return
        after = (rows[-1]["created_at"], rows[-1][key])


async def _set_codecs(connection: asyncpg.Connection) -> None:
    await connection.set_type_codec(
        "jsonb", encoder=_dump, decoder=json.loads, schema="pg_catalog"
    )


def _dump(value: Any) -> str:
    # PostgreSQL refuses U+0000 in jsonb; what an agent wrote must not lose its whole row. An escaped
    # backslash before `u0000` is text.
    text = json.dumps(value, ensure_ascii=False, default=str)
    return _NUL.sub(r"\1\\ufffd", text).encode("utf-8", "replace").decode("utf-8")
