"""A migrated database per test, in microseconds: sealed templates and a pool of clones.

A blueprint is how a database comes to be and has a key that changes with it. On one server:

* one *template* per key and run, built under an advisory lock by whichever process comes first,
  then sealed (it takes no connections, which is also what lets it be cloned at any time);
* *clones* of it, some made ahead of time by each process, handed out from memory.

Whose a database is, and who removes a template, is the business of ``_server.py``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

import psycopg
import trio

from harness_core.base.bridge import anywhere
from harness_core.base.errors import BadInput, HarnessError
from harness_core.base.groups import lone_error
from harness_core.infrastructure.databases._blueprint import Blueprint
from harness_core.infrastructure.databases._server import Clone, Server

#: More would fill a small tmpfs: a clone has 8 MB.
_MOST_WARM: Final = 32


class DatabasePool:
    """Clones of one template; built only by :func:`open_pool`.

    :meth:`checkout`, :meth:`keep` and :meth:`drop` may be awaited in any event loop.
    """

    def __init__(
        self, server: Server, template: str, *, warm: int, token: trio.lowlevel.TrioToken
    ) -> None:
        self._server = server
        self._template = template
        self._warm = warm
        self._token = token
        self._ready: deque[Clone] = deque()
        self._wanted = trio.Event()
        self._kept: set[str] = set()

    @property
    def template(self) -> str:
        """Name of the sealed template."""
        return self._template

    @property
    def warm(self) -> int:
        """Clones that are ready now."""
        return len(self._ready)

    @anywhere
    async def checkout(self) -> Clone:
        """A database of one's own: from memory when one is ready, else made on the spot."""
        try:
            clone = self._ready.popleft()
        except IndexError:
            clone = await self._server.clone(self._template)
        self._token.run_sync_soon(self._refill_soon)
        return clone

    @anywhere
    async def keep(self, clone: Clone) -> str:
        """Leave a clone for its reader when the pool closes; returns its URL, redacted.

        On a server of the run itself it lives as long as that server.
        """
        self._kept.add(clone.name)
        await self._server.comment(clone.name, kind="kept")
        return clone.shown_url

    @anywhere
    async def drop(self, clone: Clone) -> tuple[str, ...]:
        """Remove a clone, with the connections left to it.

        Returns:
            Who held those, one line each: a finding about whoever left them.

        Raises:
            HarnessError: it was not made by this run.
        """
        return await self._server.drop(clone.name)

    def _refill_soon(self) -> None:
        self._wanted.set()

    async def _refill(self) -> None:
        while True:
            self._wanted = trio.Event()
            # Where the server is away (a test of an outage, say), whoever wants a database learns it.
            with suppress(HarnessError, psycopg.Error):
                while len(self._ready) < self._warm:
                    self._ready.append(await self._server.clone(self._template))
            await self._wanted.wait()


@asynccontextmanager
async def open_pool(
    url_of: Callable[[str], str],
    blueprint: Blueprint,
    *,
    run_id: str,
    in_memory: bool = False,
    warm: int = 2,
) -> AsyncIterator[DatabasePool]:
    """Open a pool of clones of ``blueprint``; its clones are dropped at the end, kept ones apart.

    Args:
        url_of: URL of a database of the server by its name (``PostgresService.url``).
        blueprint: how a database comes to be.
        run_id: part of every name; lower-case letters, digits and dashes.
        in_memory: the server's data lies in memory: copying files beats writing them to the log.
        warm: clones made ahead of time, 0 to 32.

    Raises:
        BadInput: a malformed ``run_id`` or ``warm``.
        Unavailable: the server cannot be reached.
    """
    if not 0 <= warm <= _MOST_WARM:
        raise BadInput("open_pool", key="warm", found=warm, expected=f"0 to {_MOST_WARM}")
    async with Server(url_of, run_id=run_id, in_memory=in_memory) as server:
        template = await server.template(blueprint.key, blueprint.build)
        pool = DatabasePool(server, template, warm=warm, token=trio.lowlevel.current_trio_token())
        try:
            async with lone_error(), trio.open_nursery() as nursery:
                nursery.start_soon(pool._refill)  # noqa: SLF001 - its own half
                yield pool
                nursery.cancel_scope.cancel()
        finally:
            with trio.CancelScope(shield=True):
                await server.leave(template, keep=pool._kept)  # noqa: SLF001


async def drop_run_databases(url_of: Callable[[str], str], *, run_id: str) -> tuple[str, ...]:
    """Drop whatever a run left on a server (its process died): templates, clones, kept ones too.

    Returns:
        Their names.
    """
    async with Server(url_of, run_id=run_id, in_memory=False) as server:
        names = await server.made_here()
        for name in names:
            await server.drop(name)
        return names
