"""A run on a terminal: progress at its foot, and above it and at the end the lines of any run."""

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

from harness_core.base.slowness import patience
from harness_core.base.wait import until_blocking
from harness_core.tests.screen.terminal import Terminal, seen

pytestmark = [pytest.mark.runner, pytest.mark.real, pytest.mark.slow]

SOON_S = 60.0

TESTS = """
import os, signal, pytest

@pytest.fixture(scope="session")
def booted(progress):
    progress("postgres ready at 127.0.0.1:1")
    if "WAIT" in os.environ:
        signal.pause()

def test_boots(booted):
    pass

@pytest.mark.parametrize("number", range(5))
def test_passes(number):
    print("what a test writes")

def test_fails():
    print("what a failed test writes")
    assert [] == [1], "nothing is left: expected none, found 1"

def test_is_not_run():
    pytest.skip("no key")
"""

#: Erases a line; only what redraws needs it.
ERASE = "\x1b[2K"
HIDES_CURSOR = "\x1b[?25l"
BAR = "━"


@pytest.fixture
def project(tmp_path):
    """A project of a few tests."""
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


@pytest.fixture
def on_terminal(project):
    """Run something on a terminal; at the end nothing of it is left."""
    made = []

    def started(*words):
        made.append(Terminal(command(*words), cwd=project))
        return made[-1]

    yield started
    for terminal in made:
        with suppress(ProcessLookupError):
            os.killpg(terminal.process.pid, signal.SIGKILL)
        terminal.wait(patience(SOON_S))


def command(*words):
    """Pytest, with nothing of this tree's."""
    return [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:asyncio", *words]


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
def test_what_stays_is_what_stays_elsewhere(project, on_terminal, workers):
    """Counts at the foot while it runs; afterwards failures, causes and totals alone, and no bar."""
    status, written = on_terminal(*workers).wait(patience(SOON_S))
    lines = seen(written)
    text = "\n".join(lines)

    assert 1 == status, text
    assert ERASE in written
    assert "8 of 8" in written
    assert [] == [line for line in lines if BAR in line]
    failed = "FAILED test_it.py::test_fails - nothing is left: expected none, found 1"
    assert failed in lines
    assert "product failed: 1 test, 1 cause" in text
    assert re.search(r"1 failed, 6 passed, 1 skipped in ", text)
    assert HIDES_CURSOR not in written


def test_nothing_of_it_is_taken_for_what_a_test_wrote(project, on_terminal):
    """What pytest captured of a test is what the test wrote."""
    (project / "pytest.ini").write_text("[pytest]\n")
    code = "import time\nuntil = time.monotonic() + 1.5\nwhile time.monotonic() < until: pass\n"
    (project / "test_it.py").write_text(
        f"def test_slow():\n    print('mine')\n    {code.replace(chr(10), chr(10) + '    ')}assert 0\n"
    )
    _, written = on_terminal().wait(patience(SOON_S))
    lines = seen(written)
    begin = next(at for at, line in enumerate(lines) if "Captured stdout call" in line)

    assert "test_it.py::test_slow" in written
    assert "mine" == lines[begin + 1]
    assert BAR not in "".join(lines[begin:])


@pytest.mark.parametrize("words", [("--plain",), ("-q",), ("-v",), ("-s",), ("--co",)])
def test_where_it_is_not_wanted_lines_are_what_they_were(project, on_terminal, words):
    """No line is ever erased."""
    status, written = on_terminal(*words).wait(patience(SOON_S))

    assert (0 if words == ("--co",) else 1) == status
    assert ERASE not in written
    assert BAR not in written


def test_without_a_terminal_lines_are_what_they_were(project):
    """The same as with --plain, but for the time it took."""
    runs = [
        subprocess.run(
            command(*words),
            cwd=project,
            env={**os.environ, "TERM": "xterm-256color"},
            capture_output=True,
            text=True,
            check=False,
        ).stdout
        for words in ((), ("--plain",))
    ]
    one, other = (re.sub(r"[\d.]+ ?s\b", "", text) for text in runs)

    assert one == other
    assert "\x1b" not in one
    assert "postgres ready at 127.0.0.1:1" in one


def test_what_a_worker_boots_is_shown(project, on_terminal, monkeypatch):
    """By the name of the worker; until its first test has ended."""
    monkeypatch.setenv("WAIT", "1")
    terminal = on_terminal("-n", "2", "-k", "boots")
    until_blocking(
        lambda: re.search(r"gw[01]: postgres ready at 127\.0\.0\.1:1", terminal.written),
        seconds=SOON_S,
        action="see it boot",
    )
    os.killpg(terminal.process.pid, signal.SIGINT)  # as the terminal does
    _, written = terminal.wait(patience(SOON_S))

    assert [] == [line for line in seen(written) if BAR in line]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_ended_leaves_a_terminal_that_works(
    project, on_terminal, monkeypatch, number
):
    """What boots was shown; whatever ends it, the cursor is there, and Ctrl-C has its summary."""
    monkeypatch.setenv("WAIT", "1")
    terminal = on_terminal()
    until_blocking(
        lambda: "postgres ready" in terminal.written, seconds=SOON_S, action="see it boot"
    )
    os.kill(terminal.process.pid, number)
    _, written = terminal.wait(patience(SOON_S))

    assert HIDES_CURSOR not in written
    if number is signal.SIGINT:
        assert "KeyboardInterrupt" in written
        assert [] == [line for line in seen(written) if BAR in line]
