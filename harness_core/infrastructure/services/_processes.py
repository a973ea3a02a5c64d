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

from harness_core.process import runs, start_time

_IPC_RMID = 0

#: What PostgreSQL keeps in System V shared memory: an interlock against a second server.
_INTERLOCK_BYTES = 56


def alive(pids: Iterable[int]) -> tuple[int, ...]:
    """Those of ``pids`` that still run (a zombie does not)."""
    return tuple(pid for pid in pids if (start := start_time(pid)) is not None and runs(pid, start))


def signal_all(pids: Iterable[int], number: signal.Signals) -> None:
    """Signal each of ``pids`` that still exists."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


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
