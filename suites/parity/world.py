"""Everything around a launcher: a home, an environment, answers to prompts, and tools.

One world per backend and scenario. Simulated, its tools are the models in ``tools/``; live, its
commands run for real and are recorded all the same.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import os
import string
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from suites.parity.compare import Call, CommandStub, Reply, SimulatedCrash
from suites.parity.tools.bwrap import Bwrap
from suites.parity.tools.docker import Docker
from suites.parity.tools.guest import Guest, Ran
from suites.parity.tools.smolvm import Smolvm

__all__ = [
    "IMAGE",
    "LACKING",
    "OTHER_IMAGE",
    "THIRD_IMAGE",
    "Commands",
    "Keep",
    "Refusal",
    "World",
    "simulated",
]

#: The image of every manifest that names none of its own, and those to change to.
IMAGE: Final = "harness/bottle:1"
OTHER_IMAGE: Final = "harness/bottle:2"
THIRD_IMAGE: Final = "harness/bottle@sha256:" + "3" * 64

#: Images that no bottle can be made of, each with what it lacks.
LACKING: Final = {f"harness/without-{what}:1": what for what in ("node", "sh", "sleep")}

#: Where the simulated tools are, as in the ``PATH`` of a host that has them in a place of its own.
_TOOLS: Final = "/opt/tools-of-the-harness/bin"

#: The engine of the simulated docker; a command without it would reach another one.
_CONTEXT: Final = "engine-of-the-harness"


class Commands(Protocol):
    """The subprocess layer, as a launcher's adapter sees it."""

    calls: list[Call]

    def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        inherited: bytes = b"",
    ) -> Reply:
        """Run one command to its end."""


@dataclass(slots=True)
class Refusal:
    """What became of a step that may be refused.

    Attributes:
        happened: ``"done"``, ``"refused"``, ``"launcher died"`` or the class of what leaked out.
        text: its messages, causes included.
    """

    happened: str = "done"
    text: str = ""

    def mentions(self, *words: str) -> dict[str, bool]:
        """Which of these the refusal names."""
        return {word: word in self.text for word in words}


@dataclass(slots=True, kw_only=True)
class World:
    """One world.

    Attributes:
        backend: the backend a scenario runs on here.
        home: the launcher's home directory.
        environ: the host's environment.
        answers: what is typed at each prompt, in order.
        interrupted: Ctrl-C is what is typed at a prompt.
        asked: the prompts that were shown.
        commands: the subprocess layer.
        image, other_image: what bottles are made of.
        docker, smolvm, bwrap: the simulated tools; of no use in a live world.
        log: every record the launcher logged, formatted.
        output: what it printed, in parts.
        errors: the text of every refusal, for :meth:`readable`.
        temporary: folders for files that are not to stay; the first is that of ``TMPDIR``.
        before: files that were in those folders already, with their sizes.
    """

    backend: str
    home: Path
    environ: dict[str, str] = field(repr=False)
    answers: list[str] = field(default_factory=list, repr=False)
    interrupted: bool = False
    asked: list[str] = field(default_factory=list)
    commands: Commands
    image: str = IMAGE
    other_image: str = OTHER_IMAGE
    docker: Docker = field(default_factory=lambda: Docker(images=(IMAGE, OTHER_IMAGE)))
    smolvm: Smolvm = field(default_factory=Smolvm)
    bwrap: Bwrap = field(default_factory=Bwrap)
    log: list[str] = field(default_factory=list)
    output: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    temporary: tuple[Path, ...] = ()
    before: Mapping[Path, int] = field(default_factory=dict)

    @property
    def stub(self) -> CommandStub:
        """The simulated subprocess layer."""
        assert isinstance(self.commands, CommandStub), "this step makes no sense live"
        return self.commands

    @property
    def state(self) -> Path:
        """Where bottles are recorded."""
        return self.home / ".bot-bottle" / "state"

    def check(self) -> None:
        """Fail when a tool was run in a way that it does not have, also when that was swallowed.

        Raises:
            UnknownInvocation: it was.
        """
        if isinstance(self.commands, CommandStub):
            self.commands.check()

    def share(self, folders: Sequence[Path]) -> None:
        """Have folders for temporary files that others have as well; what does not grow is theirs."""
        self.temporary += tuple(folders)
        self.before = {path: path.stat().st_size for each in folders for path in _below(each)}

    def beside(self, home: Path) -> World:
        """The world of another user, who has another home and the same tools."""
        home.mkdir(parents=True)
        self.smolvm.homes |= {str(home)} if self.smolvm.homes else set()
        environ = {**self.environ, "HOME": str(home)}
        return dataclasses.replace(
            self, home=home, environ=environ, answers=[], asked=[], log=[], errors=[]
        )

    def answer(self, prompt: str) -> str:
        """Answer a prompt; out of answers, the terminal is closed."""
        self.asked.append(prompt)
        if self.interrupted:
            raise KeyboardInterrupt
        if not self.answers:
            raise EOFError(prompt)
        return self.answers.pop(0)

    def logger(self) -> logging.Logger:
        """A logger whose records end up in :attr:`log`, debugging included."""
        logger = logging.Logger(f"launcher of {self.backend}", level=logging.DEBUG)  # noqa: LOG001 - one of its own per world
        logger.addHandler(Keep(self.log))
        return logger

    def write_bottle(self, name: str, front_matter: Mapping[str, Any]) -> Path:
        """Write a manifest."""
        lines = [f"{key}: {_yaml(value)}" for key, value in front_matter.items()]
        return self.write_manifest(name, "---\n" + "\n".join(lines) + "\n---\n\nA bottle.\n")

    def write_manifest(self, name: str, text: str) -> Path:
        """Write the text of a manifest as it is."""
        path = self.home / ".bot-bottle" / "bottles" / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def metadata(self, identity: str) -> dict[str, Any]:
        """What is recorded of a bottle."""
        content: dict[str, Any] = json.loads((self.state / identity / "metadata.json").read_text())
        return content

    def tree(self) -> dict[str, str]:
        """Every file of the state: path → digest of its contents."""
        return {
            str(path.relative_to(self.state)): hashlib.sha256(path.read_bytes()).hexdigest()[:12]
            for path in sorted(self.state.rglob("*"))
            if path.is_file()
        }

    def guests(self) -> dict[str, Guest]:
        """Every simulated guest there is, whoever made it: tool and name → guest."""
        tools = (self.docker, self.smolvm)
        return {
            f"{tool.name} {name}": guest for tool in tools for name, guest in tool.guests.items()
        }

    def recorded(self) -> list[str]:
        """The identities of which something is recorded."""
        return sorted(path.name for path in self.state.iterdir()) if self.state.is_dir() else []

    def mounts(self) -> list[tuple[str, Path]]:
        """What simulated guests are given of the host: path inside, and folder or file of the host."""
        guests = [each.mounts for each in self.guests().values()]
        return [pair for mounts in (*guests, self.bwrap.mounts) for pair in mounts.items()]

    def ran(self) -> list[Ran]:
        """Every command that was run in a simulated guest of this world's backend, in order."""
        return [each for tool in (self.docker, self.smolvm, self.bwrap) for each in tool.ran]

    def tools_used(self) -> list[str]:
        """The commands that were run, each once."""
        return sorted({call.tool for call in self.commands.calls})

    @contextmanager
    def may_refuse(self, errors: tuple[type[Exception], ...]) -> Iterator[Refusal]:
        """Record what became of the block, instead of letting it fail the test.

        An error that is none of the launcher's own is recorded by its class: a user would have seen a
        traceback. An assertion is ours and passes.
        """
        outcome = Refusal()
        try:
            yield outcome
        except AssertionError:
            raise
        except errors as error:
            outcome.happened, outcome.text = "refused", _all_texts(error)
        except SimulatedCrash:
            outcome.happened = "launcher died"
        except Exception as error:  # noqa: BLE001 - recorded and compared
            outcome.happened, outcome.text = type(error).__name__, _all_texts(error)
        self.errors.append(outcome.text)

    def readable(self) -> dict[str, list[str]]:
        """Every place outside the guest where a value could be read: place → texts."""
        return {
            "argv": ["\0".join(call.argv) for call in self.commands.calls],
            "log": list(self.log),
            "output": ["".join(self.output)],
            "errors": list(self.errors),
            "prompts": list(self.asked),
            "host environment": [f"{name}={value}" for name, value in os.environ.items()],
            "state": _texts(self._files()),
            "other files": _texts(self._other_files()),
            "file names": [str(path) for path in (*self._files(), *self._other_files())],
            "env files that others read": [
                text for mode, text in self.docker.env_files if mode & 0o077
            ],
        }

    def _files(self) -> Iterator[Path]:
        """Every file of the launcher's folder that is no manifest."""
        return _below(self.home / ".bot-bottle")

    def _other_files(self) -> Iterator[Path]:
        """Every other file of the home, and temporary ones."""
        for path in (each for folder in (self.home, *self.temporary) for each in _below(folder)):
            is_old = path in self.before and path.stat().st_size == self.before[path]
            if not is_old and not path.is_relative_to(self.home / ".bot-bottle"):
                yield path


def _below(folder: Path) -> Iterator[Path]:
    """Every file below a folder that is no manifest."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not (path.suffix == ".md" and path.parent.name == "bottles"):
            yield path


def _texts(files: Iterator[Path]) -> list[str]:
    return [path.read_text(errors="surrogateescape") for path in files]


def simulated(backend: str, home: Path, *, environ: Mapping[str, str] | None = None) -> World:
    """A world with every tool simulated, so that a call of the wrong one is seen."""
    docker = Docker(images=(IMAGE, OTHER_IMAGE, THIRD_IMAGE), lacking=LACKING, context=_CONTEXT)
    smolvm, bwrap = Smolvm(), Bwrap()
    smolvm.homes = {str(home)}
    stub = CommandStub({"docker": docker, "smolvm": smolvm, "bwrap": bwrap}, folder=_TOOLS)
    temporary = home.parent / f"temporary files of {home.name}"
    for folder in (home, temporary):
        folder.mkdir(parents=True)
    host = {
        "PATH": f"{_TOOLS}:/usr/bin:/bin",
        "HOME": str(home),
        "TMPDIR": str(temporary),
        "LANG": "C.UTF-8",
        "DOCKER_CONTEXT": _CONTEXT,
        **(environ or {}),
    }
    return World(
        backend=backend,
        home=home,
        environ=host,
        commands=stub,
        docker=docker,
        smolvm=smolvm,
        bwrap=bwrap,
        temporary=(temporary,),
    )


def _yaml(value: object) -> str:
    """Flow style with every string quoted and escaped, which leaves no doubt about any of them."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_yaml(key)}: {_yaml(each)}" for key, each in value.items()) + "}"
    if not isinstance(value, str):
        return json.dumps(value)
    plain = string.ascii_letters + string.digits + " !#$%&'()*+,-./:;<=>?@[]^_`{|}~"
    return '"' + "".join(c if c in plain else f"\\U{ord(c):08X}" for c in value) + '"'


class Keep(logging.Handler):
    """Keeps every record, formatted, debugging included."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__(level=logging.DEBUG)
        self._lines = lines
        self.setFormatter(logging.Formatter("%(levelname)s %(name)s %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one."""
        self._lines.append(self.format(record))


def _all_texts(error: BaseException) -> str:
    """Text, repr, notes and causes of an error: what a log of it could hold."""
    parts = [repr(error), *traceback.format_exception_only(error)]
    for cause in (error.__cause__, error.__context__):
        parts += [] if cause is None else [_all_texts(cause)]
    return "\n".join(parts)
