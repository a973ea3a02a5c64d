"""A client of the framed protocol on trio: what any client with a socket can do, and no more."""

from __future__ import annotations

import itertools
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final

import trio

from harness_core.base.evidence import tell
from harness_core.base.slowness import slowness
from suites.daemon.wire._forms import Form, lookup
from suites.daemon.wire._frames import FRAME_CHARACTERS, FrameDecoder, encode_frame
from suites.daemon.wire._printer import print_form
from suites.daemon.wire._reader import read_form
from suites.daemon.wire._transcript import Transcript
from suites.daemon.wire._violation import RemoteProtocolError, Violation

__all__ = ["Connection", "Message", "open_connection"]

_READ_BYTES: Final = 65_536

#: Of connections of this process, so that a report tells them apart.
_NUMBERS: Final = itertools.count(1)

#: Characters of a message that an error shows.
_SHOWN: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One frame that came in.

    Attributes:
        payload: its text as it was sent.
        form: that text, parsed.
    """

    payload: str
    form: Form

    def get(self, *path: str) -> Form | None:
        """Follow keywords into the message, as :func:`~suites.daemon.wire.lookup` does."""
        return lookup(self.form, *path)


class Connection:
    """One connection; built only by :func:`open_connection`.

    Attributes:
        transcript: the bytes exchanged, for failure messages.
    """

    def __init__(self, stream: trio.SocketStream, *, max_characters: int) -> None:
        self.transcript = Transcript()
        self._stream = stream
        self._decoder = FrameDecoder(max_characters=max_characters)

    @property
    def local_port(self) -> int:
        """Our end, by which a product's log may name this connection."""
        port: int = self._stream.socket.getsockname()[1]
        return port

    async def send(self, form: Form) -> None:
        """Send one message.

        Raises:
            RemoteProtocolError: the other side has closed the connection.
            LocalProtocolError: the form cannot be printed.
        """
        await self.send_bytes(encode_frame(print_form(form)))

    async def send_bytes(self, data: bytes) -> None:
        """Send bytes as they are, well-formed or not.

        Raises:
            RemoteProtocolError: the other side has closed the connection.
        """
        self.transcript.add("sent", data)
        try:
            await self._stream.send_all(data)
        except trio.BrokenResourceError as error:
            raise self._error(
                Violation.CLOSED, "the connection was closed while sending"
            ) from error

    async def send_eof(self) -> None:
        """Say that nothing more comes from us, and go on reading; who has gone need not be told."""
        with suppress(trio.BrokenResourceError):
            await self._stream.send_eof()

    async def send_while_open(self, data: bytes) -> bool:
        """Send bytes to someone who may end the connection at any of them; whether all were sent."""
        try:
            await self.send_bytes(data)
        except RemoteProtocolError:
            return False
        return True

    async def abort(self) -> None:
        """End it as a machine does that lost its power: with a reset, whatever is under way."""
        linger = struct.pack("ii", 1, 0)
        self._stream.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_LINGER, linger)
        await self._stream.aclose()

    async def receive(self, what: str = "a message", *, seconds: float) -> Message:
        """The next message.

        Args:
            what: what is due, for the error.
            seconds: how long it may take on a machine with nothing else to do.

        Raises:
            RemoteProtocolError: nothing came, the connection ended, or what came is no message.
        """
        payload = await self._receive_payload(what, seconds=seconds)
        if payload is None:
            raise self._error(Violation.CLOSED, f"the connection ended where {what} was due")
        try:
            return Message(payload=payload, form=read_form(payload))
        except RemoteProtocolError as error:
            raise self._with_transcript(error) from error

    async def receive_until_closed(self, *, seconds: float) -> tuple[Message, ...]:
        """Every message up to the end of the connection; a reset between two frames is an end.

        Args:
            seconds: how long the other side may take to close, on a machine with nothing else to do.

        Raises:
            RemoteProtocolError: it stays open, or what came is no message.
        """
        messages: list[Message] = []
        factor = slowness()
        with trio.move_on_after(seconds * factor):
            while True:
                try:
                    payload = await self._next_payload("the end")
                except RemoteProtocolError as error:
                    if error.violation is not Violation.CLOSED:
                        raise
                    self._end()
                    payload = None
                if payload is None:
                    return tuple(messages)
                form = read_form(payload)
                messages.append(Message(payload=payload, form=form))
        answered = f" and answered with {messages[-1].payload[:_SHOWN]}" if messages else ""
        raise self._error(
            Violation.SILENT,
            f"the connection is still open after {seconds:g} s{_busy(factor)}{answered}, "
            "expected its end",
        )

    async def _receive_payload(self, what: str, *, seconds: float) -> str | None:
        """The next payload, or ``None`` at the end of the connection between two frames."""
        factor = slowness()
        with trio.move_on_after(seconds * factor):
            return await self._next_payload(what)
        raise self._error(
            Violation.SILENT,
            f"{seconds:g} s passed without {what}{_busy(factor)}, {self._decoder.progress}",
        )

    async def _next_payload(self, what: str) -> str | None:
        """As :meth:`_receive_payload`, for as long as it takes."""
        while True:
            try:
                if (payload := self._decoder.next_payload()) is not None:
                    return payload
                data = await self._stream.receive_some(_READ_BYTES)
            except trio.BrokenResourceError as error:
                raise self._error(
                    Violation.CLOSED, f"the connection was reset where {what} was due"
                ) from error
            except RemoteProtocolError as error:
                raise self._with_transcript(error) from error
            if not data:
                self._end()
                return None
            self.transcript.add("received", data)
            self._decoder.feed(data)

    def _end(self) -> None:
        try:
            self._decoder.close()
        except RemoteProtocolError as error:
            raise self._with_transcript(error) from error

    def _error(self, violation: Violation, observed: str) -> RemoteProtocolError:
        return RemoteProtocolError(violation, observed=observed, transcript=str(self.transcript))

    def _with_transcript(self, error: RemoteProtocolError) -> RemoteProtocolError:
        return RemoteProtocolError(
            error.violation,
            observed=error.observed,
            progress=error.progress,
            transcript=str(self.transcript),
        )


def _busy(factor: float) -> str:
    return f" (times {factor:.1f}, for a busy machine)" if factor > 1 else ""


@asynccontextmanager
async def open_connection(
    port: int,
    *,
    seconds: float = 5.0,
    max_characters: int = FRAME_CHARACTERS,
) -> AsyncIterator[Connection]:
    """Connect to a daemon on this machine; the connection closes when the block ends.

    Nothing is read yet: the handshake is the first message.

    Args:
        port: TCP port on 127.0.0.1.
        seconds: how long connecting may take on a machine with nothing else to do.
        max_characters: longest payload to accept.

    Raises:
        RemoteProtocolError: the port does not accept the connection.
    """
    stream: trio.SocketStream | None = None
    factor = slowness()
    try:
        with trio.move_on_after(seconds * factor):
            stream = await trio.open_tcp_stream("127.0.0.1", port)
    except OSError as error:
        raise RemoteProtocolError(
            Violation.CLOSED, observed=f"port {port} refuses the connection: {error}"
        ) from error
    if stream is None:
        raise RemoteProtocolError(
            Violation.SILENT,
            observed=f"port {port} did not accept within {seconds:g} s{_busy(factor)}",
        )
    async with stream:
        connection = Connection(stream, max_characters=max_characters)
        number = next(_NUMBERS)
        tell(lambda: connection.transcript.frames(str(number)))
        yield connection
