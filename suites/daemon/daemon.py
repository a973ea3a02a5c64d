"""The one adapter of this suite: a daemon by its command line, and what is observed from outside.

Nothing here knows the reference: how it is started, set up and configured stands in the subject
file. A handle works in any trio loop; starting and stopping belong to the loop of its opener.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from harness_core.base.errors import BadInput, ChildExited, NotReady
from harness_core.base.evidence import Evidence
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
from suites.daemon.confinement import Confinement
from suites.daemon.messages import HEALTH_CHECK
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

#: From exec to the handshake: 0.3 s on a quiet machine, 3 s on one that compiles bytecode.
READY_S: Final = 30.0
SETUP_S: Final = 30.0

#: A health check is a round trip on loopback: 2 ms. This much on a machine that does much else.
HEALTH_S: Final = 5.0

_FIELD: Final = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A language model that the daemon may ask.

    Attributes:
        name: what the daemon calls it; a word of letters.
        shape: ``anthropic`` or ``openai``.
        url: its base URL.
        timeout_s: after which the daemon gives it up.
    """

    name: str
    shape: str
    url: str
    key: str
    model: str = "claude-haiku-4-5-20251001"
    timeout_s: float = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a test asks for beyond a daemon as it comes.

    Attributes:
        knobs: knob of the subject file → value.
        providers: language models, in the order they are to be asked.
        skills: add the skills of the subject file before the start.
        confinement: what the daemon is started in.
        set_up: run the setup of the subject file in the new home.
        same_port: the port is its own through restarts, for clients that come back.
        default_root: it is not told of a working root, and takes the one of ``[defaults]``.
        variables: set as they are, over those of the subject file.
    """

    knobs: Mapping[str, object] = field(default_factory=dict)
    providers: Sequence[Provider] = ()
    skills: bool = False
    confinement: Confinement | None = None
    set_up: bool = True
    same_port: bool = False
    default_root: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)


class Daemon:
    """A daemon that has greeted a client; built only by :func:`open_daemon`.

    Attributes:
        subject: what it is.
        port: where it listens on 127.0.0.1, in its current life.
        home: its home directory, which outlives a restart.
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
        self.home = home
        self.root = home / "root"
        self.port = 0
        self.child: Child
        self._run = run
        self._name = name
        self._evidence = evidence
        self.settings = settings
        if settings.default_root:
            self.root = Path(self.fill(subject.table("defaults")["root"]))
        self._life = AsyncExitStack()
        self._lease = lease
        self._pid: int | None = None

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
        try:
            await self._start()
        except (NotReady, ChildExited) as error:
            raise AssertionError(f"contract 1: the daemon did not start: {error}") from error

    async def _start(self) -> None:
        async with AsyncExitStack() as stack:
            fields = self._fields() | {"port": self._lease.hand_over() if self._lease else 0}
            argv = self.subject.command(**fields)
            if self.settings.confinement is not None:
                argv = self.settings.confinement.command(argv, home=self.home)
            starting = self._run.child(
                argv,
                name=self._name,
                env=self._environment(fields),
                cwd=self.home,
                evidence=self._evidence,
            )
            self.child = await stack.enter_async_context(starting)
            await await_ready(self.child, self._stages())
            self._life = stack.pop_all()

    async def stop(self) -> StopReport:
        """Ask it to stop by its signal and wait for its end."""
        report = await self.child.stop()
        await self._life.aclose()
        return report

    async def restart(self) -> None:
        """Stop it, dead or alive, and start it again in the same home."""
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

    def places(self) -> dict[str, str]:
        """What its command line may name besides a port."""
        return {"home": str(self.home), "root": str(self.root)}

    def environment(self) -> dict[str, str]:
        """The environment it runs in, for clients that belong to it."""
        return self._environment(self._fields() | {"port": self.port})

    async def set_up(self) -> None:
        """Do what has to be done once in a new home."""
        if not self.settings.default_root:
            self.root.mkdir(exist_ok=True)
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
        return {"bin": subject_bin(), "home": str(self.home), "root": str(self.root)}

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
        async def named() -> str:
            if self._lease is not None:
                self.port = self._lease.port
                return ""
            line = re.compile(self.subject.table("port")["line"])
            for text in self.child.tail():
                if match := line.search(text):
                    self.port = int(match[1])
                    return ""
            return f"no line of its output matches {line.pattern!r}"

        async def ours() -> str:
            if not listeners(port=self.port):
                return f"no process listens on port {self.port}"
            prove_listener(self.port, self.child)
            return ""

        async def greets() -> str:
            try:
                async with open_connection(self.port) as connection:
                    await connection.receive("the handshake", seconds=READY_S)
            except RemoteProtocolError as error:
                return str(error)
            return ""

        return (
            Stage(name="port", probe=named, seconds=READY_S),
            Stage(name="owner", probe=ours, seconds=READY_S),
            Stage(name="handshake", probe=greets, seconds=READY_S),
        )


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


def knob_of(subject: Subject, knob: str) -> Mapping[str, str]:
    """The variables that turn a knob.

    Raises:
        BadInput: the subject file has no such knob.
    """
    knobs = subject.table("knobs")
    if knob not in knobs:
        raise BadInput(subject.path, key="knobs", found=knob, expected="a table of that name")
    found: Mapping[str, str] = knobs[knob]
    return found


def fill(text: str, fields: Mapping[str, object], *, where: str) -> str:
    """``{fields}`` of a text filled in; what is no field, as in a shell command, stays."""

    def replace(match: re.Match[str]) -> str:
        if match[1] not in fields:
            raise BadInput(
                where,
                found=match[0],
                expected="one of " + ", ".join("{" + name + "}" for name in sorted(fields)),
            )
        return str(fields[match[1]])

    return _FIELD.sub(replace, text)


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
    settings = settings or Settings()
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
