"""Provider *external*: a PostgreSQL server that somebody else looks after, given by its URL.

The harness connects to it and makes databases of its own there. It never takes the server away.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from harness_core.base import limits
from harness_core.base.errors import NotReady, Unavailable
from harness_core.base.wait import deadline
from harness_core.infrastructure.services._elsewhere import ExternalServer
from harness_core.infrastructure.services._postgres_protocol import ServerRefusedError, greet
from harness_core.infrastructure.services._postgres_url import PostgresUrl

__all__ = ["open_external_postgres"]

#: SQLSTATEs of a server that is there and cannot serve: starting, stopping, crashed.
_UNABLE: Final = ("57P01", "57P02", "57P03")

#: A server that runs answers its first message in milliseconds, across a network in tens.
_GREET_S: Final = limits.MCP_CALL_S / 3


@asynccontextmanager
async def open_external_postgres(url: PostgresUrl) -> AsyncIterator[ExternalServer]:
    """Yield the server of ``url`` once it has answered; leave it alone at the end.

    Raises:
        Unavailable: nobody answers there, or not as PostgreSQL does.
    """
    action = f"reach the external postgres on {url.address}"
    advice = "Start it, or correct the URL, or run with --services local"
    try:
        with deadline(action, seconds=_GREET_S):
            await greet(url.address)
    except ServerRefusedError as refusal:
        # Refusing us without TLS or without that user proves the server; connecting is for psycopg.
        if refusal.sqlstate in _UNABLE:
            raise Unavailable(action, observed=refusal.message, next_step=advice) from refusal
    except (OSError, NotReady) as error:
        observed = error.observed if isinstance(error, NotReady) else str(error)
        raise Unavailable(action, observed=observed, next_step=advice) from error
    yield ExternalServer(name="postgres", address=url.address)
