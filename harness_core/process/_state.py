"""Where runs keep their ledgers and disposable directories, on disk and in memory."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

from harness_core.base.errors import HarnessError
from harness_core.base.machine import MEMORY_FREE_BYTES, memory_place, state_place


def state_root() -> Path:
    """The directory of this user's runs, made when missing.

    ``HARNESS_STATE_DIR`` moves it. The directory belongs to the user alone; servers that run as
    another user (PostgreSQL, when the harness is root) may pass through it but not list it.

    Raises:
        HarnessError: the path exists and belongs to another user.
    """
    return _own(state_place())


def memory_root() -> Path | None:
    """A directory on tmpfs to make things in, or ``None`` where there is none with 512 MiB free."""
    place = memory_place()
    if place is None or shutil.disk_usage(place.parent).free < MEMORY_FREE_BYTES:
        return None
    return _own(place)


def _own(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True, mode=0o711)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        action = f"keep state in {path}"
        raise HarnessError(
            action,
            observed=f"it belongs to user id {found.st_uid} or is no directory",
            next_step="Remove it, or set HARNESS_STATE_DIR to a directory of your own",
        )
    return path
