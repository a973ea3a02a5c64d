"""The processes a PostgreSQL server forked.

Each backend makes a session of its own, so a signal to the server's process group reaches the
postmaster alone. To freeze or kill the server as a whole its children are signalled one by one.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterable
from pathlib import Path

__all__ = [
    "alive",
    "children_of",
    "remove_shared_memory",
    "signal_all",
    "stopped",
    "sweep_shared_memory",
]

_IPC_RMID = 0

#: What PostgreSQL keeps in System V shared memory: an interlock against a second server.
_INTERLOCK_BYTES = 56


def children_of(pid: int) -> tuple[int, ...]:
    """Process ids of the direct children of ``pid``."""
    everybody = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return tuple(other for other in everybody if (fields := _stat(other)) and int(fields[1]) == pid)


def alive(pids: Iterable[int]) -> tuple[int, ...]:
    """Those of ``pids`` that still run (a zombie does not)."""
    return tuple(pid for pid in pids if (fields := _stat(pid)) and fields[0] != "Z")


def stopped(pid: int) -> bool:
    """Whether ``pid`` is frozen by a signal, or gone."""
    fields = _stat(pid)
    return fields is None or fields[0] in "TtZ"


def signal_all(pids: Iterable[int], number: signal.Signals) -> None:
    """Signal each of ``pids`` that still exists."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def _stat(pid: int) -> list[str] | None:
    """Fields of ``/proc/PID/stat`` from the state on, or ``None`` when it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command name, in parentheses, may hold anything; what follows the last one is ours.
    return text.rpartition(")")[2].split()


def remove_shared_memory(identifier: int) -> None:
    """Remove the System V segment that a killed server left; nothing happens when it is gone.

    PostgreSQL keeps 56 bytes of it as an interlock and removes them itself unless it is killed.
    """
    ctypes.CDLL(None, use_errno=True).shmctl(identifier, _IPC_RMID, None)


def sweep_shared_memory(*, uid: int) -> None:
    """Remove the interlocks of servers of ``uid`` that were killed with their whole run.

    Such a server had no chance to remove its own. Only segments of that size which nobody has
    attached and whose maker is dead are touched; a server that starts on the same data directory
    would remove its own in the same way.
    """
    try:
        head, *rows = Path("/proc/sysvipc/shm").read_text(encoding="ascii").splitlines()
    except OSError:
        return  # a kernel without System V shared memory has none to sweep
    for row in rows:
        found = dict(zip(head.split(), (int(word) for word in row.split()), strict=True))
        ours = found["uid"] == uid and found["size"] == _INTERLOCK_BYTES
        if ours and found["nattch"] == 0 and not alive((found["cpid"],)):
            remove_shared_memory(found["shmid"])
