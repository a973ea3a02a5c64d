"""What a session's code sees of the machine: its own files, the system's programs, nothing else.

By Linux namespaces, without a helper program: an own file system (system folders read-only, the
session's files at ``/workspace``, its own ``/tmp``), own processes, no network, no privileges. As
root the code becomes the session's own user; else a user namespace of the worker's user.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import platform
import resource
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

from workbench_contract.places import SKILLS

WORKSPACE = "/workspace"

_NEW_NAMESPACES = 0x00020000 | 0x20000000 | 0x08000000 | 0x04000000  # mount, pid, ipc, uts
_NEW_NETWORK = 0x40000000
_NEW_USER = 0x10000000

_RDONLY, _NOSUID, _NODEV, _NOEXEC = 1, 2, 4, 8
_REMOUNT, _BIND, _REC, _PRIVATE = 32, 4096, 16384, 1 << 18
_DETACH = 2
_SET_PDEATHSIG, _SET_NO_NEW_PRIVS = 1, 38
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_CAPSET = {"x86_64": 126, "aarch64": 91}
_CAPABILITIES_V3 = 0x20080522

_DEVICES = ("null", "zero", "full", "random", "urandom")
#: Of /etc, what programs need to be found and to know names; no secrets.
_ETC = ("alternatives", "ld.so.cache", "ld.so.conf", "passwd", "group", "localtime", "fonts", "ssl")

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Walls:
    """One session's walls.

    Attributes:
        workspace, temporary, record: its files, its ``/tmp``, its events.
        mountpoint: an empty folder; the new root is put together there, unseen by others.
        skills: the folder that it sees at ``skills`` of its files; empty for none.
        uid: who to become; none to stay who one is.
        paper: only for the planted fault: the sessions are open to each other.
    """

    workspace: str
    temporary: str
    record: str
    mountpoint: str
    uid: int | None
    memory_bytes: int
    file_bytes: int
    processes: int
    cpu_s: int
    skills: str = ""
    paper: bool = False


def fork_behind(walls: Walls) -> int:
    """Fork; the child is the first process behind new walls. As ``os.fork``.

    The parent must have one thread. It cannot fork a second time.

    Raises:
        OSError: the machine does not let us; in the parent for namespaces, in the child for mounts.
    """
    user, group = os.getuid(), os.getgid()
    if walls.uid is None:
        _check(_libc.unshare(_NEW_USER), "unshare the user namespace")
        Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")
    _check(_libc.unshare(_NEW_NAMESPACES | _NEW_NETWORK), "unshare namespaces")
    pid = os.fork()
    if pid == 0:
        _build(walls)
        _drop(walls)
    return pid


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent ends."""
    _check(_libc.prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "tie to the parent")


def system_folders() -> tuple[str, ...]:
    """Folders of programs and libraries, the interpreter's among them; none inside another."""
    wanted = {"/usr", "/bin", "/sbin", "/lib", "/lib64", sys.prefix, sys.base_prefix}
    there = {os.path.realpath(name) for name in wanted if os.path.isdir(name)}
    return tuple(sorted(f for f in there if not any(f.startswith(o + "/") for o in there)))


def _build(walls: Walls) -> None:
    root = walls.mountpoint
    _mount(None, "/", flags=_REC | _PRIVATE)
    _mount("tmpfs", root, kind="tmpfs", flags=_NOSUID | _NODEV, data="size=16m,mode=755")
    for name in ("bin", "sbin", "lib", "lib64"):
        if os.path.islink(f"/{name}"):
            os.symlink(os.readlink(f"/{name}"), f"{root}/{name}")
    for name in _ETC:
        if os.path.exists(f"/etc/{name}"):
            _bind(os.path.realpath(f"/etc/{name}"), f"{root}/etc/{name}", read_only=True)
    for name in _DEVICES:
        _bind(f"/dev/{name}", f"{root}/dev/{name}", read_only=False)
    os.makedirs(f"{root}/dev/shm")
    _mount("tmpfs", f"{root}/dev/shm", kind="tmpfs", flags=_NOSUID | _NODEV, data="size=64m")
    _bind(walls.temporary, f"{root}/tmp", read_only=False)
    # After /tmp: an environment may live below it.
    for folder in system_folders():
        _bind(folder, root + folder, read_only=True)
    _bind(walls.workspace, root + WORKSPACE, read_only=False)
    _bind(walls.record, f"{root}{WORKSPACE}/{os.path.basename(walls.record)}", read_only=True)
    if walls.skills:
        place = f"{root}{WORKSPACE}/{SKILLS}"
        if os.path.islink(place):
            raise OSError(errno.ELOOP, f"cannot mount {place}: it is a link")
        _bind(walls.skills, place, read_only=True)
    if walls.paper:
        sessions = str(Path(walls.workspace).parent.parent)
        _bind(sessions, root + sessions, read_only=False)
    os.makedirs(f"{root}/proc", exist_ok=True)
    # In a container /proc may be masked, and then no new one can be mounted: programs do without.
    with contextlib.suppress(OSError):
        _mount("proc", f"{root}/proc", kind="proc", flags=_NOSUID | _NODEV | _NOEXEC)
    os.chdir(root)
    _check(_libc.syscall(_PIVOT_ROOT[platform.machine()], b".", b"."), "change the root")
    _check(_libc.umount2(b".", _DETACH), "let go of the machine's root")
    os.chdir(WORKSPACE)


def _drop(walls: Walls) -> None:
    for what, limit in (
        (resource.RLIMIT_AS, walls.memory_bytes),
        (resource.RLIMIT_FSIZE, walls.file_bytes),
        (resource.RLIMIT_NPROC, walls.processes),
        (resource.RLIMIT_CPU, walls.cpu_s),
        (resource.RLIMIT_NOFILE, 1024),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(what)
        bounded = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(what, (bounded, bounded))
    if walls.uid is not None and walls.paper:
        die_with_parent()
        return  # else the sessions' users would still keep them apart
    if walls.uid is not None:
        os.setgroups([])
        os.setresgid(walls.uid, walls.uid, walls.uid)
        os.setresuid(walls.uid, walls.uid, walls.uid)
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_V3, 0)
    none = (ctypes.c_uint32 * 6)()
    _check(_libc.syscall(_CAPSET[platform.machine()], header, none), "give up capabilities")
    _check(_libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "refuse new privileges")
    # Last: becoming another user has the kernel forget it.
    die_with_parent()


def _bind(source: str, target: str, *, read_only: bool) -> None:
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if not os.path.exists(target):
            os.close(os.open(target, os.O_CREAT | os.O_RDONLY, 0o644))
    _mount(source, target, flags=_BIND | _REC)
    if read_only:
        # Flags of the source must be kept: a user namespace may not clear them.
        kept = os.statvfs(target).f_flag & (_NOSUID | _NODEV | _NOEXEC)
        _mount(None, target, flags=_REMOUNT | _BIND | _RDONLY | kept)


def _mount(
    source: str | None, target: str, *, kind: str | None = None, flags: int, data: str | None = None
) -> None:
    def words(text: str | None) -> bytes | None:
        return None if text is None else os.fsencode(text)

    status = _libc.mount(words(source), os.fsencode(target), words(kind), flags, words(data))
    _check(status, f"mount {target}")


def _check(status: int, what: str) -> None:
    if status < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"cannot {what}: {os.strerror(number)}")
