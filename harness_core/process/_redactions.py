"""What a child wrote that had to be redacted: kept beside its log, so that a leak is not hidden.

The log shows ``[redacted]`` where a secret stood, which protects its readers and the product too: a
test that searches the log for a secret finds none, whatever the product wrote. So every line in
which something was replaced is noted, redacted, in a file of its own.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Final

from harness_core.base.evidence import Redactor

#: Lines noted per log; a child that leaks in a loop has leaked.
_NOTED: Final = 1000
_LINE_CHARS: Final = 500


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RedactedLine:
    """One line of a child's output in which something was replaced.

    Attributes:
        known: how many known secrets stood in it; 0 when it merely looked like holding one.
        text: the line, redacted.
        offset: bytes of the log before it.
    """

    known: int
    text: str
    offset: int


class Redactions:
    """The notes on one log, written as they come.

    Args:
        log: the log they are about.
        redactor: who tells a known secret from text that looks like one.
    """

    def __init__(self, log: Path, *, redactor: Redactor) -> None:
        self._path = _beside(log)
        self._redactor = redactor
        self._left = _NOTED

    def note(self, raw: str, clean: str, *, offset_bytes: int) -> None:
        """Note what was replaced between two versions of a text that was written at an offset."""
        if raw == clean:
            return
        before, after = raw.split("\n"), clean.split("\n")
        if len(before) != len(after):  # a secret of several lines went as a whole
            before, after = [raw], [clean]
        with self._path.open("a", encoding="utf-8", errors="backslashreplace") as file:
            for old, new in zip(before, after, strict=True):
                if old != new and self._left:
                    self._left -= 1
                    line = RedactedLine(
                        known=self._redactor.count(old),
                        text=new.strip()[:_LINE_CHARS],
                        offset=offset_bytes,
                    )
                    file.write(json.dumps(dataclasses.asdict(line)) + "\n")
                offset_bytes += len(new.encode("utf-8", errors="replace")) + 1


def redacted_lines(log: Path) -> tuple[RedactedLine, ...]:
    """Every line of a child's output in which something was redacted, oldest first.

    Args:
        log: the child's log; it may still be written.
    """
    path = _beside(log)
    if not path.exists():
        return ()
    lines = path.read_text(encoding="utf-8").splitlines()
    return tuple(RedactedLine(**json.loads(line)) for line in lines)


def _beside(log: Path) -> Path:
    return log.with_name(f"{log.stem}.redactions.jsonl")
