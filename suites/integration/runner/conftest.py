"""What tests that start a run of their own share."""

from __future__ import annotations

import json
import os
import signal
import subprocess  # lint: allow driver: runs the harness itself, not the system
import sys
import tempfile  # lint: allow local-write: for state of the harness
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness_core.base.wait import until_blocking
from harness_core.front.suite_fixtures import suite_subject

#: Two stacks may boot on the same cores.
UP_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A pytest of its own.

    Attributes:
        process: of pytest.
        output: what it prints.
    """

    process: subprocess.Popen[bytes]
    output: Path

    def text(self) -> str:
        """What it has printed so far."""
        return self.output.read_text(encoding="utf-8", errors="replace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where runs keep their state, apart from every other run of this machine.

    Attributes:
        state: the state directory.
        folder: for output and evidence.
        config: of this pytest.
    """

    state: Path
    folder: Path
    config: pytest.Config

    @property
    def environment(self) -> dict[str, str]:
        """Of everything that is run there."""
        return os.environ | {"HARNESS_STATE_DIR": str(self.state)}

    def harness(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run our command line there."""
        return subprocess.run(
            [sys.executable, "-m", "harness_core.front.cli", *words],
            env=self.environment,
            cwd=self.config.rootpath,
            capture_output=True,
            text=True,
            check=False,
        )

    def stacks(self) -> dict[int, dict[str, str]]:
        """Pid of the runner → service → where it serves, of every stack that is up."""
        listed: list[dict[str, Any]] = json.loads(self.harness("ps", "--json").stdout)
        return {
            run["pid"]: {part["name"]: part["address"] for part in run["parts"] if part["address"]}
            for run in listed
            if run["parts"]
        }

    def until_up(self, *started: Started) -> dict[int, dict[str, str]]:
        """Wait until the stack of each is up; where their services are."""

        def up() -> dict[int, dict[str, str]] | None:
            for each in started:
                assert each.process.poll() is None, (
                    f"it ended before its stack was up\n{each.text()}"
                )
            found = self.stacks()
            return found if {each.process.pid for each in started} <= set(found) else None

        return until_blocking(up, seconds=UP_S, action="see the stacks of the runs")


@pytest.fixture
def place(tmp_path: Path, pytestconfig: pytest.Config) -> Iterator[Place]:
    """A state directory that a server's own user may enter, which ``tmp_path`` is not."""
    with tempfile.TemporaryDirectory(prefix="harness-state-") as name:
        Path(name).chmod(0o711)  # lint: allow local-write: state of the harness
        yield Place(state=Path(name), folder=tmp_path, config=pytestconfig)


@pytest.fixture
def start(place: Place) -> Iterator[Callable[..., Started]]:
    """Starts a pytest on some tests, with variables of its own; whatever still runs at the end is killed."""
    all_started: list[Started] = []

    def starting(*tests: str, **variables: str) -> Started:
        number = len(all_started)
        output = place.folder / f"output-{number}.txt"
        subject = suite_subject(place.config, Path(__file__).parents[1]).path
        with output.open("wb") as file:  # lint: allow local-write: what the harness prints
            process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "pytest", *tests, f"--subject={subject}"),
                    f"--evidence={place.folder / f'evidence-{number}'}",
                ],
                cwd=place.config.rootpath,
                env=place.environment | variables,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        all_started.append(Started(process=process, output=output))
        return all_started[-1]

    yield starting
    for each in all_started:
        if each.process.poll() is None:
            each.process.send_signal(signal.SIGKILL)
            each.process.wait()
