"""The Python environment of a product: found, and given the agent for the time of a campaign."""

from __future__ import annotations

import fcntl
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from harness_core.base.errors import HarnessError, Unavailable
from harness_core.process import Run

_AGENT: Final = Path(__file__).with_name("_harness_agent.py")
_COVERAGE: Final = Path(__file__).with_name("_harness_agent_coverage.py")
_LOCK: Final = ".harness_agent.lock"
_START: Final = "harness_agent.pth"

#: site runs lines that begin with import.
_LINE: Final = "import _harness_agent; _harness_agent.start()\n"

_ASKED: Final = (
    "import json, sys, sysconfig; print(json.dumps({'packages': sysconfig.get_paths()['purelib'],"
    " 'tag': sys.implementation.cache_tag, 'prefix': sys.prefix}))"
)
_ANSWER_S: Final = 60.0
_INSTALL_S: Final = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Where a product is installed.

    Attributes:
        python: its interpreter.
        packages: its site-packages.
        tag: of its compiled modules, e.g. ``cpython-311``.
        own: it is the environment of the harness itself.
    """

    python: Path
    packages: Path
    tag: str
    own: bool

    @contextmanager
    def with_agent(self, run: Run | None = None) -> Iterator[None]:
        """Have the agent in the environment; several campaigns may, the last one removes it.

        Args:
            run: whose ledger says so: of one that is killed the next sweep removes it.

        Raises:
            Unavailable: the environment cannot be written.
        """
        if run is not None:
            run.ledger.record("agent", packages=str(self.packages))
        lock = self.packages / _LOCK
        try:
            file = lock.open("wb")
        except OSError as error:
            raise Unavailable(
                f"put the agent into {self.packages}",
                observed=error.strerror or str(error),
                next_step="Install the product into an environment that may be written",
            ) from error
        with file:
            fcntl.flock(file, fcntl.LOCK_SH)
            for source in (_AGENT, _COVERAGE):
                _place(source.read_text(encoding="utf-8"), self.packages / source.name)
            _place(_LINE, self.packages / _START)
            try:
                yield
            finally:
                _remove(self.packages, file.fileno())

    def libraries(self, cache: Path) -> tuple[Path, ...]:
        """A folder with a coverage.py for this Python, outside of its environment.

        Args:
            cache: where such folders are kept.

        Raises:
            HarnessError: it cannot be installed.
        """
        version = metadata.version("coverage")
        folder = cache / f"coverage-{version}-{self.tag}"
        if not (folder / "coverage").is_dir():
            partial = cache / f".{folder.name}"
            shutil.rmtree(partial, ignore_errors=True)
            if self.tag == sys.implementation.cache_tag:
                found = metadata.distribution("coverage").locate_file("coverage")
                shutil.copytree(str(found), partial / "coverage")
            else:
                _install(f"coverage=={version}", python=self.python, into=partial)
            partial.replace(folder)
        # The agent itself, for a process of the product that is the harness's own pytest.
        return (folder, _AGENT.parent)


def sweep_agent(entry: Mapping[str, Any]) -> str:
    """Remove the agent that a dead run left in an environment; a :data:`harness_core.process.Sweeper`.

    Args:
        entry: a ledger entry of kind ``agent``: ``packages``, the site-packages.

    Returns:
        What was removed, as text; empty when nothing was left, or another campaign is at work there.
    """
    packages = Path(str(entry.get("packages")))
    try:
        with (packages / _LOCK).open("r+b") as file:
            there = (packages / _START).exists()
            removed = _remove(packages, file.fileno())
    except FileNotFoundError:
        return ""
    return f"the agent in {packages}" if there and removed else ""


def _remove(packages: Path, lock: int) -> bool:
    """Whether it is gone: another campaign may be at work in the environment."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    # First what starts the others.
    for name in (_START, _AGENT.name, _COVERAGE.name, _LOCK):
        (packages / name).unlink(missing_ok=True)
        for compiled in (packages / "__pycache__").glob(f"{Path(name).stem}.*.pyc"):
            compiled.unlink(missing_ok=True)
    return True


def find_environment(python: Path) -> Environment:
    """Ask an interpreter what it is.

    Raises:
        Unavailable: it cannot be run.
    """
    try:
        asked = subprocess.run(
            [python, "-I", "-c", _ASKED],
            capture_output=True,
            text=True,
            check=True,
            timeout=_ANSWER_S,
        )
        answer = json.loads(asked.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise Unavailable(
            f"use {python} as the Python of the product",
            observed=str(error),
            next_step="Name it: --python PATH",
        ) from error
    own = Path(answer["prefix"]).resolve() == Path(sys.prefix).resolve()
    return Environment(python=python, packages=Path(answer["packages"]), tag=answer["tag"], own=own)


def _place(text: str, path: Path) -> None:
    """Write it whole: a process of the product may start at any moment."""
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)


def _install(requirement: str, *, python: Path, into: Path) -> None:
    uv = shutil.which("uv")
    begin = (
        [uv, "pip", "install", "--python", str(python)]
        if uv
        else [sys.executable, "-m", "pip", "--python", str(python), "install"]
    )
    done = subprocess.run(
        [*begin, "--target", str(into), requirement],
        capture_output=True,
        text=True,
        check=False,
        timeout=_INSTALL_S,
    )
    if done.returncode != 0:
        raise HarnessError(
            f"install {requirement} for {python}",
            observed=f"status {done.returncode}: {done.stderr.strip()[-500:]}",
            next_step="See what the installer said",
        )
