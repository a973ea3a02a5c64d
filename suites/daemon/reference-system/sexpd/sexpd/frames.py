"""Where does one frame end and the next begin?

Six hexadecimal digits, the length of the payload in characters, then the payload, UTF-8 on the
wire. :class:`FrameReader` is fed bytes as they come and never waits; what it cannot read it says
in a :class:`FrameError` that reports how far it got.
"""

from __future__ import annotations

import codecs

from sexpd import faults

PREFIX_CHARS = 6
LARGEST_CHARS = 0xFFFFFF
_SPACE = b" \t\r\n\f\v"
_DIGITS = frozenset(b"0123456789abcdefABCDEF")


class FrameError(ValueError):
    """Bytes that are no frame; the text says what was wrong and how far it got."""


def frame(payload: str) -> bytes:
    """A payload as it goes over the wire.

    Raises:
        FrameError: longer than six digits can say.
    """
    raw = payload.encode("utf-8", errors="replace")
    length = len(raw) if faults.on("length-in-bytes") else len(payload)
    if length > LARGEST_CHARS:
        raise FrameError(f"a payload of {length} characters does not fit into a frame")
    return b"%06X%s" % (length, raw)


class FrameReader:
    """Bytes in, payloads out.

    Args:
        limit_chars: the largest payload that is read.
    """

    def __init__(self, *, limit_chars: int) -> None:
        self._limit_chars = limit_chars
        # Only for the planted fault `progress-of-connection`.
        self._before = 0
        self._start()
        self._raw = bytearray()

    def _start(self) -> None:
        self._prefix = b""
        self._length: int | None = None
        self._text: list[str] = []
        self._chars = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("strict")

    @property
    def inside(self) -> bool:
        """Whether a frame has begun and not ended."""
        return bool(self._prefix) or self._length is not None

    @property
    def progress(self) -> str:
        """How far the frame that has begun got."""
        if self._length is None:
            return f"read {len(self._prefix)} of {PREFIX_CHARS} prefix digits"
        read = self._chars + (self._before if faults.on("progress-of-connection") else 0)
        return f"read {read} of {self._length} characters of the payload"

    def feed(self, data: bytes) -> None:
        """Take bytes from the wire."""
        self._raw += data

    def next(self) -> str | None:
        """The next payload, or None until more bytes come.

        Raises:
            FrameError: what is there can never become a frame.
        """
        if self._length is None and not self._read_prefix():
            return None
        assert self._length is not None
        if faults.on("length-in-bytes"):
            return self._payload_by_bytes()
        while self._chars < self._length and self._raw:
            # A character is a byte at least, so this much cannot hold more than is missing.
            chunk = bytes(self._raw[: self._length - self._chars])
            del self._raw[: len(chunk)]
            self._take(chunk)
        if self._chars < self._length or self._pending():
            return None
        payload = "".join(self._text)
        self._before += self._chars
        self._start()
        return payload

    def _payload_by_bytes(self) -> str | None:
        assert self._length is not None
        if len(self._raw) < self._length:
            return None
        raw = bytes(self._raw[: self._length])
        del self._raw[: self._length]
        self._start()
        return raw.decode("utf-8", errors="replace")

    def _take(self, chunk: bytes) -> None:
        try:
            text = self._decoder.decode(chunk)
        except UnicodeDecodeError as error:
            good = error.object[: error.start].decode("utf-8", errors="replace")
            self._chars += len(good)
            byte = error.object[error.start]
            raise FrameError(f"byte 0x{byte:02X} is not UTF-8, {self.progress}") from error
        self._text.append(text)
        self._chars += len(text)

    def _pending(self) -> bool:
        return bool(self._decoder.getstate()[0])

    def _read_prefix(self) -> bool:
        if not self._prefix and not faults.on("whitespace-refused"):
            self._raw = self._raw.lstrip(_SPACE)
        while len(self._prefix) < PREFIX_CHARS and self._raw:
            byte = self._raw[0]
            if byte not in _DIGITS or (byte == 0x66 and faults.on("lower-case-f-refused")):
                raise FrameError(
                    f"byte 0x{byte:02X} is no hexadecimal digit, {self.progress}"
                )
            self._prefix += bytes((byte,))
            del self._raw[0]
        if len(self._prefix) < PREFIX_CHARS:
            return False
        length = int(self._prefix, 16)
        if length > self._limit_chars and not faults.on("frame-size-unbounded"):
            raise FrameError(
                f"a payload of {length} characters was declared, the limit is "
                f"{self._limit_chars}, {self.progress}"
            )
        self._length = length
        return True
