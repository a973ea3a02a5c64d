"""Frames without sockets: bytes in, payloads out.

A frame is six hexadecimal digits, the length of the payload *in characters*, then the payload as
UTF-8. Whitespace between frames means nothing. Source: contract "daemon", Wire.
"""

from __future__ import annotations

import codecs
import string
from typing import Final

from suites.daemon.wire._violation import LocalProtocolError, RemoteProtocolError, Violation

__all__ = ["FRAME_CHARACTERS", "PREFIX_DIGITS", "FrameDecoder", "encode_frame"]

PREFIX_DIGITS: Final = 6

#: Longest payload that is read unless the caller says otherwise. The prefix could announce 16 Mi
#: characters; an answer of a daemon is a few hundred.
FRAME_CHARACTERS: Final = 1024 * 1024

_LARGEST: Final = 16**PREFIX_DIGITS - 1
_HEX: Final = frozenset(string.hexdigits.encode())
_WHITESPACE: Final = frozenset(b" \t\r\n\f\v")


def encode_frame(payload: str, *, lower_case: bool = False) -> bytes:
    """One frame, ready to send.

    Args:
        payload: the text of one s-expression; its syntax is not checked.
        lower_case: digits a…f instead of A…F; a reader takes either.

    Raises:
        LocalProtocolError: longer than six digits can say, or not encodable as UTF-8.
    """
    if len(payload) > _LARGEST:
        raise LocalProtocolError(f"{len(payload)} characters do not fit a prefix of six digits")
    prefix = f"{len(payload):0{PREFIX_DIGITS}{'x' if lower_case else 'X'}}"
    try:
        return prefix.encode() + payload.encode()
    except UnicodeEncodeError as error:
        raise LocalProtocolError(f"the payload is not encodable as UTF-8: {error}") from error


class FrameDecoder:
    """Reads frames from bytes that arrive in pieces of any size.

    A violation is final: after a wrong length the next frame's beginning is unknown, so every
    later call raises the same error.

    Args:
        max_characters: longest payload to accept.
    """

    def __init__(self, *, max_characters: int = FRAME_CHARACTERS) -> None:
        self.max_characters = max_characters
        self._buffer = bytearray()
        self._prefix = ""
        self._announced = 0
        self._utf8 = codecs.getincrementaldecoder("utf-8")()
        self._pieces: list[str] = []
        self._characters = 0
        self._offset_bytes = 0
        self._broken: RemoteProtocolError | None = None

    def feed(self, data: bytes) -> None:
        """Take what a socket gave."""
        self._buffer += data

    def next_payload(self) -> str | None:
        """The payload of the next whole frame, or ``None`` when more bytes are needed.

        Raises:
            RemoteProtocolError: prefix, size or encoding are wrong.
        """
        if self._broken is not None:
            raise self._broken
        try:
            if not self._read_prefix() or not self._read_payload():
                return None
        except RemoteProtocolError as error:
            self._broken = error
            raise
        payload = "".join(self._pieces)
        self._prefix, self._announced, self._characters = "", 0, 0
        self._pieces.clear()
        return payload

    def close(self) -> None:
        """Say that no more bytes come.

        Raises:
            RemoteProtocolError: they ended inside a frame.
        """
        if self._broken is not None:
            raise self._broken
        if self._prefix:
            raise RemoteProtocolError(
                Violation.TRUNCATED,
                observed="the connection ended inside a frame",
                progress=self.progress,
            )

    @property
    def progress(self) -> str:
        """How far the frame in progress got, for people."""
        if len(self._prefix) < PREFIX_DIGITS:
            return f"read {len(self._prefix)} of {PREFIX_DIGITS} prefix digits"
        return f"read {self._characters} of {self._announced} payload characters"

    def _read_prefix(self) -> bool:
        """Whether the prefix is complete."""
        while len(self._prefix) < PREFIX_DIGITS and self._buffer:
            byte = self._buffer.pop(0)
            if not self._prefix and byte in _WHITESPACE:
                self._offset_bytes += 1
                continue
            if byte not in _HEX:
                found = bytes([byte, *self._buffer[:15]])
                raise RemoteProtocolError(
                    Violation.PREFIX,
                    observed=f"found {found!r} at byte {self._offset_bytes}, expected a "
                    "hexadecimal digit of the length prefix",
                    progress=self.progress,
                )
            self._offset_bytes += 1
            self._prefix += chr(byte)
            if len(self._prefix) == PREFIX_DIGITS:
                self._announced = int(self._prefix, 16)
                if self._announced > self.max_characters:
                    raise RemoteProtocolError(
                        Violation.SIZE,
                        observed=f"a frame of {self._announced} characters is announced, at most "
                        f"{self.max_characters} are accepted",
                        progress=self.progress,
                    )
        return len(self._prefix) == PREFIX_DIGITS

    def _read_payload(self) -> bool:
        """Whether the payload is complete.

        As many bytes as characters are missing never hold more than those characters, so what
        follows the frame is left alone.
        """
        while self._characters < self._announced and self._buffer:
            data = bytes(self._buffer[: self._announced - self._characters])
            del self._buffer[: len(data)]
            pending, _ = self._utf8.getstate()
            try:
                piece = self._utf8.decode(data)
            except UnicodeDecodeError as error:
                at = self._offset_bytes - len(pending) + error.start
                raise RemoteProtocolError(
                    Violation.ENCODING,
                    observed=f"bytes that are no UTF-8 at byte {at}: "
                    f"{error.object[error.start : error.end]!r} ({error.reason})",
                    progress=self.progress,
                ) from error
            self._offset_bytes += len(data)
            self._characters += len(piece)
            self._pieces.append(piece)
        return self._characters == self._announced
