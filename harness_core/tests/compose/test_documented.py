"""The example of docs/how-to/stack.md, run as it stands under each plugin and in each loop."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from harness_core.base.wait import until_blocking
from harness_core.tests.compose.runner import processes_of
from harness_core.tests.conformance import sample_server

pytestmark = [pytest.mark.real, pytest.mark.slow]

DOCUMENT = Path(__file__).parents[3] / "docs" / "how-to" / "stack.md"
#: A run boots a stack, some 2 s; with others beside it, more.
RUN_S = 60.0

#: Beside the documented tests: the same by hand, in the loops that no plugin opens.
BY_HAND = """
import asyncio
import threading

import trio

pytestmark = pytest.mark.anyio


def in_a_thread(body):
    thread = threading.Thread(target=lambda: asyncio.run(body()))
    thread.start()
    thread.join()


@pytest.mark.parametrize("run", [trio.run, lambda body: asyncio.run(body()), in_a_thread])
def test_by_hand(stack, token, harness_loop, run):
    run(lambda: test_an_order_survives_its_database(stack, token))
    rows = harness_loop.run(lambda: stack.rows("select * from orders where item = %s", [token]))
    assert [{"item": token}] == rows
"""

#: A test that never ends by itself, in an outage.
ENDLESS = """
async def test_endless(stack):
    async with stack.outage("db", "kill"):
        HERE.joinpath("away").touch()
        await stack.healthy()
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The compose file of the page, and the commands that it names."""
    (tmp_path / "compose.yaml").write_text(block("yaml"))
    commands = tmp_path / "bin"
    commands.mkdir()
    server = sample_server.__file__
    for name, words in {
        "shop": f'{sys.executable} {server} serve "$2" "$4"',
        "shop-seed": f"{sys.executable} {server} once",
    }.items():
        (commands / name).write_text(f"#!/bin/sh\nexec {words}\n")
        (commands / name).chmod(0o755)
    return tmp_path


def block(language: str) -> str:
    """The first block of a language on the page."""
    found = re.search(rf"```{language}[^\n]*\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    assert found is not None
    return textwrap.dedent(found[1])


def start(project: Path, *, more: str = "", trio_mode: bool) -> subprocess.Popen[str]:
    """Pytest on the documented tests and ``more``."""
    (project / "test_shop.py").write_text(block("python") + more)
    (project / "pytest.ini").write_text(f"[pytest]\ntrio_mode = {str(trio_mode).lower()}\n")
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist"],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={key: value for key, value in os.environ.items() if not key.startswith("PYTEST")},
    )


def test_the_page_is_right_under_pytest_trio(project):
    """The asynchronous test and the synchronous one, as they stand."""
    run = start(project, trio_mode=True)
    output, _ = run.communicate(timeout=RUN_S)

    assert pytest.ExitCode.OK == run.returncode, output
    assert "2 passed" in output


def test_the_page_is_right_in_every_other_loop(project):
    """Anyio on asyncio and on trio, ``trio.run``, ``asyncio.run``, a thread with a loop."""
    run = start(project, more=BY_HAND, trio_mode=False)
    output, _ = run.communicate(timeout=RUN_S)

    assert pytest.ExitCode.OK == run.returncode, output
    assert "6 passed" in output


@pytest.mark.parametrize("plugin", ["trio", "anyio"])
def test_ctrl_c_ends_the_run_and_leaves_nothing(project, plugin):
    """In the middle of an outage: it is undone, the stack is taken down, nothing is found leaking."""
    more = ENDLESS + ("pytestmark = pytest.mark.anyio\n" if plugin == "anyio" else "")
    run = start(project, more=more, trio_mode=plugin == "trio")
    until_blocking(
        lambda: (project / "away").exists() or run.poll() is not None or None,
        seconds=RUN_S,
        action="see the outage",
    )
    run.send_signal(signal.SIGINT)
    output, _ = run.communicate(timeout=RUN_S)

    assert pytest.ExitCode.INTERRUPTED == run.returncode, output
    assert "KeyboardInterrupt" in output
    assert "outlived the run" not in output, output
    assert "HARNESS ERROR" not in output, output
    assert [] == processes_of(project)
