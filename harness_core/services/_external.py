"""Provider *external*: a PostgreSQL server that somebody else looks after, given by its URL.

The harness connects to it and makes databases of its own there. It never takes the server away.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, NoReturn

from harness_core import limits
from harness_core.errors import HarnessError, NotReady, Unavailable
from harness_core.services._protocol import ServerRefusedError, greet
from harness_core.services._url import PostgresUrl
from harness_core.wait import deadline

__all__ = ["ExternalPostgres", "open_external_postgres"]

#: SQLSTATEs of a server that is there and cannot serve: starting, stopping, crashed.
_UNABLE: Final = ("57P01", "57P02", "57P03")

#: A server that runs answers its first message in milliseconds, across a network in tens.
_GREET_S: Final = limits.MCP_CALL_S / 3


class ExternalPostgres:
    """A server of somebody else; built only by :func:`open_external_postgres`."""

    name = "postgres"

    def __init__(self, url: PostgresUrl) -> None:
        self._url = url

    @property
    def address(self) -> str:
        """``host:port``."""
        return self._url.address

    async def start(self) -> None:
        """Refused: it runs already."""
        raise HarnessError(
            f"start postgres on {self.address}",
            observed="it is running already, and it is not ours to start",
        )

    async def stop(self) -> None:
        """Refused: see :meth:`kill`."""
        self._refuse("stop")

    async def kill(self) -> None:
        """Refused: the server belongs to somebody else, and others may use it."""
        self._refuse("kill")

    async def pause(self) -> None:
        """Refused: see :meth:`kill`."""
        self._refuse("pause")

    async def resume(self) -> None:
        """Refused: see :meth:`kill`."""
        self._refuse("resume")

    def _refuse(self, verb: str) -> NoReturn:
        raise Unavailable(
            f"{verb} postgres on {self.address}",
            observed="it is an external server, which the harness only connects to",
            next_step="Run with --services local to test outages",
        )


@asynccontextmanager
async def open_external_postgres(url: PostgresUrl) -> AsyncIterator[ExternalPostgres]:
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
    yield ExternalPostgres(url)
