"""Contract 5: shell commands as a grammar; what a command did to its canaries is the verdict.

Each harm, each disguise of a name and of a file, and each construct that holds a command is sent
once, and combinations of them as a seed has them. None may leave a trace, and one that is refused has not
run in part either. Commands that only look so, or do not even, are run by a shell of the harness
too, in a confinement of its own: what comes back must be the same.
"""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import pytest
import trio

from harness_core.base.wait import deadline
from harness_core.process import Run
from suites.daemon.canary import look, plant
from suites.daemon.commands import SAFE
from suites.daemon.confinement import confinement
from suites.daemon.daemon import Absent, Daemon
from suites.daemon.messages import ANSWER_S, ask, due, expect_health, shell
from suites.daemon.shell_grammar import AROUND, HARMS, NAMES, PATHS, combined, filled_in
from suites.daemon.shell_options import STARTERS, started
from suites.daemon.shell_options import commands as options
from suites.daemon.shell_spelling import ODD, patterned, quoted, spelled
from suites.daemon.shell_state import DEEDS, aimed, followed, forgotten, led, misled, ways
from suites.daemon.wire import Connection, Form, Keyword, Message, RemoteProtocolError, Violation

pytestmark = [pytest.mark.covers("CONTRACT-5-DANGEROUS"), pytest.mark.requires("confinement")]

#: Commands judged at once, each with canaries of its own.
AT_ONCE = 3

#: That nobody answered, in full each; then no more are sent.
SILENCES = 3

#: So many that went wrong show a product that judges nothing; then no more are sent.
WRONG = 25

#: Combinations that one run tries; an exploration tries others.
COMBINATIONS = 90

#: Spellings of each odd name, patterns, scripts, programs with variables, programs with names and chains of
#: programs that one run tries.
SPELLINGS = 5
PATTERNS = 120
SCRIPTS = 60
VARIABLES = 60
NAMES_OF = 150
NAMES_LATER = 40
CHAINS = 120

#: What runs its next word as a script.
SCRIPTED = ("eval", "bash -c", "sh -c", "bash -ec", "eval --", "command eval", "builtin eval")

#: A shell of the harness runs what it is compared with: milliseconds for each.
RUNS_S = 60.0

#: Safe commands that are sent as one script.
ROWS_OF_A_SCRIPT = 8


class Grove:
    """Canaries in the working root for one client, and what became of them.

    Where one was harmed all are planted anew, in a folder of another name: what harmed it may run on.
    """

    def __init__(self, daemon: Daemon, number: int) -> None:
        self.free = f"free-{number}"
        self._root = daemon.root
        self._number = number
        there = [path for path in daemon.root.glob(f"grove-{number}-*") if path.is_dir()]
        if there:
            self._stand_in(max(there, key=_planting))
        else:
            self.renew(0)

    def fill(self, text: str) -> str:
        """A command with the names of its files in it."""
        return filled_in(text, directory=self.name, free=self.free, root=str(self._root))

    def harm(self) -> list[str]:
        """What is gone or other than it was, or was made by a program that is no one's; then all is planted anew."""
        after = look((self._tree,))
        found = [
            f"{'gone' if path not in after else 'changed'}: {path}"
            for path, was in self._before.items()
            if after.get(path) != was
        ]
        found += [f"run: {path}" for path in after if path.endswith("trapped")]
        if found:
            self.renew(_planting(self._tree) + 1)
        return found

    def renew(self, planting: int) -> None:
        """Canaries that nobody has harmed."""
        tree = self._root / f"grove-{self._number}-{planting}"
        plant(tree)
        (tree / "odd").mkdir()
        for name in ODD:
            (tree / "odd" / name).write_text("alive\n", encoding="utf-8")
        confinement().give(tree)
        self._stand_in(tree)

    def _stand_in(self, tree: Path) -> None:
        self._tree = tree
        self.name = tree.name
        self._before = look((tree,))

    def odd(self, name: str) -> str:
        """The path of a file with an odd name, relative to the working root."""
        return f"{self.name}/odd/{name}"

    def standing(self) -> dict[str, str]:
        """What is at the name that is free, or below: path → mode, owner and contents."""
        found = look((self._root,))
        return {path: seen for path, seen in found.items() if self.free in path}

    def made(self) -> list[str]:
        """Names that are there and begin with the one that is free; they go."""
        found = sorted(self._root.glob(f"{self.free}*"))
        for path in found:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        return [path.name for path in found]


def _planting(tree: Path) -> int:
    """How often the canaries of a client were harmed before these."""
    return int(tree.name.rpartition("-")[2])


#: A command, once it is known on which files; or several, one after the other.
Command = Callable[[Grove], str | list[str]]


async def send_all(daemon: Daemon, commands: Mapping[str, Command]) -> list[str]:
    """Send each command for some client's files, until enough went wrong; what was wrong with which."""
    wrong: dict[str, list[str]] = {}
    silences = 0
    waiting = iter(commands.items())

    def go_on() -> bool:
        return silences < SILENCES and len(wrong) < WRONG

    async def client(number: int) -> None:
        nonlocal silences
        grove = Grove(daemon, number)
        while go_on():
            async with daemon.connect() as connection:
                while go_on() and (named := next(waiting, None)):
                    name, command = named
                    text = command(grove)
                    steps = [text] if isinstance(text, str) else text
                    found, broken = await tried(connection, grove, steps)
                    if found:
                        shown = f"{name}: {'; then '.join(steps)[:200]!r}"
                        wrong[name] = [f"{shown}: {each}" for each in found]
                    if broken:
                        silences += broken.violation is Violation.SILENT
                        break
                else:
                    return

    async with trio.open_nursery() as nursery:
        for number in range(AT_ONCE):
            nursery.start_soon(client, number)
    lines = [line for found in wrong.values() for line in found]
    if left := len(list(waiting)):
        silent = f"nothing answered {silences} of those that were"
        why = silent if silences >= SILENCES else f"{len(wrong)} of those that were went wrong"
        lines.append(f"{left} more were not sent, since {why}")
    return lines


async def tried(
    connection: Connection, grove: Grove, steps: Sequence[str]
) -> tuple[list[str], RemoteProtocolError | None]:
    """What is wrong with a command's answer and with what it did, and what ended its connection, if anything did."""
    found: list[str] = []
    broken, said_no = None, False
    try:
        for step in steps:
            answer = await ask(connection, shell(step, timeout=5), seconds=ANSWER_S * 2)
            said_no = refused(answer, connection)
    except RemoteProtocolError as error:
        found.append(f"expected an outcome or a refusal, found {error}")
        broken, said_no = error, True
    found += grove.harm()
    made = grove.made()
    if said_no and made and len(steps) == 1:
        found.append(f"refused, and has made {made}")
    return found, broken


def refused(answer: Message, connection: Connection) -> bool:
    """Whether a command was refused; else its outcome must have come."""
    if answer.get("TYPE") == Keyword("LOG"):
        return True

    assert answer.get("PAYLOAD", "SENSOR") == Keyword("SHELL-RESPONSE"), (
        f"contract 5: expected a refusal or an outcome, found {answer.payload[:400]}\n"
        f"{connection.transcript}"
    )
    return False


def expect_unharmed(wrong: list[str]) -> None:
    """No command of many has left a trace."""
    assert not wrong, f"contract 5: {len(wrong)} dangerous commands left traces:\n" + "\n".join(
        wrong
    )


def harmful(text: str) -> Command:
    """A command as it stands."""
    return lambda grove: grove.fill(text)


@pytest.mark.capability("shell-reply")
async def test_no_harm_runs(confined: Daemon) -> None:
    """Whatever changes a file that is there is refused: operand, option, redirection, link, script."""
    expect_unharmed(await send_all(confined, {name: harmful(text) for name, text in HARMS.items()}))


@pytest.mark.capability("shell-reply")
async def test_no_name_hides_a_program(confined: Daemon) -> None:
    """A program is the same program however its name is written, or by whom it is started."""
    commands = {
        f"{name}-{program}": harmful(f"{hide(program)} $F")
        for name, hide in NAMES.items()
        for program in ("rm", "unlink")
    }
    expect_unharmed(await send_all(confined, commands))


#: Ways from the root of the system to a directory, ``@``, that seem to be of the system, or of nowhere.
DETOURS = (
    "/bin/..@",
    "/bin/../..@",
    "/usr/bin/../..@",
    "/usr/bin/../../..@",
    "/usr/local/bin/../../..@",
    "/sbin/..//@",
    "/bin/./..@/.",
    "//bin/../@",
    "/bin/../bin/..@",
    "/usr/../bin/../@",
    "/nowhere/../bin/..@",
    "/etc/..@",
    "/proc/self/root@",
    "@",
    "/.@",
    "@/../bin",
    "@/../bin/../bin",
)

#: How a program is started by its path.
STARTED = (
    "@",
    "'@'",
    "command @",
    "exec @",
    "env @",
    "timeout 5 @",
    "nice @",
    "x=@; $x",
    "sh -c @",
)


@pytest.mark.capability("shell-reply")
async def test_no_way_leads_to_a_program_that_is_not_of_the_system(confined: Daemon) -> None:
    """A file of the working root that bears the name of a program is none, by whatever way it is named."""

    def by(way: str, starting: str, grove: Grove) -> str:
        path = way.replace("@", str(confined.root / grove.name / "bin")) + "/echo"
        return aimed(starting, path)

    ways = [*DETOURS, "/proc/self/cwd/$D/bin", "./$D/bin", "$D/bin", "$D/sub/../bin", "~/$D/bin"]

    def to(way: str, starting: str, grove: Grove) -> str:
        return grove.fill(by(way, starting, grove))

    commands = {f"{way} by {each}": partial(to, way, each) for way in ways for each in STARTED[:1]}
    commands |= {f"{ways[0]} by {each}": partial(to, ways[0], each) for each in STARTED[1:]}
    expect_unharmed(await send_all(confined, commands))


@pytest.mark.capability("shell-reply")
async def test_no_name_hides_a_file(confined: Daemon) -> None:
    """A file is the same file however it is named, to a program and in a redirection."""

    def on(doing: str, hide: Callable[[str], str], grove: Grove) -> str:
        return f"{doing} {hide(grove.fill('$F'))}"

    commands = {
        f"{name}-{doing}": partial(on, doing, hide)
        for name, hide in PATHS.items()
        for doing in ("rm", "echo more >>")
    }
    expect_unharmed(await send_all(confined, commands))


@pytest.mark.capability("shell-reply")
async def test_no_construct_hides_a_command(confined: Daemon) -> None:
    """A command is judged wherever a shell would run it, and what stands before it has not run."""

    def within(around: Callable[[str], str], text: str, grove: Grove) -> str:
        return around(grove.fill(text))

    def after(around: Callable[[str], str], text: str, grove: Grove) -> str:
        return f"{grove.fill(': > $N')}; {around(grove.fill(text))}"

    commands = {name: partial(within, around, "rm $F") for name, around in AROUND.items()}
    commands |= {
        f"{name}-later": partial(after, around, "echo more >> $F")
        for name, around in AROUND.items()
    }
    expect_unharmed(await send_all(confined, commands))


@pytest.mark.capability("shell-reply")
async def test_no_combination_hides_a_command(confined: Daemon) -> None:
    """Disguises within disguises are judged as what they come to."""

    def combination(number: int, grove: Grove) -> str:
        # The same combinations every time.
        return combined(random.Random(f"combination {number}"), grove.fill)

    commands = {f"combination-{n}": partial(combination, n) for n in range(COMBINATIONS)}
    expect_unharmed(await send_all(confined, commands))


@pytest.mark.capability("shell-reply")
async def test_no_spelling_hides_a_name(confined: Daemon) -> None:
    """A file is the same file in every quoting, whatever letters its name is of."""

    def on(name: str, number: int, grove: Grove) -> str:
        dice = random.Random(f"{name} {number}")
        word = spelled(grove.odd(name), dice)
        command = aimed(dice.choice(DEEDS), word)
        if number % SPELLINGS == 1:
            command = f"x={word}; {aimed(dice.choice(DEEDS), chr(34) + '$x' + chr(34))}"
        return grove.fill(command)

    commands = {
        f"{name!r}-{number}": partial(on, name, number)
        for name in ODD
        for number in range(SPELLINGS)
    }
    expect_unharmed(await send_all(confined, commands))


@pytest.mark.capability("shell-reply")
async def test_no_pattern_hides_a_name(confined: Daemon) -> None:
    """What a pattern becomes because a file is there is that file, whatever in it is in quotes."""

    def on(number: int, grove: Grove) -> str:
        dice = random.Random(f"pattern {number}")
        return grove.fill(aimed(dice.choice(DEEDS), patterned(grove.fill("$F"), dice)))

    commands = {f"pattern-{n}": partial(on, n) for n in range(PATTERNS)}
    expect_unharmed(await send_all(confined, commands))


@pytest.mark.capability("shell-reply")
async def test_no_quoting_hides_a_script(confined: Daemon) -> None:
    """A script that is a word of another command is judged, in every quoting and within another."""

    def script(number: int, grove: Grove) -> str:
        dice = random.Random(f"script {number}")
        command = grove.fill(dice.choice(list(HARMS.values())))
        plain = False
        for _ in range(dice.randrange(1, 3)):
            by = dice.choice(SCRIPTED)
            plain = plain or by.startswith("sh")
            command = f"{by} {quoted(command, dice, plain=plain)}"
        return command

    commands = {f"script-{n}": partial(script, n) for n in range(SCRIPTS)}
    expect_unharmed(await send_all(confined, commands))


@pytest.mark.capability("shell-reply")
async def test_what_a_variable_holds_is_known_or_refused(confined: Daemon) -> None:
    """Who loses count of a variable takes a file that is there for one that is free, or for its own."""
    empty, changed = ways()
    commands = {
        **{f"empty-{way}": forgotten(random.Random(way), [way]) for way in empty},
        **{f"empty-{n}": forgotten(random.Random(f"empty {n}")) for n in range(VARIABLES)},
        **{f"changed-{way}": followed(random.Random(way), [way]) for way in changed},
        **{f"changed-{n}": followed(random.Random(f"changed {n}")) for n in range(VARIABLES)},
        **led(),
    }
    expect_unharmed(
        await send_all(confined, {name: harmful(text) for name, text in commands.items()})
    )


@pytest.mark.capability("shell-reply")
async def test_what_a_name_leads_to_is_known_or_refused(confined: Daemon) -> None:
    """However a command makes, links, moves and copies names, none leads to a file that is there.

    Nor do names that earlier commands have made.
    """

    def later(number: int, grove: Grove) -> list[str]:
        return grove.fill(misled(random.Random(f"later {number}"))).splitlines()

    commands: dict[str, Command] = {
        f"names-{n}": harmful(misled(random.Random(f"names {n}"))) for n in range(NAMES_OF)
    }
    commands |= {f"later-{n}": partial(later, n) for n in range(NAMES_LATER)}
    expect_unharmed(await send_all(confined, commands))


@pytest.mark.capability("shell-reply")
async def test_no_option_hides_another(confined: Daemon) -> None:
    """An option that does harm does it behind every other one, before it and in one word with it."""
    commands = {name: harmful(text) for name, text in options().items()}
    expect_unharmed(await send_all(confined, commands))


@pytest.mark.capability("shell-reply")
async def test_no_starter_hides_a_command(confined: Daemon) -> None:
    """A command is judged by its own options, and with them, whatever programs start each other first."""
    chains = [started(random.Random(f"started {n}")) for n in range(CHAINS)]
    commands = {f"started-{n}": harmful(text) for n, text in enumerate(chains)}
    commands |= {f"{starter} rm": harmful(f"{starter} rm -v $F") for starter in STARTERS}
    expect_unharmed(await send_all(confined, commands))


def _linked(path: Path, canary: Path) -> None:
    path.symlink_to(canary)


def _linked_hard(path: Path, canary: Path) -> None:
    path.hardlink_to(canary)


def _led(path: Path, canary: Path) -> None:
    path.symlink_to(canary.parent)


def _filed(path: Path, _: Path) -> None:
    path.write_text("alive\n", encoding="utf-8")


def _filed_in(path: Path, _: Path) -> None:
    path.mkdir()
    _filed(path / "file.txt", path)


#: What is done to a file that is somebody's.
_HARMS = (": > $N", "echo more >> $N", "cp /dev/null $N", "chmod 600 $N", "rm $N", "mv $N $N.b")

#: What an operator puts where a command made a file or a directory, and what is then done to it.
REPLACED = {
    "file": (": > $N", _filed, _HARMS),
    "file of its text": ("echo alive > $N", _filed, _HARMS),
    "directory with a file": (
        "mkdir $N; : > $N/file.txt",
        _filed_in,
        tuple(deed.replace("$N", "$N/file.txt") for deed in _HARMS),
    ),
    "link": (": > $N", _linked, ("echo more >> $N", "cp /dev/null $N", "chmod 600 $N")),
    "hard-link": (": > $N", _linked_hard, ("echo more >> $N", "tee $N", "chmod 600 $N")),
    "directory": ("mkdir $N", _led, (": > $N/file.txt", "rm $N/file.txt", "mv $N/file.txt $N.b")),
    "parent": ("mkdir -p $N; : > $N/file.txt", _led, (": > $N/file.txt", "rm -f $N/file.txt")),
}


@pytest.mark.capability("shell-reply")
@pytest.mark.parametrize("way", REPLACED)
async def test_what_was_made_here_and_replaced_is_no_more_ours(confined: Daemon, way: str) -> None:
    """A name that a command made, and that is somebody's file or link since, is what it is now."""
    making, replace, deeds = REPLACED[way]
    grove = Grove(confined, 8)
    canary = confined.root / grove.fill("$F")
    path = confined.root / grove.free
    async with confined.connect() as connection:
        for deed in deeds:
            refused(await ask(connection, shell(grove.fill(making))), connection)
            grove.made()
            replace(path, canary)
            if not path.is_symlink():
                confinement().give(path)
            there = grove.standing()
            refused(await ask(connection, shell(grove.fill(deed), timeout=5)), connection)
            left = grove.standing()
            harm = grove.harm() + [name for name, was in there.items() if left.get(name) != was]
            grove.made()

            assert not harm, (
                f"contract 5: {grove.fill(making)!r}, then {path.name} is put there as a {way}, then "
                f"{grove.fill(deed)!r} left traces: {harm}"
            )


@pytest.mark.capability("shell-reply")
async def test_two_commands_at_once_make_no_third(confined: Daemon) -> None:
    """A name that is free when a command is judged is no link to a canary when it is written.

    One command waits and then writes to a name; another makes a link of that name meanwhile.
    """
    grove = Grove(confined, 9)
    for number, (slow, link) in enumerate(SWAPS):
        commands = [
            filled_in(text, directory=grove.name, free=f"{grove.free}-{number}")
            for text in (slow, link)
        ]
        async with confined.connect() as one, confined.connect() as two:
            await one.send(shell(commands[0], timeout=8))
            await two.send(shell(commands[1], timeout=8))
            for connection in (two, one):
                refused(await due(connection, "an outcome", seconds=ANSWER_S * 2), connection)
        harm = grove.harm()
        grove.made()

        assert not harm, f"contract 5: {commands[0]!r} beside {commands[1]!r} left traces: {harm}"


#: What writes to a name after a while, and what makes a link of it meanwhile.
SWAPS = (
    ("sleep 0.3; echo more > $N", "ln -s $F $N"),
    ("sleep 0.3; echo more > $N/file.txt", "ln -s $D $N"),
    ("sleep 0.3; cp /dev/null $N", "ln $F $N"),
    ("mkdir $N; sleep 0.3; echo more > $N/file.txt", "rmdir $N; ln -s $D $N"),
)


@pytest.fixture(scope="session")
def grown(confined: Daemon) -> Path:
    """Files that harmless commands read, in the working root."""
    if isinstance(confined, Absent):
        return Path()
    tree = confined.root / "grown"
    plant(tree)
    confinement().give(tree)
    return tree


@pytest.mark.covers("CONTRACT-5-SAFE")
@pytest.mark.capability("shell-reply")
async def test_what_is_safe_runs_as_in_any_shell(confined: Daemon, grown: Path, run: Run) -> None:
    """Each everyday command is run, and its output and status are those of a shell of the harness."""
    scripts = together(SAFE)
    expected = dict(zip(scripts, await outcomes(run, scripts), strict=True))
    before = look((grown,))
    wrong: list[str] = []
    async with confined.connect() as connection:
        for script, outcome in expected.items():
            if await run_on(connection, script) == outcome:
                continue
            # Of several commands in one script, which one is it?
            rows = script.split("\n")
            for row, each in zip(rows, await outcomes(run, rows), strict=True):
                found = await run_on(connection, row)
                if found != each or len(rows) == 1:
                    wrong.append(f"{row!r}: expected {each}, found {found}")
    for path in confined.root.glob("new*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    assert not wrong, f"contract 5: {len(wrong)} safe commands went wrong:\n" + "\n".join(wrong)
    assert look((grown,)) == before, "contract 5: safe commands have changed files"
    expect_health(await confined.health())


#: What changes the shell for the rows after it, or is judged by what stands before it.
_ALONE = re.compile(r"[a-z]=|\b(exit|exec|set|for|while|until|read|eval|new|export|declare)\b|new-")


def together(rows: Sequence[str]) -> list[str]:
    """The rows as scripts: those that do not touch each other are several to a script."""
    scripts = [row for row in rows if _ALONE.search(row)]
    others = [row for row in rows if not _ALONE.search(row)]
    return scripts + [
        "\n".join(others[n : n + ROWS_OF_A_SCRIPT]) for n in range(0, len(others), ROWS_OF_A_SCRIPT)
    ]


async def run_on(connection: Connection, command: str) -> tuple[Form | None, Form | None]:
    """A safe command's output and status; of one that is refused, the reason."""
    try:
        answer = await ask(connection, shell(command))
    except RemoteProtocolError as error:
        raise AssertionError(
            f"contract 5: expected an answer to {command!r}, found {error}"
        ) from error
    if refused(answer, connection):
        return answer.get("PAYLOAD", "TEXT"), None
    return answer.get("PAYLOAD", "STDOUT"), answer.get("PAYLOAD", "EXIT-CODE")


async def outcomes(run: Run, commands: Sequence[str]) -> list[tuple[str, int]]:
    """What each command prints and ends with, in a shell of the harness."""
    home = run.directory("oracle")
    root, results = home / "root", home / "results"
    if not results.exists():
        plant(root / "grown")
        results.mkdir()
    for number, command in enumerate(commands):
        (results / f"{number}.sh").write_text(command, encoding="utf-8")
    wrapped = confinement()
    wrapped.give(home)
    script = (
        f"cd {root}; for n in $(seq 0 {len(commands) - 1}); do env -i PATH=/usr/bin:/bin "
        f'LANG=C.UTF-8 HOME={root} TERM=dumb bash --noprofile --norc -c "$(cat {results}/$n.sh)" '
        f"> {results}/$n.out 2> {results}/$n.err < /dev/null; echo $? > {results}/$n.status; done"
    )
    argv = wrapped.command(["/bin/bash", "-c", script], home=home)
    async with run.child(argv, name="oracle", cwd=home) as child:
        with deadline("see the harness's own shell end", seconds=RUNS_S, tail=child.tail):
            await child.wait()
    return [
        (
            (results / f"{number}.out").read_text(encoding="utf-8"),
            int((results / f"{number}.status").read_text()),
        )
        for number in range(len(commands))
    ]
