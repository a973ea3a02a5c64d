"""A table that is held for a moment, so that those who would write into it meet."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from harness_core.infrastructure.databases import Database
from suites.e2e.ecosystem.butler import Butler

__all__ = ["hold_table"]


@asynccontextmanager
async def hold_table(butler: Butler, table: str) -> AsyncIterator[None]:
    """Hold a table: who reads it finds it as it is, who writes into it waits until the end."""
    async with Database(butler.database.url) as own:
        await own.execute("BEGIN")
        await own.execute(  # lint: allow writes-rows: a lock, no row
            f"LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE"
        )
        yield
        await own.execute("ROLLBACK")
