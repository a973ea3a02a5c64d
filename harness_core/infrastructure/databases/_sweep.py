"""What a dead run left on a server that is not ours: its databases, and only those."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

import trio

from harness_core.base.errors import Unavailable
from harness_core.infrastructure.databases._pool import drop_run_databases
from harness_core.infrastructure.services import parse_postgres_url

#: Where the URL of an external server is given; on a command line its password could be read.
POSTGRES_URL_VARIABLE: Final = "HARNESS_POSTGRES_URL"


def sweep_databases(entry: Mapping[str, Any]) -> str:
    """Drop the databases of one dead run; a :data:`harness_core.process.Sweeper`.

    Args:
        entry: a ledger entry of kind ``database``: ``server`` (``host:port``) and ``run`` (its id).

    Returns:
        What was dropped, as text; empty when nothing was left.

    Raises:
        Unavailable: ``HARNESS_POSTGRES_URL`` does not name that server, or it does not answer.
    """
    server, run_id = str(entry.get("server")), str(entry.get("run"))
    given = os.environ.get(POSTGRES_URL_VARIABLE, "")
    url = parse_postgres_url(given, where=POSTGRES_URL_VARIABLE) if given else None
    if url is None or url.address != server:
        action = f"drop the databases of dead run {run_id} on {server}"
        raise Unavailable(
            action,
            observed=f"{POSTGRES_URL_VARIABLE} names {url.address if url else 'no server'}",
            next_step=f"Set {POSTGRES_URL_VARIABLE} to that server and sweep again, "
            f"or harness sweep --forget {run_id} if it is no more",
        )

    async def drop() -> tuple[str, ...]:
        return await drop_run_databases(url.database, run_id=run_id)

    names = trio.run(drop)
    return f"database(s) {', '.join(names)} on {server}" if names else ""
