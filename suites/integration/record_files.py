"""The ``events.jsonl`` of a session where the worker keeps it: torn, as a crash or a bad disk leaves it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from harness_core.front.skips import not_run
from harness_core.system.parts import Part

__all__ = ["cut_out", "left_in_the_middle", "put_back", "record_file"]

_NAME: Final = "events.jsonl"


def record_file(part: Part, session_id: str) -> Path:
    """The record of a session, below the folder that a running service runs in.

    Where there is none the test that asks is not run: all of a machine is not searched.
    """
    pid = part.place.pid
    if pid is None:
        not_run("options", f"{part.name} is no process of this machine")
    folder = Path(f"/proc/{pid}/cwd").resolve()
    every = folder.rglob(_NAME) if folder != Path(folder.anchor) else ()
    record = next((path for path in every if session_id in _first_line(path)), None)
    if record is None:
        not_run("subject", f"no {_NAME} of a session lies below {folder}, where the worker runs")
    return record


def left_in_the_middle(record: Path) -> None:
    """A line was begun, and its end was never written."""
    line = record.read_bytes().splitlines()[-1]
    with record.open("ab") as file:  # lint: allow local-write: what a crash leaves
        file.write(line[: len(line) // 2])


def cut_out(record: Path, number: int) -> bytes:
    """Lose the line of one event, by its number; what was there before."""
    whole = record.read_bytes()
    lines = whole.splitlines(keepends=True)
    put_back(record, b"".join([*lines[: number - 1], *lines[number:]]))
    return whole


def put_back(record: Path, whole: bytes) -> None:
    """The record is this again."""
    record.write_bytes(whole)  # lint: allow local-write: a disk that is bad


def _first_line(path: Path) -> str:
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.readline()
