"""Where things are kept between runs, per user; and how processes take turns at making them."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness_core.base.errors import HarnessError, Unavailable
from harness_core.base.wait import until_blocking

_NAME = "staging-harness"

#: Making the slowest thing we cache (an initialised data directory on a loaded disk) takes seconds.
_LOCK_WAIT_S = 120.0


def cache_directory(*, reachable_by: tuple[int, int] | None = None) -> Path:
    """The first usable directory of: ``XDG_CACHE_HOME``, ``~/.cache``, ``/var/tmp``.

    Args:
        reachable_by: uid and gid of a server that must be able to walk into it; a root whose home
            is closed to others is then served from ``/var/tmp``.

    Raises:
        Unavailable: none of them can be written, or none is ours alone.
    """
    tried: list[str] = []
    for path in _candidates():
        problem = _problem(path, reachable_by)
        if problem is None:
            return path
        tried.append(f"{path}: {problem}")
    raise Unavailable(
        "find a cache directory",
        observed="; ".join(tried),
        next_step="Set XDG_CACHE_HOME to a directory that you own",
    )


def cache_place() -> Path:
    """The first of them, whether or not it can be used; makes nothing."""
    return next(_candidates())


def _candidates() -> Iterator[Path]:
    if configured := os.environ.get("XDG_CACHE_HOME"):
        yield Path(configured) / _NAME
    yield Path(os.path.expanduser("~")) / ".cache" / _NAME  # noqa: PTH111 - Path.home() may raise
    yield Path("/var/tmp") / f"{_NAME}-{os.geteuid()}"  # noqa: S108 - its owner is checked


def _problem(path: Path, reachable_by: tuple[int, int] | None) -> str | None:
    """Why ``path`` cannot be the cache; makes it when it can."""
    if not path.is_absolute():
        return "is not absolute"
    try:
        path.mkdir(mode=0o755, parents=True, exist_ok=True)
        found = path.lstat()
    except OSError as error:
        return error.strerror or str(error)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        return "is not a directory that this user alone can write"
    if not os.access(path, os.W_OK | os.X_OK):
        return "cannot be written"
    if reachable_by is not None and not can_reach(path, *reachable_by):
        return f"cannot be reached by uid {reachable_by[0]}"
    return None


def can_reach(path: Path, uid: int, gid: int) -> bool:
    """Whether a process of ``uid`` and ``gid`` alone (no other groups) can open ``path``.

    Looks at mode bits from the root down: walk into every directory, read and walk the last one,
    or read the last file.
    """
    real = path.resolve()
    for directory in reversed(real.parents):
        if not _allows(directory, uid, gid, 0o1):
            return False
    return _allows(real, uid, gid, 0o5 if real.is_dir() else 0o4)


def _allows(path: Path, uid: int, gid: int, wanted: int) -> bool:
    if uid == 0:
        return True
    found = path.stat()
    if found.st_uid == uid:
        granted = found.st_mode >> 6
    elif found.st_gid == gid:
        granted = found.st_mode >> 3
    else:
        granted = found.st_mode
    return granted & wanted == wanted


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock between processes on the file ``path``; made when missing.

    The kernel drops the lock when its holder dies, so there is no stale lock to clean up. Blocks
    its thread: call it off the event loop.

    Raises:
        HarnessError: another process kept it for two minutes.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        until_blocking(lambda: _try_lock(descriptor), seconds=_LOCK_WAIT_S, action=f"lock {path}")
        yield
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise HarnessError("lock the cache", observed=str(error)) from error
    return True
