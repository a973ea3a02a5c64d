"""The environment of a suite's reference system: found, or made from its distribution.

One folder of commands per suite, ``<suite>-subject`` among nox's own environments, apart from what
the tests are installed in. nox and the command line both come here, so that it is made once. Where
its commands are is passed on as ``HARNESS_SUBJECT_BIN`` (``harness_core.system.subject``).
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import trio

from harness_core.base.errors import BadInput, HarnessError, Unavailable
from harness_core.base.evidence import open_evidence
from harness_core.process import Run, open_run
from harness_core.system.subject import load_subject
from harness_core.system.suites import Suite, read_pyproject

__all__ = ["reference_commands"]

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """What is to be installed, and where."""

    suite: str
    project: Path
    folder: Path

    @property
    def commands(self) -> Path:
        return self.folder / "bin"

    @property
    def stamp(self) -> Path:
        return self.folder / ".installed"

    @property
    def requirement(self) -> str:
        """What is installed: the distribution, with what its own tests need."""
        extras = read_pyproject(self.project).project.optional_dependencies
        return f"{self.project}[tests]" if "tests" in extras else str(self.project)

    @property
    def fingerprint(self) -> str:
        """What the environment is built from, in one word."""
        content = (self.project / "pyproject.toml").read_text(encoding="utf-8")
        text = f"{content}\n{sys.version}\n{self.requirement}"
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def is_current(self) -> bool:
        return self.stamp.is_file() and self.stamp.read_text(encoding="utf-8") == self.fingerprint


async def reference_commands(
    suite: Suite, *, root: Path, into: Path | None = None, make: bool = True, say: Say
) -> Path | None:
    """The folder of the commands of a suite's reference system.

    Args:
        suite: whose.
        root: of its tree.
        into: the folder of environments; that of nox when left out.
        make: make it where it is missing, or was made from something else; otherwise it is used as
            it is.
        say: gets a line for what takes long.

    Returns:
        ``None`` for a suite whose subject names no distribution: there is nothing to install.

    Raises:
        BadInput: the subject file is malformed, or its project is no distribution.
        Unavailable: it is not there and may not be made, or nothing here can make it.
        HarnessError: it cannot be installed; carries the last lines of the installer.
    """
    project = load_subject(suite.subject).project if suite.subject is not None else None
    if project is None:
        return None
    if not (project / "pyproject.toml").is_file():
        raise BadInput(
            suite.subject or "",
            key="subject.project",
            found=str(project),
            expected="a folder with a pyproject.toml",
        )
    into = (into or root / ".nox").absolute()
    wanted = _Wanted(suite=suite.name, project=project, folder=into / f"{suite.name}-subject")
    if wanted.is_current:
        return wanted.commands
    if not make:
        if not wanted.stamp.is_file():
            raise Unavailable(
                f"use {wanted.folder}",
                observed="it is not installed",
                next_step=f"Make it: harness reference {suite.name}, or nox without -R",
            )
        say(f"{wanted.folder} was made from something else, and is left so")
        return wanted.commands
    into.mkdir(parents=True, exist_ok=True)
    async with _alone(into / f".{wanted.folder.name}.lock", say=say):
        if not wanted.is_current:  # else another run has made it meanwhile
            say(f"installing the reference system of {suite.name} into {wanted.folder}, once")
            await _make(wanted, root=root)
    return wanted.commands


@asynccontextmanager
async def _alone(lock: Path, *, say: Say) -> AsyncIterator[None]:
    """One process at a time; the lock goes with its holder, however that ends."""
    with lock.open("wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another run is installing it; waiting for that")
            await trio.to_thread.run_sync(fcntl.flock, file, fcntl.LOCK_EX, abandon_on_cancel=True)
        yield


async def _make(wanted: _Wanted, *, root: Path) -> None:
    wanted.stamp.unlink(missing_ok=True)  # half made, it is not to be taken for whole
    new, install = _installer(wanted)
    evidence = open_evidence(root / ".evidence" / "staging" / wanted.folder.name, wipe=True)
    async with open_run(evidence=evidence) as run:
        await _step(run, new, name="make-environment", wanted=wanted)
        await _step(run, [*install, "-e", wanted.requirement], name="install", wanted=wanted)
    wanted.stamp.write_text(wanted.fingerprint, encoding="utf-8")


def _installer(wanted: _Wanted) -> tuple[list[str], list[str]]:
    """What makes an empty environment, and what installs into it: uv where there is one."""
    python = str(wanted.commands / "python")
    if uv := os.environ.get("UV") or shutil.which("uv"):
        new = [uv, "venv", "--clear", "-p", sys.executable, str(wanted.folder)]
        return new, [uv, "pip", "install", "--python", python]
    if importlib.util.find_spec("pip") is None:
        raise Unavailable(
            f"make {wanted.folder}",
            observed=f"there is no uv on the PATH and no pip in {sys.prefix}",
            next_step=f"Install one of them, or run it by nox: nox -s staging -- {wanted.suite}",
        )
    # Without a pip of its own it needs no ensurepip, which Debian packages apart.
    new = [sys.executable, "-m", "venv", "--clear", "--without-pip", str(wanted.folder)]
    return new, [sys.executable, "-m", "pip", "--python", python, "install"]


async def _step(run: Run, argv: Sequence[str], *, name: str, wanted: _Wanted) -> None:
    # Without bytecode every process of every run compiles a thousand modules again.
    env = {"UV_COMPILE_BYTECODE": "1", **os.environ}
    async with run.child(argv, name=name, env=env) as child:
        status = await child.wait()
    if status != 0:
        raise HarnessError(
            f"install {wanted.project} into {wanted.folder}",
            observed=f"{Path(argv[0]).name} ended with {status}",
            next_step="Read its last lines below",
            tail=child.tail(),
            log=child.log,
        )
