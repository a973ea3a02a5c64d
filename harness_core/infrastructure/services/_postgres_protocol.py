"""Enough of the PostgreSQL wire protocol (version 3) to know that a server answers.

A server that accepts connections is not yet one that answers: while it starts it refuses every
client politely (SQLSTATE 57P03). This speaks the first messages itself, so that neither a client
library nor ``pg_isready`` is needed to wait for a server.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

import trio

from harness_core.base.errors import HarnessError
from harness_core.base.sockets import short_name
from harness_core.infrastructure.services._readiness import connect

_VERSION_3: Final = 3 << 16

#: Longest message read while starting up; an error with all its fields has a few hundred bytes.
_MESSAGE_BYTES: Final = 64 * 1024

#: The length of a message counts itself.
_LENGTH_BYTES: Final = 4

_AUTHENTICATION: Final = b"R"
_ERROR: Final = b"E"
_READY: Final = b"Z"


class ServerRefusedError(HarnessError):
    """The server answered, with an error.

    Args:
        sqlstate: its five-character code; ``57P03`` while the server starts or stops.
        message: its text.
    """

    def __init__(self, *, sqlstate: str, message: str) -> None:
        super().__init__("talk to PostgreSQL", observed=f"it answers {sqlstate}: {message}")
        self.sqlstate = sqlstate
        self.message = message


async def greet(address: str) -> str:
    """One round trip over TCP: introduce ourselves and wait for the server's first word.

    Args:
        address: ``host:port``.

    Returns:
        ``"authentication"``: the server is up and asks who we are.

    Raises:
        OSError: no server listens, or the connection broke.
        ServerRefusedError: it listens and refuses.
    """
    async with await connect(address) as stream:
        await _introduce(stream)
        await _expect(stream, _AUTHENTICATION)
    return "authentication"


async def execute_locally(directory: Path, port: int, statement: str) -> None:
    """Run one statement as the superuser over the socket in ``directory``.

    For a server that trusts whoever can reach that directory.

    Raises:
        OSError: no server listens, or the connection broke.
        ServerRefusedError: the server refuses, or the statement failed.
    """
    with short_name(directory / f".s.PGSQL.{port}") as path:
        stream = await trio.open_unix_socket(path)
    async with stream:
        await _introduce(stream)
        await _expect(stream, _READY)
        body = statement.encode() + b"\0"
        await stream.send_all(b"Q" + struct.pack(">I", len(body) + 4) + body)
        await _expect(stream, _READY)


async def _introduce(stream: trio.abc.Stream) -> None:
    body = struct.pack(">I", _VERSION_3) + b"user\0postgres\0database\0postgres\0\0"
    await stream.send_all(struct.pack(">I", len(body) + 4) + body)


async def _expect(stream: trio.abc.Stream, wanted: bytes) -> None:
    """Read messages until one of type ``wanted``; an error message is raised."""
    while True:
        head = await _exactly(stream, 5)
        (length,) = struct.unpack(">I", head[1:])
        if not _LENGTH_BYTES <= length <= _MESSAGE_BYTES:
            raise HarnessError(
                "talk to PostgreSQL",
                observed=f"the other side sent {head!r}, which is no message of its protocol",
                next_step="See what listens on that port",
            )
        body = await _exactly(stream, length - _LENGTH_BYTES)
        if head[:1] == _ERROR:
            fields = {part[:1]: part[1:].decode("utf-8", "replace") for part in body.split(b"\0")}
            raise ServerRefusedError(
                sqlstate=fields.get(b"C", "?????"), message=fields.get(b"M", "no message")
            )
        if head[:1] == wanted:
            return


async def _exactly(stream: trio.abc.Stream, count: int) -> bytes:
    read = b""
    while len(read) < count:
        try:
            data = await stream.receive_some(count - len(read))
        except trio.BrokenResourceError as error:
            raise ConnectionResetError("the server broke the connection") from error
        if not data:
            raise ConnectionResetError(
                f"read {len(read)} of {count} bytes from the server before EOF"
            )
        read += data
    return read
