"""Databases that were made on the run's server and not dropped."""

from __future__ import annotations

from collections.abc import Collection

from harness_core.base.errors import NotReady, Unavailable
from harness_core.infrastructure.databases._connection import Connection
from harness_core.infrastructure.services import PostgresService
from harness_core.process import LeakFound, Run

#: What a new server has.
_ITS_OWN = frozenset({"postgres", "template0", "template1"})


async def left_databases(postgres: PostgresService, *, run: Run, known: Collection[str]) -> None:
    """Check that the server has the databases it should have at the end of a run, and no others.

    On a server of the run every other database counts, templates and clones of a pool left out;
    on an external one those alone that carry this run's id.

    Args:
        postgres: the server.
        run: whose databases are meant.
        known: the names that were made on purpose.

    Raises:
        LeakFound: there are others; names them.
    """
    external = postgres.provider == "external"
    ours = f"hs_{run.id}_"
    connection = Connection(postgres.url())
    try:
        rows = await connection.rows("SELECT datname FROM pg_database ORDER BY datname", None)
    except (Unavailable, NotReady):
        return  # down or frozen: its databases go with it
    finally:
        await connection.close()
    names = [str(row["datname"]) for row in rows]
    if external:
        expected = {ours + name for name in known}
        left = [name for name in names if name.startswith(ours) and name not in expected]
    else:
        expected = {*known, *_ITS_OWN}
        left = [name for name in names if name not in expected and not name.startswith("hs_")]
    if left:
        raise LeakFound(
            [f"database {name} on {postgres.address}" for name in left],
            what="database(s) were made and not dropped",
            next_step="Find the test that creates them, and have it drop them",
        )
