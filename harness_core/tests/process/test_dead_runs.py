"""What is left when a harness dies in the middle of a run, and what a sweep makes of it."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import trio

from harness_core.base import limits
from harness_core.base.errors import HarnessError
from harness_core.base.wait import until_blocking
from harness_core.ports import owner_of
from harness_core.ports._owners import NO_PROCESS
from harness_core.process import (
    RunLedger,
    _run,
    _state,
    _sweep,
    _warden,
    installed_sweepers,
    open_run,
    sweep,
)
from harness_core.process._ledger import boot_id, pid_namespace


def ended_process() -> tuple[int, int]:
    """Pid and start time of a process that has ended and was reaped."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        start = _warden.start_time(process.pid)
        assert start is not None
    return process.pid, start


def dead_ledger(
    state: Path, *, entries: tuple[dict[str, Any], ...] = (), **run: object
) -> RunLedger:
    """The ledger of a run whose owner has ended."""
    pid, start = ended_process()
    directory = state / "runs" / f"{pid}-dead"
    directory.mkdir(parents=True)
    ledger = RunLedger(directory)
    fields = {
        "pid": pid,
        "start": start,
        "boot_id": boot_id(),
        "pid_namespace": pid_namespace(),
        **run,
    }
    ledger.record("run", **fields)
    for entry in entries:
        ledger.record(**entry)
    return ledger


def test_sigkill_of_the_runner_leaves_no_process_and_no_port(start_runner, state):
    """SIGKILL of the harness ends every process below it, daemons and their ports included."""
    runner = start_runner()
    assert "daemon" in runner.alive()
    assert owner_of(int(runner.said["port"])) != NO_PROCESS

    runner.process.kill()
    runner.process.wait()
    runner.wait_until_gone()

    assert [] == runner.alive()
    assert NO_PROCESS == owner_of(int(runner.said["port"]))


def test_sweep_removes_what_the_killed_runner_left(start_runner, state):
    """After a SIGKILL a sweep removes directories and ledger and says so."""
    runner = start_runner()
    runner.process.kill()
    runner.process.wait()

    report = sweep()

    assert (runner.said["run"],) == report.dead_runs
    assert () == report.problems
    assert runner.said["disk"] in report.removed
    assert [] == list((state / "runs").iterdir())
    assert [] == runner.alive()


@pytest.mark.requires("tmpfs")
def test_sweep_removes_directories_on_tmpfs_even_when_it_is_full(
    start_runner, tmp_path, monkeypatch
):
    """A dead run that filled the tmpfs is swept from it, though no new run would use it."""
    monkeypatch.delenv("HARNESS_STATE_DIR", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    runner = start_runner(TMPDIR=str(tmp_path))
    memory = Path(runner.said["memory"])
    assert Path("/dev/shm") in memory.parents
    assert memory.is_dir()
    runner.process.kill()
    runner.process.wait()

    monkeypatch.setattr(_state, "MEMORY_FREE_BYTES", 2**62)
    report = sweep()

    assert () == report.problems
    assert not memory.parent.exists()
    assert not Path(runner.said["disk"]).exists()


def test_sigkill_of_runner_and_warden_at_once(start_runner, state):
    """With the warden killed too, children die by themselves and a sweep ends what they started."""
    runner = start_runner()
    os.kill(runner.pid("warden"), signal.SIGKILL)
    runner.process.kill()
    runner.process.wait()
    until_blocking(lambda: "leader" not in runner.alive(), seconds=5, action="see the leader die")
    assert {"same-session", "own-session", "daemon"} == set(runner.alive())

    report = sweep()

    assert [] == runner.alive()
    assert (runner.said["run"],) == report.dead_runs
    assert any(f"process {runner.pid('daemon')} (daemon" in line for line in report.removed)
    assert not Path(runner.said["disk"]).exists()


#: A harness that forks in the middle of a run and then ends with it, or waits to be killed.
FORKS = """
import os, signal, sys
from pathlib import Path
import trio
from harness_core.base.evidence import open_evidence
from harness_core.process import open_run
async def main():
    async with open_run(evidence=open_evidence(Path(sys.argv[1]))) as run:
        async with run.child(["sleep", "3600"], name="sleep") as child:
            copy = os.fork()
            if copy == 0:
                os.close(1)
                signal.pause()
            print(child.pid, copy, flush=True)
            if sys.argv[2] == "waits":
                await trio.sleep_forever()
trio.run(main)
"""


@pytest.mark.parametrize("then", ["ends", "waits"])
def test_a_copy_of_the_control_socket_keeps_no_run_alive(state, tmp_path, then):
    """A process that the runner forked neither keeps its warden alive nor holds up its end."""
    with subprocess.Popen(
        [sys.executable, "-c", FORKS, str(tmp_path / "forked"), then],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        child, copy = (int(word) for word in process.stdout.readline().split())
        start = _warden.start_time(child)
        try:
            if then == "waits":
                process.kill()
            assert {"ends": 0, "waits": -signal.SIGKILL}[then] == process.wait(timeout=10)
            until_blocking(
                lambda: start is None or not _warden.runs(child, start),
                seconds=5,
                action="see the child end",
            )
            assert _warden.start_time(copy) is not None  # it still holds its copy of the socket
        finally:
            os.kill(copy, signal.SIGKILL)
            process.kill()


def test_unreaped_runner_counts_as_dead(start_runner, state):
    """A zombie, which a container's first process may never reap, is no live run."""
    runner = start_runner()
    runner.process.kill()
    os.waitid(os.P_PID, runner.process.pid, os.WEXITED | os.WNOWAIT)

    assert (runner.said["run"],) == sweep().dead_runs


async def test_sweep_leaves_a_live_run_alone(run, tmp_path):
    """The processes and directories of a run that is in progress are not touched."""
    data = run.directory("data")
    async with run.child(["sleep", "3600"], name="sleep") as child:
        report = await trio.to_thread.run_sync(sweep)

        assert (run.id,) == report.live_runs
        assert () == report.dead_runs
        assert data.is_dir()
        assert child.returncode is None


async def test_opening_a_run_sweeps_what_dead_runs_left(state, logs):
    """The next run cleans up after a dead one without being asked."""
    ledger = dead_ledger(state)

    async with open_run(evidence=logs):
        assert not ledger.directory.exists()


def test_every_kind_of_the_harness_has_its_sweeper():
    """What a run can list besides processes and directories, an installed package can remove."""
    assert {"container", "database", "network", "volume"} <= installed_sweepers().keys()


async def test_what_takes_others_is_swept_beside_the_run(state, logs, monkeypatch):
    """Other kinds go to their sweepers while the run goes on; a failure is recorded in its evidence."""
    removed = dead_ledger(state, entries=({"kind": "thing", "name": "a"},))
    kept = dead_ledger(state, entries=({"kind": "other", "name": "b"},))

    def fail(entry: Any) -> str:
        raise HarnessError(f"remove {entry['name']}", observed="it resists")

    found = {"thing": lambda entry: f"thing {entry['name']}", "other": fail}
    monkeypatch.setattr(_run, "installed_sweepers", lambda: found)
    async with open_run(evidence=logs):
        pass

    assert not removed.directory.exists()
    assert kept.path.exists()
    lines = (logs.path / "sweep.log").read_text(encoding="utf-8").splitlines()
    assert {"removed thing a", "cannot remove b: it resists."} == set(lines)


async def test_a_sweeper_that_hangs_keeps_no_run_waiting(state, logs, monkeypatch):
    """A run ends in its own time; what hangs is left for later."""
    ledger = dead_ledger(state, entries=({"kind": "thing", "name": "a"},))
    answered = threading.Event()

    def hang(entry: Any) -> str:
        answered.wait(30)
        return ""

    monkeypatch.setattr(_run, "installed_sweepers", lambda: {"thing": hang})
    monkeypatch.setattr(limits, "SWEEP_BESIDE_S", 0.1)
    began = time.monotonic()
    try:
        async with open_run(evidence=logs):
            pass
        lasted_s = time.monotonic() - began
        kept = ledger.path.exists()
    finally:
        answered.set()

    assert lasted_s < 5
    assert kept


@pytest.mark.parametrize(
    ("kind", "later", "run", "ends"),
    [
        pytest.param("process", 0, {}, True, id="by-pid-and-start"),
        pytest.param("process", 1, {}, False, id="recycled-pid"),
        pytest.param("warden", 1, {}, False, id="recycled-pid-of-the-warden"),
        pytest.param("process", 0, {"boot_id": "another boot"}, False, id="another-boot"),
    ],
)
def test_a_process_of_a_dead_run_is_ended_and_no_other(state, kind, later, run, ends):
    """Its pid and start time on this boot make a process; a pid alone may be another's by now."""
    with subprocess.Popen(["sleep", "3600"], start_new_session=True) as left:
        start = _warden.start_time(left.pid)
        assert start is not None
        entry = {"kind": kind, "pid": left.pid, "start": start - later, "name": "left"}
        ledger = dead_ledger(state, entries=(entry,), **run)
        try:
            report = sweep()

            assert (ledger.id,) == report.dead_runs
            assert ((f"process {left.pid} (left)",) if ends else ()) == report.removed
            assert not ledger.directory.exists()
            assert ends or left.poll() is None
        finally:
            left.kill()
        assert -signal.SIGKILL == left.wait()


def test_liveness_is_judged_on_this_boot_and_in_this_namespace(state):
    """After a reboot pid and start time are not the owner's; in another namespace they say nothing."""
    start = _warden.start_time(os.getpid())
    rebooted = dead_ledger(state, pid=os.getpid(), start=start, boot_id="another boot")
    elsewhere = dead_ledger(state, pid_namespace="pid:[1]")

    report = sweep()

    assert ((rebooted.id,), (elsewhere.id,)) == (report.dead_runs, report.live_runs)
    assert elsewhere.directory.exists()


@pytest.mark.parametrize("how", ["absolute", "parent", "symlink-inside"])
def test_tampered_ledger_cannot_remove_foreign_directories(state, tmp_path, how):
    """A directory entry that leads out of the run's own directories removes nothing."""
    foreign = tmp_path / "foreign"
    (foreign / "precious").mkdir(parents=True)
    ledger = dead_ledger(state)
    paths = {
        "absolute": foreign,
        "parent": ledger.directory / ".." / ".." / ".." / "foreign",
        "symlink-inside": ledger.directory / "link" / "precious",
    }
    (ledger.directory / "link").symlink_to(foreign)
    ledger.record("directory", path=str(paths[how]))

    report = sweep()

    assert (foreign / "precious").is_dir()
    assert () == report.removed
    assert not ledger.directory.exists()


def test_run_directory_that_is_a_link_is_no_run(state, tmp_path):
    """A link among the runs is not followed, so what it leads to keeps its files."""
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    ledger = dead_ledger(state)
    ledger.path.rename(foreign / "ledger.jsonl")
    ledger.record("directory", path=str(foreign / "precious"))
    (foreign / "precious").mkdir()
    shutil.rmtree(ledger.directory)
    ledger.directory.symlink_to(foreign)

    assert () == sweep().dead_runs
    assert (foreign / "precious").is_dir()


def test_half_written_last_line_is_passed_over(state):
    """A ledger cut in the middle of a line, or with garbage in it, is still swept by the rest."""
    ledger = dead_ledger(state)
    data = ledger.directory / "data"
    data.mkdir()
    ledger.record("directory", path=str(data))
    with ledger.path.open("ab") as file:
        file.write(b'\xff\xfe\x00\n[1]\n{"kind": 3}\n{"kind": "process", "pid": 1, "sta')

    report = sweep()

    assert (str(data),) == report.removed
    assert () == report.problems
    assert not ledger.directory.exists()


def test_ledger_without_its_first_line_is_judged_by_its_name(state):
    """Where the owner cannot be read, a run whose maker's pid lives is left alone."""
    live = state / "runs" / f"{os.getpid()}-torn"
    dead = state / "runs" / f"{ended_process()[0]}-torn"
    for directory in (live, dead):
        directory.mkdir(parents=True)
        (directory / "ledger.jsonl").write_text('{"kind": "ru', encoding="utf-8")

    report = sweep()

    assert (live.name,) == report.live_runs
    assert (dead.name,) == report.dead_runs
    assert live.exists()


def test_kind_without_a_sweeper_keeps_the_ledger(state):
    """What this sweep cannot remove stays listed and is reported; a sweep that can removes it."""
    ledger = dead_ledger(state, entries=({"kind": "database", "name": "clone_7"},))

    first = sweep()

    assert (f"run {ledger.id} lists a database: run `harness sweep`",) == first.problems
    assert ledger.path.exists()

    dropped: list[str] = []

    def drop(entry: Any) -> str:
        dropped.append(entry["name"])
        return f"database {entry['name']}"

    second = sweep(sweepers={"container": drop})
    assert "which nothing here can remove" in second.problems[0]
    assert ledger.path.exists()

    third = sweep(sweepers={"database": drop})
    assert ["clone_7"] == dropped
    assert ("database clone_7",) == third.removed
    assert not ledger.directory.exists()


def test_what_is_elsewhere_can_be_given_up(state):
    """A sweeper that fails keeps its ledger and stops no other; a run that is named is forgotten."""
    gone, kept = (dead_ledger(state, entries=({"kind": "database"},)) for _ in range(2))
    other = dead_ledger(state)

    def fail(entry: Any) -> str:
        raise HarnessError("drop database a", observed="the server is gone")

    report = sweep(sweepers={"database": fail}, forget=[gone.id])

    assert ("cannot drop database a: the server is gone.",) == report.forgotten
    assert ("cannot drop database a: the server is gone.",) == report.problems
    assert [False, True, False] == [each.directory.exists() for each in (gone, kept, other)]


def test_what_cannot_be_removed_is_reported_and_stays_listed(state, monkeypatch):
    """A directory that resists is a problem, and its ledger is kept for the next sweep."""
    ledger = dead_ledger(state)
    data = ledger.directory / "data"
    data.mkdir()
    ledger.record("directory", path=str(data))
    monkeypatch.setattr(_sweep.shutil, "rmtree", lambda path, ignore_errors: None)

    report = sweep()

    assert (f"cannot remove {data} of dead run {ledger.id}",) == report.problems
    assert ledger.path.exists()


def test_directories_without_permission_are_removed(state, tmp_path, monkeypatch):
    """A read-only tree, as module caches make them, goes too; links out of it are not touched."""
    ledger = dead_ledger(state)
    locked = ledger.directory / "data" / "cache" / "locked"
    locked.mkdir(parents=True)
    (locked / "file").write_text("x", encoding="utf-8")
    foreign = tmp_path / "foreign"
    foreign.mkdir(mode=0o750)
    (locked / "link").symlink_to(foreign)
    for path in (locked, locked.parent):
        path.chmod(0o500)
    really = shutil.rmtree

    def rmtree(path: Path, *, ignore_errors: bool) -> None:
        if not locked.exists() or locked.stat().st_mode & 0o200:  # as for anybody but root
            really(path, ignore_errors=ignore_errors)

    monkeypatch.setattr(_sweep.shutil, "rmtree", rmtree)

    report = sweep()

    assert () == report.problems
    assert not ledger.directory.exists()
    assert 0o40750 == foreign.stat().st_mode


def test_run_that_another_sweep_is_at_is_passed_over(state):
    """Two sweeps never work on one run: the second leaves it to the first."""
    ledger = dead_ledger(state)
    theirs = os.open(ledger.directory, os.O_RDONLY)
    try:
        fcntl.flock(theirs, fcntl.LOCK_EX)

        assert () == sweep().dead_runs
    finally:
        os.close(theirs)
    assert (ledger.id,) == sweep().dead_runs


async def test_many_sweeps_at_once_do_the_work_once(state):
    """Sweeps at the same moment share the dead runs out among them without an error."""
    ids = {dead_ledger(state, entries=({"kind": "thing", "n": n},)).id for n in range(5)}
    removed: list[int] = []
    reports = []

    def remove(entry: Any) -> str:
        removed.append(entry["n"])
        return f"thing {entry['n']}"

    async def one() -> None:
        reports.append(await trio.to_thread.run_sync(lambda: sweep(sweepers={"thing": remove})))

    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(one)

    assert [0, 1, 2, 3, 4] == sorted(removed)
    assert sorted(ids) == sorted(run for report in reports for run in report.dead_runs)
    assert [] == list((state / "runs").iterdir())


def test_run_that_is_being_made_is_left_alone(state):
    """A run without its first line yet belongs to a process that lives; after its death it goes."""
    being_made = state / "runs" / f".new-{os.getpid()}-aa"
    abandoned = state / "runs" / f".new-{ended_process()[0]}-bb"
    for directory in (being_made, abandoned):
        directory.mkdir(parents=True)

    sweep()

    assert being_made.exists()
    assert not abandoned.exists()


def test_ledger_lines_are_whole_and_name_the_run(state):
    """A new ledger says who made it, on which boot, in which namespace, with which mark."""
    ledger = RunLedger.create()

    (entry,) = ledger.entries()

    assert "run" == entry["kind"]
    assert os.getpid() == entry["pid"]
    assert _warden.start_time(os.getpid()) == entry["start"]
    assert boot_id() == entry["boot_id"]
    assert entry["mark"] == ledger.mark()
    assert ledger.owner_alive()
    assert 1 == len(ledger.path.read_text(encoding="utf-8").splitlines())
    assert entry == json.loads(ledger.path.read_text(encoding="utf-8"))


def test_state_path_that_is_no_directory_of_ours_is_refused(tmp_path, monkeypatch):
    """A state path that is no directory of ours is one clear error."""
    (tmp_path / "file").symlink_to(tmp_path)
    monkeypatch.setenv("HARNESS_STATE_DIR", str(tmp_path / "file"))

    with pytest.raises(HarnessError, match="or is no directory"):
        sweep()
