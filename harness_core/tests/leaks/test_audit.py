"""A run that leaks fails, and says what leaked and which test left it: one planted leak each."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness_core.ports import listeners

HARNESS_ERROR_EXIT = 6

DAEMON = """
    import os, subprocess, sys
    program = (
        "import os, sys\\n"
        "if os.fork(): os._exit(0)\\n"
        "os.setsid()\\n"
        "if os.fork(): os._exit(0)\\n"
        "os.execve(sys.executable, ['strayed', '-Sc', 'import signal; signal.pause()'],"
        " {'PYTEST_CURRENT_TEST': os.environ['PYTEST_CURRENT_TEST']})"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
"""
DIRECTORY = """
    import tempfile
    tempfile.mkdtemp(prefix="forgotten-")
"""
FILE = """
    import os, tempfile
    os.close(tempfile.mkstemp(prefix="forgotten-")[0])
"""
LISTENER = """
    import socket
    open_ = socket.create_server(("127.0.0.1", 0))
    KEPT.append(open_)
"""
RUN = """
    from harness_core.process import RunLedger
    RunLedger.create()
"""
CLEAN = """
    import socket, subprocess, tempfile
    with tempfile.TemporaryDirectory(), socket.create_server(("127.0.0.1", 0)):
        subprocess.run(["true"], check=True)
"""


def run(tmp_path: Path, body: str, *words: str) -> subprocess.CompletedProcess[str]:
    """A pytest of its own over one test with this body."""
    (tmp_path / "test_it.py").write_text(
        f'KEPT = []\n\n\ndef test_it():\n    """Does it."""{body}    assert True\n'
    )
    state = tmp_path / "state"
    state.mkdir(mode=0o711, exist_ok=True)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words, "test_it.py"],
        cwd=tmp_path,
        env=os.environ | {"HARNESS_STATE_DIR": str(state), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    ("body", "named"),
    [
        pytest.param(DAEMON, "process ", id="a-child-that-daemonises-itself"),
        pytest.param(DIRECTORY, "directory ", id="a-directory"),
        pytest.param(FILE, "file ", id="a-file"),
        pytest.param(LISTENER, "listener on port ", id="a-listener"),
        pytest.param(RUN, "run ", id="a-run"),
    ],
)
@pytest.mark.parametrize(
    "words", [(), pytest.param(("-n", "1"), marks=pytest.mark.slow)], ids=["alone", "xdist"]
)
def test_what_leaks_fails_the_run_by_name(
    tmp_path: Path, body: str, named: str, words: tuple[str, ...]
) -> None:
    """Every test passed and the run still fails, with a line for the leak."""
    done = run(tmp_path, body, *words)

    assert HARNESS_ERROR_EXIT == done.returncode, done.stdout + done.stderr
    assert "1 passed" in done.stdout
    assert "1 thing(s) outlived the run" in done.stdout
    (line,) = [line for line in done.stdout.splitlines() if line.startswith(named)]
    if named not in {"listener on port ", "run "}:
        assert "left by test_it.py::test_it" in line
    assert [] == list(tmp_path.glob("forgotten-*"))


def test_a_daemon_is_ended(tmp_path: Path) -> None:
    """What is named is ended too."""
    done = run(tmp_path, DAEMON)
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("process ")]
    pid = int(line.split()[1])

    assert "strayed" in line
    assert not Path(f"/proc/{pid}").exists() or "strayed" not in cmdline(pid)


def test_a_clean_run_passes(tmp_path: Path) -> None:
    """What a test takes down itself is no leak."""
    done = run(tmp_path, CLEAN)

    assert 0 == done.returncode, done.stdout + done.stderr
    assert "outlived" not in done.stdout


def test_another_runs_things_are_not_ours(tmp_path: Path) -> None:
    """While another run's process, listener and directory are there, a clean run passes."""
    other = subprocess.Popen(
        [sys.executable, "-m", "http.server", "0", "--bind", "127.0.0.1"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=tmp_path,
    )
    try:
        done = run(tmp_path, CLEAN)
        alive = other.poll() is None
    finally:
        other.kill()
        other.wait()

    assert alive
    assert 0 == done.returncode, done.stdout + done.stderr
    assert [] == [entry for entry in listeners() if entry.pid == other.pid]


def cmdline(pid: int) -> str:
    """The command line of a process, empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""
