"""A pool of asyncpg on a database, for tests that speak to it from asyncio by a driver of asyncio's own.

What the harness itself does with a database is psycopg's, in threads (decision 0141).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import trio

from harness_core.base.errors import HarnessError, Unavailable
from harness_core.base.machine import need_extra
from harness_core.infrastructure.databases._connection import plain_url
from harness_core.infrastructure.services import redacted_url

if TYPE_CHECKING:
    from asyncpg import Pool

#: No statement of a test takes a second; a paused server never answers, not even a goodbye.
_STATEMENT_S: Final = 30.0


@asynccontextmanager
async def open_asyncpg_pool(url: str, *, connections: int) -> AsyncIterator[Pool]:
    """Yield a pool on the database of ``url``; none of its connections outlives the block.

    Raises:
        Unavailable: the extra ``asyncpg`` is not installed, or the database cannot be reached.
        HarnessError: the caller's task is trio's; or a connection was not given back in the block.
    """
    shown = redacted_url(url)
    action = f"open a pool of asyncpg on {shown}"
    need_extra("asyncpg", action=action)
    if trio.lowlevel.in_trio_task():
        raise HarnessError(
            action,
            observed="it is awaited in a task of trio, and asyncpg knows asyncio alone",
            next_step="In trio use the methods of the database itself: rows, one, execute",
        )
    import asyncpg

    try:
        pool = await asyncpg.create_pool(
            plain_url(url),
            min_size=1,
            max_size=connections,
            command_timeout=_STATEMENT_S,
            server_settings={"application_name": "staging-harness"},
        )
    except (OSError, asyncpg.PostgresError) as error:
        raise Unavailable(
            action,
            observed=str(error) or type(error).__name__,
            next_step="See whether its server runs, and whether that database exists",
        ) from error
    try:
        yield pool
        if held := pool.get_size() - pool.get_idle_size():
            raise HarnessError(
                f"close the pool of asyncpg on {shown}",
                observed=f"{held} connection(s) were not given back",
                next_step="Borrow each one by `async with pool.acquire() as connection`",
            )
        await pool.close()
    finally:
        pool.terminate()  # nothing happens to one that is closed
