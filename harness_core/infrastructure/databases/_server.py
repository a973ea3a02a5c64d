"""The databases a run makes on a server: created, sealed, cloned, dropped; and no others.

Everything made here carries the run's id in its name and a comment with it; a database
without both is never dropped. A template in use is protected by a shared lock of every process
that clones it, so that the last one out removes it, also when another one was killed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, LiteralString, Self

import psycopg
import trio
from psycopg import sql

from harness_core.base.errors import BadInput, HarnessError
from harness_core.base.wait import until
from harness_core.infrastructure.databases._connection import Connection
from harness_core.infrastructure.services import redacted_url

Build = Callable[[str], Awaitable[None]]

#: First key of our advisory locks (they take two numbers); "hs" and a random rest.
_LOCK_SPACE: Final = 0x6873_71D4

#: PostgreSQL cuts longer names without asking.
_NAME_BYTES: Final = 63

_MADE_BY: Final = "staging-harness"

#: Until the server has noticed that a client closed its connection; longer on busy cores.
_LEAVING_S: Final = 1.0
_RUN_ID: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Clone:
    """A database made for one test.

    Args:
        name: its name on the server.
        url: with the password; print :attr:`shown_url`.
    """

    name: str
    url: str

    @property
    def shown_url(self) -> str:
        """The URL without its password."""
        return redacted_url(self.url)


class Server:
    """The statements: create, seal, clone, drop; all on one maintenance connection."""

    def __init__(self, url_of: Callable[[str], str], *, run_id: str, in_memory: bool) -> None:
        if not _RUN_ID.fullmatch(run_id):
            raise BadInput(
                "database pool",
                key="run_id",
                found=run_id,
                expected="up to 32 lower-case letters, digits and dashes",
            )
        self._url_of = url_of
        self._run_id = run_id
        self._strategy = "FILE_COPY" if in_memory else "WAL_LOG"
        self._admin = Connection(url_of("postgres"))
        self._made: set[str] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connection, and with it every lock."""
        with trio.CancelScope(shield=True):
            await self._admin.close()

    async def _run(self, statement: LiteralString, name: str, *literals: str) -> None:
        """Run a statement about the database ``name``, which is its first ``{}``."""
        values = map(sql.Literal, literals)
        await self._admin.rows(sql.SQL(statement).format(sql.Identifier(name), *values))

    async def template(self, key: str, build: Build) -> str:
        """The sealed template of that key, built when this process is the first to ask."""
        name = f"hs_{self._run_id}_t_{hashlib.sha256(key.encode()).hexdigest()[:12]}"
        number = _lock_number(name)
        # Shared, until the pool closes: while it is held the template is not removed.
        await self._admin.rows("select pg_advisory_lock_shared(%s, %s)", (_LOCK_SPACE, number))
        builder = Connection(self._url_of("postgres"))
        try:
            # A lock of its own, on a connection of its own: released when the builder dies.
            await builder.rows(
                "select pg_advisory_lock(%s, %s)", (_LOCK_SPACE, _lock_number(f"{name} build"))
            )
            if not await self._sealed(name):
                await self._build(name, build)
        finally:
            with trio.CancelScope(shield=True):
                await builder.close()
        return name

    async def _sealed(self, name: str) -> bool:
        found = await self._admin.rows(
            "select datistemplate from pg_database where datname = %s", (name,)
        )
        return bool(found and found[0]["datistemplate"])

    async def _build(self, name: str, build: Build) -> None:
        # What a builder that died left: half a template is none.
        await self._run("drop database if exists {} with (force)", name)
        await self._run("create database {}", name)
        await self.comment(name, kind="template")
        try:
            await build(self._url_of(name))
        except BaseException:
            with trio.CancelScope(shield=True):
                await self._run("drop database {} with (force)", name)
            raise
        await self._disconnect(name)
        await self._run("alter database {} with allow_connections false is_template true", name)

    async def _is_free(self, name: str, *, latest: float) -> bool:
        """Whether no client is connected; true as well when it is too late to wait for that.

        A statement is not cancelled for it: that would cost the connection.
        """
        rows = await self._admin.rows(
            "select from pg_stat_activity where datname = %s limit 1", (name,)
        )
        return not rows or trio.current_time() > latest

    async def _disconnect(self, name: str) -> tuple[str, ...]:
        """End the connections to a database; returns who held them."""
        rows = await self._admin.rows(
            "select pid, usename, application_name, client_addr, state, left(query, 120) as query, "
            "pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = %s",
            (name,),
        )
        return tuple(
            f"pid {row['pid']} ({row['application_name'] or 'no application name'}, user "
            f"{row['usename']}, {row['state']}), last statement: {row['query']!r}"
            for row in rows
        )

    async def clone(self, template: str) -> Clone:
        """Make one more database of ``template``."""
        name = f"hs_{self._run_id}_{os.getpid()}_{secrets.token_hex(4)}"
        self._made.add(name)
        # Shielded: the server finishes a statement whose sender went away, and the database would
        # appear after we looked for what to drop.
        with trio.CancelScope(shield=True):
            await self._create(name, template)
            await self.comment(name, kind="clone")
        return Clone(name=name, url=self._url_of(name))

    async def create(self, name: str) -> None:
        """Make an empty database of that name.

        Raises:
            BadInput: the name is empty or too long for the server, which would cut it.
            HarnessError: there is one of that name already.
        """
        if not 0 < len(name.encode()) <= _NAME_BYTES:
            raise BadInput("database", key="name", found=name, expected=f"1 to {_NAME_BYTES} bytes")
        try:
            await self._create(name, "template1")
        except psycopg.errors.DuplicateDatabase as error:
            raise HarnessError(
                f"create the database {name}",
                observed="the server has one of that name",
                next_step="Name another one, or use a server of this run alone",
            ) from error
        await self.comment(name, kind="empty")

    async def _create(self, name: str, template: str) -> None:
        await self._admin.rows(
            sql.SQL("create database {} template {} strategy {}").format(
                sql.Identifier(name), sql.Identifier(template), sql.SQL(self._strategy)
            )
        )

    async def comment(self, name: str, *, kind: str) -> None:
        """Record on the database itself what it is."""
        text = json.dumps({"by": _MADE_BY, "run": self._run_id, "kind": kind})
        await self._run("comment on database {} is {}", name, text)

    async def made_here(self) -> tuple[str, ...]:
        """Databases whose comment names this run."""
        rows = await self._admin.rows(
            "select datname, shobj_description(oid, 'pg_database') as comment from pg_database "
            "where starts_with(datname, %s) order by 1",
            (f"hs_{self._run_id}_",),
        )
        return tuple(row["datname"] for row in rows if self._ours(row["comment"]))

    def _ours(self, comment: str | None) -> bool:
        try:
            found: Any = json.loads(comment or "null")
        except ValueError:
            return False
        wanted = {"by": _MADE_BY, "run": self._run_id}
        return isinstance(found, dict) and wanted.items() <= found.items()

    async def drop(self, name: str) -> tuple[str, ...]:
        """Drop a database of this run; returns who was still connected, one line each."""
        if name not in await self.made_here():
            raise HarnessError(
                f"drop the database {name}",
                observed=f"it does not exist, or was not made by the run {self._run_id}",
                next_step="Drop it by hand if it is yours",
            )
        await self._run("alter database {} with is_template false", name)
        # What its client has closed is gone from the server a moment later.
        await until(partial(self._is_free, name, latest=trio.current_time() + _LEAVING_S))
        holders = await self._disconnect(name)
        await self._run("drop database {} with (force)", name)
        self._made.discard(name)
        return holders

    async def leave(self, template: str, *, keep: set[str]) -> None:
        """Drop this process's clones, and the template when no other process uses it."""
        try:
            existing = await self.made_here()
        except HarnessError:
            return  # the server is gone, and its databases with it
        for name in existing:
            if name in self._made and name not in keep:
                await self.drop(name)
        number = _lock_number(template)
        await self._admin.rows("select pg_advisory_unlock_shared(%s, %s)", (_LOCK_SPACE, number))
        rows = await self._admin.rows(
            "select pg_try_advisory_lock(%s, %s) as alone", (_LOCK_SPACE, number)
        )
        if rows[0]["alone"] and template in existing:
            await self.drop(template)


def _lock_number(name: str) -> int:
    """A stable number for a name; the server takes a signed 32-bit integer."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big", signed=True)
