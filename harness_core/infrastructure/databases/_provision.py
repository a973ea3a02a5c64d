"""An empty database for a system that migrates itself."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import trio

from harness_core.base.errors import Unavailable
from harness_core.infrastructure.databases._database import Database
from harness_core.infrastructure.databases._server import Server
from harness_core.infrastructure.services import PostgresService
from harness_core.process import Run


@asynccontextmanager
async def create_database(
    postgres: PostgresService, name: str, *, run: Run
) -> AsyncIterator[Database]:
    """Make an empty database and yield a handle on it.

    On a server of the run it has exactly that name and goes with the server. On an external one
    it is ``hs_RUN_NAME``, marked as ours, and dropped at the end.

    Args:
        postgres: the server.
        name: of the database.
        run: whose id marks it.

    Raises:
        BadInput: ``name`` cannot name a database.
        HarnessError: the server has a database of that name.
        Unavailable: the server cannot be reached.
    """
    external = postgres.provider == "external"
    actual = f"hs_{run.id}_{name}" if external else name
    if external:
        # Before it is made: whoever sweeps after this run must know where to look.
        run.ledger.record("database", server=postgres.address, run=run.id)
    async with Server(postgres.url, run_id=run.id, in_memory=postgres.in_memory) as server:
        await server.create(actual)
        try:
            async with Database(postgres.url(actual)) as database:
                yield database
        finally:
            if external:
                with trio.CancelScope(shield=True), suppress(Unavailable):
                    # Of a server that went away its owner has the database, marked as this run's.
                    await server.drop(actual)
