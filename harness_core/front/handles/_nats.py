"""A NATS server, as one test sees it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Final

import trio

from harness_core.base.bridge import Loop, View, anywhere, in_sync, this_loop
from harness_core.base.evidence import Evidence
from harness_core.base.wait import deadline, until
from harness_core.infrastructure.services import (
    NatsMessage,
    NatsRefusedError,
    NatsService,
    open_nats_connection,
)

#: Of a message, in evidence.
_SHOWN_BYTES: Final = 2000

#: What clients and JetStream say among themselves.
_PRIVATE: Final = ("$", "_INBOX.")


class Nats:
    """A NATS server with JetStream and no stream at the start of a test; given by the fixture ``nats``.

    Its methods may be awaited in a task of trio, asyncio or anyio; :attr:`sync` has them for any other
    code.

    Attributes:
        url: ``nats://127.0.0.1:PORT``, the same for the whole run.
        address: ``127.0.0.1:PORT``.
    """

    def __init__(self, server: NatsService, *, loop: Loop) -> None:
        self.url = server.url
        self.address = server.address
        self._server = server
        self._loop = loop
        self._seen: list[NatsMessage] = []

    @property
    def sync(self) -> SyncNats:
        """The same methods, which wait for their answer."""
        return SyncNats(self, self._loop)

    @property
    def environment(self) -> Mapping[str, str]:
        """For a process: ``NATS_URL``."""
        return {"NATS_URL": self.url}

    @property
    def messages(self) -> tuple[NatsMessage, ...]:
        """Every message since the test began: ``subject``, ``data``, ``headers``; not while it was down."""
        return tuple(self._seen)

    async def streams(self) -> list[str]:
        """The names of the streams, with those of key-value (``KV_``) and object stores (``OBJ_``).

        Raises:
            OSError: the server is down.
        """
        return await self._server.streams()

    @anywhere
    async def publish(self, subject: str, data: bytes) -> None:
        """Send a message; the server has it when this returns.

        Raises:
            OSError: the server is down.
            HarnessError: the server refuses; says why.
        """
        async with open_nats_connection(self.address) as connection:
            await connection.publish(subject, data)
            await connection.flush()

    @anywhere
    async def wait_for(
        self,
        subject: str = ">",
        *,
        count: int = 1,
        where: Callable[[NatsMessage], bool] = lambda _message: True,
        seconds: float = 30.0,
    ) -> list[NatsMessage]:
        """Wait until ``count`` messages have come to a subject that ``where`` accepts; returns them.

        Args:
            subject: with ``*`` for a word and ``>`` for the rest, as NATS has it.
            count: how many, since the test began.
            where: which.
            seconds: at most.

        Raises:
            NotReady: fewer came in time; says to which subjects those that did were sent.
        """

        async def enough() -> list[NatsMessage] | None:
            found = [each for each in self._seen if _matches(each.subject, subject) and where(each)]
            return found if len(found) >= count else None

        def observed() -> str:
            subjects = sorted({each.subject for each in self._seen})
            return f"there were messages to {', '.join(subjects) or 'no subject'}"

        with deadline(f"see {count} messages to {subject}", seconds=seconds, observed=observed):
            return await until(enough)

    def take(self, message: NatsMessage) -> None:
        """It went through the server."""
        self._seen.append(message)


class SyncNats(View[Nats]):
    """The methods of :class:`Nats` for code without a loop."""

    streams = in_sync(Nats.streams)
    publish = in_sync(Nats.publish)
    wait_for = in_sync(Nats.wait_for)


@asynccontextmanager
async def open_subjects(server: NatsService, *, evidence: Evidence) -> AsyncIterator[Nats]:
    """A server without streams of ours for the block, each of its messages seen.

    Args:
        server: which; of others, the streams that it has already stay.
        evidence: has the messages, and the streams that were there at the end.
    """
    before = set(await server.streams())
    async with this_loop("nats") as loop, trio.open_nursery() as nursery:
        handle = Nats(server, loop=loop)
        await nursery.start(_listen, handle, evidence)
        try:
            yield handle
        finally:
            with trio.CancelScope(shield=True):
                for name in sorted(set(await server.streams()) - before):
                    evidence.append_json("nats_streams.jsonl", {"stream": name})
                    await server.remove_stream(name)
            nursery.cancel_scope.cancel()


async def _listen(
    handle: Nats, evidence: Evidence, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Take every message, also after the server was away."""
    started = False

    async def one_life() -> bool:
        nonlocal started
        with suppress(OSError, NatsRefusedError):
            async with open_nats_connection(handle.address) as connection:
                await connection.subscribe(">")
                if not started:
                    task_status.started()
                started = True
                while True:
                    _keep(await connection.next(), handle, evidence)
        return False

    await until(one_life)


def _keep(message: NatsMessage, handle: Nats, evidence: Evidence) -> None:
    if message.subject.startswith(_PRIVATE):
        return
    handle.take(message)
    text = message.data[:_SHOWN_BYTES].decode(errors="backslashreplace")
    row = {"subject": message.subject, "size_bytes": len(message.data), "data": text}
    evidence.append_json("nats.jsonl", row)


def _matches(subject: str, pattern: str) -> bool:
    words, wanted = subject.split("."), pattern.split(".")
    if wanted[-1] == ">":
        wanted = wanted[:-1]
        if len(words) <= len(wanted):
            return False
        words = words[: len(wanted)]
    return len(words) == len(wanted) and all(
        want in {"*", word} for word, want in zip(words, wanted, strict=True)
    )
