"""Profiles of running processes: they name what ran, and what ran never noticed."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from harness_core.base.errors import BadInput, Unavailable
from harness_core.base.evidence import open_evidence
from harness_core.base.slowness import patience
from harness_core.base.wait import until
from harness_core.process import open_run
from suites.e2e.observe.flamegraphs import text_of
from suites.e2e.observe.profiling import Profiles, open_profiles, read_frames
from suites.e2e.observe.profiling import _profiler as can
from suites.e2e.observe.profiling._profiler import cannot_profile

pytestmark = pytest.mark.aside("the profiler of the suite")

BUSY = """
import sys, time
def innermost_work(until):
    total = 0
    while time.monotonic() < until:
        total += sum(range(1000))
    return total
def work():
    for number in range(10_000):
        innermost_work(time.monotonic() + 0.05)
        print(number, flush=True)
work()
"""


#: Runs, and does nothing.
IDLE = "import signal; print('up', flush=True); signal.pause()"


async def _wrote(child) -> bool:
    return bool(child.tail())


async def profile(tmp_path, argv, **options) -> tuple[Profiles, object]:
    """Run a program, profile it until it has written some 30 more numbers, and stop it."""
    evidence = open_evidence(tmp_path / "evidence")
    async with open_run(evidence=evidence) as run, run.child(argv, name="busy") as child:
        await until(lambda: _wrote(child))
        async with open_profiles(
            run, {"busy": child.pid}, evidence=evidence.child("profile"), **options
        ) as profiles:
            before = len(child.log.read_text())

            async def went_on() -> bool:
                return len(child.log.read_text()) > before + 100

            await until(went_on)
        alive = child.returncode is None
        after = len(child.log.read_text())

        async def goes_on() -> bool:
            return len(child.log.read_text()) > after

        await until(goes_on)
    return profiles, alive


@pytest.mark.real
@pytest.mark.requires("profiling")
async def test_a_profile_names_the_functions_that_ran(tmp_path) -> None:
    """Flame graph and speedscope file name the busy function; the process lives and goes on."""
    profiles, alive = await profile(tmp_path, [sys.executable, "-c", BUSY])
    svg, scope = profiles.files["busy"]
    frames = read_frames(scope)

    assert alive
    assert {} == profiles.problems
    assert "innermost_work" in svg.read_text()
    assert "<svg" in svg.read_text()
    assert "innermost_work" in [frame.function for frame in frames]
    assert frames[0].samples >= frames[-1].samples > 0


@pytest.mark.real
@pytest.mark.requires("profiling")
async def test_what_is_no_python_has_no_profile_and_a_reason(tmp_path) -> None:
    """A process that is no Python has no profile, and the reason says so."""
    loop = "i=0; while :; do i=$((i+1)); echo $i; sleep 0.01; done"
    profiles, alive = await profile(tmp_path, ["sh", "-c", loop])

    assert alive
    assert () == profiles.files["busy"]
    assert profiles.problems["busy"]


@pytest.mark.real
@pytest.mark.requires("profiling")
async def test_a_process_that_only_waits_has_no_samples(tmp_path) -> None:
    """An empty flame graph is no profile: it is reported as having no samples, and not kept."""
    evidence = open_evidence(tmp_path / "evidence")
    async with (
        open_run(evidence=evidence) as run,
        run.child([sys.executable, "-c", IDLE], name="idle") as child,
    ):
        await until(lambda: _wrote(child))
        folder = evidence.child("profile")
        async with open_profiles(run, {"idle": child.pid}, evidence=folder) as profiles:

            async def watched() -> bool:
                logs = [path.read_text() for path in folder.path.glob("profile-idle-*.log")]
                return 2 == sum("Sampling process" in log for log in logs)

            await until(watched)

    assert () == profiles.files["idle"]
    assert "no samples" in profiles.problems["idle"]
    assert "idle: no profile, no samples" in text_of(profiles)
    assert [] == [*folder.path.glob("*.svg"), *folder.path.glob("*.json")]


@pytest.mark.real
@pytest.mark.requires("profiling")
async def test_a_killed_process_keeps_its_profile(tmp_path) -> None:
    """What was seen of a process until it was killed is written out."""
    evidence = open_evidence(tmp_path / "evidence")
    async with (
        open_run(evidence=evidence) as run,
        run.child([sys.executable, "-c", BUSY], name="busy") as child,
    ):
        await until(lambda: _wrote(child))
        folder = evidence.child("profile")
        async with open_profiles(run, {"busy": child.pid}, evidence=folder) as profiles:
            lines = len(child.log.read_text())

            async def went_on() -> bool:
                return len(child.log.read_text()) > lines + 60

            await until(went_on)
            child.kill()
            await child.wait()

    assert 2 == len(profiles.files["busy"]), profiles.problems


@pytest.mark.parametrize(
    ("scope", "uid", "words"),
    [
        ("1", 1000, "kernel.yama.ptrace_scope is 1, so only root"),
        ("0", 1000, "SYS_PTRACE is needed"),
        ("1", 0, "SYS_PTRACE is needed"),
    ],
)
def test_the_reason_says_what_to_change(  # lint: allow patching: of the profiler itself
    tmp_path, monkeypatch, scope, uid, words
) -> None:
    """A user held back by the kernel has another reason than a container without the capability."""
    (tmp_path / "scope").write_text(scope)
    monkeypatch.setattr(can, "_YAMA", tmp_path / "scope")
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    refusing = tmp_path / "py-spy"
    refusing.write_text("#!/bin/sh\necho 'Permission Denied: try again' >&2\nexit 1\n")
    refusing.chmod(0o755)
    monkeypatch.setattr(can, "find_py_spy", lambda: str(refusing))
    can.cannot_profile.cache_clear()
    try:
        reason = cannot_profile()
    finally:
        can.cannot_profile.cache_clear()

    assert words in reason
    assert "Permission Denied" in reason


async def test_without_py_spy_nothing_is_started(  # lint: allow patching: of the profiler itself
    tmp_path, monkeypatch
) -> None:
    """A profile that cannot be taken is an error of the harness with the cure in it."""
    monkeypatch.setattr(can, "find_py_spy", lambda: None)
    can.cannot_profile.cache_clear()
    try:
        evidence = open_evidence(tmp_path / "evidence")
        async with open_run(evidence=evidence) as run:
            with pytest.raises(Unavailable, match="pip install py-spy"):
                await open_profiles(run, {"x": os.getpid()}, evidence=evidence).__aenter__()
    finally:
        can.cannot_profile.cache_clear()


@pytest.mark.real
@pytest.mark.requires("profiling", "root")
def test_an_ordinary_user_may_or_has_a_reason() -> None:
    """For a user other than root the answer is a reason or none, never a traceback."""
    # The user is left behind after the imports: that user may not be able to read this Python.
    script = (
        "import os; from suites.e2e.observe.profiling._profiler import cannot_profile; "
        "os.setgroups([]); os.setgid(65534); os.setuid(65534); print(repr(cannot_profile()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd="/",
        env={"PYTHONDONTWRITEBYTECODE": "1", "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=patience(60),
        check=False,
    )

    assert 0 == done.returncode, done.stderr
    reason = done.stdout.strip().strip("'\"")

    assert not reason or "ptrace" in reason.lower() or "py-spy" in reason


@pytest.mark.parametrize("content", ["", "[]", "{}", json.dumps({"shared": {"frames": []}})])
def test_what_is_no_speedscope_file_is_one_bad_input(tmp_path, content) -> None:
    """A file that cannot be read is named."""
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(BadInput, match="a speedscope file"):
        read_frames(tmp_path / "x.json")
