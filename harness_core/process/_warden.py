"""The parent of every process a run starts; makes sure that none outlives the run.

Runs as a process of its own, with nothing but the standard library (``python -I -S _warden.py``),
single-threaded, one per run. Why a separate process:

* the kernel ties a parent-death signal to the *thread* that forked, and the harness forks from
  threads that end; the warden has one thread that lives as long as the run;
* it is a child subreaper, so that processes which daemonise or lose their parent are adopted
  here and not by init, and can be found and ended;
* when the harness dies in any way, SIGKILL included, its end of the control socket closes and its
  pidfd tells; the warden then kills everything below itself and leaves.

Should the warden itself be killed, its children die by their parent-death signal, but what *they*
started lives on. For that case every child carries the *mark* of its run, a soft limit on file
locks: Linux has ignored that limit since 2.4, every descendant inherits it through ``fork``,
``exec``, ``setsid`` and a cleaned environment, and ``/proc/<pid>/limits`` shows it to every user.

Protocol on the control socket (a stream): frames of a four-byte big-endian length and a JSON
object. A ``spawn`` request carries descriptors: output first, then listening sockets, which the
child finds from descriptor 3 on (``LISTEN_FDS``, as systemd hands them over).
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import resource
import selectors
import signal
import socket
import struct
import sys
import time
from typing import Any, NoReturn

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
#: ``RLIMIT_LOCKS``, which the resource module does not name.
_RLIMIT_LOCKS = 10
HEADER = struct.Struct(">I")
FRAME_BYTES = 8 * 1024 * 1024
#: The output and the listening sockets of one child.
FDS_PER_FRAME = 64
_FIRST_LISTEN_FD = 3
#: Descriptors are moved above this before they are placed, so that none is overwritten.
_PARKED_FD = 256
#: Seconds of kill-and-reap before giving up on processes that cannot be killed (state D).
_KILL_S = 10.0

#: States in ``/proc/<pid>/stat`` of what no longer runs: zombie, dead.
_DEAD = (b"Z", b"X", b"x")
_STOPPED = (b"T", b"t")
_MARK_LINE = b"Max file locks"

_libc = ctypes.CDLL(None, use_errno=True)


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


class Warden:
    """The loop: requests from the harness, exits of children, the end of the harness."""

    def __init__(
        self, control: socket.socket, *, ledger_path: str, mark: int, owner_pid: int
    ) -> None:
        self.control = control
        self.ledger_path = ledger_path
        self.mark = mark
        self.owner_pid = owner_pid
        self.stopping = False
        self.buffer = b""
        self.fds: list[int] = []

    def serve(self) -> None:
        """Work until the control socket closes or SIGTERM arrives; leave nothing alive."""
        wake_read, wake_write = os.pipe()
        for fd in (wake_read, wake_write):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._on_term)
        for ignored in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(ignored, signal.SIG_IGN)
        with selectors.DefaultSelector() as selector:
            selector.register(self.control, selectors.EVENT_READ)
            selector.register(wake_read, selectors.EVENT_READ)
            owner = self._watch_owner()
            if owner is not None:
                selector.register(owner, selectors.EVENT_READ)
            while not self.stopping:
                for key, _ in selector.select():
                    if key.fd == wake_read:
                        _drain(wake_read)
                        self._reap()
                    elif key.fd == owner or not self._receive():
                        self.stopping = True
        self._kill_everything()

    def _watch_owner(self) -> int | None:
        """A descriptor that becomes readable when the harness process ends.

        The control socket alone would not do: a process that the harness forked (multiprocessing)
        may hold a copy of it open.
        """
        try:
            descriptor = os.pidfd_open(self.owner_pid)
        except ProcessLookupError:
            self.stopping = True
            return None
        except OSError:  # a kernel before 5.3, or a sandbox that forbids it
            return None
        if os.getppid() != self.owner_pid:  # it ended before, and its number may be another's now
            self.stopping = True
        return descriptor

    def _on_term(self, *_: object) -> None:
        self.stopping = True

    def _receive(self) -> bool:
        try:
            data, fds, _flags, _address = socket.recv_fds(self.control, 65536, FDS_PER_FRAME)
        except OSError:
            return False
        for fd in fds:
            # Python 3.11 drops the flag that would have done this; no other thread forks here.
            os.set_inheritable(fd, False)  # noqa: FBT003
        self.fds.extend(fds)
        if not data:
            return False
        self.buffer += data
        while len(self.buffer) >= HEADER.size:
            (length,) = HEADER.unpack_from(self.buffer)
            if length > FRAME_BYTES:
                return False
            if len(self.buffer) < HEADER.size + length:
                break
            frame = self.buffer[HEADER.size : HEADER.size + length]
            self.buffer = self.buffer[HEADER.size + length :]
            self._handle(json.loads(frame))
        return True

    def _send(self, message: dict[str, Any]) -> None:
        payload = json.dumps(message).encode()
        try:
            self.control.sendall(HEADER.pack(len(payload)) + payload)
        except OSError:
            self.stopping = True

    def _handle(self, request: dict[str, Any]) -> None:
        if request["op"] == "spawn":
            count = request["fds"]
            fds, self.fds = self.fds[:count], self.fds[count:]
            try:
                pid = self._spawn(request, fds)
            except SpawnFailed as failure:
                self._send({"id": request["id"], "failed": failure.args[0]})
            except OSError as error:  # no room for one more process or descriptor
                self._send({"id": request["id"], "failed": {"step": "fork", **_said(error)}})
            else:
                self._send({"id": request["id"], "pid": pid, "start": start_time(pid)})
            finally:
                for fd in fds:
                    os.close(fd)
        elif request["op"] == "descendants":
            found = [
                {"pid": pid, "start": start_time(pid), "argv": command_line(pid)}
                for pid in descendants(os.getpid())
            ]
            self._send({"id": request["id"], "descendants": found})

    def _spawn(self, request: dict[str, Any], fds: list[int]) -> int:
        error_read, error_write = os.pipe()
        warden_pid = os.getpid()
        pid = os.fork()
        if pid == 0:
            _become(request, fds, report=error_write, mark=self.mark, warden_pid=warden_pid)
        os.close(error_write)
        with os.fdopen(error_read, "rb") as report:
            failure = report.read()
        if failure:
            os.waitpid(pid, 0)
            raise SpawnFailed(json.loads(failure))
        self._record(
            {"kind": "process", "pid": pid, "start": start_time(pid), "name": request["name"]}
        )
        return pid

    def _record(self, entry: dict[str, Any]) -> None:
        line = (json.dumps(entry) + "\n").encode()
        fd = os.open(self.ledger_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            write_whole(fd, line)
        finally:
            os.close(fd)

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._send({"exit": pid, "returncode": os.waitstatus_to_exitcode(status)})

    def _kill_everything(self) -> None:
        give_up = time.monotonic() + _KILL_S
        while time.monotonic() < give_up:
            alive = descendants(os.getpid())
            for pid in alive:
                _signal(pid, signal.SIGKILL)
            while True:
                try:
                    pid, _ = os.waitpid(-1, os.WNOHANG)
                except ChildProcessError:
                    return
                if pid == 0:
                    break
            # Not a sleep for its own sake: wait for the next death, or look again after 10 ms.
            signal.sigtimedwait([signal.SIGCHLD], 0.01)


class SpawnFailed(Exception):  # noqa: N818 - travels from _spawn to its answer
    """The forked child could not turn into its program; holds step, text and maybe errno."""


def _become(
    request: dict[str, Any], fds: list[int], *, report: int, mark: int, warden_pid: int
) -> NoReturn:
    """In the forked child: turn into the requested program; report a failure and exit."""
    step = "prepare"
    try:
        os.setsid()
        report = fcntl.fcntl(report, fcntl.F_DUPFD_CLOEXEC, _PARKED_FD)
        _place_descriptors(fds)
        _reset_signals()
        _set_mark(mark)
        environment = request["env"]
        if len(fds) > 1:
            environment["LISTEN_FDS"] = str(len(fds) - 1)
            environment["LISTEN_PID"] = str(os.getpid())
        if request["cwd"] is not None:
            step = "chdir"
            os.chdir(request["cwd"])
        step = "become"
        _change_user(uid=request["uid"], gid=request["gid"])
        step = "prepare"
        # After the change of user, which would clear it.
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != warden_pid:
            os._exit(1)
        step = "execute"
        _execute(request["argv"], environment)
    except OSError as error:
        write_whole(report, json.dumps({"step": step, **_said(error)}).encode())
    except BaseException as error:  # noqa: BLE001 - a forked child's edge: reported, then it ends
        write_whole(report, json.dumps({"step": step, "text": repr(error)}).encode())
    os._exit(127)


def _execute(argv: list[str], environment: dict[str, str]) -> NoReturn:
    """Replace this process by the program, looked up on the PATH that it will have.

    Unlike ``os.execvpe``, a directory of the PATH that we may not enter hides no later error.
    """
    refused: OSError = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), argv[0])
    places = [""] if "/" in argv[0] else os.get_exec_path(environment)
    for place in places:
        path = os.path.join(place, argv[0])  # noqa: PTH118 - pathlib is not loaded here
        try:
            os.execve(path, argv, environment)  # noqa: S606 - no shell, by design
        except (FileNotFoundError, NotADirectoryError):
            continue
        except PermissionError as error:
            if os.path.lexists(path):
                refused = error
    raise refused


def _place_descriptors(fds: list[int]) -> None:
    """Nothing on 0, the output on 1 and 2, listening sockets from 3 on."""
    parked = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _PARKED_FD) for fd in fds]
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(parked[0], 1)
    os.dup2(parked[0], 2)
    for offset, fd in enumerate(parked[1:]):
        os.dup2(fd, _FIRST_LISTEN_FD + offset)


def _reset_signals() -> None:
    """A child starts with the signals of a fresh process, not with the warden's."""
    for number in range(1, signal.SIGRTMIN):
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            try:
                signal.signal(number, signal.SIG_DFL)
            except (OSError, ValueError):
                continue
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _set_mark(mark: int) -> None:
    try:
        resource.setrlimit(_RLIMIT_LOCKS, (mark, resource.getrlimit(_RLIMIT_LOCKS)[1]))
    except (OSError, ValueError):  # a sandbox that forbids it: the sweep then knows fewer processes
        return


def _change_user(*, uid: int | None, gid: int | None) -> None:
    if gid is not None:
        os.setgid(gid)
    if uid is not None or gid is not None:
        # Else the child would keep what root's groups may do.
        os.setgroups([])
    if uid is not None:
        os.setuid(uid)


def _said(error: OSError) -> dict[str, Any]:
    return {"errno": error.errno, "text": error.strerror or str(error)}


def write_whole(fd: int, data: bytes) -> None:
    """Write all of ``data``: a full disk takes a part, and says so at the next attempt."""
    while data:
        data = data[os.write(fd, data) :]


def _drain(fd: int) -> None:
    try:
        while os.read(fd, 4096):
            pass
    except BlockingIOError:
        return


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _stat_fields(pid: int, *, of: int | None = None) -> list[bytes] | None:
    """What ``/proc/<pid>/stat`` says after the command name: state, ppid, pgrp, session, ….

    With ``of``, ``pid`` is one of the threads of that process.
    """
    path = f"/proc/{pid}/stat" if of is None else f"/proc/{of}/task/{pid}/stat"
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - hot, and pathlib is not loaded
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return None


def start_time(pid: int) -> int | None:
    """Start of a process in clock ticks since boot; with the pid it names a process for ever."""
    fields = _stat_fields(pid)
    return int(fields[19]) if fields else None


def runs(pid: int, start: int) -> bool:
    """Whether exactly this process still runs; a zombie, which some parent never reaps, does not."""
    fields = _stat_fields(pid)
    return fields is not None and int(fields[19]) == start and fields[0] not in _DEAD


def carries_mark(pid: int, mark: int) -> bool:
    """Whether ``pid`` was started by the run with this mark, or by a descendant of it."""
    try:
        with open(f"/proc/{pid}/limits", "rb") as file:  # noqa: PTH123
            for line in file:
                if line.startswith(_MARK_LINE):
                    return line[len(_MARK_LINE) :].split()[0] == b"%d" % mark
    except OSError:
        pass
    return False


def marked(mark: int) -> list[int]:
    """Every live process that carries the mark of a run."""
    return [pid for pid in _pids() if carries_mark(pid, mark) and _session_of(pid) is not None]


def _pids() -> list[int]:
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]  # noqa: PTH208


def parent(pid: int) -> int | None:
    """The parent of a process; ``None`` for one that is gone."""
    fields = _stat_fields(pid)
    return int(fields[1]) if fields else None


def process_group(pid: int) -> int | None:
    """The process group of a process; ``None`` for one that is gone."""
    fields = _stat_fields(pid)
    return int(fields[2]) if fields else None


def _session_of(pid: int) -> int | None:
    """The session of a live process; ``None`` for one that is gone or a zombie."""
    fields = _stat_fields(pid)
    return int(fields[3]) if fields and fields[0] not in _DEAD else None


def is_stopped(group: int) -> bool:
    """Whether every thread of a process group stands still, or is dead."""
    for pid in _pids():
        if process_group(pid) != group:
            continue
        try:
            threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208
        except OSError:
            continue
        for thread in threads:
            fields = _stat_fields(int(thread), of=pid)
            if fields and fields[0] not in _STOPPED + _DEAD:
                return False
    return True


def command_line(pid: int) -> list[str]:
    """The argv of a process, empty when it is gone."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:  # noqa: PTH123
            return file.read().rstrip(b"\0").decode(errors="replace").split("\0")
    except OSError:
        return []


def session_members(session: int) -> list[int]:
    """Live processes of a session (zombies left out)."""
    return [pid for pid in _pids() if _session_of(pid) == session]


def children() -> dict[int, list[int]]:
    """Every live process (zombies left out), by what it is a child of."""
    found: dict[int, list[int]] = {}
    for pid in _pids():
        fields = _stat_fields(pid)
        if fields and fields[0] not in _DEAD:
            found.setdefault(int(fields[1]), []).append(pid)
    return found


def descendants(root: int, among: dict[int, list[int]] | None = None) -> list[int]:
    """Every live process below ``root``, parents before children.

    Args:
        root: its id.
        among: what :func:`children` has found, for who asks of several; found now when left out.
    """
    below = children() if among is None else among
    found: list[int] = []
    queue = [root]
    while queue:
        here = below.get(queue.pop(0), [])
        found.extend(here)
        queue.extend(here)
    return found


def main() -> None:
    """Entry point: ``_warden.py CONTROL_FD LEDGER_PATH MARK OWNER_PID``."""
    control = socket.socket(fileno=int(sys.argv[1]))
    os.set_inheritable(control.fileno(), False)  # noqa: FBT003
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    Warden(
        control, ledger_path=sys.argv[2], mark=int(sys.argv[3]), owner_pid=int(sys.argv[4])
    ).serve()


if __name__ == "__main__":
    main()
