"""A process that a test starts: by a command line, or by the name of a table in ``pyproject.toml``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from harness_core.base.bridge import View, at_home, in_sync
from harness_core.base.errors import BadInput
from harness_core.base.wait import deadline, until
from harness_core.doubles.http import HttpClient
from harness_core.front.handles._outage import How, Outage
from harness_core.system.parts import Parts, ProcessPart, State


class Process:
    """A running process; given by ``process.start``.

    Its methods may be awaited in a task of trio, asyncio or anyio; :attr:`sync` has them for any other
    code.

    Attributes:
        name: what ``outage`` and errors call it.
        ports: its ports: ``port``, and each ``{port:NAME}`` of its command line as ``NAME``.
        loop: the loop it lives on.
    """

    def __init__(self, system: Parts, part: ProcessPart, *, ports: Mapping[str, int]) -> None:
        self.name = part.name
        self.ports = ports
        self.loop = system.loop
        self._system = system
        self._part = part
        self._waited_for = False

    def __repr__(self) -> str:
        return f"Process({self.name!r}, {self.state})"

    @property
    def sync(self) -> SyncProcess:
        """The same methods, which wait for their answer."""
        return SyncProcess(self, self.loop)

    @property
    def state(self) -> State:
        """``running``, ``paused``, ``stopped``, ``completed`` or, when it ended by itself, ``ended``."""
        return self._part.state

    @property
    def pid(self) -> int:
        """Of its main process, in its current or last life."""
        pid: int = self._part.child.pid
        return pid

    @property
    def port(self) -> int:
        """Its port on 127.0.0.1.

        Raises:
            BadInput: no ``{port}`` stands in its command line or variables.
        """
        if "port" not in self.ports:
            expected = "one with {port} in its command line or variables"
            raise BadInput("process", key="port", found=self.name, expected=expected)
        return self.ports["port"]

    @property
    def address(self) -> str:
        """``127.0.0.1:port``."""
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """``http://127.0.0.1:port``."""
        return f"http://{self.address}"

    def client(self) -> HttpClient:
        """A client that may be awaited in any loop and writes every exchange into the evidence."""
        return HttpClient(self.url, name=self.name, evidence=self._part.evidence)

    async def deaths(self) -> tuple[str, ...]:
        """How it died, where nobody asked or waited for that and nobody has started it again; else nothing."""
        await self._system.states()  # what ended a moment ago is known then
        return () if self._waited_for else tuple(self._system.deaths())

    def logs(self) -> tuple[str, ...]:
        """Every line that it has written so far, in all its lives; secrets redacted."""
        return self._system.logs(self.name)

    @property
    def log_files(self) -> tuple[Path, ...]:
        """The files of these lines, one for each life."""
        return self._system.log_files(self.name)

    async def start(self) -> None:
        """Start it again after ``stop`` or ``kill``, on the port it had, and wait until it serves."""
        self._waited_for = False
        await self._system.start(self.name)

    async def stop(self) -> None:
        """SIGTERM, and after its grace SIGKILL."""
        await self._system.stop(self.name)

    async def kill(self) -> None:
        """SIGKILL to its main process alone."""
        await self._system.kill(self.name)

    async def pause(self) -> None:
        """Freeze it: connections stay open and nothing answers."""
        await self._system.pause(self.name)

    async def resume(self) -> None:
        """Undo :meth:`pause`."""
        await self._system.resume(self.name)

    async def restart(self) -> None:
        """``stop``, then ``start``."""
        await self._system.restart(self.name)

    def outage(self, how: How = "stop") -> Outage:
        """It is away for a ``with`` or ``async with``, and serves again afterwards."""
        return Outage(self._system, self.name, how)

    @at_home
    async def wait(self, *, seconds: float = 30.0) -> int:
        """Wait until it has ended by itself; returns its exit status, negative for a signal.

        Raises:
            NotReady: it still runs after ``seconds``; carries its last lines.
        """
        child = self._part.child
        with deadline(f"see {self.name} end", seconds=seconds, observed=self._last_line):
            status: int = await child.wait()
        self._waited_for = True
        return status

    @at_home
    async def wait_for_line(self, text: str, *, seconds: float = 30.0) -> str:
        """Wait until it has written a line with ``text`` in it; returns that line.

        Raises:
            NotReady: there is none within ``seconds``.
        """

        async def found() -> str | None:
            return next((line for line in self.logs() if text in line), None)

        action = f"see {text!r} in the output of {self.name}"
        with deadline(action, seconds=seconds, observed=self._last_line):
            return await until(found)

    def _last_line(self) -> str:
        return next((f"its last line is {line!r}" for line in reversed(self.logs())), "no output")


class SyncProcess(View[Process]):
    """The methods of :class:`Process` for code without a loop."""

    start = in_sync(Process.start)
    stop = in_sync(Process.stop)
    kill = in_sync(Process.kill)
    pause = in_sync(Process.pause)
    resume = in_sync(Process.resume)
    restart = in_sync(Process.restart)
    wait = in_sync(Process.wait)
    wait_for_line = in_sync(Process.wait_for_line)
