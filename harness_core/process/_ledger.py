"""What a run writes down so that a later process can clean up after it.

One directory per run below ``state_root()/runs``, with ``ledger.jsonl``: a JSON object per line,
appended in one write each, so that a run killed at any moment leaves whole lines. The first line
names the run itself and its mark (``_warden.py``), which every process below it carries. A process
is named by pid *and* start time: a recycled pid is never hit.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from harness_core.base.machine import STATE_ELSEWHERE, writing
from harness_core.process import _warden
from harness_core.process._state import state_root

_FILE: Final = "ledger.jsonl"
_UNNAMED: Final = ".new-"

#: Of a run's mark, below its highest bit: far above any real limit, and never met twice.
_MARK_BITS: Final = 60


class RunLedger:
    """The ledger of one run: its directory, its id and what it made."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.id = directory.name
        self.path = directory / _FILE

    @classmethod
    def create(cls) -> RunLedger:
        """Start the ledger of a new run of this process."""
        run_id = f"{os.getpid()}-{secrets.token_hex(4)}"
        runs = state_root() / "runs"
        runs.mkdir(exist_ok=True, mode=0o711)
        mark = secrets.randbits(_MARK_BITS) | 1 << _MARK_BITS
        # Made under another name first: a sweep must never meet a run without its first line.
        unnamed = runs / f"{_UNNAMED}{run_id}"
        unnamed.mkdir(mode=0o711)
        cls(unnamed).record(
            "run",
            pid=os.getpid(),
            start=_warden.start_time(os.getpid()),
            boot_id=boot_id(),
            pid_namespace=pid_namespace(),
            mark=mark,
        )
        return cls(unnamed.rename(runs / run_id))

    def record(self, kind: str, **fields: object) -> None:
        """Append one entry; call it before the thing is made wherever its name is known before.

        Raises:
            Unavailable: the disk of the ledger is full.
        """
        line = (json.dumps({"kind": kind, **fields}) + "\n").encode()
        with writing(self.path, what="the run's ledger", elsewhere=STATE_ELSEWHERE):
            descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                _warden.write_whole(descriptor, line)
            finally:
                os.close(descriptor)

    def entries(self) -> Iterator[Mapping[str, Any]]:
        """Every whole line, oldest first; a line cut short by a crash is passed over."""
        try:
            text = self.path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return
        for line in text.split("\n"):
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if isinstance(entry, dict) and isinstance(entry.get("kind"), str):
                yield entry

    def mark(self) -> int | None:
        """The mark that every process of the run carries; ``None`` for one of an earlier boot."""
        entry = self._run_entry()
        mark = entry.get("mark")
        if entry.get("boot_id") != boot_id() or not isinstance(mark, int):
            return None
        return mark if mark.bit_length() == _MARK_BITS + 1 else None

    def owner_alive(self) -> bool:
        """Whether the process that opened the run still lives, on this boot of the machine.

        A run of another container (pid namespace) that shares our state directory cannot be
        judged from here, so it counts as alive.
        """
        entry = self._run_entry()
        if not entry:
            # Unreadable: its name still tells who made it. In doubt it is left alone.
            maker = self.id.partition("-")[0]
            return maker.isdigit() and _warden.start_time(int(maker)) is not None
        if entry.get("boot_id") != boot_id():
            return False
        if entry.get("pid_namespace") != pid_namespace():
            return True
        return is_alive(entry.get("pid"), entry.get("start"))

    def _run_entry(self) -> Mapping[str, Any]:
        return next((entry for entry in self.entries() if entry["kind"] == "run"), {})


def ledgers() -> tuple[RunLedger, ...]:
    """The ledgers of every run of this user, dead or alive."""
    runs = state_root() / "runs"
    if not runs.is_dir():
        return ()
    return tuple(
        RunLedger(path)
        for path in sorted(runs.iterdir())
        if path.is_dir() and not path.is_symlink() and not _being_made(path)
    )


def _being_made(path: Path) -> bool:
    if not path.name.startswith(_UNNAMED):
        return False
    maker = path.name.removeprefix(_UNNAMED).partition("-")[0]
    return maker.isdigit() and _warden.start_time(int(maker)) is not None


def boot_id() -> str:
    """Changes with every boot of the machine: pids of an earlier boot name nothing now."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def pid_namespace() -> str:
    """Which processes our pids name: containers on one machine count for themselves."""
    return str(Path("/proc/self/ns/pid").readlink())


def is_alive(pid: object, start: object) -> bool:
    """Whether exactly this process (pid and start time) still runs; a zombie does not."""
    return isinstance(pid, int) and isinstance(start, int) and _warden.runs(pid, start)
