"""A launcher that is a program, in any language: a subject file says how its commands are written.

``start`` and ``resume`` stay for as long as their bottle runs, and print its identity once it does;
every other command comes to its end by itself. The program runs in the home, with the environment
and on the tools of a test's world; it knows nothing of them but what any user's shell would tell it.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from harness_core.base.errors import BadInput
from harness_core.base.reading import Misfit, Table, Text
from harness_core.front.skips import not_run
from harness_core.system.subject import Subject, Tables, load_subject
from suites.parity.compare import Call, CommandStub, Reply, SimulatedCrash
from suites.parity.launcher import Backend, Bottle, ExecResult
from suites.parity.running import ENDS_S, PATIENCE_S, Running, pump
from suites.parity.tools.relay import Relay
from suites.parity.world import World

__all__ = ["ProgramTables", "load_program"]

#: Backend → the command line tool that it drives, and the gate of the real one.
_TOOLS: Final = {
    "docker": ("docker", "docker"),
    "smolmachines": ("smolvm", "smolvm"),
    "bubblewrap": ("bwrap", "bubblewrap"),
}

Words = tuple[Text, ...]


class _LauncherTable(Table, frozen=True, kw_only=True):
    """``[launcher]``.

    Attributes:
        backends: those that it has.
        applies_proposals: those of them that can change the image of a bottle.
        identity: what ``start`` and ``resume`` print, on stdout, once the bottle runs; the first
            group is the identity.
        prompt: what it asks on stderr; the first group is what a user reads.
        answer_end: what ends an answer on its input.
        refusal: what it says on stderr when it refuses, and nothing else says; a failure that does
            not say it is a crash.
    """

    backends: Words
    refusal: str
    applies_proposals: Words = ()
    identity: str = r"(?m)^(\S+)$"
    prompt: str = r"(?m)^(.+): ?$"
    answer_end: Text = "\n"

    def __post_init__(self) -> None:
        for name in (*self.backends, *self.applies_proposals):
            if name not in _TOOLS:
                raise Misfit("backends", found=name, expected=f"one of {', '.join(_TOOLS)}")
        for key in ("identity", "prompt", "refusal"):
            try:
                re.compile(getattr(self, key))
            except re.error as error:
                raise Misfit(key, found=str(error), expected="a regular expression") from error


class _CommandsTable(Table, frozen=True):
    """``[commands]``: what follows ``argv``, with ``{fields}``; ``{words}`` is a word for each.

    Tests that need a command which may be left out, and is, are not run.

    Attributes:
        start, start_on: launch the bottle ``{name}``, the latter on ``{backend}``.
        resume: launch the preserved bottle ``{identity}`` again.
        stop: end a bottle; one that has ended is no error.
        exec: run the shell ``{script}`` as ``{user}``; output and status are those of the script.
        agent, agent_terminal: run ``{words}`` as the agent, the latter with a terminal.
        copy: copy ``{source}`` of the host to ``{target}`` in the guest.
        preserve: let the state of a bottle outlive it.
        active: print the identities of bottles that run on ``{backend}``, a line each.
        cleanup: remove what launches left that died.
        propose: queue a change to ``{image}`` with its ``{justification}``; prints the proposal.
        pending: print the proposals that wait, a line each.
        approve: apply ``{proposal}``.
    """

    start: Words
    start_on: Words
    stop: Words
    exec: Words
    agent: Words
    agent_terminal: Words
    copy: Words
    active: Words
    cleanup: Words
    resume: Words = ()
    preserve: Words = ()
    propose: Words = ()
    pending: Words = ()
    approve: Words = ()


class ProgramTables(Tables, frozen=True, kw_only=True):
    """A launcher that is a program.

    ``{here}`` in `argv` is the folder of the file. The tools that it runs (`docker`, `smolvm`) are those
    of the test, first on its `PATH`; `HOME` and the host's variables are the test's too.
    A launcher that is killed is killed with its `start`: bottles end with whoever holds them. What can only
    be seen inside a Python library (its objects, a full disk at any of its steps) is not run, and the skip
    says so.

    Attributes:
        launcher: what it is.
        commands: what follows `argv` for each command, with ``{fields}``; ``{words}`` is a word for each.
    """

    launcher: _LauncherTable
    commands: _CommandsTable


class _Refused(Exception):  # noqa: N818 - it is no error of the program
    """The launcher refused, in its own words."""


class LauncherCrashed(Exception):  # noqa: N818 - reports show its name
    """A command failed and said nothing that a refusal begins with."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a script in the guest answered."""

    returncode: int
    stdout: str
    stderr: str


def load_program(path: Path) -> Sequence[Backend]:
    """Read a subject file of a launcher that is a program.

    Raises:
        BadInput: a mistake in it, or its command is not there.
    """
    subject = load_subject(path)
    tables = subject.read_tables(ProgramTables)
    argv = subject.command(here=str(subject.path.parent))
    command = shutil.which(argv[0])
    if command is None:
        raise BadInput(
            path, key="subject.argv", found=argv[0], expected="a command that is installed"
        )
    open_ = partial(_Launcher, subject, tables, (command, *argv[1:]))
    return [
        Backend(
            name=name,
            tool=_TOOLS[name][0],
            open=open_,
            applies_proposals=name in tables.launcher.applies_proposals,
            live=_TOOLS[name][1],
            in_process=False,
        )
        for name in tables.launcher.backends
    ]


_numbers: Final = itertools.count()


class _Launcher:
    """The program in one world."""

    errors = (_Refused,)

    def __init__(
        self, subject: Subject, tables: ProgramTables, argv: Sequence[str], world: World
    ) -> None:
        self._subject = subject
        self._says = tables.launcher
        self._commands = tables.commands
        self._argv = argv
        self._world = world
        self._held: list[Running] = []
        tools = [tool for tool, _ in _TOOLS.values()]
        folder = world.home.parent / f"tools of {os.getpid()}-{next(_numbers)}"
        self._relay = Relay(folder, tools)
        self._relay.offer(without=())
        weakref.finalize(self, self._relay.close)

    @contextmanager
    def start(self, name: str, *, backend: str | None) -> Iterator[Bottle]:
        """Launch the bottle of a manifest."""
        words = self._commands.start if backend is None else self._commands.start_on
        with self._launched(words, name=name, backend=backend or "") as bottle:
            yield bottle

    @contextmanager
    def resume(self, identity: str) -> Iterator[Bottle]:
        """Launch a preserved bottle again."""
        with self._launched(self._commands.resume, identity=identity) as bottle:
            yield bottle

    def preserve(self, identity: str) -> None:
        """Mark a bottle's state to outlive it."""
        self.checked(self._commands.preserve, identity=identity)

    def active(self, backend: str) -> list[str]:
        """Identities that a backend takes for running bottles of its own."""
        return _lines(self.checked(self._commands.active, backend=backend))

    def cleanup(self) -> None:
        """Remove what crashed launches left."""
        self.checked(self._commands.cleanup)

    def propose(self, identity: str, *, image: str, justification: str) -> str:
        """Queue a proposal."""
        fields = {"identity": identity, "image": image, "justification": justification}
        return self.checked(self._commands.propose, **fields).strip()

    def pending(self) -> list[str]:
        """Ids of proposals that wait."""
        return _lines(self.checked(self._commands.pending))

    def approve(self, proposal: str) -> None:
        """Approve one."""
        self.checked(self._commands.approve, proposal=proposal)

    def checked(self, template: Words, **fields: str) -> str:
        """Run a command that must succeed; what it printed.

        Raises:
            Refused: it does not, and says why.
            LauncherCrashed: it does not.
        """
        done = self.run(template, **fields)
        self._world.output += [done.stdout, done.stderr]
        if done.status != 0:
            raise self.failure(done)
        return done.stdout

    def run(self, template: Words, *, words: Sequence[str] = (), **fields: str) -> Running:
        """Run a command to its end, whatever that is."""
        with self._spawned(self.filled(template, words=words, **fields)) as running:
            self._pump(running)
        return running

    def filled(self, template: Words, *, words: Sequence[str] = (), **fields: str) -> list[str]:
        """A whole command line.

        Raises:
            BadInput: a field that this command does not have.
        """
        if not template:
            not_run("subject", f"{self._subject.path.name} leaves out a command that this needs")
        filled = list(self._argv)
        for word in template:
            if word == "{words}":
                filled += words
                continue
            filled.append(re.sub(r"\{(\w+)\}", partial(self._field, fields), word))
        return filled

    def keep(self, *printed: str) -> None:
        """Let it be looked at with all else that the launcher prints."""
        self._world.output += printed

    def failure(self, done: Running) -> Exception:
        """What a command that failed is reported as."""
        if done.status > 0 and re.search(self._says.refusal, done.stderr):
            return _Refused(done.stderr)
        return LauncherCrashed(f"exit status {done.status}: {done.stderr}")

    def _field(self, fields: Mapping[str, str], match: re.Match[str]) -> str:
        if match[1] not in fields:
            expected = " or ".join(f"{{{name}}}" for name in fields) or "no field"
            raise BadInput(self._subject.path, key="commands", found=match[0], expected=expected)
        return fields[match[1]]

    @contextmanager
    def _launched(self, template: Words, **fields: str) -> Iterator[Bottle]:
        with self._spawned(self.filled(template, **fields), answer=self._answer) as running:
            identity = re.compile(self._says.identity)
            self._pump(running, until=lambda: identity.search(running.stdout) is not None)
            self._world.output += [running.stdout, running.stderr]
            found = identity.search(running.stdout)
            if found is None:
                raise self.failure(running)
            bottle = _Bottle(self, self._commands, found[1])
            self._held.append(running)
            try:
                yield bottle
            finally:
                bottle.close()
                self._pump(running, patience_s=ENDS_S)
                self._world.output += [running.stdout, running.stderr]

    @contextmanager
    def _spawned(
        self, argv: Sequence[str], *, answer: Callable[[str], bytes | None] | None = None
    ) -> Iterator[Running]:
        commands = self._world.commands
        self._relay.offer(without=commands.missing if isinstance(commands, CommandStub) else ())
        environ = self._subject.environment(here=str(self._subject.path.parent))
        environ |= self._world.environ
        environ["PATH"] = f"{self._relay.folder}:{environ['PATH']}"
        prompt = re.compile(self._says.prompt)
        running = Running(argv, env=environ, prompt=prompt, answer=answer)
        try:
            yield running
        finally:
            running.kill()
            if running in self._held:
                self._held.remove(running)

    def _answer(self, prompt: str) -> bytes | None:
        """What is typed at a prompt, and its end; ``None`` when the terminal is closed."""
        try:
            answer = self._world.answer(prompt)
        except EOFError:
            return None
        end = self._says.answer_end
        if end in answer:
            not_run("subject", f"no answer to {self._subject.name} can hold {end!r}, which ends it")
        return os.fsencode(answer + end)

    def _pump(
        self,
        running: Running,
        *,
        until: Callable[[], bool] = lambda: False,
        patience_s: float = PATIENCE_S,
    ) -> None:
        """Let a command go on, and answer the tools that it runs, until its end."""
        try:
            pump(running, self._held, self._relay, self._tool, until=until, patience_s=patience_s)
        except SimulatedCrash:
            # The launcher dies, with all that it runs.
            for each in (running, *self._held):
                each.kill()
            raise

    def _tool(self, call: Call) -> Reply:
        """What a tool answers that the program ran."""
        try:
            return self._world.commands.run(call.argv, env=call.env)
        except OSError as error:
            # The kernel had found it: as a shell that did not.
            return Reply(returncode=127, stderr=f"{call.tool}: {error.strerror}\n".encode())


def _lines(text: str) -> list[str]:
    """What a list has, a line each; an empty line is nobody's name."""
    return [line for line in text.split("\n") if line.strip()]


class _Bottle:
    """A bottle of the program.

    Attributes:
        printed: what the last agent printed, or the program beside it; a library passes it by.
    """

    def __init__(self, launcher: _Launcher, commands: _CommandsTable, identity: str) -> None:
        self.identity = identity
        self.printed: dict[str, str] = {}
        self._launcher = launcher
        self._commands = commands

    def agent_argv(self, argv: Sequence[str], *, tty: bool) -> list[str]:
        """The program's own command that runs ``argv`` in the guest."""
        template = self._commands.agent_terminal if tty else self._commands.agent
        return self._launcher.filled(template, words=argv, identity=self.identity)

    def exec_agent(self, argv: Sequence[str], *, tty: bool) -> int:
        """Run it; its exit status."""
        template = self._commands.agent_terminal if tty else self._commands.agent
        answer = self._answered(self._launcher.run(template, words=argv, identity=self.identity))
        self.printed = {"stdout": answer.stdout, "stderr": answer.stderr}
        self._launcher.keep(answer.stdout, answer.stderr)
        return answer.returncode

    def exec(self, script: str, *, user: str = "node") -> ExecResult:
        """Run a shell script in the guest."""
        fields = {"identity": self.identity, "user": user, "script": script}
        answer = self._answered(self._launcher.run(self._commands.exec, **fields))
        # Its output is a look into the guest, which has every value.
        self._launcher.keep(answer.stderr)
        return answer

    def cp_in(self, host: Path, guest: str) -> None:
        """Copy a file or folder into the guest."""
        fields = {"identity": self.identity, "source": str(host), "target": guest}
        self._launcher.checked(self._commands.copy, **fields)

    def close(self) -> None:
        """Remove the guest; again and again does nothing more."""
        self._launcher.checked(self._commands.stop, identity=self.identity)

    def _answered(self, done: Running) -> ExecResult:
        """What the guest answered, unless it was not asked.

        Raises:
            Refused: the launcher says why.
        """
        failure = self._launcher.failure(done)
        if done.status < 0 or (done.status > 0 and isinstance(failure, _Refused)):
            raise failure
        return _Answer(done.status, done.stdout, done.stderr)
