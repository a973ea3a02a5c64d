"""Remove what dead runs left, and nothing else.

A run is dead when the process that opened it is gone (pid and start time, on this boot). Its
warden normally ended every process within milliseconds; what is left is directories, and, when
the warden was killed too, processes. Kinds of things that this package does not know (databases
on a server that is not ours, containers) are handed to sweepers given by the caller.
"""

from __future__ import annotations

import dataclasses
import fcntl
import os
import shutil
import signal
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness_core.base import limits
from harness_core.base.errors import HarnessError, NotReady
from harness_core.base.machine import memory_place
from harness_core.base.wait import until_blocking
from harness_core.process import _warden
from harness_core.process._ledger import RunLedger, boot_id, is_alive, ledgers
from harness_core.process._sweepers import Sweeper


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SweepReport:
    """What a sweep found and did.

    Attributes:
        dead_runs: ids of runs that were cleaned up.
        live_runs: ids of runs that were left alone.
        removed: one line per thing removed.
        problems: one line per thing that should be gone and is not.
        waiting: ids of dead runs that list things for which no sweeper was given.
        forgotten: one line per thing that was given up, as asked.
    """

    dead_runs: tuple[str, ...] = ()
    live_runs: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    forgotten: tuple[str, ...] = ()


def sweep(
    *, sweepers: Mapping[str, Sweeper] | None = None, forget: Collection[str] = ()
) -> SweepReport:
    """Clean up after every dead run of this user on this machine.

    Args:
        sweepers: for ledger entries of kinds other than processes and directories, by kind.
        forget: ids of dead runs whose things elsewhere are given up, on a server that is no more.

    Returns:
        What was found and done. Nothing that is not in the ledger of a dead run is touched.
    """
    dead, live, removed, problems = [], [], [], []
    waiting, forgotten = [], []
    for ledger in ledgers():
        if ledger.owner_alive():
            live.append(ledger.id)
            continue
        with _exclusively(ledger) as ours:
            if not ours:
                continue
            dead.append(ledger.id)
            try:
                removed.extend(_end_processes(ledger))
            except HarnessError as error:
                problems.append(str(error))
                continue
            unfinished = _run_sweepers(ledger, sweepers or {}, removed)
            if ledger.id in forget:
                forgotten.extend(unfinished)
                unfinished = []
            if unfinished:
                problems.extend(unfinished)
                if not sweepers:
                    waiting.append(ledger.id)
                continue
            removed.extend(str(path) for path in _directories(ledger) if path.exists())
            problems.extend(
                f"cannot remove {path} of dead run {ledger.id}"
                for path in remove_directories(ledger, swept=True)
            )
    return SweepReport(
        dead_runs=tuple(dead),
        live_runs=tuple(live),
        removed=tuple(removed),
        problems=tuple(problems),
        waiting=tuple(waiting),
        forgotten=tuple(forgotten),
    )


def remove_directories(ledger: RunLedger, *, swept: bool = False) -> tuple[Path, ...]:
    """Remove every directory of a run; its ledger last, and only when nothing else is left.

    Args:
        ledger: of the run.
        swept: what it handed over has been removed, so the ledger may go.

    The ledger stays as well when the run handed something over to the sweep.

    Returns:
        What could not be removed.
    """
    places = [*_directories(ledger), *_memory_directory(ledger)]
    if ledger.directory.is_dir():
        places.extend(path for path in ledger.directory.iterdir() if path != ledger.path)
    left = tuple(path for path in dict.fromkeys(places) if not _remove(path))
    handed_over = not swept and any(entry["kind"] == "handed-over" for entry in ledger.entries())
    if not left and not handed_over:
        _remove(ledger.directory)
    return left


def end_marked(ledger: RunLedger) -> list[str]:
    """End every process that carries the run's mark, wherever it hides.

    Raises:
        NotReady: one survived SIGKILL for ``limits.SWEEP_KILL_S``.
    """
    mark = ledger.mark()
    ended: dict[int, str] = {}

    def none_left() -> bool:
        left = set(_warden.marked(mark) if mark is not None else ()) - {os.getpid()}
        for pid in left:
            ended.setdefault(pid, f"process {pid} ({' '.join(_warden.command_line(pid))})")
            _kill(pid)
        return not left

    until_blocking(
        none_left,
        seconds=limits.SWEEP_KILL_S,
        action=f"end what the dead run {ledger.id} started",
    )
    return list(ended.values())


def _memory_directory(ledger: RunLedger) -> tuple[Path, ...]:
    memory = memory_place()
    return (memory / ledger.id,) if memory is not None else ()


def _directories(ledger: RunLedger) -> Iterator[Path]:
    """The directories a ledger names that lie below one of our roots and below the run's id."""
    roots = [path.resolve() for path in (ledger.directory, *_memory_directory(ledger))]
    for entry in ledger.entries():
        if entry["kind"] == "directory":
            path = Path(str(entry.get("path"))).resolve()
            if any(root in path.parents for root in roots):
                yield path


def _remove(path: Path) -> bool:
    """Remove a file or a tree; a subject may have made directories that even it cannot enter."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return True
    shutil.rmtree(path, ignore_errors=True)
    if path.exists():
        _make_enterable(path)
        shutil.rmtree(path, ignore_errors=True)
    return not path.exists()


def _make_enterable(path: Path) -> None:
    path.chmod(stat.S_IRWXU)
    for entry in path.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            _make_enterable(entry)


def _end_processes(ledger: RunLedger) -> list[str]:
    """Wait for the warden's own clean-up, then end what it could not."""
    if not any(entry.get("boot_id") == boot_id() for entry in ledger.entries()):
        return []
    for entry in ledger.entries():
        if entry["kind"] == "warden":
            _await_warden(entry)
    ended = []
    for entry in ledger.entries():
        if entry["kind"] == "process" and is_alive(entry.get("pid"), entry.get("start")):
            pid = entry["pid"]
            for member in (pid, *_warden.session_members(pid)):
                _kill(member)
            until_blocking(
                lambda entry=entry: not is_alive(entry["pid"], entry["start"]),  # type: ignore[misc]
                seconds=limits.SWEEP_KILL_S,
                action=f"end {entry.get('name')} (pid {pid}) of dead run {ledger.id}",
            )
            ended.append(f"process {pid} ({entry.get('name')})")
    return ended + end_marked(ledger)


def _kill(pid: int) -> None:
    """SIGKILL to what was just identified.

    Raises:
        HarnessError: it belongs to another user.
    """
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    except PermissionError as error:
        action = f"end process {pid} ({' '.join(_warden.command_line(pid))}) of a dead run"
        raise HarnessError(
            action, observed="it belongs to another user", next_step="End it as that user"
        ) from error


def _await_warden(entry: Mapping[str, Any]) -> None:
    """A warden whose run is dead is killing its children; give it the time, then end it."""
    pid, start = entry.get("pid"), entry.get("start")
    try:
        until_blocking(
            lambda: not is_alive(pid, start),
            seconds=limits.SWEEP_KILL_S,
            action="wait for the warden of a dead run",
        )
    except NotReady:
        if isinstance(pid, int) and is_alive(pid, start):
            _kill(pid)


def _run_sweepers(
    ledger: RunLedger, sweepers: Mapping[str, Sweeper], removed: list[str]
) -> list[str]:
    """Hand other kinds to their sweepers; a kind without one keeps the ledger for later."""
    problems = []
    # Last made, first removed: a network goes after the containers on it.
    for entry in reversed(list(ledger.entries())):
        kind = entry["kind"]
        if kind in {"run", "warden", "process", "directory", "handed-over"}:
            continue
        sweeper = sweepers.get(kind)
        if sweeper is None:
            if sweepers:
                problems.append(f"run {ledger.id} lists a {kind}, which nothing here can remove")
            else:
                problems.append(f"run {ledger.id} lists a {kind}: run `harness sweep`")
            continue
        try:
            line = sweeper(entry)
        except HarnessError as error:
            problems.append(str(error))
            continue
        if line:
            removed.append(line)
    return problems


@contextmanager
def _exclusively(ledger: RunLedger) -> Iterator[bool]:
    """Whether this process may clean up this run; another sweep may be at it."""
    try:
        directory = os.open(ledger.directory, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:  # another sweep was faster
        yield False
        return
    try:
        fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield False
    else:
        # The other sweep may have finished between our listing and our lock.
        yield ledger.directory.exists()
    finally:
        os.close(directory)
