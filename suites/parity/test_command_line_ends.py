"""However the reference launcher ends, what it started ends with it."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from pathlib import Path

import pytest

from suites.parity.compare import exposures
from suites.parity.shell import (
    BACKENDS,
    ENDS_S,
    GLANCE_S,
    PATIENCE_S,
    SECRET,
    TOOLS,
    Shell,
    bot_bottle,
    ended,
    expect_same,
    family,
    show,
    staying,
)
from suites.parity.tools.command import DIES, STAYS
from suites.parity.tools.guest import script_that_answers

pytestmark = [
    pytest.mark.aside(
        "the command line of the reference alone; launchers are reached by their API"
    ),
    pytest.mark.simulated("its tools are models, but for one test"),
]


@pytest.mark.parametrize(
    ("engine", "code"),
    [(BACKENDS[n % 2], code) for n, code in enumerate((0, 1, 2, 126, 127, 130, 137, 255))],
)
def test_an_exit_status_comes_through(shell: Shell, engine: str, code: int) -> None:
    """Each that a command can have is that of the launcher; its input is the agent's alone."""
    script = script_that_answers("", "", code)
    done = shell.run(
        *("start", "dev", "--", "sh", "-c", script),
        typed=b"typed ahead,\r\nZ\xfcrich\n",
        BOT_BOTTLE_BACKEND=engine,
    )

    expect_same(f"exit status on {engine}", code, done.returncode)
    for call in shell.commands.calls():
        wanted = "typed ahead,\r\nZ\udcfcrich\n" if script in call["argv"] else ""
        expect_same(f"input of `{call['argv'][0]} {call['argv'][1]}`", wanted, call["stdin"])
    expect_same("guests that are left", {}, shell.commands.guests())
    expect_same("recorded bottles", [], shell.recorded())


@pytest.mark.parametrize("engine", BACKENDS)
def test_a_tool_that_is_killed_is_no_success(shell: Shell, engine: str) -> None:
    """A signal that ends the tool comes through, and the guest is removed all the same."""
    done = shell.run("start", "dev", "--backend", engine, "--", "sh", "-c", DIES)

    statuses = (128 + signal.SIGTERM, -signal.SIGTERM)
    assert done.returncode in statuses, (
        f"exit status after SIGTERM: expected one of {statuses}, found {done.returncode}"
    )
    expect_same("output until then", b"half\n", done.stdout)
    expect_same("guests that are left", {}, shell.commands.guests())
    expect_same("recorded bottles", [], shell.recorded())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
@pytest.mark.parametrize(
    "engine",
    [*BACKENDS, pytest.param("bubblewrap", marks=pytest.mark.requires("bubblewrap"))],
)
def test_its_processes_end_with_the_launcher(
    shell: Shell, engine: str, number: signal.Signals
) -> None:
    """However it is ended; cleanup removes what is left, and no process list showed a value."""
    with staying(shell, "start", "dev", "--backend", engine) as launched:
        lines = [
            path.read_bytes().decode(errors="surrogateescape")
            for path in (Path(f"/proc/{pid}/cmdline") for pid in family(launched))
        ]
        seen = exposures({"TOKEN": SECRET}, {"command lines": lines})
        launched.send_signal(number)
        ended = launched.wait(timeout=PATIENCE_S)
        assert launched.stdout is not None
        # Whoever has the output open lives; the end of the file is the end of all of them.
        there = select.select([launched.stdout], [], [], ENDS_S)[0]
        rest = launched.stdout.read() if there else b"(they are there still)"

    expect_same("places where a value can be read", {}, seen)
    assert ended in (128 + number, -number), (
        f"exit status after {number.name}: expected {128 + number}, found {ended}"
    )
    expect_same(f"output after {number.name}, at whose end all its processes are gone", b"", rest)
    cleaned = shell.run("cleanup")
    expect_same("exit status of cleanup", 0, cleaned.returncode)
    expect_same("guests that are left", {}, shell.commands.guests())
    folders = shell.home / ".bot-bottle" / "guests"
    expect_same("folders of guests", [], list(folders.iterdir()) if folders.is_dir() else [])
    expect_same("recorded bottles", [], shell.recorded())
    left = {
        "files": [
            path.read_text(errors="surrogateescape")
            for path in shell.home.rglob("*")
            if path.is_file()
        ]
    }
    expect_same("files where a value can be read", {}, exposures({"TOKEN": SECRET}, left))


@pytest.mark.parametrize("engine", BACKENDS)
def test_a_tool_that_makes_a_guest_ends_with_the_launcher(shell: Shell, engine: str) -> None:
    """Not the agent's command alone: one that is making a guest when the launcher is killed, too."""
    manifest = shell.home / ".bot-bottle" / "bottles" / "slow.md"
    manifest.write_text(f"---\nimage: {json.dumps(STAYS)}\n---\n")
    launched = subprocess.Popen(
        [bot_bottle(), "start", "slow", "--backend", engine],
        env=shell.environ(),
        cwd=shell.cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + ENDS_S
        descriptor = os.pidfd_open(launched.pid)
        making: list[int] = []
        while not making and time.monotonic() < until:
            making = [call["pid"] for call in shell.commands.calls() if STAYS in call["argv"]]
            if select.select([descriptor], [], [], GLANCE_S)[0]:
                break
        os.close(descriptor)
    finally:
        launched.kill()
        launched.wait()
    expect_same(f"commands of {engine} that make a guest", 1, len(making))
    assert ended(making[0]), (
        f"a launcher is killed while {TOOLS[engine]} makes a guest: expected that {TOOLS[engine]} "
        "ends with it, found it there still"
    )
    expect_same("exit status of cleanup", 0, shell.run("cleanup").returncode)
    expect_same("recorded bottles", [], shell.recorded())


@pytest.mark.parametrize("engine", BACKENDS)
def test_a_closed_terminal_is_an_end_like_any_other(shell: Shell, engine: str) -> None:
    """Nothing is left of a launch, neither guest nor record, whichever signal ends it in peace."""
    left = {}
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        with staying(shell, "start", "dev", "--backend", engine) as launched:
            launched.send_signal(number)
            launched.wait(timeout=PATIENCE_S)
            left[number.name] = (len(shell.commands.guests()), len(shell.recorded()))
        shell.run("cleanup")

    expect_same("guests and records that are left", dict.fromkeys(left, (0, 0)), left)


@pytest.mark.parametrize("kept", [(), ("--preserve",)], ids=["forgotten", "preserved"])
def test_cleanup_names_what_it_removes(shell: Shell, kept: tuple[str, ...]) -> None:
    """Once, a guest whose record stays too; a second cleanup has nothing to remove, and says nothing."""
    with staying(shell, "start", "dev", "--backend", "docker", *kept) as launched:
        launched.kill()
        launched.wait(timeout=PATIENCE_S)
    (identity,) = shell.recorded()
    first, second = shell.run("cleanup"), shell.run("cleanup")

    expect_same("exit statuses of cleanup", [0, 0], [first.returncode, second.returncode])
    assert identity in show(first), f"cleanup names {identity}: found {show(first)!r}"
    expect_same("what a second cleanup removes", "", show(second))
    expect_same("guests that are left", {}, shell.commands.guests())
    expect_same("bottles that are kept", [identity] if kept else [], shell.recorded())
