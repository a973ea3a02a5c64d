"""Where runs keep their ledgers and disposable directories, on disk and in memory."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from pathlib import Path
from typing import Final

from harness_core.errors import HarnessError

__all__ = ["memory_place", "memory_root", "state_root"]

_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - the kernel's own tmpfs, checked below

#: Below this a database cluster in memory could fill the machine's tmpfs.
_MEMORY_FREE_BYTES: Final = 512 * 1024 * 1024


def state_root() -> Path:
    """The directory of this user's runs, made when missing.

    ``HARNESS_STATE_DIR`` moves it. The directory belongs to the user alone; servers that run as
    another user (PostgreSQL, when the harness is root) may pass through it but not list it.

    Raises:
        HarnessError: the path exists and belongs to somebody else.
    """
    configured = os.environ.get("HARNESS_STATE_DIR")
    if configured:
        return _own(Path(configured).absolute())
    return _own(Path(tempfile.gettempdir()) / f"staging-harness-{os.getuid()}")


def memory_root() -> Path | None:
    """A directory on tmpfs to make things in, or ``None`` where there is none with 512 MiB free."""
    place = memory_place()
    if place is None or shutil.disk_usage(_MEMORY).free < _MEMORY_FREE_BYTES:
        return None
    return _own(place)


def memory_place() -> Path | None:
    """Where on tmpfs this user's runs are, whether or not there is room for more."""
    if os.environ.get("HARNESS_STATE_DIR") or not os.access(_MEMORY, os.W_OK):
        # A moved state directory is a wish to keep everything there.
        return None
    if not os.path.ismount(_MEMORY):
        return None
    return _MEMORY / f"staging-harness-{os.getuid()}"


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
