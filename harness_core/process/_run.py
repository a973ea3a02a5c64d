"""One run of the harness: the warden, the ledger, the disposable directories, the leak audit."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import trio

from harness_core import limits
from harness_core.errors import BadInput, HarnessError, Unavailable
from harness_core.evidence import Evidence
from harness_core.groups import lone_error
from harness_core.process import _warden
from harness_core.process._child import Child
from harness_core.process._ledger import RunLedger
from harness_core.process._state import memory_root
from harness_core.process._sweep import remove_directories, sweep
from harness_core.wait import deadline, until

__all__ = ["LeakFound", "Run", "open_run"]

_HEADER: Final = _warden._HEADER  # noqa: SLF001 - two ends of one protocol
_RECEIVE_BYTES: Final = 65_536


class LeakFound(HarnessError):  # noqa: N818
    """Processes outlived the children that started them; they have been ended.

    Attributes:
        processes: ``pid: command line`` of each.
    """

    def __init__(self, processes: Sequence[str], *, log: Path | None = None) -> None:
        super().__init__(
            "end the run cleanly",
            observed=f"{len(processes)} process(es) outlived the child that started them",
            next_step="They were killed. See which child starts them without waiting for their end",
            tail=processes,
            log=log,
        )
        self.processes = tuple(processes)


class Run:
    """A run in progress; built only by :func:`open_run`.

    Attributes:
        id: short unique id, part of every name the run gives to things outside itself.
        ledger: what the run made, on disk.
        evidence: where children without an evidence directory of their own write.
    """

    def __init__(
        self, *, ledger: RunLedger, evidence: Evidence, warden: _WardenClient, nursery: trio.Nursery
    ) -> None:
        self.id = ledger.id
        self.ledger = ledger
        self.evidence = evidence
        self._warden = warden
        self._nursery = nursery

    def directory(self, name: str, *, in_memory: bool = False) -> Path:
        """Make a disposable directory; it goes with the run, or with the sweep after it.

        Args:
            name: what it is for; made unique within the run.
            in_memory: on tmpfs where the machine has one with room, on disk otherwise.
        """
        memory = memory_root() if in_memory else None
        path = (memory / self.id if memory else self.ledger.directory) / name
        number = 2
        while path.exists():
            path = path.with_name(f"{name}-{number}")
            number += 1
        self.ledger.record("directory", path=str(path))
        path.mkdir(parents=True, mode=0o711)
        return path

    @asynccontextmanager
    async def child(  # noqa: PLR0913 - what a process needs; all but the argv are optional
        self,
        argv: Sequence[str | os.PathLike[str]],
        *,
        name: str,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        evidence: Evidence | None = None,
        user: int | None = None,
        group: int | None = None,
        listen: Sequence[socket.socket] = (),
        stop_signal: signal.Signals = signal.SIGTERM,
        grace_s: float = limits.CHILD_STOP_GRACE_S,
    ) -> AsyncIterator[Child]:
        """Start a process in a session of its own; stop it at the end of the block.

        The block begins when ``exec`` has succeeded, which is not readiness: wait on an
        observable (``harness_core.net``) before you use it.

        Args:
            argv: command line; the first word is looked up on the child's own ``PATH``.
            name: what errors, logs and the ledger call it; names its log file.
            env: the whole environment; ``None`` inherits the harness's own.
            cwd: working directory.
            evidence: directory for its log; the run's own otherwise.
            user: numeric user id to become (needs root).
            group: numeric group id to become (needs root).
            listen: listening sockets handed over as descriptors 3, 4, … with ``LISTEN_FDS`` and
                ``LISTEN_PID``, as systemd does.
            stop_signal: what asks it to stop.
            grace_s: seconds between that and SIGKILL.

        Raises:
            BadInput: an empty argv.
            Unavailable: the program cannot be executed.
        """
        words = tuple(os.fspath(word) for word in argv)
        if not words or not all(words[:1]):
            raise BadInput(name, key="argv", found=list(words), expected="at least a program")
        child = await self._start(
            words,
            name=name,
            env=dict(os.environ if env is None else env),
            cwd=cwd,
            evidence=evidence or self.evidence,
            user=user,
            group=group,
            listen=listen,
            stop_signal=stop_signal,
            grace_s=grace_s,
        )
        try:
            yield child
        finally:
            with trio.CancelScope(shield=True):
                await child.stop()

    async def _start(  # noqa: PLR0913
        self,
        argv: tuple[str, ...],
        *,
        name: str,
        env: dict[str, str],
        cwd: Path | None,
        evidence: Evidence,
        user: int | None,
        group: int | None,
        listen: Sequence[socket.socket],
        stop_signal: signal.Signals,
        grace_s: float,
    ) -> Child:
        # Two children of one name in one directory would write into one log.
        log_name, number = name, 2
        while (evidence.path / f"{log_name}.log").exists():
            log_name, number = f"{name}-{number}", number + 1
        output_read, output_write = os.pipe()
        request = {
            "op": "spawn",
            "name": name,
            "argv": list(argv),
            "env": env,
            "cwd": str(cwd) if cwd is not None else None,
            "uid": user,
            "gid": group,
        }
        try:
            with deadline(f"start {name}", seconds=limits.CHILD_START_S):
                answer = await self._warden.spawn(
                    request, fds=[output_write, *(sock.fileno() for sock in listen)]
                )
        except BaseException:
            os.close(output_read)
            raise
        finally:
            os.close(output_write)
        if "errno" in answer:
            os.close(output_read)
            action = f"start {name}"
            raise Unavailable(
                action,
                observed=f"cannot execute {argv[0]}: {answer['text']}",
                next_step="Check that it is installed and on the PATH given to it",
            )
        child = Child(
            name=log_name,
            argv=argv,
            pid=answer["pid"],
            start=answer["start"],
            evidence=evidence,
            output=output_read,
            stop_signal=stop_signal,
            grace_s=grace_s,
        )
        self._warden.watch(child)
        self._nursery.start_soon(child._pump)  # noqa: SLF001 - Run is the one maker of children
        return child

    async def _audit(self) -> tuple[str, ...]:
        """Processes still below the warden some time after all children have been stopped."""
        found: list[dict[str, Any]] = []

        async def all_gone() -> bool:
            found[:] = await self._warden.descendants()
            return not found

        with trio.move_on_after(limits.LEAK_GRACE_S):
            await until(all_gone)
        for process in found:
            if _warden.start_time(process["pid"]) == process["start"]:
                os.kill(process["pid"], signal.SIGKILL)
        return tuple(f"{process['pid']}: {' '.join(process['argv'])}" for process in found)


class _WardenClient:
    """Our end of the control socket: requests out, answers and exits in."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self._lock = trio.Lock()
        self._next_id = 0
        self._answers: dict[int, tuple[trio.Event, dict[str, Any]]] = {}
        self._children: dict[int, Child] = {}
        #: Spawned, but its Child is not made yet: pid -> exit status once it has one.
        self._unwatched: dict[int, int | None] = {}
        self._gone = False

    async def spawn(self, request: dict[str, Any], *, fds: Sequence[int]) -> dict[str, Any]:
        return await self._ask({**request, "fds": len(fds)}, fds=fds)

    async def descendants(self) -> list[dict[str, Any]]:
        answer = await self._ask({"op": "descendants"}, fds=())
        found: list[dict[str, Any]] = answer["descendants"]
        return found

    def watch(self, child: Child) -> None:
        """Tell ``child`` when its process exits, even when it already has."""
        returncode = self._unwatched.pop(child.pid)
        if returncode is not None:
            child._note_exit(returncode)  # noqa: SLF001
        else:
            self._children[child.pid] = child

    async def _ask(self, request: dict[str, Any], *, fds: Sequence[int]) -> dict[str, Any]:
        self._next_id += 1
        number = self._next_id
        answered = trio.Event()
        answer: dict[str, Any] = {}
        self._answers[number] = (answered, answer)
        payload = json.dumps({**request, "id": number}).encode()
        # Shielded: a frame sent in part would garble every later one.
        with trio.CancelScope(shield=True):
            async with self._lock:
                await self._send(_HEADER.pack(len(payload)) + payload, fds)
        await answered.wait()
        if self._gone:
            action = "speak to the run's warden process"
            raise HarnessError(
                action,
                observed="it has ended",
                next_step="Everything it supervised was killed with it; run again",
            )
        return answer

    async def _send(self, data: bytes, fds: Sequence[int]) -> None:
        sock = self._stream.socket
        sent = 0
        while sent == 0:
            try:
                if fds:
                    raw = socket.socket(fileno=os.dup(sock.fileno()))
                    with raw:
                        sent = socket.send_fds(raw, [data], list(fds))
                else:
                    break
            except BlockingIOError:
                await trio.lowlevel.wait_writable(sock)
            except (BrokenPipeError, ConnectionResetError):
                self._note_gone()
                return
        try:
            await self._stream.send_all(data[sent:])
        except trio.BrokenResourceError:
            self._note_gone()

    async def read(self, scope: trio.CancelScope) -> None:
        """Hand out answers and exits until the warden closes its end.

        Runs in a shielded scope: whoever cancels the run still needs the exits of its children.
        """
        buffer = bytearray()
        with scope:
            await self._read(buffer)

    async def _read(self, buffer: bytearray) -> None:
        while True:
            try:
                data = await self._stream.receive_some(_RECEIVE_BYTES)
            except trio.BrokenResourceError:
                data = b""
            if not data:
                self._note_gone()
                return
            buffer += data
            while len(buffer) >= _HEADER.size:
                (length,) = _HEADER.unpack_from(buffer)
                if len(buffer) < _HEADER.size + length:
                    break
                message = json.loads(buffer[_HEADER.size : _HEADER.size + length])
                del buffer[: _HEADER.size + length]
                self._dispatch(message)

    def _dispatch(self, message: dict[str, Any]) -> None:
        if "exit" in message:
            child = self._children.pop(message["exit"], None)
            if child is not None:
                child._note_exit(message["returncode"])  # noqa: SLF001
            elif message["exit"] in self._unwatched:
                self._unwatched[message["exit"]] = message["returncode"]
            # Anything else is an orphan that the warden adopted and reaped.
            return
        answered, answer = self._answers.pop(message["id"])
        answer.update(message)
        if "pid" in message:
            self._unwatched[message["pid"]] = None
        answered.set()

    def _note_gone(self) -> None:
        self._gone = True
        for answered, _ in self._answers.values():
            answered.set()
        self._answers.clear()
        for child in self._children.values():
            child._note_exit(-signal.SIGKILL)  # noqa: SLF001 - it dies with its warden
        self._children.clear()


@asynccontextmanager
async def open_run(*, evidence: Evidence) -> AsyncIterator[Run]:
    """Open a run: sweep what dead runs left, start the warden, clean up at the end.

    Args:
        evidence: where children write that are given no directory of their own.

    Raises:
        LeakFound: at the end of a block that succeeded, when processes outlived their parents.
    """
    sweep()
    ledger = RunLedger.create()
    ours, theirs = socket.socketpair()
    leaks: tuple[str, ...] = ()
    async with lone_error():
        try:
            with theirs:
                warden = subprocess.Popen(  # noqa: ASYNC220 - returns after vfork, in 1 ms
                    [
                        sys.executable,
                        "-I",
                        "-S",
                        _warden.__file__,
                        str(theirs.fileno()),
                        str(ledger.path),
                    ],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                )
            ledger.record("warden", pid=warden.pid, start=_warden.start_time(warden.pid))
            try:
                async with trio.open_nursery() as nursery:
                    client = _WardenClient(trio.SocketStream(trio.socket.from_stdlib_socket(ours)))
                    reading = trio.CancelScope(shield=True)
                    nursery.start_soon(client.read, reading)
                    run = Run(ledger=ledger, evidence=evidence, warden=client, nursery=nursery)
                    try:
                        yield run
                        leaks = await run._audit()  # noqa: SLF001
                    finally:
                        reading.cancel()
            finally:
                ours.close()
                with trio.CancelScope(shield=True):
                    await trio.to_thread.run_sync(warden.wait)
        finally:
            remove_directories(ledger)
    if leaks:
        raise LeakFound(leaks)

