"""Launchers in processes of their own, stopped before each thing they do to a file or a tool.

The tools stay with the test, which so decides what happens when: a launcher can be killed at any of
its steps, as SIGKILL kills, or another one can run between two of them. Nothing waits for a time:
only a launcher that waits for another one is left alone after a while, until that one is through.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import socket  # lint: allow driver: both ends are this test, which decides when a launcher goes on
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from harness_core.base.wait import until_blocking
from suites.parity.compare import Call, Reply
from suites.parity.launcher import Launcher
from suites.parity.sides import Sides
from suites.parity.world import World

__all__ = ["Act", "Process", "Stop", "in_a_process", "settle"]

#: What a process does: with its world, its launcher, and a way to stop at a point of its own.
Act = Callable[[World, Launcher, Callable[[str], None]], Any]

#: What Python does to files is announced under these names, before it is done. What was read before
#: may be wrong by then, so that a reading need not be a step of its own.
_EVENTS: Final = frozenset(
    {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink"}
    | {"os.chmod", "os.truncate", "fcntl.flock", "fcntl.lockf"}
)
_WRITES: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC

#: A process that takes no step for so long waits for another one. One that waits for a lock of the
#: kernel is known at once.
_WAITS_S: Final = 5.0
_GLANCE_S: Final = 0.005

_LENGTH_BYTES: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Where a process is.

    Attributes:
        kind: ``"file"``, ``"tool"``, ``"point"`` for one of its own, ``"done"``, or ``"waits"``.
        what: the file, the command, the name of the point, or what it came to.
    """

    kind: str
    what: Any = None

    def __str__(self) -> str:
        return f"{self.kind} {self.what}"


class Process:
    """A launcher in a process of its own; made by :func:`in_a_process`.

    Attributes:
        at: where it stopped.
        steps: how many it has taken.
        pid: its number.
    """

    def __init__(self, world: World, connection: socket.socket, pid: int) -> None:
        self.at = Stop(kind="waits")
        self.steps = 0
        self._world = world
        self._connection = connection
        self.pid = pid
        self._call: Call | None = None
        self._failure: OSError | None = None
        self._is_alive = True

    def advance(self, *, steps: int | None = None, point: str = "") -> Stop:
        """Let it go on.

        Args:
            steps: how many steps it takes; as many as there are when left out.
            point: a point of its own at which it stops as well.
        """
        taken = 0
        while self.at.kind != "done" and (steps is None or taken < steps):
            self._release()
            if self._receive(_WAITS_S).kind == "waits":
                break
            taken += 1
            if self.at == Stop(kind="point", what=point):
                break
        return self.at

    def fail(self, number: int) -> None:
        """Let what it is about to do to a file fail, as on a disk that is full: nothing is done there.

        Args:
            number: of the error, as ``errno`` has it.
        """
        assert self.at.kind == "file", f"what fails is done to a file: it stopped before {self.at}"
        self._failure = OSError(number, os.strerror(number))

    def kill(self) -> None:
        """Kill it where it is; one that is through ends by itself, and hands over what it executed."""
        if self._is_alive:
            self._is_alive = False
            if self.at.kind == "done":
                _send(self._connection, None)
            else:
                os.killpg(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self._connection.close()
            # A launcher that is a program is gone once each of its processes is.
            until_blocking(
                lambda: not _alive(self.pid),
                seconds=_WAITS_S,
                action="wait for the end of a launcher that was killed",
                poll_s=_GLANCE_S,
            )

    def _waits_for_a_lock(self) -> bool:
        """Whether the kernel lets it wait for another process, it or what it runs."""
        lines = Path("/proc/locks").read_text().splitlines()
        waiting = [line.split()[5] for line in lines if " -> " in line]
        return any(_group(int(pid)) == self.pid for pid in waiting)

    def _release(self) -> None:
        """Let it do what it stopped before."""
        if self.at.kind == "waits":
            return
        answer: Reply | OSError | None = None
        if self._failure is not None:
            answer, self._failure = self._failure, None
        if self._call is not None:
            call, self._call = self._call, None
            try:
                answer = self._world.commands.run(
                    call.argv, env=call.env, stdin=call.stdin, inherited=call.inherited
                )
            except OSError as error:
                answer = error
        self.at = Stop(kind="waits")
        _send(self._connection, answer)

    def _receive(self, patience_s: float) -> Stop:
        end = time.monotonic() + patience_s
        while not select.select([self._connection], [], [], _GLANCE_S)[0]:
            if time.monotonic() > end or self._waits_for_a_lock():
                return self.at
        message = _take(self._connection)
        assert message is not None, "a launcher's process comes to an end of its own: it vanished"
        self.at, self._call, (log, output, asked, errors) = message
        self.steps += 1
        self._world.log += log
        self._world.output += output
        self._world.asked += asked
        self._world.errors += errors
        return self.at


def settle(*processes: Process, point: str = "") -> None:
    """Let processes go on in turns until each is at its end, at this point, or waits for another."""
    while True:
        before = sum(process.steps for process in processes)
        for process in processes:
            if process.at != Stop(kind="point", what=point):
                process.advance(point=point)
        if sum(process.steps for process in processes) == before:
            return


@contextmanager
def in_a_process(sides: Sides, world: World, act: Act) -> Iterator[Process]:
    """Start a launcher in a process of its own; it stops before its first step.

    Args:
        sides: how a launcher is opened.
        world: a simulated world whose home is really there; the process has a copy of it, and its
            commands run here.
        act: what it does. What it returns, or the text of what it raises, is in ``finish``.
    """
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        ours.close()
        _live(sides, world, act, theirs)
    with suppress(OSError):
        # Whichever of the two comes first.
        os.setpgid(pid, pid)
    theirs.close()
    process = Process(world, ours, pid)
    try:
        process.advance(steps=1)
        yield process
    finally:
        process.kill()


def _group(pid: int) -> int:
    """The group of a process; 0 for one that has ended."""
    with suppress(ProcessLookupError):
        return os.getpgid(pid)
    return 0


def _alive(group: int) -> bool:
    """Whether a process of a group runs; those that have ended and nobody waited for do not."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and _group(int(folder.name)) == group:
            with suppress(OSError):
                if (folder / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX":
                    return True
    return False


class _Child:
    """The side of the process: stops, and commands that run elsewhere."""

    def __init__(self, world: World, connection: socket.socket) -> None:
        self.calls: list[Call] = []
        self._world = world
        self._connection = connection
        self._is_quiet = False
        self._sent = [len(text) for text in self._texts()]

    def _texts(self) -> tuple[list[str], ...]:
        """What the test's own world is to have of this one."""
        world = self._world
        return (world.log, world.output, world.asked, world.errors)

    def stop(self, stop: Stop, call: Call | None = None) -> Any:
        """Stop until the test lets the process go on."""
        self._is_quiet = True
        try:
            texts = self._texts()
            new = [text[sent:] for text, sent in zip(texts, self._sent, strict=True)]
            self._sent = [len(text) for text in texts]
            _send(self._connection, (stop, call, new))
            return _take(self._connection)
        finally:
            self._is_quiet = False

    def hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Stop before something is done to a file of the home."""
        if self._is_quiet or event not in _EVENTS:
            return
        if event == "open" and not (isinstance(arguments[2], int) and arguments[2] & _WRITES):
            return
        subject = arguments[0] if arguments else ""
        path = os.fsdecode(subject) if isinstance(subject, str | bytes | os.PathLike) else ""
        # Below a folder that is removed names are relative; a lock is taken on a number.
        if path.startswith(str(self._world.home)) or (event != "open" and not path.startswith("/")):
            answer = self.stop(Stop(kind="file", what=f"{event} {Path(path).name}"))
            if isinstance(answer, OSError):
                raise answer

    def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        inherited: bytes = b"",
    ) -> Reply:
        """Run a command where the tools are."""
        call = Call(argv=tuple(argv), env=dict(env or {}), stdin=stdin, inherited=inherited)
        answer = self.stop(Stop(kind="tool", what=" ".join(call.argv[:3])), call)
        if isinstance(answer, OSError):
            raise answer
        assert isinstance(answer, Reply)
        return answer


def _live(sides: Sides, world: World, act: Act, connection: socket.socket) -> NoReturn:
    """The whole life of the process."""
    status = 1
    try:
        # The modes of files are those that the launcher asks for.
        os.umask(0)
        child = _Child(world, connection)
        world.commands = child
        launcher = sides.open(world)
        sys.addaudithook(child.hear)
        with world.may_refuse(launcher.errors) as outcome:
            result = act(world, launcher, lambda name: child.stop(Stop(kind="point", what=name)))
        came_to = result if outcome.happened == "done" else f"{outcome.happened}: {outcome.text}"
        child.stop(Stop(kind="done", what=came_to))
        status = 0
    finally:
        os._exit(status)


def _send(connection: socket.socket, message: Any) -> None:
    content = pickle.dumps(message)
    connection.sendall(len(content).to_bytes(_LENGTH_BYTES, "big") + content)


def _take(connection: socket.socket) -> Any:
    """The next message; ``None`` at the end."""
    length = int.from_bytes(_read(connection, _LENGTH_BYTES), "big")
    content = _read(connection, length)
    # Both ends are this test.
    return pickle.loads(content) if content else None


def _read(connection: socket.socket, count: int) -> bytes:
    content = b""
    while len(content) < count and (part := connection.recv(count - len(content))):
        content += part
    return content
