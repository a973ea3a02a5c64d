"""The confinement of contract 5 holds: whatever runs in it, nothing outside its home changes."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from harness_core.base.wait import deadline
from harness_core.process import Run
from suites.daemon.confinement import PROCESSES, Confinement, confinement

pytestmark = [
    pytest.mark.aside("the confinement is the suite's own"),
    pytest.mark.requires("confinement"),
]

#: Anything that lasts longer has hung: each of these ends in milliseconds.
END_S = 20.0


async def confined(
    run: Run, home: Path, script: str, *, wrapped: Confinement | None = None
) -> tuple[int, str]:
    """Run a script of the shell in the confinement of ``home``; its status and output."""
    wrapped = wrapped or confinement()
    wrapped.give(home)
    argv = wrapped.command(["/bin/sh", "-c", script], home=home)
    async with run.child(argv, name="intruder", cwd=home) as child:
        with deadline("see the intruder end", seconds=END_S, tail=child.tail):
            status = await child.wait()
        return status, "\n".join(child.tail())


async def test_its_home_can_be_written(run: Run) -> None:
    """What a daemon must write, it can."""
    home = run.directory("home")
    status, output = await confined(run, home, "echo yes > made && cat made")

    assert (0, "yes") == (status, output)
    assert "yes\n" == (home / "made").read_text()


async def test_nothing_else_can_be_written(run: Run) -> None:
    """A tree beside its home survives every attempt to remove or change it, and so does the machine."""
    home, other = run.directory("home"), run.directory("other")
    other.chmod(0o777)
    canary = other / "canary.txt"
    canary.write_text("alive\n")
    canary.chmod(0o666)
    places = [other, Path("/tmp"), Path("/etc"), Path("/var/tmp"), Path.home(), Path("/dev/shm")]
    name = f"harness-intruder-{os.getpid()}"
    tries = [f"rm -rf {other}", f"echo dead > {canary}", f"mv {other} {other}-moved"]
    tries += [f"echo x > {place}/{name}" for place in places]
    tries += [f"mount -o remount,rw {other}", "mount -o remount,rw /", f"echo dead > {canary}"]
    await confined(run, home, "; ".join(tries))

    assert "alive\n" == canary.read_text()
    assert [] == [place for place in places if (place / name).exists()]


async def test_no_process_outside_is_reached(run: Run) -> None:
    """It sees none of the machine's processes and can signal none."""
    home = run.directory("home")
    async with run.child(["/bin/sleep", "60"], name="bystander") as bystander:
        script = f"kill -9 {bystander.pid}; kill -9 {os.getpid()}; kill -9 -1; echo $(ls /proc)"
        await confined(run, home, script)

        assert bystander.returncode is None, "a process outside was killed"
        _, seen = await confined(run, home, "ls /proc | grep -c '^[0-9]'")

    assert int(seen) < 10, f"{seen} processes are seen in the confinement"


async def test_processes_are_bounded(run: Run) -> None:
    """A fork bomb runs out of processes, and the machine does not.

    It has fewer than a daemon, which may run beside it as the same user and needs some as well.
    """
    home = run.directory("home")
    few = replace(confinement(), processes=PROCESSES // 2)
    script = "for i in $(seq 400); do { echo $i >> started; exec sleep 5; } & done"
    await confined(run, home, script, wrapped=few)
    started = (home / "started").read_text().split()

    assert 10 < len(started) < 150, f"{len(started)} of 400 processes were started"


async def test_no_privilege_is_left(run: Run) -> None:
    """It is not root where that would matter: no device, no mount, no other user's file."""
    home = run.directory("home")
    _, output = await confined(run, home, "id -u; grep -E 'CapEff|NoNewPrivs' /proc/self/status")
    facts = output.split()

    assert "0" != facts[0] or os.geteuid() != 0, f"it runs as root: {output}"
    if os.geteuid() == 0:
        # CAP_DAC_READ_SEARCH alone: it may read what root may.
        assert 0b100 == int(facts[facts.index("CapEff:") + 1], 16), output
