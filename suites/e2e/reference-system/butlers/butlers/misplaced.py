"""Only for the planted fault `tool-wrong-database`: writes of health go to general's database."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from butlers import database, migrate

if TYPE_CHECKING:
    from butlers.butler import Butler

_pools: dict[str, Any] = {}


async def pool_of_general(butler: Butler, *, tables: tuple[str, ...]) -> Any:
    """A pool on general's database, in which the butler's tables exist afterwards."""
    url = os.environ.get("BUTLERS_GENERAL_DATABASE_URL") or _derived(butler.config.database_url)
    if url not in _pools:
        pool = await database.open_pool(url, timeout_s=5.0, connections=2)
        missing = [t for t in tables if await pool.fetchval("SELECT to_regclass($1)", t) is None]
        if missing:
            for chain in migrate.chains(butler.name, butler.config.directory, {})[1:]:
                await migrate.upgrade(pool, chain, log=butler.log)
        _pools[url] = pool
    return _pools[url]


def _derived(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=parts.path.replace("health", "general")))
