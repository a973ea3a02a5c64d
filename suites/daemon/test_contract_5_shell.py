"""Contract 5: a safe command runs and its output comes back; a dangerous one leaves no trace.

The daemon of these tests is confined: what its dispatcher lets through can change nothing but the
disposable home it runs in, where the canaries show it (``test_confinement.py`` proves that).
"""

from __future__ import annotations

import os
import random
from fractions import Fraction
from pathlib import Path
from typing import cast

import pytest
import trio

from harness_core.base.errors import HarnessError, NotReady
from harness_core.base.slowness import patience
from harness_core.base.wait import deadline, until
from harness_core.front.skips import not_run
from harness_core.ports import listeners
from harness_core.process import command_line
from suites.daemon.canary import Canary, open_canary
from suites.daemon.commands import DANGEROUS, HARMLESS, Dangerous, Harmless
from suites.daemon.confinement import confinement
from suites.daemon.daemon import Absent, Daemon, Settings
from suites.daemon.messages import (
    ANSWER_S,
    HEALTH_CHECK,
    ask,
    due,
    expect_health,
    expect_message,
    expect_refusal,
    request,
    shell,
    user_input,
)
from suites.daemon.vitals import below, running
from suites.daemon.wire import (
    NIL,
    Connection,
    Form,
    Keyword,
    Message,
    RemoteProtocolError,
    T,
    Violation,
)

pytestmark = [pytest.mark.covers("CONTRACT-5-DANGEROUS"), pytest.mark.requires("confinement")]

SYNTAX = pytest.mark.capability("shell-syntax")

#: What a refusal says, in any case of letters (contract: "…blocked…").
BLOCKED = ("blocked",)


@pytest.fixture(scope="session")
def own(confined: Daemon) -> frozenset[int]:
    """The processes below the daemon before any command: its own, if it has any."""
    return frozenset() if isinstance(confined, Absent) else frozenset(below(confined.pid))


@pytest.fixture(scope="session")
def planted(confined: Daemon) -> Canary:
    """Trees of files in the shell's working root and beside it."""
    if isinstance(confined, Absent):
        return cast("Canary", confined)  # a test that looks at it says that there is no daemon
    return open_canary(confined.home, root=confined.root, give=confinement().give)


@pytest.fixture
def canary(planted: Canary) -> Canary:
    """What nothing may change in this test, whatever tests before it have left there."""
    if not isinstance(planted, Absent):
        planted.begin()
    return planted


def filled(text: str, daemon: Daemon, canary: Canary) -> str:
    """A row's command or output with real paths in it."""
    places = {"$CANARY": canary.inside, "$OUTSIDE": canary.outside, "$ROOT": daemon.root}
    for name, path in places.items():
        text = text.replace(name, str(path))
    return text


def expect_no_trace(canary: Canary, confined: Daemon, command: str) -> None:
    """Nothing in the home is other than it was, and nothing of the command runs."""
    changes = canary.changes()
    canary.restore()

    assert [] == changes, f"contract 5: the command {command!r} left traces: {changes}"


async def quiet_within(daemon: Daemon, own: frozenset[int], *, seconds: float = 5.0) -> None:
    """Wait until no process is below the daemon but its own, or not any longer."""

    async def quiet() -> bool:
        return own.issuperset(below(daemon.pid))

    with trio.move_on_after(patience(seconds)):
        await until(quiet)


async def expect_quiet(daemon: Daemon, own: frozenset[int]) -> None:
    """No process below the daemon but the daemon's own: what was refused never started."""

    async def quiet() -> bool:
        return own.issuperset(below(daemon.pid))

    try:
        with deadline("see the daemon alone", seconds=5):
            await until(quiet)
    except NotReady as error:
        left = [" ".join(command_line(pid)) for pid in below(daemon.pid)]
        raise AssertionError(f"contract 5: still running below the daemon: {left}") from error


@pytest.mark.parametrize("row", DANGEROUS, ids=lambda row: row.id)
async def test_dangerous(
    confined: Daemon, own: frozenset[int], canary: Canary, row: Dangerous
) -> None:
    """A dangerous command is refused on the wire, as blocked, and has left no trace."""
    command = filled(row.command, confined, canary)
    async with confined.connect() as connection:
        await connection.send(shell(command, timeout=5))
        refusal: Message | None = None
        try:
            refusal = await due(connection, "a refusal", seconds=ANSWER_S)
        except RemoteProtocolError as error:
            # The traces come first: what was done is worse than an answer that is missing.
            if error.violation not in {Violation.SILENT, Violation.CLOSED}:
                raise
        # What was begun all the same, beside the refusal, is given the time to do its harm.
        await quiet_within(confined, own)
        expect_no_trace(canary, confined, command)

        assert refusal is not None, f"contract 5: no refusal\n{connection.transcript}"
        expect_refusal(refusal, connection, *BLOCKED)
        # Nothing follows a refusal: no outcome of a command that ran after all.
        expect_health(await ask(connection, HEALTH_CHECK))
    await expect_quiet(confined, own)


@pytest.mark.covers("CONTRACT-5-SAFE")
@pytest.mark.capability("shell-reply")
@pytest.mark.parametrize(
    "row",
    [pytest.param(row, id=row.id, marks=[SYNTAX] if row.needs_shell else []) for row in HARMLESS],
)
async def test_harmless(confined: Daemon, canary: Canary, row: Harmless) -> None:
    """A command that only looks dangerous, or not even that, runs and its output comes back."""
    command = filled(row.command, confined, canary)
    async with confined.connect() as connection:
        outcome = await ask(connection, shell(command))
        stdout, exit_code = expect_outcome(outcome, connection, command)

    assert row.exit_code == exit_code, (
        f"contract 5: the status of {command!r}: expected {row.exit_code!r}, found {exit_code!r}"
    )
    if row.output is not None:
        assert filled(row.output, confined, canary) == stdout, (
            f"contract 5: the output of {command!r}: expected {filled(row.output, confined, canary)!r}, "
            f"found {stdout!r}"
        )
    canary.restore()


def expect_outcome(outcome: Message, connection: Connection, command: str) -> tuple[str, object]:
    """Stdout and exit code of a shell response, which must be one."""
    expected = (Keyword("EVENT"), Keyword("SHELL-RESPONSE"))
    actual = (outcome.get("TYPE"), outcome.get("PAYLOAD", "SENSOR"))

    assert expected == actual, (
        f"contract 5: {command!r} is harmless and was answered with {outcome.payload}\n"
        f"bytes exchanged:\n{connection.transcript}"
    )
    assert command == outcome.get("PAYLOAD", "CMD"), "the outcome of another command"
    stdout = outcome.get("PAYLOAD", "STDOUT")

    assert isinstance(stdout, str), (
        f"contract 5: an outcome has a text as :STDOUT, found {outcome.payload}"
    )
    assert isinstance(outcome.get("PAYLOAD", "STDERR"), str), (
        f"contract 5: an outcome has a text as :STDERR, found {outcome.payload}"
    )
    return stdout, outcome.get("PAYLOAD", "EXIT-CODE")


@pytest.mark.covers("CONTRACT-5-SAFE")
async def test_a_safe_command_has_its_effect(confined: Daemon, token: str) -> None:
    """A safe command really runs: the file it makes is there, whether or not it is answered."""
    made = confined.root / f"{token}.txt"
    async with confined.connect() as connection:
        await connection.send(shell(f"echo {token} > {token}.txt"))

        async def written() -> bool:
            return made.is_file() and made.read_text() == f"{token}\n"

        with trio.move_on_after(patience(ANSWER_S)):
            await until(written)

    assert made.is_file(), f"contract 5: the command had no effect\n{connection.transcript}"
    assert f"{token}\n" == made.read_text(), (
        "contract 5: what a safe command wrote: expected "
        + repr(f"{token}\n")
        + ", found "
        + repr(made.read_text())
    )
    made.unlink()


@pytest.mark.covers("CONTRACT-5-SAFE")
@pytest.mark.capability("shell-reply")
async def test_stderr_and_status_come_back(confined: Daemon) -> None:
    """A command's stderr and its exit status come back apart from its stdout, blanks and all."""
    command = r"printf '\n  out \n'; printf ' \n err\t\n\n' >&2; exit 3"
    expected = ("\n  out \n", " \n err\t\n\n", 3)
    async with confined.connect() as connection:
        outcome = await ask(connection, shell(command))
        stdout, exit_code = expect_outcome(outcome, connection, command)

    assert expected == (stdout, outcome.get("PAYLOAD", "STDERR"), exit_code), (
        "contract 5: stdout, stderr and status of a command: expected "
        + repr(expected)
        + ", found "
        + repr((stdout, outcome.get("PAYLOAD", "STDERR"), exit_code))
    )


@pytest.mark.covers("CONTRACT-5-SAFE")
@pytest.mark.capability("shell-reply")
async def test_each_command_begins_anew(confined: Daemon, token: str) -> None:
    """A command begins in the working root with nothing to read and nothing of those before it.

    On whatever connection: where one has gone, what it has set and what it was given is its own.
    """
    rows = (
        ("cd / && pwd", "/\n", "", 0),
        ("pwd", f"{confined.root}\n", "", 0),
        ("pwd", f"{confined.root}\n", "", 0),
        (f"x={token}; export y={token}; echo $x$y", f"{token}{token}\n", "", 0),
        ("echo [$x$y]", "[]\n", "", 0),
        ("echo [$x$y]", "[]\n", "", 0),
        ("set -eu; echo set", "set\n", "", 0),
        ("false; echo [$nothing]", "[]\n", "", 0),
        ("cat; echo nothing to read", "nothing to read\n", "", 0),
        ("exit 4", "", "", 4),
        ("echo $?", "0\n", "", 0),
        (f"echo {token} >&2", "", f"{token}\n", 0),
        ("echo out", "out\n", "", 0),
        ("true", "", "", 0),
    )
    async with confined.connect() as one, confined.connect() as two:
        for number, (command, *expected) in enumerate(rows):
            connection = (one, two)[number // 2 % 2]
            outcome = await ask(connection, shell(command))
            stdout, exit_code = expect_outcome(outcome, connection, command)
            found = [stdout, outcome.get("PAYLOAD", "STDERR"), exit_code]

            assert found == expected, (
                f"contract 5: {command!r} after {[row[0] for row in rows[:number]]}: expected "
                f"stdout, stderr and status {expected}, found {found}"
            )


#: What stands for a time: none of it, a name, a text, a list, more than there is.
TIMES: tuple[Form, ...] = (0, -1, Fraction(-1, 2), "5", "soon", (), (1, 2), Keyword("SOON"), 10**30)


@pytest.mark.covers("CONTRACT-5-SAFE")
@pytest.mark.capability("shell-reply")
async def test_a_timeout_that_means_nothing_is_an_error(daemon: Daemon, client, token: str) -> None:
    """A :TIMEOUT that is no time is refused with a reason, or none; the command is not left to run on."""
    wait = f"3145.{random.randrange(10**9):09}"
    for value in TIMES:
        command = f"echo {token}"
        answer = await ask(client, shell(command, timeout=value))
        if answer.get("TYPE") == Keyword("LOG"):
            expect_refusal(answer, client)
        else:
            expect_outcome(answer, client, command)
    for value in (Fraction(1, 4), 1):
        command = f"sleep {wait}"
        answer = await ask(client, shell(command, timeout=value), seconds=ANSWER_S * 2)
        if answer.get("TYPE") != Keyword("LOG"):
            _, exit_code = expect_outcome(answer, client, command)

            assert exit_code != 0, f"contract 5: it was ended, and has failed: {answer.payload}"

    for command in ("", " ", "\n", "#"):
        answer = await ask(client, shell(command))
        if answer.get("TYPE") != Keyword("LOG"):
            nothing = expect_outcome(answer, client, command)

            assert nothing == ("", 0), (
                f"contract 5: {command!r} does nothing, found {answer.payload}"
            )
    texts: tuple[Form, ...] = (7, Keyword("LS"), (), ("ls", "-l"), NIL, T)
    # What means nothing may be passed over without a word, where that is not claimed.
    for value in texts if "error-frames" in daemon.subject.capabilities else ():
        refusal = await ask(client, request("SHELL", "EXECUTE", cmd=value))
        expect_refusal(refusal, client)
    stdout, _ = expect_outcome(await ask(client, shell("echo on")), client, "echo on")

    assert stdout == "on\n", f"contract 5: after what means nothing it goes on, found {stdout!r}"

    async def ended() -> bool:
        return not running(wait)

    with trio.move_on_after(patience(ANSWER_S)):
        await until(ended)

    assert not running(wait), f"contract 5: a timed-out command left {running(wait)}"
    expect_health(await daemon.health())


#: Characters that are kept of an output, where that can be told.
KEPT = 1000


@pytest.mark.covers("CONTRACT-5-SAFE")
@pytest.mark.capability("shell-reply")
@pytest.mark.knob("output_characters")
async def test_as_much_output_is_kept_as_configured(start) -> None:
    """Of an output as much comes back as is configured: in characters, of each stream, from its start."""
    settings = Settings(knobs={"output_characters": KEPT})
    async with start(settings) as daemon, daemon.connect() as connection:
        for letter in "x日😀":
            for count in (1, KEPT - 1, KEPT, KEPT + 1, 3 * KEPT, 100 * KEPT):
                line = f"seq {count} | sed 's/.*/{letter}/' | tr -d '\\n'"
                whole = f"{{ printf A; {line}; printf Z; }}"
                command = f"{whole}; {whole} >&2; exit 5"
                outcome = await ask(connection, shell(command))
                stdout, exit_code = expect_outcome(outcome, connection, command)
                found = (stdout, outcome.get("PAYLOAD", "STDERR"))
                expected = f"A{letter * count}Z"[:KEPT]

                assert found == (expected, expected), (
                    f"contract 5: of {count} characters {letter} to both streams expected "
                    f"{len(expected)} of each, found {[len(str(each)) for each in found]}: "
                    f"{str(found)[:100]}"
                )
                assert exit_code == 5, (
                    f"contract 5: a command of which more is printed than is kept ends as it "
                    f"ends: expected status 5, found {exit_code}"
                )


#: Signals that end a program that does not expect them; those between them stop it, or do nothing.
DEADLY = (*range(1, 17), *range(24, 28), *range(29, 32), 34, 64)


@pytest.mark.covers("CONTRACT-5-SAFE")
@pytest.mark.capability("shell-reply")
async def test_the_status_says_which_signal_ended_it(daemon: Daemon) -> None:
    """The status of a command that a signal ends is that of any shell: 128 and the signal's number."""
    expected = {number: 128 + number for number in DEADLY}
    found: dict[int, object] = {}
    async with daemon.connect() as connection:
        for number in DEADLY:
            # Longer than any deadline of this test, and another's command it is not.
            wait = f"3141.{random.randrange(10**9):09}"

            async def at_work(wait: str = wait) -> int | None:
                lines = {pid: " ".join(command_line(pid)) for pid in below(daemon.pid)}
                return next((pid for pid in lines if lines[pid] == f"sleep {wait}"), None)

            command = f"sleep {wait}"
            await connection.send(shell(command, timeout=ANSWER_S * 2))
            pid: int | None = None
            with trio.move_on_after(patience(ANSWER_S)):
                pid = await until(at_work)

            assert pid, f"contract 5: the safe command {command!r} does not run"
            os.kill(pid, number)
            outcome = await due(connection, "its outcome", seconds=ANSWER_S * 3)
            _, found[number] = expect_outcome(outcome, connection, command)

    wrong = {n: found[n] for n in DEADLY if found[n] != expected[n]}

    assert not wrong, (
        "contract 5: the status of a command that signal n ended is 128 + n; found, by signal: "
        f"{wrong}"
    )


@pytest.mark.covers("CONTRACT-5-SAFE")
@pytest.mark.capability("shell-reply")
@pytest.mark.parametrize("over_s", [1.9, 2.6])
async def test_a_timeout_is_not_shortened(confined: Daemon, token: str, over_s: float) -> None:
    """A command that ends before its timeout is not cut off, or the timeout is refused in words."""
    command = f"sleep {over_s - 0.4:.1f}; echo {token}"
    async with confined.connect() as connection:
        # It may begin late on a busy machine, never early.
        outcome = await ask(connection, shell(command, timeout=over_s), seconds=ANSWER_S * 2)
        if outcome.get("TYPE") == Keyword("LOG"):
            expect_refusal(outcome, connection, "timeout")
            return
        began = trio.current_time()
        long = await ask(connection, shell(command, timeout=over_s * 10), seconds=ANSWER_S * 2)
        took_s = trio.current_time() - began
        if took_s > over_s:
            raise HarnessError(
                f"judge a timeout of {over_s:g} s",
                observed=f"a command that sleeps {over_s - 0.4:.1f} s took {took_s:.1f} s",
                next_step="Run the test again with less beside it",
            )
        expect_outcome(long, connection, command)
        stdout, exit_code = expect_outcome(outcome, connection, command)

    assert (stdout.strip(), exit_code) == (token, 0), (
        f"contract 5: a timeout of {over_s:g} s is that long: expected {token!r} and status 0, found "
        f"{outcome.payload}"
    )


#: What a command may take that asks for no time, where that can be told; one that takes longer than
#: that; what it asks for, more than it takes on any machine; and what one takes that is typed, which ends
#: before anything but its own time would end it.
UNASKED_S, LONGER_S, ASKED_S, TYPED_S = 0.8, 1.4, 45, 5


@pytest.mark.covers("CONTRACT-5-SAFE")
@pytest.mark.capability("shell-reply")
@pytest.mark.knob("unasked_s")
async def test_a_timeout_may_be_longer_than_what_is_given_unasked(start, token: str) -> None:
    """Who asks for more time than a command has by default is given it, for that command alone."""
    endless = f"3147.{random.randrange(10**9):09}"
    opening = start(Settings(knobs={"unasked_s": UNASKED_S}))
    async with opening as daemon, daemon.connect() as one, daemon.connect() as other:
        writes = f"echo {token} > {token}.txt; "
        for connection, first in ((one, ""), (one, writes), (other, "")):
            command = f"{first}sleep {LONGER_S}; echo {token}"
            asked = shell(command, timeout=ASKED_S)
            outcome = await ask(connection, asked, seconds=ANSWER_S * 2)
            stdout, exit_code = expect_outcome(outcome, connection, command)

            assert (stdout.strip(), exit_code) == (token, 0), (
                f"contract 5: a command that asks for {ASKED_S} s has them, whatever one has that "
                f"asks for none ({UNASKED_S:g} s): expected {token!r} and status 0 of {command!r}, "
                f"found {outcome.payload}"
            )
            command = f"sleep {endless}; echo {token}"
            outcome = await ask(connection, shell(command), seconds=ANSWER_S)
            stdout, exit_code = expect_outcome(outcome, connection, command)

            assert token not in stdout, (
                f"contract 5: one that asks for no time is ended after {UNASKED_S:g} s, whatever "
                f"the one before it had, found {outcome.payload}"
            )
            assert exit_code != 0, (
                f"contract 5: a command that was ended has failed, found {outcome.payload}"
            )
        if "shell-text" in daemon.subject.capabilities:
            typed = daemon.subject.table("texts")["shell"]
            command = f"sleep {TYPED_S}; echo on-{token}"
            await one.send(user_input(typed.replace("{command}", command)))
            answer = await due(one, "the end of a command that is typed", seconds=ANSWER_S)
            said = expect_message(answer, one)
            assert f"on-{token}" not in said, (
                f"contract 5: a command that is typed is ended after {UNASKED_S:g} s, too, found {said!r}"
            )


@pytest.mark.covers("CONTRACT-5-SAFE")
@pytest.mark.capability("shell-reply", "shell-syntax")
async def test_what_was_printed_before_a_timeout_comes_back(daemon: Daemon, token: str) -> None:
    """Of a command that is ended both streams come back as far as it got.

    A machine that does much else may begin it late: what is not there is looked for again with more time.
    """
    command = f"echo out-{token}; echo err-{token} >&2; sleep 3146; echo after"
    answer: Message | None = None
    for seconds in (1, 4, 9):
        async with daemon.connect() as connection:
            form = shell(command, timeout=seconds)
            answer = await ask(connection, form, seconds=ANSWER_S * 2)
            stdout, _ = expect_outcome(answer, connection, command)
        if stdout == f"out-{token}\n" and f"err-{token}\n" in str(answer.get("PAYLOAD", "STDERR")):
            return

    raise AssertionError(
        f"contract 5: what a command has printed before it is ended comes back: expected out-{token} and "
        f"err-{token}, each of its stream, found {answer and answer.payload}"
    )


@pytest.mark.covers("CONTRACT-5-SAFE")
@pytest.mark.capability("shell-reply")
async def test_a_timeout_ends_the_command(
    confined: Daemon, own: frozenset[int], token: str
) -> None:
    """A command that takes longer than asked for is ended, all of it, and reported as such.

    All of it: also what has a process group or a session of its own, or a parent that has ended.
    A command that is refused has started nothing.
    """
    # Longer than any deadline of this test on a busy machine: it does not end by itself.
    wait = f"3140.{random.randrange(10**9):09}"

    async def one(slow: str) -> None:
        command = slow.replace("WAIT", wait).replace("TOKEN", token)
        async with confined.connect() as connection:
            outcome = await ask(connection, shell(command, timeout=1), seconds=ANSWER_S * 2)
            if outcome.get("TYPE") == Keyword("LOG") and slow != SLOW[0]:
                return
            stdout, exit_code = expect_outcome(outcome, connection, command)

        assert exit_code != 0, (
            f"contract 5: a command that was ended has failed, found {outcome.payload}"
        )
        assert token not in stdout, (
            f"contract 5: a command that was ended goes no further, found {stdout!r}"
        )

    async with trio.open_nursery() as nursery:
        for slow in SLOW:
            nursery.start_soon(one, slow)

    async def ended() -> bool:
        return not running(wait)

    with trio.move_on_after(patience(ANSWER_S)):
        await until(ended)
    left = running(wait)

    assert not left, f"contract 5: a timed-out command left no process: expected none, found {left}"
    await expect_quiet(confined, own)


@pytest.mark.covers("CONTRACT-5-SAFE")
@pytest.mark.capability("shell-reply")
@pytest.mark.parametrize("row", ["é", "日", "😀", "aé日😀"])
async def test_output_of_any_script_is_what_was_written(daemon: Daemon, row: str) -> None:
    """Long output comes back as it was written: no character of it is cut in two and lost."""
    # More than any buffer holds, whose size no length of a line divides.
    count = 150_000 // (len(row.encode()) * 3 + 5)
    command = f"seq {count} | sed s/$/{row * 3}/"
    written = "".join(f"{number}{row * 3}\n" for number in range(1, count + 1))
    async with daemon.connect() as connection:
        outcome = await ask(connection, shell(command))
        stdout, _ = expect_outcome(outcome, connection, command)
    at = next((n for n, (a, b) in enumerate(zip(written, stdout, strict=False)) if a != b), None)

    assert at is None, (
        f"contract 5: character {at} of the output: expected {written[at : at + 9]!r}, found "
        f"{stdout[at : at + 9]!r}"
    )
    assert 0 < len(stdout) <= len(written), (
        f"contract 5: expected at most {len(written)} characters of output, found {len(stdout)}"
    )


#: Bytes that are no text, or not all of one, between two that are; all bytes that there are come last.
NO_TEXT = (
    *(b"\xff", b"\x80", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xfe\xff\x00a"),
    *("日".encode()[:1], "日".encode()[:2], "😀".encode()[:3], "é".encode()[1:], b"\xff" * 9_000),
    *(
        b"\x00",
        b"\x00" * 70,
        b"\x1b[2J\x07\x08",
        b"\r\r\n",
        bytes(range(1, 256)),
        bytes(range(256)),
    ),
)


@pytest.mark.covers("CONTRACT-5-SAFE")
@pytest.mark.capability("shell-reply", "shell-text")
async def test_output_that_is_no_text_comes_back(daemon: Daemon, token: str) -> None:
    """Whatever bytes a command prints, its outcome comes back, and what is text among them is as it was.

    By each route to the shell, on both streams, at the end of an output too; the connection goes on.
    """
    asking = daemon.subject.table("texts")["shell"]
    wrong: list[str] = []
    async with daemon.connect() as connection:
        for number, odd in enumerate(NO_TEXT):
            file = daemon.root / f"{token}-{number}"
            file.write_bytes(f"<{token}".encode() + odd + b"|>" + odd)
            for to in ("", " >&2"):
                command = f"cat {file.name}{to}; exit 3"
                shown = f"{odd[:9]!r} ({len(odd)} bytes){to}"
                for form in (shell(command), user_input(asking.replace("{command}", command))):
                    await connection.send(form)
                    try:
                        answer = await due(connection, "its outcome", seconds=ANSWER_S)
                    except RemoteProtocolError as error:
                        raise AssertionError(
                            f"contract 5: the outcome of a command that prints {shown} comes back, "
                            f"found {error}"
                        ) from error
                    if answer.get("PAYLOAD", "SENSOR") == Keyword("SHELL-RESPONSE"):
                        kept, exit_code = expect_outcome(answer, connection, command)
                        if to:
                            kept = str(answer.get("PAYLOAD", "STDERR"))

                        assert exit_code == 3, (
                            f"contract 5: a command that prints {shown} ends as it ends: expected "
                            f"status 3, found {exit_code}"
                        )
                    else:
                        kept = expect_message(answer, connection)
                    if not 0 <= kept.find(f"<{token}") < kept.find("|>"):
                        wrong.append(f"{shown}: {kept[:99]!r}")
            file.unlink()
        expect_health(await ask(connection, HEALTH_CHECK))

    assert not wrong, (
        f"contract 5: what is text in an output comes back as it was printed: expected '<{token}' and "
        f"'|>' around what is none, found {wrong[:3]}"
    )


#: Commands that go on until they are ended; the first is one that any daemon runs.
SLOW = (
    "sleep WAIT; echo TOKEN",
    "timeout WAIT sleep WAIT; echo TOKEN",
    "timeout WAIT timeout WAIT sleep WAIT | cat; echo TOKEN",
    "nohup timeout WAIT sleep WAIT; echo TOKEN",
    "cat <(timeout WAIT sleep WAIT); echo TOKEN",
    "sleep WAIT | timeout WAIT cat; echo TOKEN",
    "bash -c 'timeout WAIT sleep WAIT; true'; echo TOKEN",
    "setsid sleep WAIT; echo TOKEN",
    "setsid -f sleep WAIT; sleep WAIT; echo TOKEN",
    "set -m; sleep WAIT; echo TOKEN",
    "sleep WAIT & sleep WAIT; echo TOKEN",
    "(sleep WAIT &); sleep WAIT; echo TOKEN",
    "coproc sleep WAIT; sleep WAIT; echo TOKEN",
    "trap '' TERM INT HUP; timeout WAIT sleep WAIT; sleep WAIT; echo TOKEN",
)


@pytest.mark.capability("shell-text")
@pytest.mark.parametrize(
    "source", ["TUI", pytest.param("CLI", marks=pytest.mark.capability("cli-source"))]
)
async def test_text_is_judged_too(confined: Daemon, canary: Canary, source: str) -> None:
    """The dispatcher sees a command that is typed as text, whatever gateway it came by."""
    command = filled("rm -rf $CANARY", confined, canary)
    text = confined.subject.table("texts")["shell"].replace("{command}", command)
    async with confined.connect() as connection:
        answer = await ask(connection, user_input(text, source=source))
        expect_no_trace(canary, confined, text)

        assert "blocked" in answer.payload.lower(), (
            f"contract 5: a typed command is refused as blocked, found {answer.payload}"
        )


@pytest.mark.capability("shell-text")
async def test_text_is_run_as_it_is_written(confined: Daemon, token: str) -> None:
    """A command that is typed as text is the same command: blanks, tabs, lines and quotes are kept."""
    rows = {
        f"printf '<%s>' 'a   b' \"c\t d\"   e '{token}\n  f'": f"<a   b><c\t d><e><{token}\n  f>",
        # What is printed comes back from its first blank to its last; of the last newline nothing is said.
        f"printf '\\n\\n \\t {token} \\t \\n'": f"\n\n \t {token} \t ",
        f"printf '  err {token} \\n' >&2": f"  err {token} ",
        f"echo; echo ' {token}'; echo; echo": f"\n {token}",
    }
    asking = confined.subject.table("texts")["shell"]
    async with confined.connect() as connection:
        for command, expected in rows.items():
            answer = await ask(connection, user_input(asking.replace("{command}", command)))
            found = expect_message(answer, connection)

            assert expected in found, (
                f"contract 5: typed as text, {command!r} prints {expected!r}, found {found!r}"
            )


@pytest.mark.covers("CONTRACT-5-SAFE")
@pytest.mark.capability("shell-text", "shell-syntax")
async def test_text_is_answered_by_both_streams(daemon: Daemon, token: str) -> None:
    """A command that is typed as text is answered by all that it prints, to whichever stream, however it ends."""
    asking = daemon.subject.table("texts")["shell"]
    out, err = f"out-{token}", f"err-{token}"
    async with daemon.connect() as connection:
        for printing in (f"echo {out}; echo {err} >&2", f"echo {err} >&2; echo {out}"):
            for status in (0, 3):
                command = f"{printing}; exit {status}"
                answer = await ask(connection, user_input(asking.replace("{command}", command)))
                found = expect_message(answer, connection)

                lost = [each for each in (out, err) if each not in found]

                assert not lost, (
                    f"contract 5: typed as text, {command!r} is answered by what it prints to both "
                    f"streams: expected {out} and {err}, found {found!r}"
                )


async def test_skills_are_judged_too(confined: Daemon, canary: Canary) -> None:
    """The dispatcher sees a command that a skill runs; it is refused, and left no trace."""
    texts = confined.subject.table("skills").get("dangerous", ())
    if not texts:
        not_run("subject", f"{confined.subject.path.name} has no skill whose command does harm")
    async with confined.connect() as connection:
        for text in texts:
            answer = await ask(connection, user_input(text))
            expect_no_trace(canary, confined, text)

            assert "blocked" in answer.payload.lower(), (
                f"contract 5: a skill's command for {text!r} is refused as blocked, found "
                f"{answer.payload}"
            )


async def test_many_at_once_are_judged_each(confined: Daemon, canary: Canary) -> None:
    """Dangerous commands among harmless ones, on eight connections at once, are refused each."""
    command = filled("find $CANARY -delete", confined, canary)
    refused: list[str] = []

    async def one(number: int) -> None:
        async with confined.connect() as connection:
            await connection.send(shell(f"echo {number}"))
            await connection.send(shell(command))
            answer = await due(connection, "an answer", seconds=ANSWER_S)
            if answer.get("TYPE") != Keyword("LOG"):
                answer = await due(connection, "an answer", seconds=ANSWER_S)
            refused.append(expect_refusal(answer, connection, *BLOCKED))

    async with trio.open_nursery() as nursery:
        for number in range(8):
            nursery.start_soon(one, number)
    expect_no_trace(canary, confined, command)

    assert 8 == len(refused), (
        f"contract 5: each of eight dangerous commands is refused: expected {8!r}, "
        f"found {len(refused)!r}"
    )


async def test_the_shell_is_not_a_listener(confined: Daemon) -> None:
    """After all of that the daemon still listens on its one port, and on no other."""
    assert [confined.port] == [row.port for row in listeners() if row.pid == confined.pid], (
        f"contract 5: the daemon listens where it did, and nowhere else: expected {[confined.port]!r}, "
        f"found {[row.port for row in listeners() if row.pid == confined.pid]!r}"
    )
    assert Path(confined.root).is_dir(), f"contract 5: the working root is gone: {confined.root}"
