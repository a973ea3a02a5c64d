"""Two runs at the same time on one host: neither knows of the other."""

from __future__ import annotations

import os
import re
import subprocess  # lint: allow driver: runs the harness itself, not the system
import sys
from pathlib import Path

import pytest

from harness_core.base.slowness import patience
from harness_core.base.wait import until_blocking
from harness_core.front.suite_fixtures import suite_subject
from suites.e2e.runner.test_killed_runner import SERVES

pytestmark = pytest.mark.covers("E2E-DISPOSABLE")

#: One that kills and restarts butlers, beside one that wants to be left in peace.
PARTS = ("suites/e2e/test_handles.py", "suites/e2e/test_health_flow.py")

#: Two ecosystems boot on the same cores.
UP_S = 120.0

END_S = 300.0


@pytest.mark.runner
@pytest.mark.slow
def test_two_runs_at_once_do_not_meet(
    state: Path, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """Both pass, on ports of their own; a sweep in the middle touches neither; nothing is left."""
    environment = os.environ | {"HARNESS_STATE_DIR": str(state)}
    outputs = [tmp_path / f"output-{number}.txt" for number in range(len(PARTS))]
    runs: list[subprocess.Popen[bytes]] = []
    try:
        for part, output in zip(PARTS, outputs, strict=True):
            with output.open("wb") as file:
                runs.append(
                    subprocess.Popen(
                        _command(pytestconfig, part, evidence=output.with_suffix(".evidence")),
                        cwd=pytestconfig.rootpath,
                        env=environment,
                        stdin=subprocess.DEVNULL,
                        stdout=file,
                        stderr=subprocess.STDOUT,
                        start_new_session=True,
                    )
                )
        until_blocking(
            lambda: all("butlers registered" in _text(output) for output in outputs),
            seconds=UP_S,
            action="see both runs boot",
        )
        alive = [run.poll() for run in runs]
        sweep = subprocess.run(
            [sys.executable, "-m", "harness_core.front.cli", "sweep"],
            env=environment,
            cwd=pytestconfig.rootpath,
            capture_output=True,
            text=True,
            check=False,
        )
        codes = [run.wait(timeout=patience(END_S)) for run in runs]
    finally:
        for run in runs:
            if run.poll() is None:
                run.kill()
                run.wait()
    written = "\n".join(_text(output) for output in outputs)
    ports = [set(SERVES.findall(_text(output))) for output in outputs]

    assert [None, None] == alive, f"a run ended before both were up\n{written}"
    assert 0 == sweep.returncode, (
        f"a sweep beside two runs ends with 0, not {sweep.returncode}: "
        f"{sweep.stdout + sweep.stderr}"
    )
    assert [0, 0] == codes, written
    for output in outputs:
        assert re.search(r"[1-9]\d* passed", _text(output)), f"nothing ran\n{_text(output)}"
    assert all(ports), written
    assert not ports[0] & ports[1], f"both served on {ports[0] & ports[1]}"
    assert [] == list((state / "runs").iterdir()), "directories of the runs are left"


def _command(config: pytest.Config, part: str, *, evidence: Path) -> list[str]:
    subject = suite_subject(config, config.rootpath / "suites" / "e2e")
    return [
        *(sys.executable, "-m", "pytest", part),
        *(f"--evidence={evidence}", f"--subject={subject.path}"),
    ]


def _text(output: Path) -> str:
    return output.read_text(encoding="utf-8", errors="replace")
