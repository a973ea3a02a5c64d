"""What a test leaves to the garbage collector: found in that test, with the line that opened it."""

import os
import socket
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from harness_core.base.unclosed import line_of_caller, watch_unclosed
from harness_core.front.pytest_plugin import HARNESS_ERROR_EXIT

HERE = f"harness_core/tests/unclosed/{Path(__file__).name}"

#: A test of a small project that leaves something open in a cycle, which no reference count ends.
LEAVES = """
import socket, pytest

class Holder:
    def __init__(self, thing):
        self.thing, self.me = thing, self

def opened():
    return socket.socket()  # the line to name

@pytest.fixture
def left_by_a_fixture():
    yield
    Holder(opened())

def test_leaves_one():
    Holder(opened())

def test_fixture_leaves_one(left_by_a_fixture): pass

def test_fails_and_leaves_one():
    holder = Holder(opened())
    assert not holder

def test_comes_after(): pass
"""


class Driver:
    """A library's connection, which warns from a ``__del__`` written in Python."""

    def __init__(self) -> None:
        self.opened_at = line_of_caller()

    def __del__(self) -> None:
        warnings.warn(f"{type(self).__name__} is open\nand more", ResourceWarning, stacklevel=2)


async def coroutine() -> None:
    """Never awaited."""


@pytest.mark.filterwarnings("error")
def test_each_kind_is_found_where_it_was_opened():
    """Files, sockets, objects with a ``__del__`` and coroutines, each by its own line, once."""
    with watch_unclosed() as unclosed:
        path = Path(os.devnull)
        first = sys._getframe().f_lineno + 1
        path.open(encoding="utf-8")
        socket.socket()
        Driver()
        coroutine()
        found = unclosed.collect()
        again = unclosed.collect()

    assert [f"{HERE}:{first + n}" for n in range(4)] == [thing.where for thing in found]
    starts = ["unclosed file <", "unclosed <socket", "Driver is open", "coroutine 'coroutine'"]

    assert starts == [thing.what[: len(start)] for start, thing in zip(starts, found, strict=True)]
    assert () == again


@pytest.mark.filterwarnings("error")
def test_what_is_not_known_has_no_line():
    """A thing that nothing noted is named without a place instead of with a wrong one."""

    class Quiet(Driver):
        def __init__(self) -> None:
            pass

    with watch_unclosed() as unclosed:
        Quiet()
        (thing,) = unclosed.collect()

    assert ("Quiet is open", "") == (str(thing), thing.where)


def test_a_file_system_that_a_test_made_up_is_not_asked(monkeypatch):
    """What opens a socket in another thread is not ended by a path that cannot be made just then."""

    def not_now(*_: object) -> None:
        raise AttributeError("type object 'Path' has no attribute '_flavour'")

    line = sys._getframe().f_lineno + 3
    with watch_unclosed() as unclosed, monkeypatch.context() as patch:
        patch.setattr(Path, "__new__", not_now)
        socket.socket()
        patch.undo()
        (thing,) = unclosed.collect()

    assert f"{HERE}:{line}" == thing.where


def test_other_unraisable_errors_go_where_they_went(monkeypatch):
    """An error that speaks of nothing open reaches the hook that was there before."""
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda it: seen.append(type(it.exc_value)))

    class Breaks:
        def __del__(self) -> None:
            raise KeyError("a mistake")

    with watch_unclosed() as unclosed:
        Breaks()
        found = unclosed.collect()

    assert ((), [KeyError]) == (found, seen)


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_the_test_that_left_it_is_an_error(tmp_path, workers):
    """One sentence in the very test, none in the test after it, nor in one that failed anyway."""
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\naddopts = -p no:cacheprovider\nfilterwarnings = error\n"
    )
    (tmp_path / "test_leaves.py").write_text(LEAVES)
    line = LEAVES.splitlines().index("    return socket.socket()  # the line to name") + 1
    env = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST", "COV"))}
    env |= {"HARNESS_STATE_DIR": str(tmp_path / "state"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    plugins = ["-p", "harness_core.front.pytest_plugin", "-p", "xdist"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, "-rN", "--tb=short", workers],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    summary = [row for row in done.stdout.splitlines() if row.startswith(("HARNESS", "FAILED"))]

    assert 3 == len(summary), done.stdout
    for name in ("test_leaves_one", "test_fixture_leaves_one"):
        (row,) = [row for row in summary if f"::{name} " in row]
        assert row.startswith("HARNESS ERROR")
        assert (
            f"cannot end test_leaves.py::{name} with everything closed: unclosed <socket"
            in done.stdout
        )
    told = f"opened at test_leaves.py:{line}. Close it where it is opened"
    errors = [row for row in done.stdout.splitlines() if row.startswith("E ") and told in row]

    assert 2 == len(errors), done.stdout
    assert "4 passed" not in done.stdout
    assert "FAILED test_leaves.py::test_fails_and_leaves_one" in done.stdout
    assert HARNESS_ERROR_EXIT != done.returncode
