"""The subject file of a daemon, read whole: a table or key that no test reads is a mistake.

What each table means: README.md. What a capability needs of them: suite.toml.
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
    """``[cli]``."""

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
    """``[bounds]``: those that it has and that nothing turns."""

    connections: int | None = None
    depth: int | None = None
    frame_characters: int | None = None
    frame_s: float | None = None
    idle_s: float | None = None


class Confine(Table, frozen=True):
    """``[confine]``."""

    processes: int = PROCESSES


class Defaults(Table, frozen=True):
    """``[defaults]``."""

    root: str
    start: tuple[str, ...] = ()


class Emacs(Table, frozen=True):
    """``[emacs]``."""

    library: tuple[str, ...] = ()
    say: str = ""
    insert: str = ""
    insert_under: str = ""
    insert_node: str = ""
    steps: tuple[str, ...] = ()


class Knobs(Table, frozen=True):
    """Settings that a test may turn."""

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
    """A list that a command line prints, a row a line."""

    argv: tuple[str, ...]
    row: str

    def __post_init__(self) -> None:
        if "name" not in pattern("row", self.row).groupindex:
            raise Misfit("row", found=self.row, expected="a group (?P<name>…)")


class Lists(Table, frozen=True):
    """``[lists]``."""

    gateways: Listing | None = None
    skills: Listing | None = None


class Port(Table, frozen=True):
    """``[port]``."""

    line: str = ""
    file: str = ""

    def __post_init__(self) -> None:
        if bool(self.line) == bool(self.file):
            raise Misfit("line", found=self.line or None, expected="either line or file")
        pattern("line", self.line)


class Providers(Table, frozen=True):
    """``[providers]``."""

    all_down: str = ""
    env: Variables = field(default_factory=dict)
    each: Variables = field(default_factory=dict)


class Setup(Table, frozen=True):
    """``[setup]``."""

    argv: tuple[str, ...]


class Skills(Table, frozen=True):
    """``[skills]``."""

    directory: str
    order: tuple[str, ...] = ()
    answers: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    shown: dict[str, tuple[str, ...]] = field(default_factory=dict)
    dangerous: tuple[str, ...] = ()
    files: dict[str, str] = field(default_factory=dict)


class Start(Table, frozen=True):
    """``[start]``."""

    ready_s: float = 30.0
    stop_s: float = 10.0
    home: Literal["kept", "fresh"] = "kept"
    directory: str = "{home}"
    root: str = "{home}/root"


class Texts(Table, frozen=True):
    """``[texts]``."""

    echo: str = ""
    eval: str = ""
    gateways: str = ""
    health: str = ""
    shell: str = ""
    skills: str = ""


class Tui(Table, frozen=True):
    """``[tui]``."""

    argv: tuple[str, ...] = ()
    prompt: str = ""
    connected: str = ""
    lost: str = ""


class DaemonTables(Tables, frozen=True):
    """Every table but ``[subject]`` and ``[env]``."""

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
