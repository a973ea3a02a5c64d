"""The one adapter of this suite: a daemon by its command line, and what is observed from outside.

Nothing here knows the reference: how it is started, set up and configured stands in the subject
file. A handle works in any trio loop; starting and stopping belong to the loop of its opener.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    ExitStack,
    asynccontextmanager,
    suppress,
)
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import trio

from harness_core.base.errors import ChildExited, NotReady
from harness_core.base.evidence import Evidence
from harness_core.base.slowness import patience
from harness_core.ports import (
    PortLease,
    Stage,
    await_completion,
    await_ready,
    lease_port,
    listeners,
    prove_listener,
)
from harness_core.process import Child, Run, StopReport
from harness_core.system.subject import Subject, subject_bin
from harness_core.system.suites import find_root
from suites.daemon.confinement import confinement
from suites.daemon.messages import HEALTH_CHECK
from suites.daemon.settings import Provider, Settings, fill, knob_of
from suites.daemon.subject_file import DaemonTables
from suites.daemon.vitals import Vitals, listening, read_vitals
from suites.daemon.wire import (
    FRAME_CHARACTERS,
    Connection,
    Keyword,
    Message,
    RemoteProtocolError,
    open_connection,
)

__all__ = ["HEALTH_S", "Absent", "Daemon", "Provider", "Settings", "open_daemon"]

SETUP_S: Final = 30.0

#: A health check is a round trip on loopback: 2 ms. This much on a machine that does much else.
HEALTH_S: Final = 5.0


class Daemon:
    """A daemon that has greeted a client; built only by :func:`open_daemon`.

    Attributes:
        subject: what it is.
        port: where it listens on 127.0.0.1, in its current life.
        home: its home directory, which outlives a restart, or is another in each life ([start]).
        root: the working root of its shell.
        settings: those of its next start, but for the setup and skills of its home.
        child: the process of its current life.
    """

    def __init__(
        self,
        run: Run,
        subject: Subject,
        *,
        name: str,
        evidence: Evidence,
        settings: Settings,
        home: Path,
        lease: PortLease | None,
    ) -> None:
        self.subject = subject
        self.tables = subject.read_tables(DaemonTables)
        self.home = home
        self.port = 0
        self.child: Child
        self._run = run
        self._name = name
        self._evidence = evidence
        self.settings = settings
        self._life = AsyncExitStack()
        self._lease = lease
        self._pid: int | None = None
        self._lives = 0

    @property
    def root(self) -> Path:
        """Where its commands run."""
        where = self.tables.start.root
        if self.settings.default_root:
            where = self.subject.table("defaults")["root"]
        return Path(where.replace("{home}", str(self.home)))

    @property
    def stop_s(self) -> float:
        """What it may take from the request to its end, on a machine with nothing else to do."""
        return self.tables.start.stop_s

    @property
    def pid(self) -> int:
        """The process that listens; it need not be the one that was started (a wrapper)."""
        if self._pid is None:
            self._pid = listening(self.port)
        return self._pid

    def vitals(self) -> Vitals:
        """Its process as the kernel shows it.

        Raises:
            AssertionError: it is gone.
        """
        return read_vitals(self.pid)

    @asynccontextmanager
    async def connect(
        self, *, greeted: bool = True, max_characters: int = FRAME_CHARACTERS
    ) -> AsyncIterator[Connection]:
        """A connection of one's own.

        Args:
            greeted: read its handshake.
            max_characters: longest payload to accept.
        """
        async with open_connection(self.port, max_characters=max_characters) as connection:
            if greeted:
                greeting = await connection.receive("the handshake", seconds=HEALTH_S)

                assert greeting.get("TYPE") == Keyword("EVENT"), (
                    f"contract 1: expected a handshake, found {greeting.payload}"
                )
            yield connection

    async def health(self) -> Message:
        """Ask for its health on a connection of its own.

        Raises:
            RemoteProtocolError: it does not answer within 5 s, or with something else.
        """
        async with self.connect() as connection:
            return await health_on(connection)

    async def start(self) -> None:
        """Start it and wait until it has greeted a client.

        Raises:
            AssertionError: it ended instead, or did not reach a stage; with its last lines.
        """
        self._pid = None
        self._lives += 1
        if self._lives > 1 and self.tables.start.home == "fresh":
            self.home = self._run.directory(f"{self._name}-{self._lives}")
            await self.set_up()
        try:
            await self._start()
        except (NotReady, ChildExited) as error:
            raise AssertionError(f"contract 1: the daemon did not start: {error}") from error

    async def _start(self) -> None:
        async with AsyncExitStack() as stack:
            port = self._lease.hand_over() if self._lease else 0
            starting = self.process(self._run, name=self._name, port=port, evidence=self._evidence)
            self.child = await stack.enter_async_context(starting)
            await await_ready(self.child, self._stages())
            self._life = stack.pop_all()

    def process(
        self,
        run: Run,
        *,
        name: str,
        port: int | str,
        argv: Sequence[str] | None = None,
        variables: Mapping[str, str] | None = None,
        evidence: Evidence | None = None,
    ) -> AbstractAsyncContextManager[Child]:
        """Its program once more, in its home: as it is started itself.

        Args:
            run: what it is a child of.
            name: what errors and logs call it.
            port: what it is told to listen on; 0 for any.
            argv: another command line than that of the subject file.
            variables: of its environment, over those of the subject file.
            evidence: keeps its log; the run's own otherwise.
        """
        fields = self._fields() | {"port": port}
        words = tuple(argv or self.subject.command(**fields))
        where = f"{self.subject.path}"
        for path, content in self.tables.files.items():
            file = Path(fill(path, fields, where=where))
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(fill(content, fields, where=where), encoding="utf-8")
        if self.settings.confinement is not None:
            self.settings.confinement.give(self.home)
            words = self.settings.confinement.command(words, home=self.home)
        return run.child(
            words,
            name=name,
            env=self._environment(fields) | dict(variables or {}),
            cwd=self.subject.folder(**fields)
            or Path(fill(self.tables.start.directory, fields, where=where)),
            evidence=evidence,
            grace_s=self.stop_s,
        )

    async def stop(self) -> StopReport:
        """Ask it to stop by its signal and wait for its end."""
        if self.settings.confinement is not None and self.signal(signal.SIGTERM):
            # What confines it would end it without asking.
            with trio.move_on_after(patience(self.stop_s)):
                await self.child.wait()
        report = await self.child.stop()
        await self._life.aclose()
        return report

    def signal(self, number: signal.Signals) -> bool:
        """Send a signal to the daemon itself, past what it is started by; whether it was there."""
        if self.settings.confinement is None:
            self.child.signal(number)
            return self.child.returncode is None
        with suppress(AssertionError, ProcessLookupError):
            os.kill(self.vitals().pid, number)
            return True
        return False

    async def restart(self) -> None:
        """Stop it, dead or alive, and start it again: in the same home, or as [start] has it."""
        await self.stop()
        await self.start()

    def kill(self) -> None:
        """SIGKILL to it and everything it started."""
        self.child.kill()

    def client(self, table: str, key: str = "argv", **fields: object) -> list[str]:
        """The command line of a client that the subject file names, with its fields filled in."""
        words: Sequence[str] = self.subject.table(table)[key]
        return [self.fill(word, **fields) for word in words]

    def fill(self, text: str, /, **fields: object) -> str:
        """A text of the subject file with its fields filled in."""
        offered = self._fields() | {"port": self.port} | fields
        return fill(text, offered, where=f"{self.subject.path}")

    def echo_of(self, text: str) -> str:
        """What to send to have ``text`` echoed."""
        asking: str = self.subject.table("texts")["echo"]
        return asking.replace("{text}", text)

    def environment(self) -> dict[str, str]:
        """The environment it runs in, for clients that belong to it."""
        return self._environment(self._fields() | {"port": self.port})

    async def set_up(self) -> None:
        """Do what has to be done once in a new home."""
        if not self.settings.default_root:
            self.root.mkdir(parents=True, exist_ok=True)
        setup = self.subject.table("setup")
        if setup and self.settings.set_up:
            argv = self.client("setup")
            starting = self._run.child(
                argv,
                name=f"{self._name}-setup",
                env=self.environment(),
                cwd=self.home,
                evidence=self._evidence,
            )
            async with starting as child:
                try:
                    await await_completion(child, seconds=SETUP_S)
                except (NotReady, ChildExited) as error:
                    raise AssertionError(f"contract 1: its setup failed: {error}") from error
        if self.settings.skills:
            skills = self.subject.table("skills")
            for name, content in skills["files"].items():
                Path(self.fill(skills["directory"]), name).write_text(content, encoding="utf-8")
        if self.settings.confinement is not None:
            self.settings.confinement.give(self.home)

    def _fields(self) -> dict[str, str | int]:
        here = str(self.subject.path.parent)
        return {"bin": subject_bin(), "here": here, "home": str(self.home), "root": str(self.root)}

    def _environment(self, fields: Mapping[str, str | int]) -> dict[str, str]:
        where = f"{self.subject.path}"
        environment = self.subject.environment(**fields)
        if self.settings.default_root:
            environment = {
                name: value for name, value in environment.items() if value != str(self.root)
            }
        for knob, value in self.settings.knobs.items():
            for key, text in knob_of(self.subject, knob).items():
                environment[key] = fill(text, {**fields, "value": value}, where=where)
        table = self.subject.table("providers")
        if self.settings.providers:
            names = ",".join(provider.name for provider in self.settings.providers)
            for key, text in table["env"].items():
                environment[key] = fill(text, {**fields, "names": names}, where=where)
        for provider in self.settings.providers:
            offered = {
                **fields,
                "name": provider.name,
                "NAME": provider.name.upper(),
                "shape": provider.shape,
                "url": provider.url,
                "key": provider.key,
                "model": provider.model,
                "timeout_s": f"{provider.timeout_s:g}",
            }
            for key, text in table["each"].items():
                environment[fill(key, offered, where=where)] = fill(text, offered, where=where)
        environment |= self.settings.variables
        return environment

    def _stages(self) -> tuple[Stage, ...]:
        ready_s = self.tables.start.ready_s

        async def named() -> str:
            if self._lease is not None:
                self.port = self._lease.port
                return ""
            found = self.named_by(self.child)
            self.port = found or 0
            return "" if found else f"it does not say where it listens, by {self.tables.port}"

        async def ours() -> str:
            if not listeners(port=self.port):
                return f"no process listens on port {self.port}"
            prove_listener(self.port, self.child)
            return ""

        async def greets() -> str:
            try:
                async with open_connection(self.port) as connection:
                    await connection.receive("the handshake", seconds=ready_s)
            except RemoteProtocolError as error:
                return str(error)
            return ""

        return (
            Stage(name="port", probe=named, seconds=ready_s),
            Stage(name="owner", probe=ours, seconds=ready_s),
            Stage(name="handshake", probe=greets, seconds=ready_s),
        )

    def named_by(self, child: Child) -> int | None:
        """The port that a process of its program says it listens on, by ``[port]``."""
        says = self.tables.port
        if says is None:
            return None
        if says.file:
            with suppress(OSError, ValueError):
                return int(Path(self.fill(says.file)).read_text(encoding="utf-8"))
            return None
        matches = [re.search(says.line, text) for text in child.tail()]
        return next((int(match[1]) for match in matches if match), None)


class Absent:
    """A daemon that did not start: each test that asks it for something fails, and says why."""

    def __init__(self, error: AssertionError) -> None:
        self._error = error

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(str(self._error)) from self._error


async def health_on(connection: Connection) -> Message:
    """Ask for health on a connection that is there."""
    await connection.send(HEALTH_CHECK)
    return await connection.receive("the answer to a health check", seconds=HEALTH_S)


def confined_by(subject: Subject, settings: Settings) -> Settings:
    """The settings with the confinement that the subject file asks for, if it does."""
    asked = subject.read_tables(DaemonTables).confine
    if asked is None:
        return settings
    # What it is started from, and the interpreters of both of us.
    shown = [Path(subject_bin()).parent, subject.path.parent, find_root(Path(__file__))]
    shown += [Path(sys.prefix), Path(sys.base_prefix)]
    within = settings.confinement or confinement()
    apart = within.apart(processes=asked.processes, shown=shown)
    if settings.confinement is not None:
        apart = replace(apart, user=within.user)
    return replace(settings, confinement=apart)


@asynccontextmanager
async def open_daemon(
    run: Run,
    subject: Subject,
    *,
    evidence: Evidence,
    name: str = "daemon",
    settings: Settings | None = None,
) -> AsyncIterator[Daemon]:
    """Set up a new home, start a daemon in it and yield it once it has greeted a client.

    Args:
        run: what it is a child of; its home goes with the run.
        subject: how to start it.
        evidence: keeps its log.
        name: what errors and logs call it.
        settings: knobs, providers, skills, confinement.

    Raises:
        AssertionError: its setup failed, it ended, or it does not greet within 30 s; names the
            stage that it did not reach, and shows its last lines.

    Source: CONTRACT-1-START.
    """
    settings = confined_by(subject, settings or Settings())
    with ExitStack() as stack:
        leased = not subject.table("port") or settings.same_port
        daemon = Daemon(
            run,
            subject,
            name=name,
            evidence=evidence,
            settings=settings,
            home=run.directory(name),
            lease=stack.enter_context(lease_port()) if leased else None,
        )
        await daemon.set_up()
        await daemon.start()
        try:
            yield daemon
        finally:
            await daemon.stop()
