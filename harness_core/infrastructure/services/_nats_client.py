"""A connection to a NATS server, as far as tests need one: messages, and requests to JetStream."""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import trio

from harness_core.base.errors import HarnessError
from harness_core.infrastructure.services._readiness import connect

#: The most that a server sends at once, with room; its own limit is a MiB unless it is configured.
_MESSAGE_BYTES: Final = 64 * 1024 * 1024
_LINE: Final = b"\r\n"
_CONNECT: Final = {
    "verbose": False,
    "pedantic": False,
    "name": "staging-harness",
    "lang": "python",
    "version": "1",
    "protocol": 1,
    "headers": True,
    "no_responders": True,
}

#: What a server without JetStream answers a question to it.
_NOBODY: Final = b"NATS/1.0 503"


class NatsRefusedError(HarnessError):
    """The server refuses; ``observed`` is its own message."""

    def __init__(self, message: str) -> None:
        super().__init__("talk to NATS", observed=message)


@dataclass(frozen=True, slots=True, kw_only=True)
class NatsMessage:
    """A message as it went through the server.

    Attributes:
        subject: it was sent to.
        data: its body.
        headers: its header lines as they are; empty without.
        reply: where its sender waits for an answer; empty where it does not.
    """

    subject: str
    data: bytes
    headers: bytes = field(default=b"", repr=False)
    reply: str = ""


class NatsConnection:
    """One connection; built only by :func:`open_nats_connection`.

    Used by one task at a time.
    """

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self._buffer = bytearray()

    async def hello(self) -> None:
        """Introduce ourselves, and wait until the server has taken it."""
        line = await self._line()
        if not line.startswith(b"INFO "):
            raise NatsRefusedError(f"not its protocol: {line[:80]!r}")
        await self._send(b"CONNECT " + json.dumps(_CONNECT).encode())
        await self.flush()

    async def flush(self) -> None:
        """Wait until the server has taken all that was sent."""
        await self._send(b"PING")
        while (line := await self._line()) != b"PONG":
            await self._other(line)

    async def subscribe(self, subject: str) -> None:
        """Have its messages from now on: see :meth:`next`."""
        await self._send(b"SUB %b 1" % subject.encode())
        await self.flush()

    async def publish(self, subject: str, data: bytes, *, reply: str = "") -> None:
        """Send a message; :meth:`flush` says when the server has it."""
        words = " ".join(word for word in ("PUB", subject, reply, str(len(data))) if word)
        await self._send(words.encode() + _LINE + data)

    async def next(self) -> NatsMessage:
        """The next message of a subscription."""
        while True:
            if message := await self._other(await self._line()):
                return message

    async def ask(self, subject: str, question: dict[str, Any]) -> dict[str, Any]:
        """A request of JetStream's API; the connection has no other subscription.

        Raises:
            NatsRefusedError: there is no JetStream, or it refuses.
        """
        inbox = f"_INBOX.{secrets.token_hex(8)}"
        await self.subscribe(inbox)
        await self.publish(subject, json.dumps(question).encode(), reply=inbox)
        answer = await self.next()
        if answer.headers.startswith(_NOBODY):
            raise NatsRefusedError("it has no JetStream")
        found: dict[str, Any] = json.loads(answer.data)
        if "error" in found:
            raise NatsRefusedError(str(found["error"].get("description", found["error"])))
        return found

    async def _other(self, line: bytes) -> NatsMessage | None:
        """What else a server sends: a message, a ping, an error, news of the cluster."""
        word, _, rest = line.partition(b" ")
        match word:
            case b"MSG" | b"HMSG":
                return await self._message(rest.decode().split(), headed=word == b"HMSG")
            case b"PING":
                await self._send(b"PONG")
            case b"-ERR":
                raise NatsRefusedError(rest.decode(errors="replace").strip("'"))
        return None

    async def _message(self, words: list[str], *, headed: bool) -> NatsMessage:
        lengths = [int(word) for word in (words[-2:] if headed else words[-1:])]
        # SUBJECT SID [REPLY] [LENGTH OF THE HEADERS] LENGTH
        reply = words[2] if len(words) == len(lengths) + 3 else ""
        whole = await self._bytes(lengths[-1])
        head = lengths[0] if headed else 0
        return NatsMessage(subject=words[0], data=whole[head:], headers=whole[:head], reply=reply)

    async def _send(self, text: bytes) -> None:
        try:
            await self._stream.send_all(text + _LINE)
        except trio.BrokenResourceError as error:
            raise ConnectionResetError("the server closed the connection") from error

    async def _line(self) -> bytes:
        while (end := self._buffer.find(_LINE)) < 0:
            await self._more()
        line = bytes(self._buffer[:end])
        del self._buffer[: end + len(_LINE)]
        return line

    async def _bytes(self, length: int) -> bytes:
        while len(self._buffer) < length + len(_LINE):
            await self._more()
        found = bytes(self._buffer[:length])
        del self._buffer[: length + len(_LINE)]
        return found

    async def _more(self) -> None:
        if len(self._buffer) > _MESSAGE_BYTES:
            raise NatsRefusedError(f"more than {_MESSAGE_BYTES} bytes in one message")
        try:
            received = await self._stream.receive_some()
        except trio.BrokenResourceError as error:
            raise ConnectionResetError("the server closed the connection") from error
        if not received:
            raise ConnectionResetError("the server closed the connection")
        self._buffer += received


@asynccontextmanager
async def open_nats_connection(address: str) -> AsyncIterator[NatsConnection]:
    """Connect for the block.

    Args:
        address: ``host:port``.

    Raises:
        OSError: no server listens, or it went away.
        NatsRefusedError: it wants a password, or what listens speaks another protocol.
    """
    async with await connect(address) as stream:
        connection = NatsConnection(stream)
        await connection.hello()
        yield connection


async def stream_names(connection: NatsConnection) -> list[str]:
    """The streams of JetStream, with those that stand for key-value and object stores.

    Raises:
        NatsRefusedError: there is no JetStream.
    """
    found: list[str] = []
    while True:
        page = await connection.ask("$JS.API.STREAM.NAMES", {"offset": len(found)})
        found += page["streams"] or []
        if len(found) >= page["total"]:
            return found
