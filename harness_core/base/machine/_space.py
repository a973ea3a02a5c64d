"""Where the harness writes, whether there is room, and one clear error when a disk is full."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from harness_core.base.errors import Unavailable
from harness_core.base.machine._cache import cache_place

_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - the kernel's own tmpfs, checked below

_MIB: Final = 1024 * 1024

#: Below this a database cluster in memory could fill the machine's tmpfs.
MEMORY_FREE_BYTES: Final = 512 * _MIB

#: Twice what a whole run of the largest suite came to, rounded up (docs/reference/machine.md); of the
#: directories of runs with their servers, which lie there where there is no tmpfs.
_EVIDENCE_BYTES: Final = 64 * _MIB
_STATE_BYTES: Final = 512 * _MIB
_CACHE_BYTES: Final = 128 * _MIB

#: How the directories of runs are moved, for :func:`writing`.
STATE_ELSEWHERE: Final = "HARNESS_STATE_DIR=DIR"

#: A file system or a quota without room.
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A directory that a run writes to.

    Args:
        what: what lies there.
        path: may not exist yet.
        needed_bytes: what a run of the largest suite needs.
        elsewhere: how to have it somewhere else.
    """

    what: str
    path: Path
    needed_bytes: int
    elsewhere: str

    @property
    def free_bytes(self) -> int:
        """What an ordinary process may still write there."""
        return shutil.disk_usage(_existing(self.path)).free

    def __str__(self) -> str:
        return f"{self.what}: {_size(self.free_bytes)} free at {self.path}"


def state_place() -> Path:
    """Where this user's runs are; ``HARNESS_STATE_DIR`` moves it. Makes nothing."""
    if configured := os.environ.get("HARNESS_STATE_DIR"):
        return Path(configured).absolute()
    return Path(tempfile.gettempdir()) / f"staging-harness-{os.getuid()}"


def closed_to_others(path: Path) -> Path | None:
    """The first directory on the way to ``path``, itself included, that other users may not pass."""
    for place in reversed((path, *path.parents)):
        if not place.is_dir() or not place.stat().st_mode & stat.S_IXOTH:
            return place
    return None


def memory_place() -> Path | None:
    """Where on tmpfs this user's runs are, whether or not there is room for more."""
    if os.environ.get("HARNESS_STATE_DIR") or not os.access(_MEMORY, os.W_OK):
        # A moved state directory is a wish to keep everything there.
        return None
    if not os.path.ismount(_MEMORY):
        return None
    return _MEMORY / f"staging-harness-{os.getuid()}"


def places() -> tuple[Place, ...]:
    """Where a run that is started in the working directory would write."""
    found = [
        Place(
            what="evidence",
            path=Path.cwd() / ".evidence",
            needed_bytes=_EVIDENCE_BYTES,
            elsewhere="--evidence DIR",
        ),
        Place(
            what="runs",
            path=state_place(),
            needed_bytes=_STATE_BYTES,
            elsewhere=STATE_ELSEWHERE,
        ),
        Place(
            what="cache",
            path=cache_place(),
            needed_bytes=_CACHE_BYTES,
            elsewhere="XDG_CACHE_HOME=DIR",
        ),
    ]
    if (memory := memory_place()) is not None:
        # Where it lacks room servers go to disk by themselves, which is slower and no lack.
        place = Place(what="servers in memory", path=memory, needed_bytes=0, elsewhere="")
        short = place.free_bytes < MEMORY_FREE_BYTES
        found.append(
            replace(place, what=f"{place.what} (not used: too little)") if short else place
        )
    return tuple(found)


def lack_of_space() -> str:
    """Which places have less room than a whole run may need; empty when none."""
    short = [place for place in places() if place.free_bytes < place.needed_bytes]
    return "; ".join(
        f"{place}, a whole run may need {_size(place.needed_bytes)}: free some, or {place.elsewhere}"
        for place in short
    )


def is_disk_full(error: BaseException) -> bool:
    """Whether a write failed for want of room."""
    return isinstance(error, OSError) and error.errno in _FULL


@contextmanager
def writing(path: Path, *, what: str, elsewhere: str) -> Iterator[None]:
    """Turn a full disk into one clear error; every other error passes.

    Args:
        path: what is written, or the directory it is written into.
        what: its kind, e.g. ``"evidence"``.
        elsewhere: how to have it somewhere else.

    Raises:
        Unavailable: there is no room; names the file system and what is free on it.
    """
    try:
        yield
    except OSError as error:
        if not is_disk_full(error):
            raise
        quota = error.errno == errno.EDQUOT
        raise disk_full(path, what=what, elsewhere=elsewhere, quota=quota) from error


def disk_full(
    path: Path,
    *,
    what: str,
    elsewhere: str,
    quota: bool = False,
    tail: Sequence[str] = (),
    log: Path | None = None,
) -> Unavailable:
    """The error of :func:`writing`, where a full disk is met in another way.

    Args:
        path: what is written, or the directory it is written into.
        what: its kind, e.g. ``"evidence"``.
        elsewhere: how to have it somewhere else.
        quota: it is the user's share that is used up.
        tail: last lines of the program that met it.
        log: its log.
    """
    return Unavailable(
        f"write {what} to {path}",
        observed=_fullness(path, quota=quota),
        next_step=f"Free some, or put it elsewhere: {elsewhere}",
        tail=tail,
        log=log,
    )


def _fullness(path: Path, *, quota: bool) -> str:
    there = _existing(path)
    found = os.statvfs(there)
    free_bytes = found.f_bavail * found.f_frsize
    if quota:
        return f"the quota of this user is used up there ({_size(free_bytes)} are free to others)"
    of = f"of {_size(found.f_blocks * found.f_frsize)} are free on the file system of {there}"
    if found.f_files and not found.f_favail:
        return f"no inode is left, though {_size(free_bytes)} {of}"
    return f"the disk is full, {_size(free_bytes)} {of}"


def _existing(path: Path) -> Path:
    return next(place for place in (path, *path.parents) if place.is_dir())


def _size(size_bytes: int) -> str:
    if size_bytes < _MIB:
        return f"{size_bytes} bytes"
    if size_bytes < 1024 * _MIB:
        return f"{size_bytes // _MIB} MiB"
    return f"{size_bytes / (1024 * _MIB):.1f} GiB"
