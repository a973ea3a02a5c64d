"""What a caller may do to a supervised process, and what it learns of it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import trio

from harness_core.base.errors import HarnessError
from harness_core.base.wait import until
from harness_core.process import _child, _warden, belongs_to

PYTHON = (sys.executable, "-Sc")

IGNORES_TERM = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
while True:
    signal.pause()
"""

FLOODING_DAEMON = """
import os
flooding, flood = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.write(1, b"y" * 1_000_000)
        os.write(flood, b"!")
        while True:
            os.write(1, b"y" * 1_000_000)
    os._exit(0)
os.read(flooding, 1)
"""


async def saw(child, text: str) -> None:
    """Wait until the child has written a line with ``text``."""

    async def written() -> bool:
        return any(text in line for line in child.tail())

    with trio.fail_after(10):
        await until(written)


def state_of(pid: int) -> str | None:
    """The state letter of a process; ``None`` for one that is gone or a zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except FileNotFoundError:
        return None
    state = text.rpartition(")")[2].split()[0]
    return state if state != "Z" else None


async def is_in_state(pid: int, wanted: str) -> None:
    """Wait until a process is in a state."""

    async def reached() -> bool:
        return state_of(pid) == wanted

    with trio.fail_after(5):
        await until(reached)


async def test_child_that_obeys_is_not_killed(run):
    """A child that ends on SIGTERM is reported so, with how long it took."""
    async with run.child(["sleep", "3600"], name="sleep") as child:
        report = await child.stop()

    assert (-signal.SIGTERM, False, ()) == (report.returncode, report.killed, report.strays)
    assert 0 <= report.waited_s < 5
    assert report == child.stop_report
    assert report == await child.stop()


async def test_child_that_ignores_the_request_is_killed(run):
    """A child deaf to SIGTERM is killed after the grace, and that is a finding."""
    async with run.child([*PYTHON, IGNORES_TERM], name="deaf") as child:
        await saw(child, "ready")
        report = await child.stop(grace_s=0.05)

    assert report.killed
    assert -signal.SIGKILL == report.returncode
    assert report.waited_s >= 0.05


async def test_grace_and_signal_of_the_child_itself(run):
    """Without another wish, the child's own signal and grace hold."""
    code = """
import signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGINT, lambda *_: sys.exit(7))
print("ready", flush=True)
signal.pause()
"""
    async with run.child([*PYTHON, code], name="a", stop_signal=signal.SIGINT) as child:
        await saw(child, "ready")
    async with run.child([*PYTHON, IGNORES_TERM], name="b", grace_s=0.01) as deaf:
        await saw(deaf, "ready")

    assert 7 == child.returncode
    assert child.stop_report is not None
    assert not child.stop_report.killed
    assert deaf.stop_report is not None
    assert deaf.stop_report.killed


async def ended(child) -> None:
    """See it gone without waiting for it as one does who wants its end."""

    async def gone() -> bool:
        return child.returncode is not None

    with trio.fail_after(20):
        await until(gone)


async def test_a_death_is_told_with_its_last_words(run):
    """Of a signal and of a status; not of one before the time that is asked about."""
    async with (
        run.child([*PYTHON, "import sys; sys.exit('no luck')"], name="own") as own,
        run.child(["sleep", "60"], name="own") as other,
    ):
        os.kill(other.pid, signal.SIGSEGV)
        await ended(own)
        await ended(other)
        deaths = ["own exited with 1, its last words: no luck", "own was killed by SIGSEGV"]

        assert deaths == run.deaths(since_s=0.0)
        assert [] == run.deaths(since_s=time.monotonic())


@pytest.mark.parametrize("how", ["well", "signal", "kill", "stop", "awaited"])
async def test_an_end_that_was_asked_for_is_no_death(run, how):
    """By a status of 0, by a signal of ours, or by who waits for it."""
    script = {"well": "", "awaited": "import sys; sys.exit(1)"}.get(how)
    argv = ["sleep", "60"] if script is None else [*PYTHON, script]
    async with run.child(argv, name="own") as child:
        if how == "signal":
            child.signal(signal.SIGTERM)
        elif how == "awaited":
            await child.wait()
        elif how != "well":
            _ = child.kill() if how == "kill" else await child.stop()
        await ended(child)

        assert [] == run.deaths(since_s=0.0)


async def test_who_waited_and_was_cut_off_asked_for_nothing(run):
    """As readiness does, which waits for an end only until the child serves."""
    async with run.child(["sleep", "60"], name="own") as child:
        with trio.move_on_after(0):
            await child.wait()
        os.kill(child.pid, signal.SIGKILL)
        await ended(child)

        assert ["own was killed by SIGKILL"] == run.deaths(since_s=0.0)


async def test_strays_of_the_session_are_reported_and_ended(run):
    """Processes that a child leaves in its session are named and killed with it."""
    script = "trap 'exit 5' USR1; sleep 3601 & sleep 3602 & wait"
    async with run.child(["sh", "-c", script], name="sh") as child:

        async def complete() -> bool:
            commands = [_warden.command_line(pid) for pid in _warden.session_members(child.pid)]
            return ["sleep", "3601"] in commands and ["sleep", "3602"] in commands

        await until(complete)
        child.signal(signal.SIGUSR1)
        assert 5 == await child.wait()
        report = await child.stop()

    assert {"sleep 3601", "sleep 3602"} == set(report.strays)
    assert [] == _warden.session_members(child.pid)


async def test_stop_of_a_child_that_survives_sigkill(run, monkeypatch):
    """A child that not even SIGKILL ends is an error of the harness, not a hang."""
    async with run.child(["sleep", "3600"], name="sleep") as child:
        monkeypatch.setattr(_child.limits, "CHILD_STOP_KILL_S", 0.01)
        with monkeypatch.context() as deaf:
            deaf.setattr(child, "_signal_group", lambda number: None)
            deaf.setattr(child, "signal", lambda number: None)
            with pytest.raises(HarnessError, match="survived SIGKILL") as survived:
                await child.stop(grace_s=0)

    assert str(child.pid) in survived.value.action


async def test_paused_child_hangs_and_resumes(run):
    """A paused child and its group stop; resumed, they go on."""
    async with run.child(["sh", "-c", "sleep 3600 & echo $!; wait"], name="sh") as child:
        await saw(child, "")
        sleeper = int(child.tail()[0])
        child.pause()
        for pid in (child.pid, sleeper):
            await is_in_state(pid, "T")
        child.resume()
        for pid in (child.pid, sleeper):
            await is_in_state(pid, "S")

        assert child.returncode is None


async def test_paused_child_can_be_stopped(run):
    """A paused child is stopped by its request alone, without a kill."""
    async with run.child(["sleep", "3600"], name="sleep") as child:
        child.pause()
        await is_in_state(child.pid, "T")
        report = await child.stop()

    assert (-signal.SIGTERM, False) == (report.returncode, report.killed)


async def test_kill_ends_the_whole_group_at_once(run):
    """``kill`` is a crash: the child and its group are gone, nothing was asked."""
    async with run.child(["sh", "-c", "sleep 3600 & echo $!; wait"], name="sh") as child:
        await saw(child, "")
        sleeper = int(child.tail()[0])
        child.kill()

        assert -signal.SIGKILL == await child.wait()
        report = await child.stop()
    assert not report.killed
    assert () == report.strays
    assert state_of(sleeper) is None


async def test_signals_to_an_ended_child_do_nothing(run):
    """After its end every signal is a no-op: its number may be another's."""
    async with run.child(["true"], name="true") as child:
        await child.wait()
        child.signal(signal.SIGTERM)
        child.pause()
        child.resume()
        child.kill()

    assert 0 == child.returncode


async def test_recycled_pid_of_a_child_is_not_signalled(run):
    """Between a child's end and the news of it, its pid may name a bystander, who is not hit."""
    with subprocess.Popen(["sleep", "3600"], start_new_session=True) as bystander:
        try:
            async with run.child(["sleep", "3600"], name="sleep") as child:
                ours, child.pid = child.pid, bystander.pid
                child.signal(signal.SIGKILL)
                child.kill()
                await child._kill_strays()
                child.pid = ours

            assert bystander.poll() is None
        finally:
            bystander.kill()


async def test_child_that_closes_its_output_but_lives(run):
    """A child without output is still supervised: alive until it ends or is stopped."""
    code = "import os, signal; os.write(1, b'bye\\n'); os.close(1); os.close(2); signal.pause()"
    async with run.child([*PYTHON, code], name="mute") as child:
        with trio.fail_after(5):
            await child._drained.wait()

        assert child.returncode is None
        assert ("bye",) == child.tail()
        report = await child.stop()
    assert not report.killed


async def test_flooding_daemon_does_not_hold_up_the_stop(run):
    """A daemon that writes into its dead parent's pipe for ever delays nothing."""
    async with run.child([*PYTHON, FLOODING_DAEMON], name="parent") as child:
        with trio.fail_after(5):
            assert 0 == await child.wait()
            await child.stop()

    assert child.log.stat().st_size >= 1_000_000
    # The pipe has no reader any more, which ends the daemon: the run has no leak.


async def test_last_words_of_a_crash_are_in_log_and_tail(run):
    """What a child wrote right before its death, ended by a newline or not, is kept."""
    code = "import os; os.write(1, b'x' * 60000 + b'\\nlast words'); os.kill(os.getpid(), 9)"
    async with run.child([*PYTHON, code], name="crasher") as child:
        assert -signal.SIGKILL == await child.wait()

    assert "last words" == child.tail()[-1]
    assert "x" * 60_000 + "\nlast words" == child.log.read_text(encoding="utf-8")


async def test_output_faster_than_it_is_read(run):
    """A flood on both streams arrives whole and does not block child or harness."""
    code = (
        "import os\nfor _ in range(160): os.write(1, b'o' * 65535 + b'\\n'); os.write(2, b'e\\n')"
    )
    with trio.fail_after(20):
        async with run.child([*PYTHON, code], name="flood") as child:
            assert 0 == await child.wait()

    assert 160 * (65_536 + 2) == child.log.stat().st_size
    assert "e" == child.tail()[-1]


async def test_secret_is_in_neither_log_nor_tail(run, logs, tmp_path):
    """A registered secret that arrives in two writes is redacted wherever output goes."""
    logs.redactor.add("s3cret-of-this-test")
    code = """
import os, sys, time
sys.stdout.write("token s3cret-of-"); sys.stdout.flush()
while not os.path.exists(sys.argv[1]):
    time.sleep(0.001)
sys.stdout.write("this-test!\\n")
"""
    seen: list[str] = []
    listened_to = tmp_path / "listened-to"
    async with run.child([*PYTHON, code, str(listened_to)], name="leaky") as child:
        child.on_line(seen.append)
        listened_to.touch()
        await child.wait()

    assert ("token [redacted]!",) == child.tail()
    assert ["token [redacted]!"] == seen
    assert "token [redacted]!\n" == child.log.read_text(encoding="utf-8")


async def test_ctrl_c_never_hits_the_tasks_of_supervision(run):
    """Ctrl-C goes to the main task: were it raised in the pump or the reader, the stop would hang."""
    protected: list[bool] = []
    code = """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
print("up", flush=True)
signal.sigwait([signal.SIGUSR1])
print("one")
"""
    async with run.child([*PYTHON, code], name="waiting") as child:
        with trio.fail_after(5):
            await saw(child, "up")
        note_exit = child._note_exit

        def note(returncode: int) -> None:
            protected.append(trio.lowlevel.currently_ki_protected())
            note_exit(returncode)

        child._note_exit = note
        child.on_line(lambda _: protected.append(trio.lowlevel.currently_ki_protected()))
        child.signal(signal.SIGUSR1)
        with trio.fail_after(5):
            await child.wait()
        assert not trio.lowlevel.currently_ki_protected()

    assert [True, True] == protected


async def test_log_of_its_own_directory(run, logs):
    """A child writes where it is to; a second of one name does not write into the first's log."""
    other = logs.child("other")
    async with run.child(["echo", "a"], name="echo", evidence=other) as first:
        await first.wait()
    async with run.child(["echo", "b"], name="echo", evidence=other) as second:
        await second.wait()

    assert [other.path / "echo.log", other.path / "echo-2.log"] == [first.log, second.log]
    assert ["a\n", "b\n"] == [log.read_text(encoding="utf-8") for log in (first.log, second.log)]


async def test_belongs_to(run):
    """Child, session and descendants belong to a child; the harness and a sibling do not."""
    script = "setsid sleep 3600 & sleep 3601 & echo up; wait"
    async with (
        run.child(["sh", "-c", script], name="family") as child,
        run.child(["sleep", "3602"], name="sibling") as sibling,
    ):

        async def complete() -> bool:
            commands = [_warden.command_line(pid) for pid in _warden.descendants(child.pid)]
            return ["sleep", "3600"] in commands and ["sleep", "3601"] in commands

        await until(complete)
        family = [child.pid, *_warden.descendants(child.pid)]

        assert 3 == len(family)
        assert all(belongs_to(pid, child) for pid in family)
        assert not belongs_to(sibling.pid, child)
        assert not belongs_to(os.getpid(), child)
        for pid in family[1:]:
            os.kill(pid, signal.SIGKILL)
