"""A process that ends while it is looked at is told as ended, not as trouble of the harness."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from suites.daemon.vitals import below, read_vitals

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


def test_vitals_of_what_has_ended() -> None:
    """The daemon is gone: a verdict in a sentence."""
    pid = ended()
    with pytest.raises(AssertionError, match=f"the daemon \\(pid {pid}\\) is gone"):
        read_vitals(pid)
