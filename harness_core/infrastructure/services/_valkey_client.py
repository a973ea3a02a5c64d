"""One command to a server that speaks Redis's protocol (RESP 2)."""

from __future__ import annotations

from typing import Final, TypeAlias

import trio

from harness_core.base.errors import HarnessError
from harness_core.infrastructure.services._readiness import connect

#: A text, a number, nothing, or a list of such.
Reply: TypeAlias = "bytes | int | list[Reply] | None"

#: What a test looks at fits; more than that is no answer.
_REPLY_BYTES: Final = 64 * 1024 * 1024
_LINE: Final = b"\r\n"


class ValkeyRefusedError(HarnessError):
    """The server refuses a command; ``observed`` is its own message."""

    def __init__(self, message: str) -> None:
        super().__init__("talk to Valkey", observed=message)


async def ask_valkey(address: str, *words: str | bytes, database: int = 0) -> Reply:
    """One command on a connection of its own.

    Args:
        address: ``host:port``.
        words: the command and its arguments.
        database: its number there.

    Raises:
        OSError: no server listens, or it went away.
        ValkeyRefusedError: it refuses, or what listens speaks another protocol.
    """
    async with await connect(address) as stream:
        answers = _Answers(stream)
        try:
            if database:
                await stream.send_all(_packed("SELECT", str(database)))
                await answers.read()
            await stream.send_all(_packed(*words))
            return await answers.read()
        except trio.BrokenResourceError as error:
            raise ConnectionResetError(f"{address} closed the connection") from error


def _packed(*words: str | bytes) -> bytes:
    texts = [word.encode() if isinstance(word, str) else word for word in words]
    return b"*%d\r\n" % len(texts) + b"".join(
        b"$%d\r\n%b\r\n" % (len(text), text) for text in texts
    )


class _Answers:
    """What comes back on one connection."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self._buffer = bytearray()

    async def read(self) -> Reply:
        line = await self._until_line()
        kind, rest = line[:1], line[1:]
        match kind:
            case b"+":
                return rest
            case b"-":
                raise ValkeyRefusedError(rest.decode(errors="replace"))
            case b":":
                return _number(rest)
            case b"$":
                return None if rest == b"-1" else await self._text(_number(rest))
            case b"*":
                return [await self.read() for _ in range(_number(rest))] if rest != b"-1" else None
            case _:
                raise ValkeyRefusedError(f"not its protocol: {bytes(line[:80])!r}")

    async def _until_line(self) -> bytes:
        while (end := self._buffer.find(_LINE)) < 0:
            await self._more()
        line = bytes(self._buffer[:end])
        del self._buffer[: end + len(_LINE)]
        return line

    async def _text(self, length: int) -> bytes:
        while len(self._buffer) < length + len(_LINE):
            await self._more()
        text = bytes(self._buffer[:length])
        del self._buffer[: length + len(_LINE)]
        return text

    async def _more(self) -> None:
        if len(self._buffer) > _REPLY_BYTES:
            raise ValkeyRefusedError(f"more than {_REPLY_BYTES} bytes in one reply")
        received = await self._stream.receive_some()
        if not received:
            raise ConnectionResetError("the server closed the connection")
        self._buffer += received


def _number(text: bytes) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise ValkeyRefusedError(f"not its protocol: {text[:80]!r}") from error
