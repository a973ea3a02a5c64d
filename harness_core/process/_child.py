"""A supervised process: what a caller sees of it and may do to it."""

from __future__ import annotations

import array
import dataclasses
import fcntl
import os
import re
import signal
import termios
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import trio

from harness_core.base import limits
from harness_core.base.errors import ChildExited, HarnessError, NotReady
from harness_core.base.evidence import Redactor
from harness_core.base.slowness import patience
from harness_core.base.wait import until, until_blocking
from harness_core.process import _warden
from harness_core.process._output import OutputLog

_READ_BYTES: Final = 65_536

#: From SIGSTOP to the last thread that obeys it.
_STOPPED_S: Final = 1.0

#: What makes the name of a further child of one name; a death is told of all of them alike.
_NUMBER: Final = re.compile(r"-\d+$")

#: Shown of the last line of a child that died.
_SAID_CHARS: Final = 200


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class StopReport:
    """How a child ended when it was asked to.

    Attributes:
        returncode: exit status; negative for the signal that ended it.
        waited_s: seconds from the request to the exit.
        killed: the child ignored the request for the whole grace and was killed: a finding.
        strays: command lines of processes of its group that it left behind, killed by us.
    """

    returncode: int
    waited_s: float
    killed: bool
    strays: tuple[str, ...] = ()


class Child:
    """A process started by :meth:`Run.child`; alive until ``returncode`` is set.

    Attributes:
        name: what errors and logs call it.
        pid: process id; also its process group and session.
        argv: the command line.
        returncode: ``None`` while it lives, then its exit status (negative: signal).
        log: file with everything it wrote to stdout and stderr, in order, redacted.
        stop_report: set by :meth:`stop`.
    """

    def __init__(  # noqa: PLR0913 - built in one place, by Run
        self,
        *,
        name: str,
        argv: tuple[str, ...],
        pid: int,
        start: int | None,
        log: Path,
        redactor: Redactor,
        output: int,
        stop_signal: signal.Signals,
        grace_s: float,
    ) -> None:
        self.name = name
        self.argv = argv
        self.pid = pid
        self.returncode: int | None = None
        self.stop_report: StopReport | None = None
        self._start = start
        self._output = output
        self._stop_signal = stop_signal
        self._grace_s = grace_s
        self._group_killed = False
        #: Its end is somebody's wish, or somebody waited for it when it came.
        self._may_end = False
        self._waiters = 0
        self._ended_s: float | None = None
        #: Around the pump's wait for output, which ends when the child does; one for each wait.
        self._waiting = trio.CancelScope()
        self._exited = trio.Event()
        self._drained = trio.Event()
        self.log = log
        self._lines = OutputLog(log, redactor=redactor)

    def tail(self) -> tuple[str, ...]:
        """The last lines of its output, oldest first, redacted."""
        return self._lines.tail()

    def on_line(self, watcher: Callable[[str], None]) -> None:
        """Call ``watcher`` with every further line of output (redacted, without its end)."""
        self._lines.on_line(watcher)

    def check(self, action: str) -> None:
        """Raise when the child is gone, for a caller that needs it alive to do ``action``.

        Raises:
            ChildExited: with exit status and output tail.
        """
        if self.returncode is not None:
            raise ChildExited(
                action,
                name=self.name,
                returncode=self.returncode,
                tail=self.tail(),
                log=self.log,
            )

    def death(self, *, since_s: float) -> str:
        """How it died, in a sentence; empty while it lives, and of an end that was asked for.

        An end is asked for by a signal of ours, and by whoever waits for it when it comes.

        Args:
            since_s: earlier deaths are not told, in seconds of ``time.monotonic``.
        """
        if not self.returncode or self._may_end or self._ended_s is None or self._ended_s < since_s:
            return ""
        how = f"exited with {self.returncode}"
        if self.returncode < 0:
            how = f"was killed by {signal.Signals(-self.returncode).name}"
        last = next((line for line in reversed(self.tail()) if line.strip()), "")
        name = _NUMBER.sub("", self.name)
        return f"{name} {how}" + (f", its last words: {last[:_SAID_CHARS]}" if last else "")

    async def wait(self) -> int:
        """Wait until it has exited and its output is read; returns the exit status."""
        self._waiters += 1
        try:
            await self._exited.wait()
        finally:
            self._waiters -= 1
        await self._drained.wait()
        assert self.returncode is not None
        return self.returncode

    async def settle(self) -> None:
        """Wait for the report of an end that has happened already; nothing happens while it runs."""
        if self.returncode is None and not _warden.runs(self.pid, self._start or 0):
            await self._exited.wait()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the child alone; nothing happens when it is gone."""
        self._note_wish()
        if self.returncode is None and _warden.start_time(self.pid) == self._start:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL to its whole process group, as a crash of the machine would."""
        self._group_killed = True
        self._note_wish()
        self._signal_group(signal.SIGKILL)

    async def crash(self) -> tuple[str, ...]:
        """SIGKILL to the process alone, as the kernel's out-of-memory killer does it.

        What it started may notice, for ``limits.CHILD_OUTLIVED_S``, and end by itself; the rest is
        then killed.

        Returns:
            The command lines of the rest: a finding about the child.
        """
        below = {pid: _warden.start_time(pid) for pid in _warden.descendants(self.pid)}
        self.signal(signal.SIGKILL)
        await self._exited.wait()

        def left() -> set[int]:
            found = {pid for pid, start in below.items() if start and _warden.runs(pid, start)}
            found |= {each for pid in found for each in _warden.descendants(pid)}
            return found | set(_warden.session_members(self.pid))

        def signal_all(number: signal.Signals) -> None:
            for pid in left():
                with suppress(ProcessLookupError):
                    os.kill(pid, number)

        async def none_left() -> bool:
            return not left()

        signal_all(signal.SIGCONT)  # what was frozen with it can notice nothing
        with trio.move_on_after(patience(limits.CHILD_OUTLIVED_S)):
            await until(none_left)
        outlived = tuple(" ".join(_warden.command_line(pid)) for pid in sorted(left()))

        async def killed() -> bool:
            signal_all(signal.SIGKILL)
            return not left()

        with trio.move_on_after(limits.CHILD_STOP_KILL_S):
            await until(killed)
        await self._drained.wait()
        return outlived

    def pause(self) -> None:
        """SIGSTOP to its whole process group: it hangs, its sockets stay open.

        Returns when every thread stands still: on busy cores one may go on for a moment, and answer.
        """
        self._signal_group(signal.SIGSTOP)
        # What hangs in the kernel itself stops when it comes back from there.
        with suppress(NotReady):
            until_blocking(
                lambda: _warden.is_stopped(self.pid),
                seconds=_STOPPED_S,
                action=f"see {self.name} stand still",
            )

    def resume(self) -> None:
        """SIGCONT after :meth:`pause`."""
        self._signal_group(signal.SIGCONT)

    async def stop(self, *, grace_s: float | None = None) -> StopReport:
        """Climb the stop ladder: ask, wait for the grace, kill the group, wait for the end.

        Args:
            grace_s: seconds between the request and SIGKILL; the child's own default otherwise.

        Returns:
            What it took. ``killed`` and ``strays`` are findings about the child.

        Raises:
            HarnessError: it survived SIGKILL for ``limits.CHILD_STOP_KILL_S``.
        """
        if self.stop_report is not None:
            return self.stop_report
        began = trio.current_time()
        killed = False
        if self.returncode is None:
            self.resume()
            self.signal(self._stop_signal)
            with trio.move_on_after(patience(self._grace_s if grace_s is None else grace_s)):
                await self._exited.wait()
            if self.returncode is None:
                killed = True
                self.kill()
                with trio.move_on_after(limits.CHILD_STOP_KILL_S):
                    await self._exited.wait()
        if self.returncode is None:
            raise HarnessError(
                f"stop {self.name} (pid {self.pid})",
                observed=f"it survived SIGKILL for {limits.CHILD_STOP_KILL_S:g} s",
                next_step="Look at its state in /proc; `harness sweep` tries again later",
                tail=self.tail(),
                log=self.log,
            )
        waited_s = trio.current_time() - began
        strays = await self._kill_strays()
        await self._drained.wait()
        self.stop_report = StopReport(
            returncode=self.returncode, waited_s=waited_s, killed=killed, strays=strays
        )
        return self.stop_report

    def _signal_group(self, number: int) -> None:
        if self.returncode is not None or _warden.start_time(self.pid) != self._start:
            return
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            return

    async def _kill_strays(self) -> tuple[str, ...]:
        """End what is left of the child's session; the kernel keeps the id while a member lives."""
        seen: dict[int, str] = {}

        async def none_left() -> bool:
            if _warden.start_time(self.pid) not in {None, self._start}:
                return True  # the number is another's now, so no member of ours was left
            strays = _warden.session_members(self.pid)
            for pid in strays:
                if not self._group_killed or _warden.process_group(pid) not in {None, self.pid}:
                    # Else it is dying of the SIGKILL that its whole group got.
                    seen.setdefault(pid, " ".join(_warden.command_line(pid)))
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            return not strays

        with trio.move_on_after(limits.CHILD_STOP_KILL_S):
            await until(none_left)
        return tuple(seen.values())

    def _note_wish(self) -> None:
        """It is asked to end; of one that has ended before it was asked, nothing changes."""
        self._may_end = self._may_end or self.returncode is None

    def _note_exit(self, returncode: int) -> None:
        # Its last lines first: whoever sees that it has ended finds them in the tail.
        self._read_rest()
        self._may_end = self._may_end or self._waiters > 0
        self.returncode = returncode
        self._ended_s = time.monotonic()
        self._exited.set()
        self._waiting.cancel()

    @trio.lowlevel.enable_ki_protection
    async def _pump(self) -> None:
        """Move output into the log and the tail until the child is gone and the pipe is empty.

        Shielded: the last lines of a child are wanted most when the run is being cancelled. It
        ends with the child, which :meth:`Run.child` always stops. Ctrl-C is for the main task.
        """
        with trio.CancelScope(shield=True):
            await self._read_output()

    async def _read_output(self) -> None:
        os.set_blocking(self._output, False)
        try:
            while not self._exited.is_set():
                try:
                    data = os.read(self._output, _READ_BYTES)
                except BlockingIOError:
                    self._waiting = trio.CancelScope()
                    with self._waiting:
                        await trio.lowlevel.wait_readable(self._output)
                    continue
                if not data:
                    break  # it closed its output and lives on
                self._lines.feed(data)
                await trio.lowlevel.checkpoint()
        finally:
            self._drained.set()
            os.close(self._output)
            self._lines.close()

    def _read_rest(self) -> None:
        """Read what an ended child wrote, which is in the pipe by now, and no more.

        What it left behind may hold the pipe open, and may write for ever.
        """
        if self._drained.is_set():
            return
        left_bytes = _bytes_in_pipe(self._output)
        while left_bytes > 0 and (data := os.read(self._output, min(left_bytes, _READ_BYTES))):
            left_bytes -= len(data)
            self._lines.feed(data)
        self._lines.end()


def belongs_to(pid: int, child: Child) -> bool:
    """Whether ``pid`` is the child, a member of its session, or a descendant of it."""
    return (
        pid == child.pid
        or pid in _warden.session_members(child.pid)
        or pid in _warden.descendants(child.pid)
    )


def _bytes_in_pipe(descriptor: int) -> int:
    count = array.array("i", [0])
    fcntl.ioctl(descriptor, termios.FIONREAD, count)
    return count[0]
