"""The pool of connections to PostgreSQL."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import asyncpg

_CONNECTIONS = 8

#: What asking a database that is away raises.
AWAY = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError)

_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")


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
