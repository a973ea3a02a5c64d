"""Deadlines against hanging grow with what else the machine has to do."""

from __future__ import annotations

import os

import pytest
import trio

from harness_core.base import slowness as module
from harness_core.base.errors import NotReady
from harness_core.base.slowness import patience, slowness
from harness_core.base.wait import deadline


@pytest.mark.parametrize(
    ("load", "running", "cores", "expected"),
    [
        (0.1, 1, 2, 1.0),
        (6.0, 1, 2, 3.0),
        (0.1, 8, 2, 4.0),
        (900.0, 900, 2, 8.0),
        (4.0, 4, 16, 1.0),
    ],
)
def test_threads_for_each_core(monkeypatch, tmp_path, load, running, cores, expected):
    """The longer of the minute's and the moment's queue, between 1 and 8."""
    stat = tmp_path / "stat"
    stat.write_text(f"cpu  1 2 3\nprocs_running {running}\nprocs_blocked 0\n")
    monkeypatch.setattr(module, "_STAT", stat)
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(cores)))

    assert expected == slowness()
    assert 2.5 * expected == patience(2.5)


async def test_a_deadline_says_what_it_allowed_for(monkeypatch, autojump_clock):
    """Three times the time on a machine that is three times as busy, and the error says why."""
    monkeypatch.setattr("harness_core.base.wait.slowness", lambda: 3.0)
    began = trio.current_time()

    with (
        pytest.raises(
            NotReady, match=r"30 s passed \(10 s, on a machine 3\.0 times as busy"
        ) as late,
        deadline("see it", seconds=10),
    ):
        await trio.sleep_forever()

    assert 30 == trio.current_time() - began
    assert 30 == late.value.waited_s
