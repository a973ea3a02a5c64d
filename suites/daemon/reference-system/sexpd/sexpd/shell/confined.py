"""What holds a command when the dispatcher was wrong about it.

Landlock lets the command's processes write beneath the working root and to a few devices, and
nowhere else, whoever runs the daemon; limits keep it from filling the machine. All of it is set
up in the child between fork and exec, by calls prepared beforehand.
"""

from __future__ import annotations

import ctypes
import os
import resource
from collections.abc import Callable
from pathlib import Path

FILE_BYTES = 1 << 26
MEMORY_BYTES = 1 << 31
PROCESSES = 512
OPEN_FILES = 256

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_PR_SET_NO_NEW_PRIVS, _PR_SET_PDEATHSIG = 38, 1
_VERSION_FLAG, _PATH_BENEATH = 1, 1

# linux/landlock.h: bits 1 and 4 to 12 write, 13 (since ABI 2) links across directories, 14 (3)
# truncates. Reading and executing (0, 2, 3) stay as they are.
_WRITES_BY_ABI = {1: 0x1FF2, 2: 0x3FF2, 3: 0x7FF2}
_FILE_WRITES = 0x4002
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty")

_libc = ctypes.CDLL(None, use_errno=True)


class _Ruleset(ctypes.Structure):
    _fields_ = [("handled_access_fs", ctypes.c_uint64)]


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32)]


def landlock_abi() -> int:
    """The version of Landlock that this kernel has; 0 without."""
    return max(0, _libc.syscall(_CREATE_RULESET, None, 0, _VERSION_FLAG))


def child_setup(root: Path, *, landlock: bool) -> Callable[[], None]:
    """A function for the child between fork and exec.

    Args:
        root: beneath which it may write.
        landlock: whether to confine it; the limits are set either way.

    Raises:
        OSError: in the child, if the kernel refuses; then the command does not run.
    """
    writes = _WRITES_BY_ABI[min(landlock_abi(), 3)] if landlock else 0
    places = [(str(root).encode(), writes)] if landlock else []
    places += [(d.encode(), writes & _FILE_WRITES) for d in _DEVICES if landlock and Path(d).exists()]
    limits = (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, FILE_BYTES),
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_NPROC, PROCESSES),
        (resource.RLIMIT_NOFILE, OPEN_FILES),
    )

    def setup() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, 9, 0, 0, 0)
        for limit, value in limits:
            _, hard = resource.getrlimit(limit)
            most = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(limit, (most, most))
        if not landlock:
            return
        _checked(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        handled = _Ruleset(writes)
        ruleset = _checked(
            _libc.syscall(_CREATE_RULESET, ctypes.byref(handled), ctypes.sizeof(handled), 0)
        )
        for path, access in places:
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
            beneath = _Beneath(access, fd)
            _checked(
                _libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(beneath), 0)
            )
            os.close(fd)
        _checked(_libc.syscall(_RESTRICT_SELF, ruleset, 0))
        os.close(ruleset)

    return setup


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), "the kernel refused to confine the command")
    return result
