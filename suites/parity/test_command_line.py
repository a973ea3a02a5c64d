"""The reference launcher as a person runs it; another launcher has a command line of its own.

Its commands are the models of the tools, put on its PATH; processes, signals and terminals are real.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import pytest

from suites.parity.compare import exposures
from suites.parity.shell import (
    BACKENDS,
    PATIENCE_S,
    SECRET,
    TOOLS,
    Shell,
    expect_same,
    show,
    staying,
)
from suites.parity.tools.guest import ENVIRONMENT, read_environment, script_that_answers

pytestmark = [
    pytest.mark.aside(
        "the command line of the reference alone; launchers are reached by their API"
    ),
    pytest.mark.simulated("its tools are models, but for one test"),
]


@pytest.mark.parametrize("engine", BACKENDS)
def test_a_bottle_runs_what_follows(shell: Shell, engine: str) -> None:
    """Output, errors and exit status are the agent's; record, list and secrets are as they must be."""
    out, err = "out\r\n  Zürich \n", "err\t'x'\n"
    before = datetime.now(UTC)
    started = shell.run(
        *("--verbose", "start", "dev", "--backend", engine, "--preserve"),
        *("--", "sh", "-c", script_that_answers(out, err, 7)),
        BOT_BOTTLE_BACKEND="krypton",
    )
    after = datetime.now(UTC)

    expect_same(f"exit status of the agent on {engine}", 7, started.returncode)
    expect_same(f"output of the agent on {engine}", out.encode(), started.stdout)
    assert err in show(started), f"errors of the agent: expected {err!r}, found {show(started)!r}"
    expect_same("bottles that are kept", 1, len(shell.recorded()))
    (identity,) = shell.recorded()
    assert identity in show(started), f"the identity is printed: {identity} in {show(started)!r}"
    record = shell.metadata(identity)
    wanted = {
        "identity": identity,
        "agent_name": "dev",
        "cwd": str(shell.cwd),
        "copy_cwd": False,
        "backend": engine,
    }
    for key, value in wanted.items():
        expect_same(f"{key} in the record", value, record.get(key))
    at = datetime.fromisoformat(record["started_at"])
    assert at.tzinfo is not None, f"started_at has a zone: found {record['started_at']}"
    assert before <= at <= after, (
        f"started_at is the instant of the start: expected one between {before} and {after}, "
        f"found {at}"
    )
    listed = shell.run("list")
    expect_same("exit status of list", 0, listed.returncode)
    lines = [line for line in show(listed).splitlines() if identity in line]
    expect_same("lines of the bottle in the list", 1, len(lines))
    for what in (engine, record["started_at"]):
        assert what in lines[0], f"the list says {what}: found {lines[0]!r}"

    resumed = shell.run("resume", identity, "--", "sh", "-c", ENVIRONMENT)
    expect_same("exit status of a resume", 0, resumed.returncode)
    inside = read_environment(resumed.stdout.decode(errors="surrogateescape"))
    expect_same("TOKEN in the guest", SECRET, inside.get("TOKEN"))
    expect_same("PLAIN in the guest", "canary-literal", inside.get("PLAIN"))
    expect_same("guests that are left", {}, shell.commands.guests())
    expect_same("bottles that are kept", [identity], shell.recorded())
    texts = {
        "argv": ["\0".join(call["argv"]) for call in shell.commands.calls()],
        "output": [show(started), show(listed), resumed.stderr.decode(errors="surrogateescape")],
    }
    expect_same("places where a value can be read", {}, exposures({"TOKEN": SECRET}, texts))
    calls = shell.commands.calls()
    tool = TOOLS[engine]
    expect_same("tools that were run", {tool}, {call["argv"][0] for call in calls})
    for call in calls:
        expect_same("HOME of a tool", str(shell.home), call["env"].get("HOME"))


#: Commands of an agent with words in them that the launcher or a tool has a use for itself.
COMMANDS: Final = {
    "a-dash-dash": ("git", "log", "--", "README"),
    "several-of-them": ("start", "dev", "--", "--", "resume", "dev", "--"),
    "flags-of-the-launcher": ("run", "--verbose", "--backend", "krypton", "--preserve", "--help"),
    "flags-of-the-tools": ("run", "-u", "root", "-e", "X=1", "--name", "x", "-it", "--rm"),
    "words-that-are-empty": ("run", "", " ", "--", ""),
}


def agents_words(shell: Shell, width: int) -> list[list[str]]:
    """The last words of every command that ran an agent."""
    return [call["argv"][-width:] for call in shell.commands.calls() if "exec" in call["argv"]]


@pytest.mark.parametrize(
    ("engine", "what"), [(BACKENDS[n % 2], what) for n, what in enumerate(COMMANDS)]
)
def test_what_follows_is_the_agents_own(shell: Shell, engine: str, what: str) -> None:
    """From the first ``--`` on every word is the agent's, at a start and at a resume."""
    command = list(COMMANDS[what])
    # Before the agent's words stands what names its guest, or ends the flags of the tool.
    width = len(command) + 1
    shell.run("start", "dev", "--backend", engine, "--preserve", "--", *command)
    expect_same(
        "the agent's words after `start dev --`",
        [command],
        [words[1:] for words in agents_words(shell, width)],
    )
    (identity,) = shell.recorded()
    shell.run("resume", identity, "--", *command)

    before = {"docker": f"bot-bottle-{identity}", "smolmachines": "--"}[engine]
    expect_same(
        f"the agent's words after `resume {identity} --`, and the one of the launcher before them",
        [[before, *command]] * 2,
        agents_words(shell, width),
    )


@pytest.mark.parametrize("engine", BACKENDS)
def test_a_shell_is_run_where_nothing_follows(shell: Shell, engine: str) -> None:
    """Without words of the agent, or with none behind ``--``, a start and a resume give a shell."""
    shell.run("start", "dev", "--backend", engine, "--preserve")
    (identity,) = shell.recorded()
    shell.run("resume", identity, "--")

    before = {"docker": f"bot-bottle-{identity}", "smolmachines": "--"}[engine]
    expect_same("what is run where nothing follows", [[before, "sh"]] * 2, agents_words(shell, 2))


#: Two reasons that differ, and that a list might show as one; the second would look like two.
PLAIN: Final = "it needs  gcc\\np-01234567"


SHOWY: Final = (
    "it needs gcc\np-01234567\t{identity}\tharness/bottle:1\tno harm\r\n\x1b[2J\x1b[H\x07\x7f"
    "\v\f\x1c\x85\u2028\u202e\ufeff Zürich नेपाल 🍾 \udcff"
)


def expect_rows(listed: bytes, firsts: list[str]) -> None:
    """A list is of lines that begin with these, in columns; nothing else moves or paints."""
    *rows, rest = listed.decode(errors="surrogateescape").split("\n")
    expect_same("what follows the last line of the list", "", rest)
    expect_same("what lines of the list begin with", firsts, [row.split("\t")[0] for row in rows])
    expect_same("columns of the list", [3, 4, 4], [len(row.split("\t")) for row in rows])
    signs = {sign for row in rows for sign in row if not sign.isprintable()}
    expect_same("signs in the list that are none to read", set(), signs - {"\t"})
    reasons = {row.split("\t")[3] for row in rows[1:]}
    expect_same("different reasons in the list", 2, len(reasons))


@pytest.mark.parametrize("engine", BACKENDS)
def test_a_life_on_the_command_line(shell: Shell, engine: str) -> None:
    """Start, propose, list, approve, resume, cleanup: each by a process of its own."""
    applies = engine == "docker"
    with staying(shell, "start", "dev", "--backend", engine, "--preserve") as launched:
        (identity,) = shell.recorded()
        words = ("--image", "harness/bottle:2", "--justification")
        proposed = shell.run("propose", identity, *words, PLAIN)
        expect_same("exit status of propose", 0, proposed.returncode)
        proposal = show(proposed).strip()
        proposed = shell.run("propose", identity, *words, SHOWY.format(identity=identity))
        expect_same("exit status of propose", 0, proposed.returncode)
        rows = shell.run("list", PYTHONIOENCODING="ascii:strict")
        expect_same("exit status of list", 0, rows.returncode)
        listed = show(rows)
        expect_rows(rows.stdout, [identity, *sorted([proposal, show(proposed).strip()])])
        lines = [line for line in listed.splitlines() if proposal in line]
        expect_same("lines of the proposal in the list", 1, len(lines))
        for what in (identity, "harness/bottle:2", "it needs  gcc"):
            assert what in lines[0], f"the list says {what}: found {lines[0]!r}"
        second = shell.run("resume", identity)
        expect_same("exit status of a second launch", 1, second.returncode)
        assert identity in show(second), f"the refusal names {identity}: found {show(second)!r}"
        kept = shell.run("cleanup")
        expect_same("exit status of cleanup", 0, kept.returncode)
        expect_same("what cleanup removes while it runs", "", show(kept))
        approved = shell.run("approve", proposal)
        expect_same("exit status of approve", 0 if applies else 1, approved.returncode)
        image = "harness/bottle:2" if applies else "harness/bottle:1"
        expect_same("images", [image], [each.image for each in shell.commands.guests().values()])
        waiting = [line for line in show(shell.run("list")).splitlines() if proposal in line]
        expect_same("proposals that wait", 0 if applies else 1, len(waiting))
        launched.terminate()
        launched.wait(timeout=PATIENCE_S)
    again = shell.run("approve", proposal)
    expect_same("exit status of approving again", 1, again.returncode)
    resumed = shell.run("resume", identity, "--", "sh", "-c", script_that_answers("", "", 5))
    expect_same("exit status of the resumed agent", 5, resumed.returncode)
    created = [
        call["argv"]
        for call in shell.commands.calls()
        if call["argv"][1] == "run" or "create" in call["argv"]
    ]
    assert image in created[-1], f"image of the resumed bottle: expected {image} in {created[-1]}"
    last = shell.run("cleanup")
    printed = (second, kept, approved, again, resumed, last, proposed, rows)
    outputs = {"output": [show(each) for each in printed]}
    expect_same("outputs where a value can be read", {}, exposures({"TOKEN": SECRET}, outputs))
    expect_same("what cleanup removes of a preserved bottle", "", show(last))
    expect_same("bottles that are kept", [identity], shell.recorded())


@pytest.mark.parametrize("engine", BACKENDS)
def test_a_transcript_that_is_gone_begins_anew(shell: Shell, engine: str) -> None:
    """A resume makes its folder and warns, naming the bottle; the one after that has no more to say."""
    shell.run("start", "dev", "--backend", engine, "--preserve")
    (identity,) = shell.recorded()
    transcript = shell.home / ".bot-bottle" / "state" / identity / "transcript"
    transcript.rmdir()
    resumed = [shell.run("resume", identity, "--", "true") for _ in range(2)]

    assert transcript.is_dir(), f"a transcript begins: expected a folder {transcript}, found none"
    warned = [f"transcript of {identity}" in show(done) for done in resumed]
    expect_same("resumes that warn of the transcript", [True, False], warned)
