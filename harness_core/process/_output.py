"""What a child wrote: into its log and the tail, redacted, however it was cut on the way.

A read may end in the middle of a line, of a secret, of a UTF-8 character. Text is written when its
line is complete; of a line that grows without end, the front is written, never a part of what may
be a secret. A log may be bounded: past its limit only the last lines are kept, and written at the end.
"""

from __future__ import annotations

import codecs
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Final

from harness_core.base import limits
from harness_core.base.evidence import Redactor, writing_evidence
from harness_core.process._redactions import Redactions

#: Of an endless line, this much is held back: a longer secret could be cut in two.
_HELD_CHARS: Final = 8_192


class OutputLog:
    """Writes one child's output to its log and keeps the last lines.

    Args:
        path: the log; replaced.
        redactor: what must not be written.
        limit_bytes: the log is cut there; ``None`` keeps all of it.
    """

    def __init__(self, path: Path, *, redactor: Redactor, limit_bytes: int | None = None) -> None:
        self._room_bytes = limit_bytes
        self._left_out_bytes = 0
        self._path = path
        # Held open: the log goes on even if its directory is moved.
        self._file = path.open("wb")
        self._redactor = redactor
        self._redactions = Redactions(path, redactor=redactor)
        self._written_bytes = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._rest = ""
        self._tail: deque[str] = deque(maxlen=limits.TAIL_LINES)
        self._watchers: list[Callable[[str], None]] = []
        #: Front of a line whose end has not come yet, as far as it is shown, and its length.
        self._front = ""
        self._front_chars = 0

    def tail(self) -> tuple[str, ...]:
        """The last lines, oldest first."""
        return tuple(self._tail)

    def on_line(self, watcher: Callable[[str], None]) -> None:
        """Call ``watcher`` with every further line, without its end."""
        self._watchers.append(watcher)

    def feed(self, data: bytes) -> None:
        """Take what was read.

        Raises:
            Unavailable: the disk of the log is full.
        """
        with writing_evidence(self._path):
            self._take(self._decoder.decode(data))

    def end(self) -> None:
        """Write what is left of the last line; nothing follows.

        Raises:
            Unavailable: the disk of the log is full.
        """
        with writing_evidence(self._path):
            self._end()

    def _end(self) -> None:
        self._take(self._decoder.decode(b"", final=True))
        if self._rest:
            self._write(self._rest)
            self._rest = ""
        if self._front_chars:
            self._end_line()

    def close(self) -> None:
        """End the output and close the log; of what was left out, its end is written.

        Raises:
            Unavailable: the disk of the log is full.
        """
        if self._file.closed:
            return
        with writing_evidence(self._path), self._file:
            self._end()
            if self._left_out_bytes:
                last = "".join(f"{line}\n" for line in self._tail)
                note = f"\n… ({self._left_out_bytes} bytes more; the last lines of them:)\n{last}"
                self._file.write(note.encode("utf-8", errors="replace"))

    def _take(self, text: str) -> None:
        text = self._rest + text
        whole, end, self._rest = text.rpartition("\n")
        if end:
            self._write(whole + end)
        if len(self._rest) > limits.LINE_BYTES + _HELD_CHARS:
            cut = self._redactor.clear_cut(self._rest, keep=_HELD_CHARS)
            self._write(self._rest[:cut])
            self._rest = self._rest[cut:]

    def _write(self, raw: str) -> None:
        if not raw:
            return
        clean = self._redactor.redact(raw)
        written = clean.encode("utf-8", errors="replace")
        # The note first: whoever sees the line in the log finds that it was redacted.
        self._redactions.note(raw, clean, offset_bytes=self._written_bytes)
        self._written_bytes += len(written)
        self._keep(written)
        first, *further = clean.split("\n")
        self._extend_line(first)
        if not self._watchers:
            # Only the last lines will be seen; a flood of output need not pass through the tail.
            self._skip(further)
        for line in further:
            self._end_line()
            self._extend_line(line)

    def _keep(self, written: bytes) -> None:
        if self._room_bytes is not None:
            kept = written[: self._room_bytes]
            self._room_bytes -= len(kept)
            self._left_out_bytes += len(written) - len(kept)
            written = kept
        self._file.write(written)
        self._file.flush()  # readers follow it while the child lives

    def _skip(self, further: list[str]) -> None:
        surplus = len(further) - limits.TAIL_LINES - 1
        if surplus > 0:
            self._front, self._front_chars = "", 0
            del further[:surplus]

    def _extend_line(self, text: str) -> None:
        room = limits.LINE_BYTES - len(self._front)
        self._front += text[:room]
        self._front_chars += len(text)

    def _end_line(self) -> None:
        line = self._front.rstrip("\r")
        dropped = self._front_chars - len(self._front)
        if dropped:
            line += f"… ({dropped} characters more)"
        self._front, self._front_chars = "", 0
        self._tail.append(line)
        for watcher in self._watchers:
            watcher(line)
