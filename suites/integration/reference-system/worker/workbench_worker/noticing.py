"""Noticing that files are read, whoever reads them: inotify, on files that nobody else has a reason to open.

A watch is on the file itself, not on a name for it: it sees reads through any mount and from any namespace, and
needs no privilege. Each file is watched for its first read and its first opening alone (``IN_ONESHOT``), which
bounds what the kernel has to keep, whatever a reader does. What is mapped into memory is seen as opened.
"""

from __future__ import annotations

import ctypes
import os
import select
import struct
import threading
from collections.abc import Callable

from workbench_contract.skills import Observed
from workbench_foundation import log

_ACCESS, _OPEN, _ONESHOT, _OVERFLOW = 0x00000001, 0x00000020, 0x80000000, 0x4000
_HEADER = struct.Struct("iIII")
_BUFFER_BYTES = 65_536

_libc = ctypes.CDLL(None, use_errno=True)


class Notices:
    """What one group of files is watched for; see :func:`watch`.

    Args:
        told: called with a path at its first read, at once; with those that were opened and never seen to be
            read when the watch ends.
    """

    def __init__(self, told: Callable[[str, Observed], None]) -> None:
        self._told = told
        self._opened: dict[str, None] = {}
        self._read: set[str] = set()

    def noticed(self, path: str, mask: int) -> None:
        """Something happened to a file."""
        if mask & _ACCESS and path not in self._read:
            self._read.add(path)
            self._told(path, Observed.READ)
        elif mask & _OPEN:
            self._opened[path] = None

    def end(self) -> None:
        """Tell the rest."""
        for path in self._opened:
            if path not in self._read:
                self._told(path, Observed.OPENED)


class Noticing:
    """All watches of this process; a thread of its own reads what the kernel tells."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._fds: dict[int, int] = {}
        self._known: dict[tuple[int, int], tuple[Notices, str]] = {}

    def watch(self, files: dict[str, str], told: Callable[[str, Observed], None]) -> Notices:
        """Watch files from now on.

        Args:
            files: where each is → what it is told as.

        Raises:
            OSError: the kernel has no room for more watches.
        """
        notices = Notices(told)
        with self._lock:
            self._start()
            try:
                for mask, fd in self._fds.items():
                    for place, name in files.items():
                        number = _checked(
                            _libc.inotify_add_watch(fd, os.fsencode(place), mask | _ONESHOT)
                        )
                        self._known[fd, number] = (notices, name)
            except OSError:
                self._forget(notices)
                raise
        return notices

    def end(self, notices: Notices) -> None:
        """Tell what there is still to be told, and watch no more."""
        with self._lock:
            self._drain()
            self._forget(notices)
            notices.end()

    def _start(self) -> None:
        if self._fds:
            return
        # One of each, for a file has one watch of an instance.
        for mask in (_ACCESS, _OPEN):
            self._fds[mask] = _checked(_libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        threading.Thread(target=self._read_for_ever, name="noticing", daemon=True).start()

    def _read_for_ever(self) -> None:
        while True:
            select.select([*self._fds.values()], [], [])
            with self._lock:
                self._drain()

    def _drain(self) -> None:
        for fd in self._fds.values():
            while True:
                try:
                    data = os.read(fd, _BUFFER_BYTES)
                except BlockingIOError:
                    break
                at = 0
                while at < len(data):
                    number, mask, _, length = _HEADER.unpack_from(data, at)
                    at += _HEADER.size + length
                    if mask & _OVERFLOW:
                        log.error("reads_lost", reason="the kernel's queue of notices was full")
                    if found := self._known.get((fd, number)):
                        found[0].noticed(found[1], mask)

    def _forget(self, notices: Notices) -> None:
        for fd, number in [key for key, (whose, _) in self._known.items() if whose is notices]:
            del self._known[fd, number]
            # One that has told its one thing is gone already.
            _libc.inotify_rm_watch(fd, number)


def _checked(found: int) -> int:
    if found < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"cannot watch files: {os.strerror(number)}")
    return found


NOTICING = Noticing()
