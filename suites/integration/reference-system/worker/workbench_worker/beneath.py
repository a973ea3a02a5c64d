"""Opening paths that a stranger names: the kernel itself keeps them below a folder.

``openat2`` with ``RESOLVE_BENEATH`` follows symlinks and ``..`` as long as they stay below the
folder, and refuses the rest in the same system call, so that nothing can be swapped in between.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
from collections.abc import Iterator

from workbench_foundation import faults
from workbench_worker.refusal import Refused

_OPENAT2 = 437
_NO_MAGIC_LINKS = 0x02
_BENEATH = 0x08

_libc = ctypes.CDLL(None, use_errno=True)


class _How(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("flags", "mode", "resolve")]


@contextlib.contextmanager
def opened(folder: str, path: str, flags: int, *, mode: int = 0o600) -> Iterator[int]:
    """A descriptor of a path below a folder, closed at the end of the block.

    Raises:
        Refused: 403 when it is not below the folder, 404 when it is not there, 409 for the rest.
    """
    fd = _open(folder, path, flags | os.O_CLOEXEC, mode)
    try:
        yield fd
    finally:
        os.close(fd)


@contextlib.contextmanager
def refusing(path: str) -> Iterator[None]:
    """What the kernel refuses in the block is refused to who named the path.

    Raises:
        Refused: as :func:`opened` does.
    """
    try:
        yield
    except OSError as error:
        raise _refusal(path, error.errno or errno.EIO) from error


def _open(folder: str, path: str, flags: int, mode: int) -> int:
    if "\0" in path:
        raise Refused(403, f"cannot open {path!r}: no path holds a NUL. Name a file of the session")
    if faults.on("path-prefix-checked"):
        return _open_by_prefix(folder, path, flags, mode)
    if faults.on("symlink-followed"):
        return _open_by_name(folder, path, flags, mode)
    root = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # The mode may be given only where a file may be made.
        how = _How(flags, mode if flags & os.O_CREAT else 0, _BENEATH | _NO_MAGIC_LINKS)
        fd: int = _libc.syscall(
            _OPENAT2, root, os.fsencode(path), ctypes.byref(how), ctypes.sizeof(how)
        )
        if fd < 0:
            raise _refusal(path, ctypes.get_errno())
        return fd
    finally:
        os.close(root)


def _refusal(path: str, number: int) -> Refused:
    if number in (errno.EXDEV, errno.ELOOP):
        return Refused(403, f"cannot open {path!r}: it leaves the session. Name a file inside it")
    if number in (errno.ENOENT, errno.ENOTDIR):
        return Refused(404, f"cannot open {path!r}: it is not there. List the folder to see names")
    observed = os.strerror(number)
    return Refused(409, f"cannot open {path!r}: {observed}. Name a file that can be used so")


def _open_by_prefix(folder: str, path: str, flags: int, mode: int) -> int:
    """Only for the planted fault `path-prefix-checked`."""
    whole = os.path.realpath(os.path.join(folder, path))
    sessions = os.path.dirname(os.path.dirname(folder))
    if not whole.startswith(sessions):
        raise _refusal(path, errno.EXDEV)
    return _plainly(whole, path, flags, mode)


def _open_by_name(folder: str, path: str, flags: int, mode: int) -> int:
    """Only for the planted fault `symlink-followed`."""
    whole = os.path.normpath(os.path.join(folder, path))
    if whole != folder and not whole.startswith(folder + "/"):
        raise _refusal(path, errno.EXDEV)
    return _plainly(whole, path, flags, mode)


def _plainly(whole: str, path: str, flags: int, mode: int) -> int:
    try:
        return os.open(whole, flags, mode)
    except OSError as error:
        raise _refusal(path, error.errno or errno.EIO) from error
