"""A runner that is killed leaves nothing: no process, no listening port, no directory."""

from __future__ import annotations

import os
import re
import signal
import subprocess  # lint: allow driver: runs the harness itself, not the system
import sys
from pathlib import Path

import pytest

from harness_core.base.wait import until_blocking
from harness_core.front.suite_fixtures import suite_subject
from harness_core.ports import listeners
from harness_core.process import command_line, descendants

pytestmark = pytest.mark.covers("E2E-DISPOSABLE")

#: A second ecosystem boots beside the one of the run, and classifies its first message.
BUSY_S = 90.0

#: The warden sees the end of its runner at once and kills in milliseconds.
GONE_S = 10.0

SERVES = re.compile(r"ready at 127\.0\.0\.1:(\d+)")


@pytest.mark.runner
def test_sigkill_in_mid_session_leaves_nothing(
    state: Path, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """SIGKILL to pytest while a Claude Code session runs ends everything; the sweep does the rest."""
    output = tmp_path / "output.txt"
    environment = os.environ | {"HARNESS_STATE_DIR": str(state)}
    with output.open("wb") as file:
        runner = subprocess.Popen(
            runner_command(pytestconfig, evidence=tmp_path / "evidence"),
            cwd=pytestconfig.rootpath,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        below = until_blocking(
            lambda: in_mid_session(runner), seconds=BUSY_S, action="see a session run"
        )
    finally:
        runner.send_signal(signal.SIGKILL)
        runner.wait()
    ports = [int(port) for port in SERVES.findall(output.read_text(encoding="utf-8"))]

    assert len(ports) >= 2, f"few butlers served: {output.read_text(encoding='utf-8')}"
    until_blocking(
        lambda: not [pid for pid in below if Path(f"/proc/{pid}").exists()],
        seconds=GONE_S,
        action="see every process of the killed run end",
    )

    assert [] == [entry for port in ports for entry in listeners(port=port)]
    sweep = subprocess.run(
        [sys.executable, "-m", "harness_core.front.cli", "sweep"],
        env=environment,
        cwd=pytestconfig.rootpath,
        capture_output=True,
        text=True,
        check=False,
    )

    assert 0 == sweep.returncode, (
        f"a sweep after a killed run ends with 0, not {sweep.returncode}: "
        f"{sweep.stdout + sweep.stderr}"
    )
    assert [] == list((state / "runs").iterdir()), "directories of the killed run are left"


def in_mid_session(runner: subprocess.Popen[bytes]) -> list[int] | None:
    """Everything below the runner, once a Claude Code process is among it."""
    assert runner.poll() is None, f"the second run ended by itself with {runner.returncode}"
    below = descendants(runner.pid)
    return below if any("claude" in " ".join(command_line(pid)) for pid in below) else None


def runner_command(config: pytest.Config, *, evidence: Path) -> list[str]:
    """The command line of a second run that sends messages for a long time.

    It names the subject file, as someone with a system of their own would.
    """
    subject = suite_subject(config, config.rootpath / "suites" / "e2e")
    return [
        sys.executable,
        "-m",
        "pytest",
        "suites/e2e/test_scenario_runner.py",
        f"--evidence={evidence}",
        f"--subject={subject.path}",
    ]
