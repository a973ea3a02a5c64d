"""A run from its opening to its end: starting children, directories, the leak audit."""

import os
import pwd
import re
import signal
import socket
import subprocess
import sys

import pytest
import trio

from harness_core.base.bridge import open_loop
from harness_core.base.errors import BadInput, ChildExited, HarnessError, Unavailable
from harness_core.base.texts import map_texts
from harness_core.base.wait import until
from harness_core.ports import listening_socket
from harness_core.process import LeakFound, _warden, open_run

PYTHON = (sys.executable, "-Sc")

DAEMON = """
import os, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.close(1), os.close(2)
        os.execve(sys.executable, ["strayed-daemon", "-Sc", "import signal; signal.pause()"], {})
    os._exit(0)
os.wait()
print("done", flush=True)
"""


def processes(run) -> dict[str, tuple[int, int]]:
    """Every process the ledger of a run names: name → pid and start time."""
    return {
        entry.get("name", entry["kind"]): (entry["pid"], entry["start"])
        for entry in run.ledger.entries()
        if entry["kind"] in {"process", "warden"}
    }


async def gone(pid: int, start: int) -> None:
    """Wait until a process runs no more."""

    async def ended() -> bool:
        return not _warden.runs(pid, start)

    with trio.fail_after(5):
        await until(ended)


async def test_environment_is_exactly_as_given(run):
    """A child sees the variables it was given and no other."""
    env = {"B": "two words", "A": "=1=", "EMPTY": "", "ÜMLAUT": "ß\nnewline"}
    async with run.child(["/usr/bin/env", "-0"], name="env", env=env) as child:
        await child.wait()

    written = child.log.read_text(encoding="utf-8").split("\0")[:-1]
    assert env == dict(word.split("=", 1) for word in written)


async def test_environment_is_inherited_when_none_is_given(run, monkeypatch):
    """Without ``env`` a child sees the harness's own variables."""
    monkeypatch.setenv("OF_THE_HARNESS", "seen")
    async with run.child(["/usr/bin/env"], name="env") as child:
        await child.wait()

    assert "OF_THE_HARNESS=seen" in child.log.read_text(encoding="utf-8").splitlines()


async def test_large_environment_and_arguments_arrive(run):
    """Hundreds of kilobytes pass through the control socket, with sockets attached."""
    env = {f"V{number}": str(number) * 100_000 for number in range(5)}
    code = (
        "import os, sys; sizes = [len(v) for k, v in os.environ.items() if k[0] == 'V']; "
        "print(sum(sizes), *map(len, sys.argv[1:]))"
    )
    with listening_socket() as sock:
        argv = [sys.executable, "-ISc", code, "x" * 120_000, "y" * 120_000]
        async with run.child(argv, name="big", env=env, listen=[sock]) as child:
            assert 0 == await child.wait()

    assert "500000 120000 120000" == child.tail()[-1]


async def test_request_larger_than_the_socket_takes_is_refused(run):
    """What no kernel would accept as arguments is refused, and the run goes on."""
    with pytest.raises(BadInput) as refused:
        async with run.child(["true"], name="huge", env={"HUGE": "x" * (9 * 1024 * 1024)}):
            pass

    assert "argv and env" == refused.value.key
    with pytest.raises(Unavailable, match="too long"):
        async with run.child(["true", "x" * 1_000_000], name="long"):
            pass
    async with run.child(["true"], name="next") as child:
        assert 0 == await child.wait()


async def test_a_program_is_found_on_the_childs_own_path(run, tmp_path):
    """A file where a directory should be, and a program that may not be run, are passed over."""
    good, bad = tmp_path / "good", tmp_path / "bad"
    for directory in (good, bad):
        directory.mkdir()
        (directory / "tool").write_text("#!/bin/sh\necho ran\n", encoding="utf-8")
    (good / "tool").chmod(0o755)
    (bad / "tool").chmod(0o644)
    path = f"{tmp_path / 'missing'}:{bad / 'tool'}:{bad}"
    env = {"PATH": f"{path}:{good}:/bin"}
    async with run.child(["tool"], name="tool", env=env) as child:
        await child.wait()
    with pytest.raises(Unavailable) as refused:
        async with run.child(["tool"], name="tool", env={"PATH": path}):
            pass

    assert ("ran",) == child.tail()
    assert "cannot execute tool: Permission denied" == refused.value.observed


async def test_working_directory(run, tmp_path):
    """A child starts in the directory it is given."""
    async with run.child(["pwd"], name="pwd", cwd=tmp_path) as child:
        await child.wait()

    assert (str(tmp_path),) == child.tail()


@pytest.mark.parametrize(
    ("arguments", "observed", "advice"),
    [
        pytest.param(
            {"argv": ["no-such-program"]},
            "cannot execute no-such-program: No such file or directory",
            "",
            id="missing-program",
        ),
        pytest.param(
            {"argv": ["{place}"]},
            "cannot execute {place}: Permission denied",
            "",
            id="directory",
        ),
        pytest.param(
            {"argv": ["true"], "cwd": "{place}/missing"},
            "cannot enter its working directory {place}/missing: No such file or directory",
            "",
            id="missing-cwd",
        ),
        pytest.param(
            {"argv": ["{place}/script"]},
            "cannot execute {place}/script: No such file or directory",
            "interpreter",
            id="missing-interpreter",
        ),
    ],
)
async def test_what_cannot_be_started_is_named(run, tmp_path, arguments, observed, advice):
    """Each thing a start needs is named when it is not there, and nothing is left behind."""
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n", encoding="utf-8")
    script.chmod(0o755)
    given = map_texts(arguments, lambda text: text.format(place=tmp_path))

    with pytest.raises(Unavailable) as missing:
        async with run.child(name="child", **given):
            pass

    assert "start child" == missing.value.action
    assert observed.format(place=tmp_path) == missing.value.observed
    assert missing.value.next_step
    assert advice in missing.value.next_step
    assert {"warden"} == set(processes(run))


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        pytest.param({"argv": []}, "argv", id="no-argv"),
        pytest.param({"argv": [""]}, "argv", id="empty-program"),
        pytest.param({"argv": ["true", "a\0b"]}, "argv[1]", id="null-in-argument"),
        pytest.param({"env": {"A=B": "x"}}, "env.A=B", id="equals-in-name"),
        pytest.param({"env": {"A": "x\0"}}, "env.A", id="null-in-value"),
        pytest.param({"env": {"": "x"}}, "env.", id="empty-name"),
        pytest.param({"name": "a/b"}, "name", id="slash-in-name"),
        pytest.param({"name": ".."}, "name", id="parent-as-name"),
        pytest.param({"name": ""}, "name", id="empty-child-name"),
    ],
)
async def test_argument_that_no_process_could_take_is_refused(run, logs, arguments, key):
    """Bad arguments are one clear error each, before any process is made."""
    with pytest.raises(BadInput) as refused:
        async with run.child(**{"argv": ["true"], "name": "child", **arguments}):
            pass

    assert key == refused.value.key
    assert {"warden"} == set(processes(run))
    assert [] == list(logs.path.iterdir())


async def test_closed_or_too_many_sockets_are_refused(run):
    """A listening socket that cannot be handed over is refused by its place."""
    with socket.socket() as sock:
        sock.close()
        with pytest.raises(BadInput) as closed:
            async with run.child(["true"], name="child", listen=[sock]):
                pass
    with listening_socket() as sock, pytest.raises(BadInput) as many:
        async with run.child(["true"], name="child", listen=[sock] * 64):
            pass

    assert "listen[0]" == closed.value.key
    assert "listen" == many.value.key
    with listening_socket() as sock:
        async with run.child(["true"], name="child", listen=[sock] * 63) as child:
            assert 0 == await child.wait()


async def test_listening_sockets_are_handed_over(run):
    """A child serves on sockets it inherits from descriptor 3 on, named as systemd names them."""
    code = """
import os, socket
assert os.environ["LISTEN_PID"] == str(os.getpid())
for number in range(int(os.environ["LISTEN_FDS"])):
    listener = socket.socket(fileno=3 + number)
    connection, _ = listener.accept()
    connection.sendall(f"socket {number}".encode())
    connection.close()
"""
    answers = []
    with listening_socket() as first, listening_socket() as second, trio.fail_after(10):
        async with run.child([*PYTHON, code], name="server", listen=[first, second]) as child:
            for sock in (first, second):
                stream = await trio.open_tcp_stream("127.0.0.1", sock.getsockname()[1])
                async with stream:
                    answers.append(await stream.receive_some(100))
            assert 0 == await child.wait(), child.tail()

    assert [b"socket 0", b"socket 1"] == answers


async def test_child_has_a_session_of_its_own_and_clean_descriptors(run):
    """A child leads its session, reads nothing, and inherits no other descriptor or signal mask."""
    code = """
import os, signal
print(os.getsid(0) == os.getpid(), os.read(0, 10), sorted(map(int, os.listdir("/proc/self/fd"))))
print(signal.getsignal(signal.SIGHUP) == signal.SIG_DFL, signal.pthread_sigmask(signal.SIG_BLOCK, ()))
"""
    async with run.child([*PYTHON, code], name="child") as child:
        await child.wait()

    # 3 is the listing's own.
    assert ("True b'' [0, 1, 2, 3]", "True set()") == child.tail()


@pytest.mark.requires("root")
async def test_root_can_start_a_child_as_another_user(state, logs):
    """A child of another user has that user's ids and no group of root."""
    ours = os.getgroups()
    os.setgroups([0, 1])  # what root has on many machines
    try:
        async with open_run(evidence=logs) as run:
            await _start_as_nobody(run)
    finally:
        os.setgroups(ours)


async def _start_as_nobody(run) -> None:
    nobody = pwd.getpwnam("nobody")
    seen = []
    for group in (nobody.pw_gid, None):
        argv = ["sh", "-c", "id -u; id -g; id -G"]
        async with run.child(argv, name="id", user=nobody.pw_uid, group=group) as child:
            await child.wait()
        seen.append(child.tail())

    assert [(str(nobody.pw_uid), str(nobody.pw_gid), str(nobody.pw_gid))] * 2 == seen


@pytest.mark.requires("ordinary-user")
async def test_ordinary_user_cannot_start_a_child_as_another(run):
    """Without the right to do so, becoming another user is one clear error."""
    with pytest.raises(Unavailable, match="cannot become user 0"):
        async with run.child(["true"], name="child", user=0):
            pass


async def test_child_that_crashes_during_start(run):
    """A child that ends at once shows its exit status and its last words."""
    async with run.child(["sh", "-c", "echo no config >&2; exit 3"], name="crasher") as child:
        assert 3 == await child.wait()
        with pytest.raises(ChildExited) as exited:
            child.check("migrate")

    assert 3 == exited.value.returncode
    assert "crasher" == exited.value.name
    assert ("no config",) == exited.value.tail
    assert child.log == exited.value.log
    assert str(exited.value).startswith("cannot migrate: crasher exited with 3.")


async def test_fifty_children_at_once(run):
    """Fifty children start concurrently, live together, and all end with their blocks."""
    up = trio.Event()
    children = []

    async def hold() -> None:
        async with run.child(["sleep", "3600"], name="sleep") as child:
            children.append(child)
            if len(children) == 50:
                up.set()
            await up.wait()
            assert child.returncode is None

    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            for _ in range(50):
                nursery.start_soon(hold)

    assert [-signal.SIGTERM] * 50 == [child.returncode for child in children]
    assert 50 == len({child.pid for child in children})
    assert 50 == len({child.log for child in children})


async def test_cancelled_while_starting_leaves_no_process(state, logs):
    """A child whose start was cancelled is ended when it comes up after all."""
    async with open_run(evidence=logs) as run:
        warden, _ = processes(run)["warden"]
        os.kill(warden, signal.SIGSTOP)
        with trio.move_on_after(0.05) as scope:
            async with run.child(["sleep", "3600"], name="late"):
                pass
        os.kill(warden, signal.SIGCONT)
        async with run.child(["true"], name="next") as child:
            assert 0 == await child.wait()

        assert scope.cancelled_caught
        await gone(*processes(run)["late"])


async def test_cancelled_block_stops_its_child(run):
    """Cancellation of the block ends the child before it leaves the block."""
    with trio.CancelScope() as scope:
        async with run.child(["sleep", "3600"], name="sleep") as child:
            scope.cancel()
            await trio.sleep_forever()

    assert -signal.SIGTERM == child.returncode


async def test_daemonised_grandchild_is_a_leak(state, logs):
    """What a child left running fails the run by name, and is ended."""
    with pytest.raises(LeakFound) as leak:  # noqa: PT012
        async with open_run(evidence=logs) as run:
            async with run.child([*PYTHON, DAEMON], name="parent") as child:
                await child.wait()
            data = run.directory("data")

    (line,) = leak.value.processes
    pid, _, command = line.partition(": ")
    assert command.startswith("strayed-daemon -Sc")
    assert "signal.pause()" in str(leak.value)
    start = _warden.start_time(int(pid))
    if start is not None:
        await gone(int(pid), start)
    assert not data.exists()


async def test_error_of_the_block_wins_over_a_leak(state, logs):
    """A run that failed raises its own error, unwrapped, with cause and context kept."""
    with pytest.raises(ZeroDivisionError) as failed:  # noqa: PT012
        async with open_run(evidence=logs) as run:
            async with run.child([*PYTHON, DAEMON], name="parent") as child:
                await child.wait()
            try:
                raise KeyError("first")  # noqa: TRY301
            except KeyError:
                1 / 0  # noqa: B018

    assert isinstance(failed.value.__context__, KeyError)


def test_run_held_by_a_loop_thread(state, logs):
    """Synchronous code holds a run and its children, started from a thread that ends before them."""
    with open_loop() as loop, loop.hold(open_run(evidence=logs)) as run:
        with loop.hold(run.child(["sleep", "3600"], name="sleep")) as child:
            warden, start = processes(run)["warden"]

            assert _warden.runs(child.pid, child._start)
        assert -signal.SIGTERM == child.returncode
        assert _warden.runs(warden, start)
    assert not _warden.runs(warden, start)
    assert not run.ledger.directory.exists()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_warden_that_was_killed(state, logs, number):
    """Without its warden a run says so, its children are dead, and so is what they started."""
    code = (
        "import subprocess; print(subprocess.Popen(['sleep', '3600'], start_new_session=True).pid)"
    )
    with pytest.raises(HarnessError) as ended:  # noqa: PT012
        async with open_run(evidence=logs) as run:
            argv = [
                sys.executable,
                "-uc",
                f"{code}; input() if 0 else __import__('signal').pause()",
            ]
            async with run.child(argv, name="parent") as child:

                async def started() -> bool:
                    return bool(child.tail())

                await until(started)
                orphan = int(child.tail()[0])
                start = _warden.start_time(orphan)
                os.kill(processes(run)["warden"][0], number)
                assert -signal.SIGKILL == await child.wait()
            async with run.child(["true"], name="next"):
                pass

    assert "speak to the run's warden process" == ended.value.action
    assert start is not None
    assert not _warden.runs(orphan, start)


async def test_directories_go_with_the_run(state, logs):
    """Each directory is fresh, has a name of its own, and is gone after the run."""
    async with open_run(evidence=logs) as run:
        paths = [run.directory("data"), run.directory("data"), run.directory("m", in_memory=True)]
        for path in paths:
            (path / "file").write_text("x", encoding="utf-8")
        listed = [e["path"] for e in run.ledger.entries() if e["kind"] == "directory"]

        assert 3 == len(set(paths))
        assert [str(path) for path in paths] == listed
        assert ["data", "data-2"] == [path.name for path in paths[:2]]
    assert not any(path.exists() for path in paths)


@pytest.mark.parametrize("name", ["", "..", "../escaped", "/absolute", "a/b", "nul\0"])
async def test_directory_outside_the_run_is_refused(run, tmp_path, name):
    """A directory name that leads elsewhere is refused; nothing is made."""
    before = set(tmp_path.rglob("*"))
    with pytest.raises(BadInput) as refused:
        run.directory(name)

    assert name == refused.value.found
    assert before == set(tmp_path.rglob("*"))


async def test_marks_of_two_runs_differ_and_reach_every_descendant(run, state, logs):
    """Descendants carry the mark of their own run, through a new session and a cleaned environment."""
    argv = ["setsid", "env", "-i", "sleep", "3600"]
    async with (
        open_run(evidence=logs) as other,
        run.child(["sh", "-c", f"{' '.join(argv)} & wait"], name="parent") as child,
    ):

        async def has_grandchild() -> bool:
            return any(
                _warden.command_line(pid) == ["sleep", "3600"]
                for pid in _warden.descendants(child.pid)
            )

        await until(has_grandchild)
        below = {child.pid, *_warden.descendants(child.pid)}

        assert below == set(_warden.marked(run.ledger.mark()))
        assert [] == _warden.marked(other.ledger.mark())
        for pid in below - {child.pid}:
            os.kill(pid, signal.SIGKILL)
        await child.wait()


def test_sigint_to_a_program_that_holds_a_run(state, tmp_path):
    """Ctrl-C ends a run as its end would: children stopped, directories gone, no process left."""
    code = """
import sys
from pathlib import Path
import trio
from harness_core.base.evidence import open_evidence
from harness_core.process import open_run
async def main():
    async with open_run(evidence=open_evidence(Path(sys.argv[1]))) as run:
        run.directory("data")
        async with run.child(["sleep", "3600"], name="sleep") as child:
            print(child.pid, flush=True)
            await trio.sleep_forever()
trio.run(main)
"""
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "logs")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        start = _warden.start_time(child)
        assert start is not None
        process.send_signal(signal.SIGINT)
        try:
            _, errors = process.communicate(timeout=10)
        finally:
            process.kill()  # leaving the block waits for its end

    assert "KeyboardInterrupt" == errors.splitlines()[-1]
    assert -signal.SIGINT == process.returncode
    assert not _warden.runs(child, start)
    assert [] == list((state / "runs").iterdir())


async def test_run_ids_are_short_and_unique(state, logs):
    """A run's id is fit for names of databases, directories and containers."""
    ids = set()
    for _ in range(3):
        async with open_run(evidence=logs) as run:
            ids.add(run.id)

    assert 3 == len(ids)
    assert all(re.fullmatch(r"\d+-[0-9a-f]{8}", run_id) for run_id in ids)
