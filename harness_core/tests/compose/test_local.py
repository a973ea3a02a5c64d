"""The local driver, by the check that every driver passes, and a sweep after a killed runner."""

import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from harness_core.base.evidence import open_evidence
from harness_core.base.wait import until_blocking
from harness_core.process import open_run, sweep
from harness_core.system.compose import StackOptions, open_stack
from harness_core.tests.compose.runner import kill_a_runner, processes_of
from harness_core.tests.conformance.stack import SAMPLE_VARIABLE, check_stack, write_sample_stack

pytestmark = pytest.mark.real


@pytest.mark.slow
async def test_the_local_driver_keeps_every_promise_of_a_stack(tmp_path):
    """The local driver passes the check that every driver passes."""
    evidence = open_evidence(tmp_path / "evidence")
    folder = tmp_path / "sample"
    folder.mkdir()
    numbers = iter(range(99))
    async with open_run(evidence=evidence) as run:

        def open_at(compose: Path):
            options = StackOptions(
                bin=str(compose.parent),
                environment={"PATH": "/usr/bin:/bin", SAMPLE_VARIABLE: "from the caller"},
            )
            where = evidence.child(f"stack-{next(numbers)}")
            return open_stack(run, compose, evidence=where, options=options)

        await check_stack(open_at, folder, python=sys.executable, passed_on="from the caller")


@pytest.fixture
def state():
    """Where runs are kept; the user that PostgreSQL runs as can pass through it."""
    path = Path(tempfile.mkdtemp(prefix="hs-"))
    path.chmod(0o711)
    yield path
    shutil.rmtree(path)


def test_a_killed_runner_leaves_nothing_after_a_sweep(tmp_path, state, monkeypatch):
    """Every process ends with it; the sweep removes its directories."""
    folder = tmp_path / "sample"
    write_sample_stack(folder, python=sys.executable)
    monkeypatch.setenv("HARNESS_STATE_DIR", str(state))
    seen = []
    kill_a_runner(folder, lambda _run: seen.extend(processes_of(folder)), "local")
    assert any("sample_server.py" in line for line in seen), seen

    until_blocking(
        lambda: not processes_of(folder) or None, seconds=30, action="see every process end"
    )
    report = sweep()

    assert (1, ()) == (len(report.dead_runs), tuple(report.problems))
    assert [] == [path.name for path in (state / "runs").iterdir() if path.is_dir()]
