"""Runs a command that the dispatcher allowed, within bounds, and says what came of it."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import trio

from sexpd import faults, log
from sexpd.config import Config
from sexpd.errors import SexpdError
from sexpd.shell import confined
from sexpd.shell.syntax import parser
from sexpd.shell.verdict import Refused, Verdict

SHELL = "/bin/bash"
OWNED_PATHS = 10_000
TIMED_OUT = 124  # what timeout(1) ends with
_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin:/usr/local/bin",
    "LANG": "C.UTF-8",
    "TERM": "dumb",
    # A command may write Python files into its HOME; none of them is run unasked.
    "PYTHONNOUSERSITE": "1",
    "PYTHONSAFEPATH": "1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a command did.

    Attributes:
        exit_code: of the shell; 124 when it timed out, 128 + n when signal n ended it.
    """

    command: str
    stdout: str
    stderr: str
    exit_code: int
    timed_out: bool
    truncated: bool
    seconds: float


class Shell:
    """The shell actuator: judge, then run. There is no way to run without."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._slots = trio.CapacityLimiter(config["shell.at_once"])
        self._writing = trio.Lock()
        self._owned: dict[Path, tuple[int, int, int]] = {}
        mode = config["shell.confine"]
        self.confined = mode != "off" and confined.landlock_abi() > 0
        if mode == "required" and not self.confined:
            raise SexpdError(
                "cannot confine commands: this kernel has no Landlock. Set shell.confine to auto"
            )

    @property
    def root(self) -> Path:
        return self._config.root

    def problem(self) -> str:
        """Why no command could run, or the empty string."""
        if not Path(SHELL).is_file():
            return f"no {SHELL}"
        if parser() is None:
            return "no shfmt beside the interpreter"
        if not self.root.is_dir():
            return f"no working root {self.root}"
        return ""

    def timeout_s(self, asked: object) -> float:
        """The time that a request gets.

        Raises:
            ValueError: it asks for something that is no time, or for too much.
        """
        if asked is None:
            return float(self._config["shell.timeout_s"])
        longest = self._config["shell.longest_s"]
        if isinstance(asked, (bool, str)) or not hasattr(asked, "__float__"):
            raise ValueError(f"TIMEOUT {asked!r} is no number of seconds")
        if not 0 < (seconds := float(asked)) <= longest:
            raise ValueError(f"TIMEOUT {seconds:g} is not between 0 and {longest:g} s")
        return seconds

    async def run(self, command: str, *, route: str, seconds: float | None = None) -> Outcome:
        """Judge a command and run it.

        Args:
            command: for `bash -c`.
            route: by which it came, for the log.
            seconds: its time; the configured one when None.

        Raises:
            Refused: nothing ran; the text says why.
        """
        if seconds is None:
            seconds = self.timeout_s(None)
            if faults.on("typed-command-unbounded"):
                seconds = float(self._config["shell.longest_s"])
        async with self._slots:
            try:
                outcome = await self._judge_and_execute(command, route=route, seconds=seconds)
            except Refused as refused:
                log.warning("shell.blocked", route=route, command=command, reason=refused)
                raise
        log.info(
            "shell.done", route=route, exit_code=outcome.exit_code, seconds=f"{outcome.seconds:.3f}"
        )
        return outcome

    async def _judge_and_execute(self, command: str, *, route: str, seconds: float) -> Outcome:
        verdict = await self._judge(command, route=route)
        if not verdict.writes:
            log.info("shell.run", route=route, command=command)
            return await self._execute(command, seconds=seconds, root=self._root_of(route))
        # No other command may make of a name something else between the verdict and the end.
        async with self._writing:
            verdict = await self._judge(command, route=route)
            log.info("shell.run", route=route, command=command)
            if faults.on("writers-time-ignored"):
                seconds = self.timeout_s(None)
            outcome = await self._execute(command, seconds=seconds, root=self._root_of(route))
            for path in verdict.ours:
                self._own(path)
            return outcome

    def _root_of(self, route: str) -> Path:
        elsewhere = faults.on("model-runs-elsewhere") and route not in {"wire", "text"}
        return self.root.parent if elsewhere else self.root

    async def _judge(self, command: str, *, route: str) -> Verdict:
        fault = {"wire": "raw-wire-unchecked", "text": "text-route-unchecked",
                 "model": "model-route-unchecked"}.get(route)
        if fault and faults.on(fault):
            return Verdict(ours=(), writes=False)
        # Its tables are built at the first command, not while clients wait for the port.
        from sexpd.shell.dispatcher import judge

        limit = self._config["shell.command_chars"]
        return await judge(command, root=self.root, owned=self._is_owned, limit_chars=limit)

    # --- What commands made ---

    def _own(self, path: Path) -> None:
        self._owned.pop(path, None)
        if len(self._owned) < OWNED_PATHS and (print_ := _fingerprint(path)) is not None:
            self._owned[path] = print_

    def _is_owned(self, path: Path) -> bool:
        return path in self._owned and self._owned[path] == _fingerprint(path)

    # --- Running ---

    async def _execute(self, command: str, *, seconds: float, root: Path) -> Outcome:
        began = time.monotonic()
        setup = confined.child_setup(self.root, landlock=self.confined)
        process = await _start(command, root=root, setup=setup)
        limit = self._config["shell.output_chars"]
        stdout, stderr = _Kept(limit), _Kept(limit)
        timed_out = False
        assert process.stdout is not None and process.stderr is not None
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(stdout.fill, process.stdout)
                nursery.start_soon(stderr.fill, process.stderr)
                with trio.move_on_after(seconds) as scope:
                    await process.wait()
                timed_out = scope.cancelled_caught
                if timed_out and faults.on("timeout-leaves-process"):
                    nursery.cancel_scope.cancel()
                else:
                    # Whatever it left behind goes with it, so both pipes end.
                    with trio.move_on_after(2) as draining:
                        await _kill_all(process)
                        await stdout.ended.wait()
                        await stderr.ended.wait()
                    if draining.cancelled_caught:
                        nursery.cancel_scope.cancel()
        finally:
            await self._end(process, spare=timed_out and faults.on("timeout-leaves-process"))
        code = TIMED_OUT if timed_out or process.returncode is None else process.returncode
        errors, output = stderr.text(), stdout.text()
        if faults.on("output-cut"):
            output = output[:1024]
        if timed_out and faults.on("timed-out-output-lost"):
            output = ""
        if timed_out:
            errors += f"sexpd: timed out after {seconds:g} s and was killed\n"
        return Outcome(
            command=command,
            stdout=output,
            stderr=errors,
            exit_code=128 - code if code < 0 else code,
            timed_out=timed_out,
            truncated=stdout.truncated or stderr.truncated,
            seconds=time.monotonic() - began,
        )

    async def _end(self, process: trio.Process, *, spare: bool) -> None:
        """Nothing of a command outlives its answer, also when the daemon is stopping."""
        with trio.CancelScope(shield=True), trio.move_on_after(2):
            if not spare:
                await _kill_all(process)
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    await pipe.aclose()


async def _start(command: str, *, root: Path, setup: Callable[[], None]) -> trio.Process:
    try:
        return await trio.lowlevel.open_process(
            [SHELL, "--noprofile", "--norc", "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=root,
            env=_ENVIRONMENT | {"HOME": str(root), "PWD": str(root)},
            start_new_session=True,
            preexec_fn=setup,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise Refused(f"it cannot be started: {error}") from error


class _Kept:
    """The beginning of a stream; the rest is read and forgotten, so that the command goes on."""

    def __init__(self, limit_chars: int) -> None:
        self._limit_bytes = limit_chars * 4
        self._limit_chars = limit_chars
        self._raw = bytearray()
        self._over = False
        self.ended = trio.Event()

    async def fill(self, stream: trio.abc.ReceiveStream) -> None:
        with contextlib.suppress(trio.ClosedResourceError):
            async for chunk in stream:
                room = self._limit_bytes - len(self._raw)
                self._over = self._over or len(chunk) > room
                self._raw += chunk[:room]
        self.ended.set()

    def _decoded(self) -> str:
        return self._raw.decode("utf-8", errors="replace")

    @property
    def truncated(self) -> bool:
        return self._over or len(self._decoded()) > self._limit_chars

    def text(self) -> str:
        return self._decoded()[: self._limit_chars]


async def _kill_all(process: trio.Process) -> None:
    """Kill a command and all it started, until nothing of it runs.

    Programs such as timeout have a process group of their own; the session is that of the command.
    One that a dispatcher mistook may have a session too, so who descends from it is killed as well.
    A shell that sees its command end goes on with the next: it is killed before its command.
    """
    pids = _below(process.pid)
    while pids := {pid for pid in pids | _session(process.pid) if _runs(pid)}:
        pids |= {deeper for pid in pids for deeper in _below(pid)}
        for pid in _parents_first(pids):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        await trio.sleep(0.002)
    await process.wait()


def _parents_first(pids: set[int]) -> list[int]:
    """The processes, each after the one that has started it."""
    parents = {pid: _parent(pid) for pid in pids}
    ordered: list[int] = []
    left = set(pids)
    while left:
        first = {pid for pid in left if parents[pid] not in left} or left
        ordered += sorted(first)
        left -= first
    return ordered


def _parent(pid: int) -> int:
    """Who has started a process; 0 when it is gone."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _session(leader: int) -> set[int]:
    """The processes of the session that a process leads or has led."""
    found = set()
    for name in os.listdir("/proc"):
        with contextlib.suppress(ValueError, ProcessLookupError, PermissionError):
            if os.getsid(int(name)) == leader:
                found.add(int(name))
    return found


def _below(pid: int) -> set[int]:
    """The processes that a process has started and that are its children still, and theirs."""
    found: set[int] = set()
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                found.update(map(int, (task / "children").read_text().split()))
    return found.union(*map(_below, found))


def _runs(pid: int) -> bool:
    """Whether a process is there and has not ended; nobody may come to reap it."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def _fingerprint(path: Path) -> tuple[int, int, int] | None:
    """What a file is known by; it changes when anything else touches the file."""
    try:
        found = path.lstat()
    except OSError:
        return None
    if stat.S_ISDIR(found.st_mode):
        return found.st_dev, found.st_ino, 0
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
        return None
    return found.st_dev, found.st_ino, found.st_ctime_ns
