"""From the first test to the last: what is there at the end that was not at the beginning."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness_core.assurance.leaks._temporary import watching
from harness_core.base import limits
from harness_core.base.errors import NotReady
from harness_core.base.wait import until_blocking
from harness_core.ports import Listener, listeners
from harness_core.process import carriers, carry_mark, command_line, ledgers, new_mark, parent

_TEST: Final = b"PYTEST_CURRENT_TEST="

#: A process that forks and ends between two lines of one listing is in the next. Interval of the
#: first two listings in seconds.
_EMPTY_LISTINGS: Final = 3
_LIST_S: Final = 0.02

#: Helpers of Python itself, which live as long as the process that needed them.
_HELPERS: Final = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")


@dataclass(frozen=True, slots=True, kw_only=True)
class Leak:
    """One thing that was left.

    Attributes:
        kind: ``process``, ``listener``, ``directory`` or ``run``.
        what: enough to find it again.
        test: the test that was running when it was made; empty when that is not known.
    """

    kind: str
    what: str
    test: str = ""

    def text(self) -> str:
        """The leak in one line."""
        return f"{self.kind} {self.what}" + (f", left by {self.test}" if self.test else "")


class Audit:
    """What was there at the beginning, to compare with; built only by :func:`open_audit`."""

    def __init__(self, *, mark: int | None, temporary: Mapping[str, str]) -> None:
        self._mark = mark
        self._temporary = temporary
        self._listening = {entry.inode for entry in _own_listeners()}
        self._runs = {ledger.id for ledger in ledgers()}

    def close(self) -> tuple[Leak, ...]:
        """Find what was left, end or remove it where it can be, and say what it was."""
        return (*self._processes(), *self._listeners(), *self._directories(), *self._open_runs())

    def _processes(self) -> Iterator[Leak]:
        if self._mark is None:
            return
        left = self._settled(self._mark)
        # All of them are named before any of them ends: the end of one may end another.
        leaks = [
            Leak(kind="process", what=f"{pid} ({words or 'unnamed'})", test=_test_of(pid))
            for pid, words in left.items()
        ]
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        yield from leaks

    def _settled(self, mark: int) -> dict[int, str]:
        """The processes left some time after the end: one that is just ending is no leak."""
        left: dict[int, str] = {}
        empty = 0

        def none_left() -> bool:
            nonlocal empty
            left.clear()
            for pid in carriers(mark):
                words = " ".join(command_line(pid))
                if not any(helper in words for helper in _HELPERS) and pid not in _above():
                    left[pid] = words
            empty = 0 if left else empty + 1
            return empty == _EMPTY_LISTINGS

        with suppress(NotReady):
            until_blocking(
                none_left,
                seconds=limits.LEAK_GRACE_S,
                action="see all processes end",
                poll_s=_LIST_S,
            )
        return left

    def _listeners(self) -> Iterator[Leak]:
        for entry in _own_listeners():
            if entry.inode not in self._listening:
                yield Leak(kind="listener", what=f"on port {entry.port}, open in this process")

    def _directories(self) -> Iterator[Leak]:
        for name, test in self._temporary.items():
            path = Path(name)
            if not os.path.lexists(path):
                continue
            shown = f"{path}/" if path.is_dir() else str(path)
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
            yield Leak(kind="directory" if shown.endswith("/") else "file", what=shown, test=test)

    def _open_runs(self) -> Iterator[Leak]:
        for ledger in ledgers():
            first = next(iter(ledger.entries()), {})
            if ledger.id in self._runs or first.get("pid") != os.getpid():
                continue
            handed_over = [
                str(entry.get("name") or entry["kind"])
                for entry in ledger.entries()
                if entry["kind"] == "handed-over"
            ]
            why = f"handed over to the sweep: {', '.join(handed_over)}" if handed_over else "open"
            yield Leak(kind="run", what=f"{ledger.id} ({why})")


@contextmanager
def open_audit() -> Iterator[Audit]:
    """Watch what this process and everything below it makes, until the block ends."""
    mark = new_mark()
    before = carry_mark(mark)
    with watching() as temporary:
        try:
            yield Audit(mark=None if before is None else mark, temporary=temporary)
        finally:
            if before is not None:
                carry_mark(before)


def _own_listeners() -> list[Listener]:
    return [entry for entry in listeners() if entry.pid == os.getpid()]


def _above() -> set[int]:
    """The processes above this one: an audit inside an audit would find its own runner."""
    found: set[int] = set()
    pid: int | None = os.getppid()
    while pid and pid > 1 and pid not in found:
        found.add(pid)
        pid = parent(pid)
    return found


def _test_of(pid: int) -> str:
    """The test that was running when a process was started: pytest says it in the environment."""
    try:
        words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return ""
    found = [word[len(_TEST) :] for word in words if word.startswith(_TEST)]
    return found[0].decode(errors="replace").rpartition(" (")[0] if found else ""
