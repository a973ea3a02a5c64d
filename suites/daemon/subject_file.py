"""The subject file of a daemon, read whole: a table or key that no test reads is a mistake.

What a capability needs of them: suite.toml.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, Literal

from msgspec import field

from harness_core.base.errors import BadInput
from harness_core.base.reading import Misfit, Table
from harness_core.system.subject import Subject, Tables, Variables, load_subject
from suites.daemon.confinement import PROCESSES

__all__ = ["DaemonTables", "Start", "read_subject"]


def pattern(key: str, text: str) -> re.Pattern[str]:
    """A regular expression of the file.

    Raises:
        Misfit: it is none.
    """
    try:
        return re.compile(text, re.MULTILINE)
    except re.error as error:
        raise Misfit(key, found=text, expected=f"a regular expression ({error})") from error


class Cli(Table, frozen=True):
    """``[cli]``.

    Attributes:
        gateways: prints the gateways.
        link: links `{name}` to `{platform}` `{address}`.
        link_webhook: the same, with the webhook read from `{file}`.
        at: words behind a command that name the port `{port}` of the daemon it asks.
        links: prints what is linked.
        say: says `{text}` and prints the answer.
        say_words: says the words `{first}`, `{second}` and `{third}`.
        shell: runs `{command}`.
        shell_within: runs `{command}` for at most `{seconds}`.
        skills: prints the skills, rejected ones with their reasons.
        status: prints its health.
        stop: stops the daemon.
        unlink: takes the link `{name}` back.
    """

    gateways: tuple[str, ...] = ()
    link: tuple[str, ...] = ()
    link_webhook: tuple[str, ...] = ()
    at: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    say: tuple[str, ...] = ()
    say_words: tuple[str, ...] = ()
    shell: tuple[str, ...] = ()
    shell_within: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    status: tuple[str, ...] = ()
    stop: tuple[str, ...] = ()
    unlink: tuple[str, ...] = ()


class Bounds(Table, frozen=True):
    """``[bounds]``: those that it has and that nothing turns.

    Attributes:
        connections: connections served at once.
        depth: lists open at once.
        frame_characters: the longest payload that is read.
        frame_s: from the first to the last byte of a frame.
        idle_s: how long a client may say nothing.
    """

    connections: int | None = None
    depth: int | None = None
    frame_characters: int | None = None
    frame_s: float | None = None
    idle_s: float | None = None


class Confine(Table, frozen=True):
    """``[confine]``.

    Attributes:
        processes: processes and threads that what is confined may have at once.
    """

    processes: int = PROCESSES


class Defaults(Table, frozen=True):
    """``[defaults]``.

    Attributes:
        root: its working root when nothing names one.
        start: how it is started where nothing names a port.
    """

    root: str
    start: tuple[str, ...] = ()


class Emacs(Table, frozen=True):
    """``[emacs]``.

    Attributes:
        library: a command that prints the path of what Emacs is to load.
        say: the form that says `{text}` to the daemon at `{port}`.
        insert: the form that inserts the plan `{text}` at the end of `{file}`.
        insert_under: the same, under `{heading}`.
        insert_node: the form that inserts the node of a plan with the ID `{id}`, unless the file
            holds it.
        steps: the ways to write step `{number}` of a plan, `{step}`, on a line of its own.
    """

    library: tuple[str, ...] = ()
    say: str = ""
    insert: str = ""
    insert_under: str = ""
    insert_node: str = ""
    steps: tuple[str, ...] = ()


class Knobs(Table, frozen=True):
    """Settings that a test may turn.

    Attributes:
        allow_shutdown: says in so many words that clients may stop it.
        check_s: what a check of its health may take.
        command_s: what a command may take that asks for no other time, and the most it may ask for.
        connections: connections served at once.
        depth: lists open at once, the message itself among them.
        frame_characters: the longest payload that is read.
        frame_s: from the first to the last byte of a frame.
        idle_s: how long a client may say nothing.
        output_characters: kept of what a command prints.
        port: where it listens, and where its clients look for it, when no option says so.
        refuse_shutdown: clients may not stop it.
        unasked_s: what a command may take that asks for no other time, and nothing else.
        waiting: requests of one connection that wait while one is worked on.
        workers: texts worked on at once.
        write_s: for a client to take one reply.
    """

    allow_shutdown: Variables = field(default_factory=dict)
    check_s: Variables = field(default_factory=dict)
    command_s: Variables = field(default_factory=dict)
    connections: Variables = field(default_factory=dict)
    depth: Variables = field(default_factory=dict)
    frame_characters: Variables = field(default_factory=dict)
    frame_s: Variables = field(default_factory=dict)
    idle_s: Variables = field(default_factory=dict)
    output_characters: Variables = field(default_factory=dict)
    port: Variables = field(default_factory=dict)
    refuse_shutdown: Variables = field(default_factory=dict)
    unasked_s: Variables = field(default_factory=dict)
    waiting: Variables = field(default_factory=dict)
    workers: Variables = field(default_factory=dict)
    write_s: Variables = field(default_factory=dict)


class Listing(Table, frozen=True):
    """A list that a command line prints, a row a line.

    Attributes:
        argv: the command.
        row: the regular expression of a row, with groups
            `(?P<name>…)` and, for gateways, `(?P<source>…)`.
    """

    argv: tuple[str, ...]
    row: str

    def __post_init__(self) -> None:
        if "name" not in pattern("row", self.row).groupindex:
            raise Misfit("row", found=self.row, expected="a group (?P<name>…)")


class Lists(Table, frozen=True):
    """``[lists]``.

    Attributes:
        gateways: its gateways.
        skills: its skills.
    """

    gateways: Listing | None = None
    skills: Listing | None = None


class Port(Table, frozen=True):
    """``[port]``.

    Attributes:
        line: the regular expression whose group is the port in a line of its output; it is started
            with port 0.
        file: the file that it writes its port to.
    """

    line: str = ""
    file: str = ""

    def __post_init__(self) -> None:
        if bool(self.line) == bool(self.file):
            raise Misfit("line", found=self.line or None, expected="either line or file")
        pattern("line", self.line)


class Providers(Table, frozen=True):
    """``[providers]``.

    Attributes:
        all_down: what it says when no language model answers.
        env: variables for all of them; `{names}` are theirs, first to last.
        each: variables for each: `{name}`, `{NAME}`, `{shape}`, `{url}`, `{key}`, `{model}`,
            `{timeout_s}`.
    """

    all_down: str = ""
    env: Variables = field(default_factory=dict)
    each: Variables = field(default_factory=dict)


class Setup(Table, frozen=True):
    """``[setup]``.

    Attributes:
        argv: the command, with the fields of `[subject] argv`.
    """

    argv: tuple[str, ...]


class Skills(Table, frozen=True):
    """``[skills]``.

    Attributes:
        directory: where skills lie once it is set up.
        order: names, as they must be loaded.
        answers: text → what a skill of these answers it by.
        reasons: name of a rejected skill → what the reason must name.
        shown: name → texts that its row in the list must show.
        dangerous: texts that a skill answers by a command that would do harm.
        files: name of a file → its content; a test adds them.
    """

    directory: str
    order: tuple[str, ...] = ()
    answers: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    shown: dict[str, tuple[str, ...]] = field(default_factory=dict)
    dangerous: tuple[str, ...] = ()
    files: dict[str, str] = field(default_factory=dict)


class Start(Table, frozen=True):
    """``[start]``.

    Attributes:
        ready_s: from its start to its greeting.
        stop_s: from its signal to its end.
        home: kept through its lives, or a fresh one for each.
        directory: where it runs.
        root: the working root of its shell.
    """

    ready_s: float = 30.0
    stop_s: float = 10.0
    home: Literal["kept", "fresh"] = "kept"
    directory: str = "{home}"
    root: str = "{home}/root"


class Texts(Table, frozen=True):
    """``[texts]``.

    Attributes:
        echo: has `{text}` said back.
        eval: has `{form}` evaluated.
        gateways: asks for the gateways.
        health: asks for its health.
        shell: runs `{command}`.
        skills: asks for the skills.
    """

    echo: str = ""
    eval: str = ""
    gateways: str = ""
    health: str = ""
    shell: str = ""
    skills: str = ""


class Tui(Table, frozen=True):
    """``[tui]``.

    Attributes:
        argv: the client for the terminal, at `{port}`.
        prompt: what it shows when it waits for a line.
        connected: what it shows once it is connected.
        lost: what it shows when the connection is lost.
    """

    argv: tuple[str, ...] = ()
    prompt: str = ""
    connected: str = ""
    lost: str = ""


class DaemonTables(Tables, frozen=True):
    """Every table but ``[subject]`` and ``[env]``.

    Fields of `argv`, `cwd` and `[env]`: `{bin}`, `{port}`, `{home}`, `{root}` (where its
    commands run), `{here}` (the folder of the file).

    Attributes:
        accepted: settings at the bounds of what it takes, by a name: it must start.
        bounds: bounds that it has and that no knob turns; what has neither is tried to 500 connections,
            64 MiB, 60 s.
        cli: how an operator asks it from the command line, each a list of words.
        confine: every test runs it in the confinement of bubblewrap: for a product that executes
            what it is sent.
        defaults: what it does where nothing is said.
        emacs: its client for Emacs.
        files: files that are written before each start, path → content; fields are filled in.
        knobs: the variables that set one thing to `{value}`; tests that turn what is left out are
            skipped.
        lists: lists that a command line prints, a row a line, where the wire has none.
        port: how the port is found that it chose; left out, it is given a free `{port}`.
        providers: how it is told which language models to ask.
        refused: settings with which it must not start, by a name; its error names the first
            variable.
        setup: what is run once in a new home.
        skills: how a skill is written.
        start: how it starts and ends.
        texts: user input that asks for something.
        tui: its client for the terminal.
    """

    accepted: dict[str, Variables] = field(default_factory=dict)
    bounds: Bounds = Bounds()
    cli: Cli | None = None
    confine: Confine | None = None
    defaults: Defaults | None = None
    emacs: Emacs | None = None
    files: dict[str, str] = field(default_factory=dict)
    knobs: Knobs = Knobs()
    lists: Lists = Lists()
    port: Port | None = None
    providers: Providers | None = None
    refused: dict[str, Variables] = field(default_factory=dict)
    setup: Setup | None = None
    skills: Skills | None = None
    start: Start = Start()
    texts: Texts | None = None
    tui: Tui | None = None


#: What tests of skill files read.
_OF_SKILLS: Final = ("order", "answers", "reasons")


def read_subject(path: Path) -> Subject:
    """A subject file.

    Args:
        path: the file.

    Raises:
        BadInput: the first mistake in it, with file and key.
    """
    subject = load_subject(path)
    subject.read_tables(DaemonTables)
    skills = subject.table("skills")
    for key in _OF_SKILLS if "files" in skills else ():
        if key not in skills:
            expected = "it there, since there are files of skills"
            raise BadInput(path, key=f"skills.{key}", found=None, expected=expected)
    return subject
