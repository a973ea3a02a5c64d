"""How a command is ended: all of it, and nothing that would have followed is begun."""

import os
import subprocess
from pathlib import Path

import pytest
import trio

from sexpd.shell import actuator

DEPTH = 14


@pytest.mark.parametrize("number", range(8))
def test_a_shell_is_killed_before_its_command(tmp_path, monkeypatch, number):
    """A shell that sees its command end would go on with the next: whoever waits is killed first."""
    command = "(" * DEPTH + f"sleep 60.{number}" + "; touch reached)" * DEPTH + "; touch reached"
    order = []

    def kill(pid, signal_number, kill=os.kill):
        order.append(pid)
        kill(pid, signal_number)

    async def ended():
        process = await actuator._start(command, root=tmp_path, setup=lambda: None)
        with trio.fail_after(30):
            while len(actuator._below(process.pid)) < DEPTH + 1:
                await trio.sleep(0.01)
            started_by = {pid: actuator._parent(pid) for pid in actuator._below(process.pid)}
            monkeypatch.setattr(actuator.os, "kill", kill)
            await actuator._kill_all(process)
        return started_by

    started_by = trio.run(ended)

    early = [pid for pid, parent in started_by.items() if order.index(pid) < order.index(parent)]
    assert not early, f"killed before the shells that wait for them: {early} of {order}"
    assert not Path(tmp_path / "reached").exists(), "a shell went on after its command was killed"


def test_what_ends_meanwhile():
    """Processes may come and go while a command's tree is read; it is read all the same."""
    busy = subprocess.Popen(["sh", "-c", "for i in $(seq 300); do (true & true); done"])
    try:
        while busy.poll() is None:
            assert busy.pid in actuator._below(os.getpid()) or busy.poll() is not None
    finally:
        busy.kill()
        busy.wait()
