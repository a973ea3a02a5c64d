"""The reference launcher as a person runs it; another launcher has a command line of its own.

Its commands are the models of the tools, put on its PATH; processes, signals and terminals are real.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from harness_core.front.skips import not_run
from suites.parity.compare import exposures
from suites.parity.tools.command import DIES, STAYS, Commands
from suites.parity.tools.guest import ENVIRONMENT, read_environment, script_that_answers

pytestmark = [
    pytest.mark.aside(
        "the command line of the reference alone; launchers are reached by their API"
    ),
    pytest.mark.simulated("its tools are models, but for one test"),
]

#: What a process of a test may take; only a broken launcher needs all of it.
_PATIENCE_S: Final = 120.0

#: Between two looks at what a launcher has run.
_GLANCE_S: Final = 0.01

#: What is killed with the launcher is gone at once.
_ENDS_S: Final = 20.0

BACKENDS: Final = ("docker", "smolmachines")

#: The tool of a backend.
TOOLS: Final = {"docker": "docker", "smolmachines": "smolvm"}

SECRET: Final = "canary-given 'of' =the= host\nand a second line, Zürich \udcff"

MANIFEST: Final = """---
image: harness/bottle:1
env:
  TOKEN: "${HOST_TOKEN}"
  PLAIN: "canary-literal"
---
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shell:
    """A home, a folder to be in, and the tools on a PATH."""

    home: Path
    cwd: Path
    commands: Commands

    def environ(self, **variables: str) -> dict[str, str]:
        """The environment of a launcher: an hour that is not that of UTC, and a host's variable."""
        return {
            "HOME": str(self.home),
            "PATH": f"{self.commands.folder}:/usr/bin:/bin",
            "TZ": "Asia/Kathmandu",
            "HOST_TOKEN": SECRET,
            **variables,
        }

    def run(
        self, *words: str, typed: bytes = b"", **variables: str
    ) -> subprocess.CompletedProcess[bytes]:
        """Run the command to its end, with this on its input."""
        return subprocess.run(
            [bot_bottle(), *words],
            env=self.environ(**variables),
            cwd=self.cwd,
            input=typed,
            capture_output=True,
            timeout=_PATIENCE_S,
            check=False,
        )

    def recorded(self) -> list[str]:
        """The identities of which something is recorded."""
        state = self.home / ".bot-bottle" / "state"
        return sorted(path.name for path in state.iterdir()) if state.is_dir() else []

    def metadata(self, identity: str) -> dict[str, Any]:
        """What is recorded of a bottle."""
        file = self.home / ".bot-bottle" / "state" / identity / "metadata.json"
        content: dict[str, Any] = json.loads(file.read_text())
        return content


def bot_bottle() -> str:
    """The command."""
    return str(Path(sys.executable).with_name("bot-bottle"))


@pytest.fixture
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Shell:
    """A home with one bottle that needs a variable of the host."""
    if request.config.getoption("--subject"):
        not_run(
            "options", "the launcher under test is not the reference, whose command line this is"
        )
    home = tmp_path / "home d'été"
    bottles = home / ".bot-bottle" / "bottles"
    bottles.mkdir(parents=True)
    (bottles / "dev.md").write_text(MANIFEST)
    cwd = tmp_path / "two words"
    cwd.mkdir()
    images = ("harness/bottle:1", "harness/bottle:2")
    return Shell(home=home, cwd=cwd, commands=Commands.made(tmp_path / "bin", images=images))


def expect(what: str, expected: object, found: object) -> None:
    """Compare, in a sentence."""
    assert expected == found, f"{what}: expected {expected!r}, found {found!r}"


def show(done: subprocess.CompletedProcess[bytes]) -> str:
    """What a command printed."""
    return (done.stdout + done.stderr).decode(errors="surrogateescape")


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (("start", "nothing"), "there is no bottle 'nothing'"),
        (("start", "../dev"), "../dev"),
        (("start", "dev"), "HOST_TOKEN"),
        (("start", "dev", "--backend", "krypton"), "krypton"),
        (("resume", "nothing"), "nothing"),
        (("resume", "../dev"), "../dev"),
        (("propose", "nothing", "--image", "x", "--justification", "y"), "nothing"),
        (("approve", "../x"), "../x"),
        (("approve", "p-01234567"), "p-01234567"),
    ],
)
def test_a_refusal_is_one_line(shell: Shell, words: tuple[str, ...], reported: str) -> None:
    """What is refused is one line on stderr and status 1, never a traceback, and nothing happens."""
    missing = {"HOST_TOKEN": ""} if words != ("start", "dev") else {}
    environ = {**shell.environ(), **missing}
    environ.pop("HOST_TOKEN", None)
    done = subprocess.run(
        [bot_bottle(), *words],
        env=environ,
        cwd=shell.cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
        check=False,
    )

    expect("exit status of a refusal", 1, done.returncode)
    assert reported in done.stderr, f"the refusal names {reported}: found {done.stderr!r}"
    expect("lines of the refusal", 1, len(done.stderr.strip().splitlines()))
    expect("output of a refusal", "", done.stdout)
    expect("commands that were run", [], shell.commands.calls())
    expect("recorded bottles", [], shell.recorded())


def said(done: subprocess.CompletedProcess[bytes]) -> str:
    """The refusal, without prompts and warnings before it."""
    return done.stderr.decode(errors="surrogateescape").rpartition("bot-bottle: ")[2]


#: What is wrong → manifests by name, and what the refusal says of it beside the file, as words.
FAULTS: Final = {
    "a-number-for-a-text": ({"dev": "image: 7"}, ("dev.md", "image", "number", "string")),
    "a-text-for-a-mapping": ({"dev": "git: please"}, ("dev.md", "git", "string", "mapping")),
    "a-list-for-a-mapping": ({"dev": "git: [please]"}, ("dev.md", "git", "list", "mapping")),
    "a-mapping-for-a-text": ({"dev": "image: {a: b}"}, ("dev.md", "image", "mapping", "string")),
    "yes-for-a-text": ({"dev": "image: yes"}, ("dev.md", "image", "boolean", "string")),
    "no-yaml-in-line-4": ({"dev": "image: x\nenv:\n  A: b: c"}, ("dev.md", "line 4")),
    "a-circle": (
        {"dev": "extends: base", "base": "extends: third", "third": "extends: dev"},
        ("third.md", "extends", "dev", "base", "third"),
    ),
    "no-variable": ({"dev": 'env: {NAME: "${NOT_THERE}"}'}, ("dev.md", "NAME", "NOT_THERE")),
    "no-answer": ({"dev": 'env: {NAME: "?"}'}, ("dev.md", "NAME")),
}


@pytest.mark.parametrize("what", FAULTS)
def test_a_refusal_says_where_and_what(shell: Shell, what: str) -> None:
    """File, key or variable, what was found and what was expected: each is a word of its own."""
    manifests, words = FAULTS[what]
    for name, front_matter in manifests.items():
        path = shell.home / ".bot-bottle" / "bottles" / f"{name}.md"
        path.write_text(f"---\n{front_matter}\n---\n")
    done = shell.run("start", "dev")

    expect("exit status of a refusal", 1, done.returncode)
    for word in words:
        assert re.search(rf"(?<![\w.]){re.escape(word)}(?!\w)", said(done)), (
            f"the refusal says {word!r} as a word: found {said(done)!r}"
        )


def test_a_manifest_that_cannot_be_read_says_why(shell: Shell) -> None:
    """The refusal has the reason of the system: a disk that fails is mended otherwise than a mode."""
    manifest = shell.home / ".bot-bottle" / "bottles" / "dev.md"
    manifest.unlink()
    # From its beginning on it has no bytes, for nobody.
    manifest.symlink_to("/proc/self/mem")
    done = shell.run("start", "dev")

    expect("exit status of a refusal", 1, done.returncode)
    for word in ("dev.md", os.strerror(errno.EIO)):
        assert word in said(done), f"the refusal says {word!r}: found {said(done)!r}"


#: Ways to write the manifests of one bottle, which has PLAIN.
WRITTEN: Final = {
    "ends-of-lines-of-windows": {"dev": MANIFEST.replace("\n", "\r\n")},
    "blanks-behind-the-end": {"dev": MANIFEST.removesuffix("---\n") + "---  \n"},
    "a-parent-that-says-nothing": {
        "dev": MANIFEST.replace("image:", "extends: base\nimage:"),
        "base": "---\n---\n",
    },
}


@pytest.mark.parametrize(
    ("engine", "how"), [(BACKENDS[n % 2], how) for n, how in enumerate(WRITTEN)]
)
def test_a_manifest_is_read_however_it_is_written(shell: Shell, engine: str, how: str) -> None:
    """Ends of lines and blanks are no part of what it says; nothing between the lines is no fault."""
    for name, text in WRITTEN[how].items():
        path = shell.home / ".bot-bottle" / "bottles" / f"{name}.md"
        path.write_text(text, newline="")
    done = shell.run("start", "dev", "--backend", engine, "--", "sh", "-c", ENVIRONMENT)

    expect(f"exit status of the agent; it said {said(done)!r}", 0, done.returncode)
    inside = read_environment(done.stdout.decode(errors="surrogateescape"))
    expect("PLAIN in the guest", "canary-literal", inside.get("PLAIN"))


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ((), "COMMAND"),
        (("nothing",), "nothing"),
        (("start",), "name"),
        (("resume",), "identity"),
        (("approve",), "proposal"),
        (("propose", "dev", "--image", "x"), "--justification"),
        (("propose", "dev", "--justification", "x"), "--image"),
        (("propose", "--image", "x", "--justification", "x"), "identity"),
        (("start", "dev", "--bakend", "docker"), "--bakend"),
    ],
)
def test_words_that_are_none_of_its_own_are_named(
    shell: Shell, words: tuple[str, ...], named: str
) -> None:
    """Status 2 and what is missing or not known; nothing happens."""
    done = shell.run(*words)

    expect("exit status of a mistake", 2, done.returncode)
    assert named in show(done), f"the mistake is named: expected {named}, found {show(done)!r}"
    expect("commands that were run", [], shell.commands.calls())


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

    expect(f"exit status of the agent on {engine}", 7, started.returncode)
    expect(f"output of the agent on {engine}", out.encode(), started.stdout)
    assert err in show(started), f"errors of the agent: expected {err!r}, found {show(started)!r}"
    expect("bottles that are kept", 1, len(shell.recorded()))
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
        expect(f"{key} in the record", value, record.get(key))
    at = datetime.fromisoformat(record["started_at"])
    assert at.tzinfo is not None, f"started_at has a zone: found {record['started_at']}"
    assert before <= at <= after, (
        f"started_at is the instant of the start: expected one between {before} and {after}, "
        f"found {at}"
    )
    listed = shell.run("list")
    expect("exit status of list", 0, listed.returncode)
    lines = [line for line in show(listed).splitlines() if identity in line]
    expect("lines of the bottle in the list", 1, len(lines))
    for what in (engine, record["started_at"]):
        assert what in lines[0], f"the list says {what}: found {lines[0]!r}"

    resumed = shell.run("resume", identity, "--", "sh", "-c", ENVIRONMENT)
    expect("exit status of a resume", 0, resumed.returncode)
    inside = read_environment(resumed.stdout.decode(errors="surrogateescape"))
    expect("TOKEN in the guest", SECRET, inside.get("TOKEN"))
    expect("PLAIN in the guest", "canary-literal", inside.get("PLAIN"))
    expect("guests that are left", {}, shell.commands.guests())
    expect("bottles that are kept", [identity], shell.recorded())
    texts = {
        "argv": ["\0".join(call["argv"]) for call in shell.commands.calls()],
        "output": [show(started), show(listed), resumed.stderr.decode(errors="surrogateescape")],
    }
    expect("places where a value can be read", {}, exposures({"TOKEN": SECRET}, texts))
    calls = shell.commands.calls()
    tool = TOOLS[engine]
    expect("tools that were run", {tool}, {call["argv"][0] for call in calls})
    for call in calls:
        expect("HOME of a tool", str(shell.home), call["env"].get("HOME"))


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

    expect(f"exit status on {engine}", code, done.returncode)
    for call in shell.commands.calls():
        wanted = "typed ahead,\r\nZ\udcfcrich\n" if script in call["argv"] else ""
        expect(f"input of `{call['argv'][0]} {call['argv'][1]}`", wanted, call["stdin"])
    expect("guests that are left", {}, shell.commands.guests())
    expect("recorded bottles", [], shell.recorded())


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
    expect(
        "the agent's words after `start dev --`",
        [command],
        [words[1:] for words in agents_words(shell, width)],
    )
    (identity,) = shell.recorded()
    shell.run("resume", identity, "--", *command)

    before = {"docker": f"bot-bottle-{identity}", "smolmachines": "--"}[engine]
    expect(
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
    expect("what is run where nothing follows", [[before, "sh"]] * 2, agents_words(shell, 2))


@pytest.mark.parametrize("engine", BACKENDS)
def test_a_tool_that_is_killed_is_no_success(shell: Shell, engine: str) -> None:
    """A signal that ends the tool comes through, and the guest is removed all the same."""
    done = shell.run("start", "dev", "--backend", engine, "--", "sh", "-c", DIES)

    statuses = (128 + signal.SIGTERM, -signal.SIGTERM)
    assert done.returncode in statuses, (
        f"exit status after SIGTERM: expected one of {statuses}, found {done.returncode}"
    )
    expect("output until then", b"half\n", done.stdout)
    expect("guests that are left", {}, shell.commands.guests())
    expect("recorded bottles", [], shell.recorded())


#: Two reasons that differ, and that a list might show as one; the second would look like two.
PLAIN: Final = "it needs  gcc\\np-01234567"
SHOWY: Final = (
    "it needs gcc\np-01234567\t{identity}\tharness/bottle:1\tno harm\r\n\x1b[2J\x1b[H\x07\x7f"
    "\v\f\x1c\x85\u2028\u202e\ufeff Zürich नेपाल 🍾 \udcff"
)


def expect_rows(listed: bytes, firsts: list[str]) -> None:
    """A list is of lines that begin with these, in columns; nothing else moves or paints."""
    *rows, rest = listed.decode(errors="surrogateescape").split("\n")
    expect("what follows the last line of the list", "", rest)
    expect("what lines of the list begin with", firsts, [row.split("\t")[0] for row in rows])
    expect("columns of the list", [3, 4, 4], [len(row.split("\t")) for row in rows])
    signs = {sign for row in rows for sign in row if not sign.isprintable()}
    expect("signs in the list that are none to read", set(), signs - {"\t"})
    reasons = {row.split("\t")[3] for row in rows[1:]}
    expect("different reasons in the list", 2, len(reasons))


@pytest.mark.parametrize("engine", BACKENDS)
def test_a_life_on_the_command_line(shell: Shell, engine: str) -> None:
    """Start, propose, list, approve, resume, cleanup: each by a process of its own."""
    applies = engine == "docker"
    with staying(shell, "start", "dev", "--backend", engine, "--preserve") as launched:
        (identity,) = shell.recorded()
        words = ("--image", "harness/bottle:2", "--justification")
        proposed = shell.run("propose", identity, *words, PLAIN)
        expect("exit status of propose", 0, proposed.returncode)
        proposal = show(proposed).strip()
        proposed = shell.run("propose", identity, *words, SHOWY.format(identity=identity))
        expect("exit status of propose", 0, proposed.returncode)
        rows = shell.run("list", PYTHONIOENCODING="ascii:strict")
        expect("exit status of list", 0, rows.returncode)
        listed = show(rows)
        expect_rows(rows.stdout, [identity, *sorted([proposal, show(proposed).strip()])])
        lines = [line for line in listed.splitlines() if proposal in line]
        expect("lines of the proposal in the list", 1, len(lines))
        for what in (identity, "harness/bottle:2", "it needs  gcc"):
            assert what in lines[0], f"the list says {what}: found {lines[0]!r}"
        second = shell.run("resume", identity)
        expect("exit status of a second launch", 1, second.returncode)
        assert identity in show(second), f"the refusal names {identity}: found {show(second)!r}"
        kept = shell.run("cleanup")
        expect("exit status of cleanup", 0, kept.returncode)
        expect("what cleanup removes while it runs", "", show(kept))
        approved = shell.run("approve", proposal)
        expect("exit status of approve", 0 if applies else 1, approved.returncode)
        image = "harness/bottle:2" if applies else "harness/bottle:1"
        expect("images", [image], [each.image for each in shell.commands.guests().values()])
        waiting = [line for line in show(shell.run("list")).splitlines() if proposal in line]
        expect("proposals that wait", 0 if applies else 1, len(waiting))
        launched.terminate()
        launched.wait(timeout=_PATIENCE_S)
    again = shell.run("approve", proposal)
    expect("exit status of approving again", 1, again.returncode)
    resumed = shell.run("resume", identity, "--", "sh", "-c", script_that_answers("", "", 5))
    expect("exit status of the resumed agent", 5, resumed.returncode)
    created = [
        call["argv"]
        for call in shell.commands.calls()
        if call["argv"][1] == "run" or "create" in call["argv"]
    ]
    assert image in created[-1], f"image of the resumed bottle: expected {image} in {created[-1]}"
    last = shell.run("cleanup")
    expect("what cleanup removes of a preserved bottle", "", show(last))
    expect("bottles that are kept", [identity], shell.recorded())


class staying:  # noqa: N801 - read as a verb
    """A launcher whose agent does not end by itself."""

    def __init__(self, shell: Shell, *words: str) -> None:
        self._shell = shell
        self._words = words

    def __enter__(self) -> subprocess.Popen[bytes]:
        # Where these tests run in the background SIGINT is ignored, and what they start would inherit that.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            self.process = subprocess.Popen(
                [bot_bottle(), *self._words, "--", "sh", "-c", STAYS],
                env=self._shell.environ(),
                cwd=self._shell.cwd,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        finally:
            signal.signal(signal.SIGINT, before)
        assert self.process.stdout is not None
        first = self.process.stdout.readline()
        assert first == b"here\n", (
            f"the agent starts: expected its first line 'here', found {first!r} and "
            f"{self.process.communicate()[1]!r}"
        )
        return self.process

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        # Of a launcher that leaves its commands behind.
        for pid in family(self.process):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()


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
        ended = launched.wait(timeout=_PATIENCE_S)
        assert launched.stdout is not None
        # Whoever has the output open lives; the end of the file is the end of all of them.
        there = select.select([launched.stdout], [], [], _ENDS_S)[0]
        rest = launched.stdout.read() if there else b"(they are there still)"

    expect("places where a value can be read", {}, seen)
    assert ended in (128 + number, -number), (
        f"exit status after {number.name}: expected {128 + number}, found {ended}"
    )
    expect(f"output after {number.name}, at whose end all its processes are gone", b"", rest)
    cleaned = shell.run("cleanup")
    expect("exit status of cleanup", 0, cleaned.returncode)
    expect("guests that are left", {}, shell.commands.guests())
    folders = shell.home / ".bot-bottle" / "guests"
    expect("folders of guests", [], list(folders.iterdir()) if folders.is_dir() else [])
    expect("recorded bottles", [], shell.recorded())
    left = {
        "files": [
            path.read_text(errors="surrogateescape")
            for path in (shell.home / ".bot-bottle").rglob("*")
            if path.is_file()
        ]
    }
    expect("files where a value can be read", {}, exposures({"TOKEN": SECRET}, left))


def ended(pid: int, *, after_s: float = _ENDS_S) -> bool:
    """Whether a process that is no child of ours ends in this time; it is killed if not."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        if select.select([descriptor], [], [], after_s)[0]:
            return True
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    finally:
        os.close(descriptor)
    return False


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
        until = time.monotonic() + _ENDS_S
        descriptor = os.pidfd_open(launched.pid)
        making: list[int] = []
        while not making and time.monotonic() < until:
            making = [call["pid"] for call in shell.commands.calls() if STAYS in call["argv"]]
            if select.select([descriptor], [], [], _GLANCE_S)[0]:
                break
        os.close(descriptor)
    finally:
        launched.kill()
        launched.wait()
    expect(f"commands of {engine} that make a guest", 1, len(making))
    assert ended(making[0]), (
        f"a launcher is killed while {TOOLS[engine]} makes a guest: expected that {TOOLS[engine]} "
        "ends with it, found it there still"
    )
    expect("exit status of cleanup", 0, shell.run("cleanup").returncode)
    expect("recorded bottles", [], shell.recorded())


@pytest.mark.parametrize("engine", BACKENDS)
def test_a_closed_terminal_is_an_end_like_any_other(shell: Shell, engine: str) -> None:
    """What is left of a launch, its guest and its record, is the same whichever signal ends it in peace."""
    left = {}
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        with staying(shell, "start", "dev", "--backend", engine) as launched:
            launched.send_signal(number)
            launched.wait(timeout=_PATIENCE_S)
            left[number.name] = (len(shell.commands.guests()), len(shell.recorded()))
        shell.run("cleanup")

    expect("guests and records that are left", dict.fromkeys(left, left["SIGTERM"]), left)


def family(launched: subprocess.Popen[bytes]) -> list[int]:
    """The processes that have the launcher's output for theirs: itself, and all that it runs there."""
    assert launched.stdout is not None
    pipe = f"pipe:[{os.fstat(launched.stdout.fileno()).st_ino}]"
    found = []
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if folder.name.isdigit() and str((folder / "fd" / "1").readlink()) == pipe:
                found.append(int(folder.name))
    return found


@pytest.mark.parametrize("kept", [(), ("--preserve",)], ids=["forgotten", "preserved"])
def test_cleanup_names_what_it_removes(shell: Shell, kept: tuple[str, ...]) -> None:
    """Once, a guest whose record stays too; a second cleanup has nothing to remove, and says nothing."""
    with staying(shell, "start", "dev", "--backend", "docker", *kept) as launched:
        launched.kill()
        launched.wait(timeout=_PATIENCE_S)
    (identity,) = shell.recorded()
    first, second = shell.run("cleanup"), shell.run("cleanup")

    expect("exit statuses of cleanup", [0, 0], [first.returncode, second.returncode])
    assert identity in show(first), f"cleanup names {identity}: found {show(first)!r}"
    expect("what a second cleanup removes", "", show(second))
    expect("guests that are left", {}, shell.commands.guests())
    expect("bottles that are kept", [identity] if kept else [], shell.recorded())


@pytest.mark.parametrize("engine", BACKENDS)
def test_a_tool_that_cannot_be_run_is_named(shell: Shell, engine: str) -> None:
    """One that may not be run, or not with a value that is longer than Linux takes: no traceback, no value."""
    tool = TOOLS[engine]
    manifest = shell.home / ".bot-bottle" / "bottles" / "dev.md"
    text = MANIFEST.replace("canary-literal", "canary-literal" * 20_000)
    (manifest.with_name("long.md")).write_text(text)
    long = shell.run("start", "long", "--backend", engine)
    (shell.commands.folder / tool).chmod(0o644)
    closed = shell.run("start", "dev", "--backend", engine, PATH=str(shell.commands.folder))

    for what, done in (("a long value", long), (f"a {tool} that may not be run", closed)):
        said = done.stderr.decode(errors="surrogateescape")
        expect(f"exit status with {what}", 1, done.returncode)
        last = said.strip().splitlines()[-1:]
        assert tool in "".join(last), f"the refusal with {what} names {tool}: found {last}"
        for word in ("Traceback", "canary"):
            assert word not in said, f"{what}: expected a refusal without {word}, found {last}"
    (shell.commands.folder / tool).chmod(0o755)
    expect("exit status of cleanup", 0, shell.run("cleanup").returncode)
    expect("recorded bottles", [], shell.recorded())


def test_a_refusal_has_the_words_of_the_tool(shell: Shell) -> None:
    """What docker says on its errors is told, so that a user knows what to do; nothing is left."""
    manifest = shell.home / ".bot-bottle" / "bottles" / "nowhere.md"
    manifest.write_text("---\nimage: nowhere/to-be-found:1\n---\n")
    done = shell.run("start", "nowhere", "--backend", "docker")

    expect("exit status", 1, done.returncode)
    said = "Unable to find image 'nowhere/to-be-found:1'"
    assert said in show(done), (
        f"the refusal says what docker says: expected {said} in {show(done)!r}"
    )
    expect("lines of the refusal", 1, len(show(done).strip().splitlines()))
    expect("recorded bottles", [], shell.recorded())


@pytest.mark.parametrize("engine", BACKENDS)
def test_a_tool_that_is_not_installed_is_named(shell: Shell, engine: str) -> None:
    """Status 1 and its name; nothing is left once it is there again."""
    tool = TOOLS[engine]
    command = shell.commands.folder / tool
    command.rename(command.with_name("elsewhere"))
    done = shell.run("start", "dev", "--backend", engine, PATH=str(shell.commands.folder))

    expect("exit status", 1, done.returncode)
    assert tool in show(done), f"the refusal names {tool}: found {show(done)!r}"
    assert "Traceback" not in show(done), f"a refusal is no traceback: found {show(done)!r}"
    command.with_name("elsewhere").rename(command)
    expect("exit status of cleanup", 0, shell.run("cleanup").returncode)
    expect("recorded bottles", [], shell.recorded())


@pytest.fixture
def terminal() -> Iterator[Callable[[Shell, list[str], str], tuple[int, str]]]:
    """Runs a command on a terminal and answers its prompts: its exit status, and what was shown."""
    opened: list[int] = []

    def run(shell: Shell, words: list[str], typed: str) -> tuple[int, str]:
        pid, master = pty.fork()
        if pid == 0:
            os.chdir(shell.cwd)
            os.execve(bot_bottle(), [bot_bottle(), *words], shell.environ())
        opened.append(master)
        shown = b""
        while select.select([master], [], [], _PATIENCE_S)[0]:
            try:
                part = os.read(master, 65_536)
            except OSError:
                break
            if not part:
                break
            shown += part
            if b"canary-message" in shown and typed:
                os.write(master, typed.encode())
                typed = ""
        _, status = os.waitpid(pid, 0)
        return os.waitstatus_to_exitcode(status), shown.decode(errors="surrogateescape")

    yield run
    for each in opened:
        os.close(each)


@pytest.mark.parametrize("engine", BACKENDS)
def test_what_is_typed_is_not_shown(
    shell: Shell,
    engine: str,
    terminal: Callable[[Shell, list[str], str], tuple[int, str]],
) -> None:
    """A prompt says what it asks for, and shows nothing of the answer; the agent has a terminal."""
    manifest = shell.home / ".bot-bottle" / "bottles" / "dev.md"
    manifest.write_text('---\nimage: harness/bottle:1\nenv:\n  TYPED: "?canary-message"\n---\n')
    script = script_that_answers("the agent was here", "", 9)
    words = ["start", "dev", "--backend", engine, "--", "sh", "-c", script]
    status, shown = terminal(shell, words, "canary-typed 'x' =\n")

    expect("exit status", 9, status)
    assert "canary-message" in shown, f"the prompt says what for: found {shown!r}"
    assert "the agent was here" in shown, f"the agent's output is shown: found {shown!r}"
    assert "canary-typed" not in shown, f"what is typed is not shown: found {shown!r}"
    agent = [call for call in shell.commands.calls() if script in call["argv"]]
    expect("terminals of the agent", [True], [call["tty"] for call in agent])
    assert "-t" in agent[0]["argv"], f"the agent asks for a terminal: found {agent[0]['argv']}"
    made = next(call for call in shell.commands.calls() if {"run", "create"} & set(call["argv"]))
    assert "canary-typed 'x' =" in made["env"].values(), (
        "what is typed reaches the tool by its environment: expected it there, found "
        f"{sorted(made['env'])}"
    )


def on_a_terminal(
    shell: Shell, words: tuple[str, ...], *, which: str
) -> subprocess.CompletedProcess[bytes]:
    """Run the command with a terminal for its input alone, or for its output alone."""
    ours, theirs = os.openpty()
    try:
        return subprocess.run(
            [bot_bottle(), *words],
            env=shell.environ(),
            cwd=shell.cwd,
            stdin=theirs if which == "input" else subprocess.DEVNULL,
            stdout=theirs if which == "output" else subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=_PATIENCE_S,
            check=False,
        )
    finally:
        os.close(ours)
        os.close(theirs)


@pytest.mark.parametrize("engine", BACKENDS)
def test_the_agent_has_a_terminal_when_its_input_is_one(shell: Shell, engine: str) -> None:
    """At a start and at a resume: a tool that is to make a terminal of another input refuses."""
    agent = ("--", "sh", "-c", script_that_answers("", "", 0))
    on_a_terminal(shell, ("start", "dev", "--backend", engine, "--preserve", *agent), which="input")
    on_a_terminal(shell, ("start", "dev", "--backend", engine, *agent), which="output")
    (identity,) = shell.recorded()
    on_a_terminal(shell, ("resume", identity, *agent), which="input")
    on_a_terminal(shell, ("resume", identity, *agent), which="output")

    found = ["-t" in call["argv"] for call in shell.commands.calls() if agent[-1] in call["argv"]]
    expect(
        f"whether the agent on {engine} gets a terminal, when the launcher has one for its input "
        "and for its output, at starts and at resumes",
        [True, False] * 2,
        found,
    )


@pytest.mark.requires("bubblewrap")
def test_a_command_runs_in_the_bottle_it_names(shell: Shell) -> None:
    """The backend of the flag runs the words after ``--``; their exit status is the launcher's."""
    script = 'id -un; printf %s "$TOKEN"; printf %s "$PLAIN" >&2; exit 7'
    words = ("start", "dev", "--backend", "bubblewrap", "--", "sh", "-c", script)
    done = shell.run(*words)

    expect("exit status", 7, done.returncode)
    expect("output", b"node\n" + os.fsencode(SECRET), done.stdout)
    assert b"canary-literal" in done.stderr, f"errors of the agent: found {done.stderr!r}"
    expect("guests that are left", [], list((shell.home / ".bot-bottle" / "guests").iterdir()))
    expect("recorded bottles", [], shell.recorded())


@pytest.mark.requires("bubblewrap")
def test_a_sandbox_sees_nothing_of_its_host(shell: Shell) -> None:
    """The home of its user, other bottles and the host's processes are not there for an agent."""
    private = shell.home / "private.txt"
    private.write_text("canary-private")
    looks = {
        "a file of the user": f"cat -- {shlex.quote(str(private))}",
        "the manifests": f"ls -- {shlex.quote(str(shell.home / '.bot-bottle'))}",
        "the launcher's process": f"cat /proc/{os.getpid()}/environ",
        "writing to /usr": "touch /usr/canary-file",
        "the host's processes": f'test "$(readlink /proc/self/ns/pid)" = {own_namespace()!r}',
        "its own home": "touch ~/there && test -e ~/there",
    }
    script = "; ".join(f"{{ {look}; }} >/dev/null 2>&1; echo $?" for look in looks.values())
    done = shell.run("start", "dev", "--backend", "bubblewrap", "--", "sh", "-c", script)

    statuses = dict(zip(looks, done.stdout.decode().split(), strict=False))
    reached = [what for what, status in statuses.items() if status == "0"]
    expect("looks at the host that end", len(looks), len(statuses))
    expect("what an agent in a sandbox can do", ["its own home"], reached)


def of_the_host(path: str) -> str:
    """What ``cat`` or ``ls -A`` prints of a file or folder of this host; nothing where there is none."""
    place = Path(path)
    if place.is_dir():
        return "".join(f"{name}\n" for name in sorted(each.name for each in place.iterdir()))
    return place.read_text(encoding="utf-8") if place.is_file() else ""


@pytest.mark.requires("bubblewrap")
def test_a_sandbox_has_what_programs_need(shell: Shell) -> None:
    """Names of hosts and certificates, users, processes, devices and a place to write are there."""
    looks = {
        "cat /etc/resolv.conf": of_the_host("/etc/resolv.conf"),
        "ls -A /etc/ssl | LC_ALL=C sort": of_the_host("/etc/ssl"),
        "ls -A /etc/alternatives | LC_ALL=C sort": of_the_host("/etc/alternatives"),
        "id -un; id -u": "node\n1000\n",
        "pwd; echo ~": "/home/node\n/home/node\n",
        "read -r pid _ < /proc/self/stat; test -n $pid && echo read": "read\n",
        "echo lost > /dev/null && echo written": "written\n",
        "echo kept > /tmp/file && cat /tmp/file; echo kept > ~/file && cat ~/file": "kept\nkept\n",
    }
    script = "; ".join(f"{{ {look}; }} 2>/dev/null; printf '\\0'" for look in looks)
    done = shell.run("start", "dev", "--backend", "bubblewrap", "--", "sh", "-c", script)

    expect("looks around in a sandbox", len(looks), done.stdout.count(b"\0"))
    seen = dict(zip(looks, done.stdout.decode().split("\0"), strict=False))
    for look, wanted in looks.items():
        expect(f"what `{look}` prints in a sandbox", wanted, seen[look])


def own_namespace() -> str:
    """The namespace of processes that this test is in."""
    return str(Path("/proc/self/ns/pid").readlink())


@pytest.mark.requires("bubblewrap")
def test_a_sandbox_is_given_the_agents_words_as_they_are(shell: Shell) -> None:
    """Also those that are empty, or that the launcher itself has a use for."""
    words = ["", " ", "--", "--args", "{descriptor}", "{descriptor}"]
    script = 'printf "<%s>" "$@"'
    agent = ("--", "sh", "-c", script, "sh", *words)
    done = shell.run("start", "dev", "--backend", "bubblewrap", *agent)

    expect("the agent's words", "".join(f"<{word}>" for word in words), done.stdout.decode())


@pytest.mark.requires("bubblewrap")
def test_what_a_command_has_read_is_not_kept_open(shell: Shell) -> None:
    """While an agent runs, the launcher has values open for that one command alone, and for none before."""
    with staying(shell, "start", "dev", "--backend", "bubblewrap") as launched:
        opened = [str(link.readlink()) for link in Path(f"/proc/{launched.pid}/fd").iterdir()]
        holding = [each for each in opened if each.startswith("/memfd:")]
        launched.terminate()
        launched.wait(timeout=_PATIENCE_S)

    expect("files in memory that the launcher has open", 1, len(holding))


def test_a_list_that_fails_at_the_end_is_a_warning(shell: Shell) -> None:
    """The exit status is the agent's; the bottle stays recorded, which the warning says, for cleanup."""
    docker = shell.commands.folder / "docker"
    real = docker.rename(docker.with_name("docker-itself"))
    docker.write_text(f'#!/bin/sh\n[ "$1" = ps ] && exit 1\nexec {shlex.quote(str(real))} "$@"\n')
    docker.chmod(0o755)
    done = shell.run(
        *("start", "dev", "--backend", "docker", "--", "sh", "-c", script_that_answers("", "", 7))
    )

    expect(f"exit status of the agent; it said {show(done)!r}", 7, done.returncode)
    (identity,) = shell.recorded()
    warnings = [line for line in show(done).splitlines() if line.startswith("WARNING")]
    assert identity in "".join(warnings), f"a warning names {identity}: found {warnings}"
    real.rename(docker)
    expect("exit status of cleanup", 0, shell.run("cleanup").returncode)
    expect("recorded bottles", [], shell.recorded())


def test_a_bottle_whose_files_fail_is_named(shell: Shell) -> None:
    """Neither a folder that cannot be made, nor a lock that cannot be removed, is any bottle's."""
    guests = shell.home / ".bot-bottle" / "guests"
    guests.touch()
    made = shell.run("start", "dev", "--backend", "bubblewrap")
    guests.unlink()
    expect("exit status without a folder", 1, made.returncode)
    assert "dev-" in said(made), f"the refusal names the bottle: found {said(made)!r}"

    with staying(shell, "start", "dev", "--backend", "docker", "--preserve") as launched:
        (identity,) = shell.recorded()
        lock = shell.home / ".bot-bottle" / "state" / identity / "lock"
        lock.unlink()
        lock.mkdir()
        launched.terminate()
        launched.wait(timeout=_PATIENCE_S)
        assert launched.stderr is not None
        error = launched.stderr.read().decode(errors="surrogateescape")
    last = error.strip().splitlines()[-1:]
    assert identity in "".join(last), f"the refusal names {identity}: found {last}"


def test_a_home_that_cannot_be_written_is_named(shell: Shell) -> None:
    """One line and status 1, also for a cleanup, which needs nothing that would have been there."""
    done = shell.run("cleanup", HOME="/dev/null")

    expect("exit status of a cleanup", 1, done.returncode)
    assert "Traceback" not in show(done), f"a refusal is no traceback: found {show(done)!r}"
    assert "/dev/null/" in show(done), f"the refusal names the folder: found {show(done)!r}"


def test_a_proposal_of_another_folder_is_none(shell: Shell) -> None:
    """What lies outside the queue was never queued: a path to it is no proposal, and changes nothing."""
    with staying(shell, "start", "dev", "--backend", "docker") as launched:
        (identity,) = shell.recorded()
        words = ("--image", "harness/bottle:2", "--justification", "it needs gcc")
        queued = show(shell.run("propose", identity, *words)).strip()
        root = shell.home / ".bot-bottle"
        (file,) = root.rglob(f"{queued}.json")
        forged = json.loads(file.read_text()) | {"id": "../forged"}
        (file.parent.parent / "forged.json").write_text(json.dumps(forged))
        done = shell.run("approve", "../forged")
        images = [each.image for each in shell.commands.guests().values()]
        launched.terminate()
        launched.wait(timeout=_PATIENCE_S)

    expect("exit status of the approval", 1, done.returncode)
    assert "../forged" in said(done), f"the refusal names it: found {said(done)!r}"
    expect("images", ["harness/bottle:1"], images)


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
    expect("resumes that warn of the transcript", [True, False], warned)
