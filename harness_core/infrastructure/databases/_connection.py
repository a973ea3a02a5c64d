"""psycopg connections, used from threads, that can be interrupted from the event loop.

A thread that waits for a server which stopped answering cannot be cancelled; but its socket can
be shut, and then the wait ends with an error. That is what happens when a query outlives its
deadline or its caller is cancelled.
"""

from __future__ import annotations

import os
import socket
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import psycopg
import trio
from psycopg import sql
from psycopg.rows import dict_row

from harness_core.base.bridge import Mutex, blocking, interruptible
from harness_core.base.errors import BadInput, NotReady, Unavailable
from harness_core.base.unclosed import line_of_caller
from harness_core.infrastructure.services import redacted_url

Query = str | sql.Composable
Params = Sequence[Any] | Mapping[str, Any]

#: Establishing a connection on one host takes milliseconds; a loaded machine may need seconds.
_CONNECT_S: Final = 10

#: No statement of the harness takes a second; a paused server never answers.
_STATEMENT_S: Final = 30.0

#: From PostgreSQL 14 on, a statement ends soon after its client has gone; else only when it answers.
_CHECKS_CLIENT: Final = 140_000
_CHECK_CLIENT: Final = "SET client_connection_check_interval = '200ms'"


def plain_url(url: str) -> str:
    """``url`` as drivers take it: a ``+driver`` after the scheme, as SQLAlchemy writes it, is dropped.

    Raises:
        BadInput: no PostgreSQL URL.
    """
    scheme, colon, rest = url.partition("://")
    if not colon or scheme.partition("+")[0] not in {"postgresql", "postgres"}:
        raise BadInput(
            "database",
            key="url",
            found=redacted_url(url),
            expected="postgresql://USER:PASSWORD@HOST:PORT/DATABASE",
        )
    return f"postgresql://{rest}"


def connect(url: str) -> psycopg.Connection[dict[str, Any]]:
    """Open a connection in autocommit mode; blocks.

    Raises:
        BadInput: no PostgreSQL URL.
        Unavailable: the server or the database cannot be reached.
    """
    address = plain_url(url)
    try:
        return psycopg.connect(
            address,
            autocommit=True,
            row_factory=dict_row,
            connect_timeout=_CONNECT_S,
            application_name="staging-harness",
            prepare_threshold=None,  # a table may be migrated between two looks at it
        )
    except psycopg.OperationalError as error:
        raise _unreachable(url, error) from error


class _Call:
    """One query on its way, and whether its caller has given up."""

    def __init__(self) -> None:
        self.abandoned = False


class Connection:
    """One lazily opened connection; queries of several callers take turns.

    Usable from any event loop and thread, because it belongs to none.

    Attributes:
        prepared: statements that each connection begins with.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.prepared: tuple[str, ...] = ()
        self.opened_at = line_of_caller()
        self._turn = Mutex()
        self._open: psycopg.Connection[dict[str, Any]] | None = None
        self._current: _Call | None = None

    def __del__(self) -> None:
        if self._open is not None:
            self._close()
            warnings.warn(
                f"the connection to {redacted_url(self.url)} was never closed",
                ResourceWarning,
                source=self,
                stacklevel=2,
            )

    async def rows(self, query: Query, params: Params | None = None) -> list[dict[str, Any]]:
        """Run one statement and return its rows (none for a statement without any).

        Raises:
            Unavailable: the server cannot be reached.
            NotReady: it did not answer within 30 s.
            psycopg.Error: it refuses the statement.
        """
        call = _Call()
        with trio.move_on_after(_STATEMENT_S):
            return await interruptible(
                lambda: self._rows(call, query, params), abort=lambda: self._abandon(call)
            )
        raise NotReady(
            f"query {redacted_url(self.url)}",
            observed=f"no answer for {_STATEMENT_S:g} s",
            waited_s=_STATEMENT_S,
        )

    async def columns(self, query: str) -> dict[str, str]:
        """What a query yields, without a row of it: name → type, as ``format_type`` writes it.

        Raises:
            psycopg.Error: the server refuses it.
        """
        name = "staging_harness_asked"
        await self.rows(f"create temporary view {name} as {query}")  # lint: a view of our own
        try:
            found = await self.rows(
                "select attname as name, format_type(atttypid, null) as type from pg_attribute"
                " where attrelid = %s::regclass and attnum > 0 order by attnum",
                (f"pg_temp.{name}",),
            )
        finally:
            await self.rows(f"drop view pg_temp.{name}")
        return {row["name"]: row["type"] for row in found}

    async def close(self) -> None:
        """Close it; a later query opens it again."""
        await blocking(self._close)

    def _rows(self, call: _Call, query: Query, params: Params | None) -> list[dict[str, Any]]:
        with self._turn:
            reused = self._open is not None
            while True:
                self._current = call
                try:
                    return self._run(call, query, params)
                except psycopg.OperationalError as error:
                    if self._open is None or not (self._open.closed or self._open.broken):
                        raise
                    self._close()
                    if call.abandoned or not reused:
                        raise _unreachable(self.url, error) from error
                    # The server was restarted since the last query, which is no failure of this
                    # one: once more, on a new connection.
                    reused = False
                finally:
                    self._current = None

    def _run(self, call: _Call, query: Query, params: Params | None) -> list[dict[str, Any]]:
        if self._open is None:
            self._open = connect(self.url)
            # From here on an abandoned call can be interrupted: nothing before it may ask the server.
            if self._open.info.server_version >= _CHECKS_CLIENT and not call.abandoned:
                with suppress(psycopg.DataError):  # a platform whose servers cannot see that
                    self._open.execute(_CHECK_CLIENT)
            self._prepare(call)
        if call.abandoned:
            return []
        with self._open.cursor() as cursor:
            cursor.execute(query, params)  # type: ignore[arg-type]  # LiteralString: ours or a test's
            return cursor.fetchall() if cursor.description is not None else []

    def _prepare(self, call: _Call) -> None:
        """What is half prepared is no connection: the next query opens another one."""
        assert self._open is not None
        try:
            for statement in () if call.abandoned else self.prepared:
                self._open.execute(statement)
        except psycopg.Error:
            self._close()
            raise

    def _abandon(self, call: _Call) -> None:
        """Shut the socket under the thread that waits for an answer to ``call``."""
        call.abandoned = True
        held = self._open
        if self._current is not call or held is None or held.closed:
            return
        with socket.socket(fileno=os.dup(held.fileno())) as duplicate:
            duplicate.shutdown(socket.SHUT_RDWR)

    def _close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None


def _unreachable(url: str, error: psycopg.Error) -> Unavailable:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return Unavailable(
        f"reach the database {redacted_url(url)}",
        observed=lines[0] if lines else type(error).__name__,
        next_step="See whether its server runs, and whether that database exists",
    )
