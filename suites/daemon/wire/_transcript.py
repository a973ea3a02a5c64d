"""What went over a connection, kept for the failure message."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from typing import Final, Literal

from harness_core.base.evidence import Frame

__all__ = ["Exchange", "Transcript"]

#: Pieces kept, and bytes kept of each: a flood must not fill the memory of the test.
_PIECES: Final = 64
_PIECE_BYTES: Final = 2048
#: Bytes of a piece that are shown in a message.
_SHOWN_BYTES: Final = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One piece of bytes that was sent or received.

    Attributes:
        direction: ``"sent"`` or ``"received"``, by us.
        data: the bytes, cut after 2048.
        size_bytes: how many there were.
        after_s: seconds since the connection was opened.
    """

    direction: Literal["sent", "received"]
    data: bytes
    size_bytes: int
    after_s: float

    def __str__(self) -> str:
        shown = self.data[:_SHOWN_BYTES].decode(errors="backslashreplace")
        printable = "".join(
            c if c.isprintable() else c.encode("unicode_escape").decode() for c in shown
        )
        more = self.size_bytes - min(len(self.data), _SHOWN_BYTES)
        arrow = ">" if self.direction == "sent" else "<"
        return f"  {self.after_s:7.3f} s {arrow} {printable}" + (
            f" … and {more} bytes" if more else ""
        )


class Transcript:
    """The last pieces of a conversation."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._pieces: deque[Exchange] = deque(maxlen=_PIECES)
        self._seen = 0

    def add(self, direction: Literal["sent", "received"], data: bytes) -> None:
        """Keep one piece."""
        self._seen += 1
        self._pieces.append(
            Exchange(
                direction=direction,
                data=bytes(data[:_PIECE_BYTES]),
                size_bytes=len(data),
                after_s=time.monotonic() - self._began,
            )
        )

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """What is kept, oldest first."""
        return tuple(self._pieces)

    def frames(self, connection: str) -> list[Frame]:
        """The same for a report."""
        return [
            Frame(
                connection=connection,
                sender="we" if piece.direction == "sent" else "product",
                after_s=round(piece.after_s, 4),
                text=piece.data.decode(errors="backslashreplace"),
                size_bytes=piece.size_bytes,
            )
            for piece in self._pieces
        ]

    def __str__(self) -> str:
        if not self._pieces:
            return "  (none)"
        lines = [str(piece) for piece in self._pieces]
        if dropped := self._seen - len(self._pieces):
            lines.insert(0, f"  … {dropped} earlier pieces")
        return "\n".join(lines)
