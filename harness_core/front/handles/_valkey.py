"""The keys of a Valkey server, as one test sees them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

import trio

from harness_core.base.bridge import Loop, View, in_sync, this_loop
from harness_core.base.errors import Unavailable
from harness_core.base.evidence import Evidence
from harness_core.infrastructure.services import Reply, ValkeyService

#: Rows in evidence; who left more repeats himself.
_SHOWN: Final = 1000


class Valkey:
    """A Valkey server without a key at the start of a test; given by the fixture ``valkey``.

    Clients of Redis use it as they use Redis. Its methods may be awaited in a task of trio, asyncio or
    anyio; :attr:`sync` has them for any other code.

    Attributes:
        url: ``redis://127.0.0.1:PORT/0``, the same for the whole run.
    """

    def __init__(self, server: ValkeyService, *, loop: Loop) -> None:
        self.url = server.url
        self._server = server
        self._loop = loop

    @property
    def sync(self) -> SyncValkey:
        """The same methods, which wait for their answer."""
        return SyncValkey(self, self._loop)

    @property
    def host(self) -> str:
        """Where it listens."""
        return self._server.address.rpartition(":")[0]

    @property
    def port(self) -> int:
        """There."""
        return int(self._server.address.rpartition(":")[2])

    @property
    def environment(self) -> Mapping[str, str]:
        """For a process: ``REDIS_URL``, ``VALKEY_URL``."""
        return {"REDIS_URL": self.url, "VALKEY_URL": self.url}

    async def command(self, *words: str | bytes) -> Reply:
        """One command: ``command("GET", "cart:1")``.

        Returns:
            What it answers: bytes, a number, ``None``, or a list of such.

        Raises:
            OSError: the server is down.
            HarnessError: the server refuses; says why.
        """
        return await self._server.command(*words)

    async def keys(self, pattern: str = "*") -> list[str]:
        """The keys that match, in order."""
        found = await self.command("KEYS", pattern)
        assert isinstance(found, list)
        return sorted(key.decode(errors="replace") for key in found if isinstance(key, bytes))


class SyncValkey(View[Valkey]):
    """The methods of :class:`Valkey` for code without a loop."""

    command = in_sync(Valkey.command)
    keys = in_sync(Valkey.keys)


@asynccontextmanager
async def open_keys(server: ValkeyService, *, evidence: Evidence) -> AsyncIterator[Valkey]:
    """An empty server for the block.

    Args:
        server: which; one of others has to be empty already.
        evidence: has a list of the keys that were there at the end.

    Raises:
        Unavailable: a server of others has keys.
    """
    empty = "FLUSHALL"
    if server.provider == "external":
        empty = "FLUSHDB"
        number = await server.command("DBSIZE")
        if isinstance(number, int) and number:
            raise Unavailable(
                f"give a test the database {server.url}",
                observed=f"it has {number} keys, and they would be removed",
                next_step="Name the number of an empty one",
            )
    await server.command(empty)  # what a process of an earlier test wrote after its end
    async with this_loop("valkey") as loop:
        handle = Valkey(server, loop=loop)
        try:
            yield handle
        finally:
            with trio.CancelScope(shield=True):
                for key in (await handle.keys())[:_SHOWN]:
                    evidence.append_json("valkey.jsonl", {"key": key})
                await server.command(empty)
