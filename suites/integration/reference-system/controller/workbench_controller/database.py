"""The pool of connections to PostgreSQL."""

from __future__ import annotations

import json
import re
from typing import Any

import asyncpg

#: A query that takes longer hangs: the server is gone, or a lock is held for ever.
_QUERY_S = 10.0
_CONNECTIONS = 8

#: What asking a database that is away raises.
AWAY = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError)

_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")


async def open_pool(url: str) -> asyncpg.Pool:
    """A pool that connects when it is used: a server that is away shows at its first use.

    Args:
        url: as SQLAlchemy takes it; the driver's name is not for the server.
    """
    plain = url.replace("postgresql+asyncpg://", "postgresql://", 1)
    return await asyncpg.create_pool(
        plain,
        min_size=0,
        max_size=_CONNECTIONS,
        command_timeout=_QUERY_S,
        timeout=_QUERY_S,
        init=_set_codecs,
    )


async def _set_codecs(connection: asyncpg.Connection) -> None:
    await connection.set_type_codec(
        "jsonb", encoder=_dump, decoder=json.loads, schema="pg_catalog"
    )


def _dump(value: Any) -> str:
    # PostgreSQL refuses U+0000 in jsonb; what an agent wrote must not lose its whole row. An escaped
    # backslash before `u0000` is text.
    text = json.dumps(value, ensure_ascii=False, default=str)
    return _NUL.sub(r"\1\\ufffd", text).encode("utf-8", "replace").decode("utf-8")
