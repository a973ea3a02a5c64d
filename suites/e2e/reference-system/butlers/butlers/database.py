"""Open the pool of one butler; its database exists already and is its own."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from butlers import faults
from butlers.errors import DatabaseProblem
from butlers.log import describe

if TYPE_CHECKING:
    import asyncpg

#: Between two attempts to reach a server that does not answer yet.
_RETRY_S = 0.1
_COMMAND_TIMEOUT_S = 30.0
#: How long a healthy database may take to answer, beside all that a busy butler asks it.
_ASKED_S = 5.0
#: How long the end of something waits for a lost database, and between two attempts.
_INSIST_S = 20.0
_INSIST_PAUSE_S = 0.5


async def open_pool(url: str, *, timeout_s: float, connections: int) -> asyncpg.Pool:
    """Connect, retrying for a bounded time while the server is starting or unreachable.

    Args:
        url: `postgresql://…/database`.
        timeout_s: seconds after which an unreachable server is an error.
        connections: upper bound of the pool.

    Raises:
        DatabaseProblem: no such database, refused, or no answer in time.
    """
    import asyncpg

    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_s
    while True:
        try:
            return await asyncpg.create_pool(
                url,
                min_size=1,
                max_size=connections,
                timeout=max(0.1, deadline - loop.time()),
                command_timeout=_COMMAND_TIMEOUT_S,
                init=_set_codecs,
            )
        except (asyncpg.InvalidCatalogNameError, asyncpg.InvalidAuthorizationSpecificationError,
                ValueError) as error:
            raise _problem(url, error) from error
        except (OSError, TimeoutError, asyncpg.PostgresError,
                asyncpg.exceptions.ConnectionDoesNotExistError) as error:
            if loop.time() + _RETRY_S >= deadline:
                raise _problem(url, error, waited_s=timeout_s) from error
            await asyncio.sleep(_RETRY_S)


class Probe:
    """Whether a database answers now.

    Args:
        pool: of the database.
    """

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._asking: asyncio.Task[str | None] | None = None

    async def trouble(self) -> str | None:
        """Why the database does not answer; None when it does.

        Whoever asks while an answer is outstanding waits for the same one: a database that hangs
        collects no queries, and giving one up can hang as well.
        """
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._ask())
        done, _ = await asyncio.wait({self._asking}, timeout=_ASKED_S)
        if not done and faults.on("silent-database-is-well"):
            return None
        return self._asking.result() if done else f"no answer within {_ASKED_S:g} s"

    async def _ask(self) -> str | None:
        import asyncpg

        try:
            await self._pool.fetchval("SELECT 1")
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            return describe(error)
        return None


async def insist(write: Callable[[], Awaitable[Any]], *, what: str) -> None:
    """Record something that has happened, also when the database is away for a while.

    Args:
        write: makes the write; may run several times.
        what: verb and object for the error, e.g. ``"complete session …"``.

    Raises:
        DatabaseProblem: the database stayed away for `_INSIST_S`.
    """
    import asyncpg

    loop = asyncio.get_running_loop()
    deadline = loop.time() + _INSIST_S
    while True:
        try:
            await write()
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            if loop.time() + _INSIST_PAUSE_S >= deadline:
                raise DatabaseProblem(f"cannot {what}: {describe(error)}") from error
            await asyncio.sleep(_INSIST_PAUSE_S)
        else:
            return


async def _set_codecs(connection: asyncpg.Connection) -> None:
    for kind in ("json", "jsonb"):
        await connection.set_type_codec(
            kind, encoder=_dump, decoder=json.loads, schema="pg_catalog"
        )


#: U+0000 as JSON writes it; behind an odd backslash the same letters are text.
_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")


def _dump(value: object) -> str:
    # PostgreSQL refuses U+0000 in jsonb; a message that holds one must not lose its whole row.
    return _NUL.sub(r"\1\\ufffd", json.dumps(value, ensure_ascii=False, default=str))


def is_storable(value: object) -> bool:
    """Whether PostgreSQL can hold a JSON value as it is: without U+0000 and lone surrogates."""
    text = json.dumps(value, ensure_ascii=False)
    return not _NUL.search(text) and text == text.encode("utf-8", "replace").decode()


def storable(text: str) -> str:
    """Text without what PostgreSQL cannot hold (U+0000, lone surrogates)."""
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def _problem(url: str, error: BaseException, *, waited_s: float | None = None) -> DatabaseProblem:
    waited = f" for {waited_s:g} s" if waited_s is not None else ""
    return DatabaseProblem(
        f"cannot open database {url if faults.on('password-in-error') else place(url)}{waited}: {describe(error)}. "
        "Create the database, or correct BUTLERS_DATABASE_URL"
    )


def place(url: str) -> str:
    """Host, port and database name of a URL, without user or password."""
    parts = urlsplit(url)
    host = parts.hostname or "local socket"
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.path.lstrip('/') or '(no name)'} at {host}{port}"


def password(url: str) -> str | None:
    """The password in a URL, to be kept out of logs."""
    try:
        return urlsplit(url).password
    except ValueError:
        return None
