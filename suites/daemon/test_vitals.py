"""A process that ends while it is looked at is told as ended, not as trouble of the harness."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from harness_core.ports import listeners
from suites.daemon.vitals import below, listening, read_vitals

pytestmark = pytest.mark.aside("the vitals are the suite's own")


def ended() -> int:
    """The number of a process that has ended and is reaped."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_children_that_end_meanwhile() -> None:
    """Whoever comes and goes while the tree is read is in it or not; reading goes on."""
    busy = subprocess.Popen(
        ["sh", "-c", "for i in $(seq 300); do (true & true); done"], stdout=subprocess.DEVNULL
    )
    try:
        looks = 0
        while busy.poll() is None:
            assert busy.pid in below(os.getpid()) or busy.poll() is not None
            looks += 1
    finally:
        busy.kill()
        busy.wait()

    assert looks > 20, f"the tree was read {looks} times only"
    assert busy.pid not in below(os.getpid())


def test_who_listens_is_not_its_child() -> None:
    """A child between its start and its own program holds the socket too, and does not listen."""
    program = (
        "import os, socket, sys\n"
        "one = socket.create_server(('127.0.0.1', 0))\n"
        "child = os.fork()\n"
        "if child: print(one.getsockname()[1], flush=True)\n"
        "sys.stdin.read()\n"
        "if child: os.waitpid(child, 0)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        port = int(parent.stdout.readline())
        pids = {row.pid for row in listeners(port=port)}

        assert len(pids) == 2, f"the child does not hold its parent's socket: {pids}"
        assert parent.pid == listening(port)
        parent.communicate()
    with pytest.raises(AssertionError, match="found none"):
        listening(port)


def test_vitals_of_what_has_ended() -> None:
    """The daemon is gone: a verdict in a sentence."""
    pid = ended()
    with pytest.raises(AssertionError, match=f"the daemon \\(pid {pid}\\) is gone"):
        read_vitals(pid)
