"""What a killed PostgreSQL server leaves in System V shared memory: an interlock against a second one."""

from __future__ import annotations

import ctypes
from pathlib import Path

from harness_core.infrastructure.services._as_child import alive

_IPC_RMID = 0

_INTERLOCK_BYTES = 56


def remove_shared_memory(identifier: int) -> None:
    """Remove one segment; nothing happens when it is gone."""
    ctypes.CDLL(None, use_errno=True).shmctl(identifier, _IPC_RMID, None)


def sweep_shared_memory(*, uid: int) -> None:
    """Remove the interlocks of servers of ``uid`` that were killed with their whole run.

    Such a server had no chance to remove its own. Only segments of that size which are attached
    nowhere and whose maker is dead are touched; a server that starts on the same data directory
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
