"""A runner that is killed while its stack is up: nothing of it is left after a sweep."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from harness_core.base.wait import until_blocking
from harness_core.process import sweep
from harness_core.tests.conformance.stack import write_sample_stack

pytestmark = pytest.mark.real

RUNNER = """
import sys
from pathlib import Path

import trio

from harness_core.base.evidence import open_evidence
from harness_core.process import open_run
from harness_core.system.compose import StackOptions, open_stack


async def main():
    folder = Path(sys.argv[1])
    evidence = open_evidence(folder / "evidence")
    options = StackOptions(bin=str(folder), environment={"PATH": "/usr/bin:/bin"})
    async with open_run(evidence=evidence) as run:
        async with open_stack(
            run, folder / "compose.yaml", evidence=evidence, options=options
        ) as stack:
            print("up", stack.address("front"), flush=True)
            await trio.sleep_forever()


trio.run(main)
"""


def of_the_stack(folder: Path) -> list[str]:
    """Command lines of processes that have the folder in their environment or arguments."""
    found = []
    for entry in (path.name for path in Path("/proc").iterdir()):
        if entry.isdigit() and int(entry) != os.getpid():
            try:
                told = b"".join(
                    Path(f"/proc/{entry}/{name}").read_bytes() for name in ("cmdline", "environ")
                )
            except OSError:
                continue
            if os.fsencode(folder) in told:
                found.append(f"{entry}: {told[:200]!r}")
    return found


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
    argv = [sys.executable, "-c", RUNNER, str(folder)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as runner:
        assert runner.stdout is not None
        assert runner.stdout.readline().startswith("up ")
        seen = of_the_stack(folder)
        assert any("sample_server.py" in line for line in seen), seen
        os.kill(runner.pid, signal.SIGKILL)

    until_blocking(
        lambda: not of_the_stack(folder) or None, seconds=30, action="see every process end"
    )
    report = sweep()

    assert (1, ()) == (len(report.dead_runs), tuple(report.problems))
    assert [] == [path.name for path in (state / "runs").iterdir() if path.is_dir()]
