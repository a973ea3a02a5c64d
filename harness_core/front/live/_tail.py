"""Files of evidence as they grow: what is new since the last look, and never more than a bound."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness_core.front.report import Witness, log_witnesses, row_witnesses

__all__ = ["Tails"]

#: Most that one look reads of one file: what a person could not follow is left out.
_LOOK_BYTES: Final = 262_144

#: Of a file that was there before anyone looked, the end.
_FIRST_BYTES: Final = 65_536

#: Files that are looked at; more are no evidence of a system that a person watches.
_FILES: Final = 500

_SUFFIXES: Final = frozenset({".log", ".jsonl"})


@dataclass(slots=True)
class _Place:
    """How far a file has been read, and the time of its last line."""

    offset: int = 0
    rest: bytes = b""
    last: float = 0.0


class Tails:
    """All logs and rows below a folder.

    Args:
        folder: of evidence.
        leave_out: names of files that are not shown.
    """

    def __init__(self, folder: Path, *, leave_out: frozenset[str] = frozenset()) -> None:
        self._folder = folder
        self._leave_out = leave_out
        self._places: dict[Path, _Place] = {}

    def new(self) -> Iterator[Witness]:
        """What was written since the last time; what was left out is a row itself."""
        for path in self._files():
            try:
                yield from self._of(path)
            except OSError:  # it is gone again
                continue

    def _files(self) -> list[Path]:
        found = [
            path
            for path in self._folder.rglob("*")
            if path.suffix in _SUFFIXES and path.name not in self._leave_out
        ]
        return sorted(found)[:_FILES]

    def _of(self, path: Path) -> Iterator[Witness]:
        size = path.stat().st_size
        place = self._places.get(path)
        if place is None:
            place = self._places[path] = _Place(offset=max(0, size - _FIRST_BYTES))
            place.rest = b"" if place.offset == 0 else b"\0"  # the middle of a line
        if size < place.offset:  # begun anew
            place.offset, place.rest = 0, b""
        if size == place.offset:
            return
        lost = size - place.offset - _LOOK_BYTES
        if lost > 0:
            place.offset, place.rest = size - _LOOK_BYTES, b"\0"
            text = f"{lost:,} bytes are not shown here: it writes faster than anyone reads"
            yield Witness(time.time(), 0.0, path.stem, "log", text, "warning", path, text)
        with path.open("rb") as file:
            file.seek(place.offset)
            data = file.read(_LOOK_BYTES)
        place.offset += len(data)
        *lines, place.rest = (place.rest + data).split(b"\n")
        if len(place.rest) > _LOOK_BYTES:
            place.rest = b"\0"  # of a line without an end nothing is kept
        texts = [line.decode("utf-8", "replace") for line in lines if line[:1] != b"\0"]
        yield from self._read(path, texts, place)

    def _read(self, path: Path, lines: list[str], place: _Place) -> Iterator[Witness]:
        if path.suffix == ".jsonl":
            yield from row_witnesses(lines, path)
            return
        for witness in log_witnesses(lines, path, last=place.last or time.time()):
            place.last = witness.at
            yield witness
