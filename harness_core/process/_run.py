"""One run of the harness: the warden, the ledger, the disposable directories, the leak audit."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import trio

from harness_core.base import limits
from harness_core.base.bridge import reading as read_in_thread
from harness_core.base.errors import HarnessError
from harness_core.base.evidence import Evidence
from harness_core.base.groups import lone_error
from harness_core.base.machine import STATE_ELSEWHERE, writing
from harness_core.base.wait import deadline, until
from harness_core.process import _warden
from harness_core.process._child import Child
from harness_core.process._control import WardenClient
from harness_core.process._ledger import RunLedger
from harness_core.process._start import (
    check_arguments,
    check_name,
    group_of,
    new_log,
    not_started,
)
from harness_core.process._state import memory_root
from harness_core.process._sweep import end_marked, remove_directories, sweep
from harness_core.process._sweepers import installed_sweepers


class LeakFound(HarnessError):  # noqa: N818
    """Something outlived the run, or what made it; it has been ended or removed.

    Attributes:
        processes: ``pid: command line`` of each, or what else was found.
    """

    def __init__(
        self,
        processes: Sequence[str],
        *,
        log: Path | None = None,
        what: str = "process(es) outlived the child that started them",
        next_step: str = "They were killed. See which child starts them without waiting for their end",
    ) -> None:
        super().__init__(
            "end the run cleanly",
            observed=f"{len(processes)} {what}",
            next_step=next_step,
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
        self, *, ledger: RunLedger, evidence: Evidence, warden: WardenClient, nursery: trio.Nursery
    ) -> None:
        self.id = ledger.id
        self.ledger = ledger
        self.evidence = evidence
        self._warden = warden
        self._nursery = nursery
        self._children: list[Child] = []

    def deaths(self, *, since_s: float) -> list[str]:
        """Children that ended by themselves, and not well, each in a sentence.

        Args:
            since_s: earlier ones are not told, in seconds of ``time.monotonic``.
        """
        return [death for child in self._children if (death := child.death(since_s=since_s))]

    def directory(self, name: str, *, in_memory: bool = False) -> Path:
        """Make a disposable directory; it goes with the run, or with the sweep after it.

        Args:
            name: what it is for; made unique within the run.
            in_memory: on tmpfs where the machine has one with room, on disk otherwise.

        Raises:
            BadInput: ``name`` is no single path component, so it would lie elsewhere.
            Unavailable: the disk is full.
        """
        check_name(name, where="directory")
        memory = memory_root() if in_memory else None
        home = memory / self.id if memory else self.ledger.directory
        path, number = home / name, 2
        while path.exists():
            path = path.with_name(f"{name}-{number}")
            number += 1
        self.ledger.record("directory", path=str(path))
        with writing(path, what="a directory of the run", elsewhere=STATE_ELSEWHERE):
            home.mkdir(exist_ok=True, mode=0o711)
            path.mkdir(mode=0o711)
        return path

    def start_soon(self, task: Callable[[], Awaitable[None]], *, name: str) -> None:
        """Start a task beside the run; the run waits for its end, so whoever starts it ends it.

        For what outlives the task of its opener, as the handles of a butler do.
        """
        self._nursery.start_soon(task, name=name)

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
        observable (``harness_core.ports``) before you use it.

        Args:
            argv: command line; the first word is looked up on the child's own ``PATH``.
            name: what errors, logs and the ledger call it; names its log file.
            env: the whole environment; ``None`` inherits the harness's own.
            cwd: working directory.
            evidence: directory for its log; the run's own otherwise.
            user: numeric user id to become (needs root).
            group: numeric group id to become (needs root); the user's own when left out.
            listen: listening sockets handed over as descriptors 3, 4, … with ``LISTEN_FDS`` and
                ``LISTEN_PID``, as systemd does.
            stop_signal: what asks it to stop.
            grace_s: seconds between that and SIGKILL.

        Raises:
            BadInput: an argument that no process could be given.
            Unavailable: the program cannot be executed, or not there or not as that user.
        """
        words = tuple(os.fspath(word) for word in argv)
        check_name(name, where="child")
        check_arguments(name, argv=words, env=env or {}, listen=listen)
        if user is not None and group is None:
            group = group_of(user)
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
        log = new_log(evidence, name)
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
        if "failed" in answer:
            os.close(output_read)
            raise not_started(name, request, answer["failed"])
        child = Child(
            name=log.stem,
            argv=argv,
            pid=answer["pid"],
            start=answer["start"],
            log=log,
            redactor=evidence.redactor,
            output=output_read,
            stop_signal=stop_signal,
            grace_s=grace_s,
        )
        self._children.append(child)
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


@asynccontextmanager
async def open_run(*, evidence: Evidence) -> AsyncIterator[Run]:
    """Open a run: sweep what dead runs left, start the warden, clean up at the end.

    What dead runs left elsewhere (in a container engine, on a server) is removed beside this run,
    which waits for that only while it is younger than ``limits.SWEEP_BESIDE_S`` itself: an engine
    that is slow, or silent, delays nothing. What is left is the next run's, or ``harness
    sweep``'s.

    Args:
        evidence: where children write that are given no directory of their own.

    Raises:
        LeakFound: at the end of a block that succeeded, when processes outlived their parents.
    """
    swept = await trio.to_thread.run_sync(sweep)
    ledger = RunLedger.create()
    leaks: tuple[str, ...] = ()
    try:
        async with lone_error(), _warden_process(ledger) as control, trio.open_nursery() as nursery:
            client = WardenClient(control)
            reading = trio.CancelScope(shield=True)
            nursery.start_soon(client.read, reading)
            beside = trio.CancelScope()
            began = trio.current_time()
            if swept.waiting:
                nursery.start_soon(_sweep_beside, beside, evidence)
            run = Run(ledger=ledger, evidence=evidence, warden=client, nursery=nursery)
            try:
                yield run
                leaks = await run._audit()  # noqa: SLF001
            finally:
                reading.cancel()
                beside.deadline = began + limits.SWEEP_BESIDE_S
    finally:
        remove_directories(ledger)
    if leaks:
        raise LeakFound(leaks)


async def _sweep_beside(scope: trio.CancelScope, evidence: Evidence) -> None:
    """Remove what takes a library, or the answer of a server."""
    with scope:
        try:
            report = await read_in_thread(sweep, sweepers=installed_sweepers())
        except (HarnessError, OSError) as error:  # the run has no part in it
            evidence.append("sweep.log", str(error))
            return
        for line in (*(f"removed {what}" for what in report.removed), *report.problems):
            evidence.append("sweep.log", line)


@asynccontextmanager
async def _warden_process(ledger: RunLedger) -> AsyncIterator[trio.SocketStream]:
    """Start the warden and yield our end of its control socket; nothing it started outlives it."""
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            warden = subprocess.Popen(  # noqa: ASYNC220 - returns after vfork, in 1 ms
                [
                    *(sys.executable, "-I", "-S", _warden.__file__),
                    *(str(theirs.fileno()), str(ledger.path)),
                    *(str(ledger.mark()), str(os.getpid())),
                ],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        ledger.record("warden", pid=warden.pid, start=_warden.start_time(warden.pid))
        try:
            yield trio.SocketStream(trio.socket.from_stdlib_socket(ours))
        finally:
            # Closing would not do: a process that the harness forked may hold a copy open.
            with suppress(OSError):  # it was killed: the other end is closed
                ours.shutdown(socket.SHUT_RDWR)
            ours.close()
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(warden.wait)
                if warden.returncode != 0:
                    # Killed: its children died with it, what they had started did not.
                    await trio.to_thread.run_sync(end_marked, ledger)
