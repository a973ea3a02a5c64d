"""What runs inside a simulated guest: an environment, files, and the few scripts that look at them.

Every script a scenario runs in a guest is made here, and the simulated guest understands these and
no others. In the live lane the same scripts are run by the guest's own shell.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from stat import S_IMODE
from typing import Final, Protocol

from suites.parity.compare import Reply, UnknownInvocation

__all__ = [
    "ENVIRONMENT",
    "USER",
    "USERS",
    "Files",
    "Guest",
    "Ran",
    "followed",
    "read_environment",
    "script_that_answers",
    "script_that_dies",
    "script_that_links",
    "script_that_reads",
    "script_that_shows_the_mode",
]

#: The whole environment, NUL-terminated entries.
ENVIRONMENT: Final = "env -0"

#: Who a guest has a line for in its /etc/passwd: number → name.
USERS: Final[Mapping[str, str]] = {"0": "root", "1000": "node"}

#: The name of the user that runs it.
USER: Final = "id -un"


def script_that_answers(stdout: str, stderr: str, returncode: int) -> str:
    """A script with this output and this exit status."""
    return (
        f"printf %s {shlex.quote(stdout)}; printf %s {shlex.quote(stderr)} >&2; exit {returncode}"
    )


def script_that_dies(signal: int) -> str:
    """A script that ends by a signal."""
    return f"kill -{signal} $$"


def script_that_reads(path: str) -> str:
    """A script that prints a file of the guest."""
    return f"cat -- {shlex.quote(path)}"


def script_that_links(target: str, path: str) -> str:
    """A script that makes a symbolic link in the guest."""
    return f"ln -s -- {shlex.quote(target)} {shlex.quote(path)}"


def script_that_shows_the_mode(path: str) -> str:
    """A script that prints the permissions of a file of the guest, as an octal number."""
    return f"stat -L -c %a -- {shlex.quote(path)}"


def read_environment(printed: str) -> dict[str, str]:
    """What :data:`ENVIRONMENT` printed, as a mapping."""
    entries = (entry.partition("=") for entry in printed.split("\0") if entry)
    return {name: value for name, _, value in entries}


_ANSWERS: Final = re.compile(
    r"printf %s (?P<out>.*); printf %s (?P<err>.*) >&2; exit (?P<code>[0-9]+)", re.DOTALL
)
_DIES: Final = re.compile(r"kill -(?P<signal>[0-9]+) \$\$")
#: More links than this on one path are a circle, to Linux as well.
_LINKS: Final = 40
_SHELLS: Final = ("sh", "bash", "/bin/sh", "/bin/bash")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """One command that was run in a guest.

    Attributes:
        guest: the name its tool knows it by; empty for a tool without names.
        argv: the command.
        user: who ran it.
        tty: it was given a terminal; ``None`` where the tool passes its own on.
        interactive: it was given an input; ``None`` as above.
        env: its whole environment.
    """

    guest: str
    argv: tuple[str, ...]
    user: str
    tty: bool | None = None
    interactive: bool | None = None
    env: Mapping[str, str] = field(repr=False)


class Files(Protocol):
    """The files that a guest sees; links mean what they mean in the guest."""

    def read(self, path: str) -> bytes | None:
        """The contents of a file; ``None`` where there is none."""

    def mode(self, path: str) -> int | None:
        """Its permissions; ``None`` where there is none."""

    def link(self, target: str, path: str) -> bool:
        """Make a symbolic link; whether that can be done."""


def followed(path: str, link_at: Callable[[PurePosixPath], str | None]) -> PurePosixPath | None:
    """Where a path of a guest leads, all links on it followed; ``None`` for a circle of them.

    Args:
        path: in the guest, from its root.
        link_at: what a link holds; ``None`` for what is no link.
    """
    left, place = list(PurePosixPath(path).parts[::-1]), PurePosixPath("/")
    for _ in range(_LINKS):
        while left:
            part = left.pop()
            if part == "..":
                place = place.parent
                continue
            place /= part
            if (target := link_at(place)) is not None:
                left += PurePosixPath(target).parts[::-1]
                place = place.parent
                break
        else:
            return place
    return None


@dataclass(slots=True, kw_only=True)
class Guest:
    """One simulated guest.

    Attributes:
        env: what every process in it inherits.
        files: path → contents; a stand-in for its file system.
        modes: path → permissions, of what was copied in.
        links: path → what a symbolic link holds.
        mounts: path → the folder or file of the host that is to be seen there.
        image: what it was made of.
        labels: what its tool knows it by, beside its name.
        is_running: commands can be run in it.
        has_run: they could once; one that was made and never started has not.
    """

    env: dict[str, str] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    modes: dict[str, int] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    mounts: dict[str, Path] = field(default_factory=dict)
    image: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    is_running: bool = True
    has_run: bool = True

    def start(self) -> None:
        """Let commands be run in it."""
        self.is_running = self.has_run = True

    def state(self, ended: str) -> str:
        """What its tool says of it; ``ended`` is the word of that tool for one that ran once."""
        return "running" if self.is_running else ended if self.has_run else "created"

    def place(self, path: str) -> str:
        """Where a path leads; that of a circle of links leads nowhere."""
        place = followed(path, lambda each: self.links.get(str(each)))
        return "" if place is None else str(place)

    def read(self, path: str) -> bytes | None:
        """The contents of a file."""
        file = self._mounted(path)
        return self.files.get(self.place(path)) if file is None else file.read_bytes()

    def mode(self, path: str) -> int | None:
        """Its permissions."""
        file = self._mounted(path)
        return self.modes.get(self.place(path)) if file is None else S_IMODE(file.stat().st_mode)

    def _mounted(self, path: str) -> Path | None:
        """The file of the host that is seen at a path."""
        place = PurePosixPath(self.place(path))
        for above in (place, *place.parents):
            if (source := self.mounts.get(str(above))) is not None:
                file = source / place.relative_to(above)
                return file if file.is_file() else None
        return None

    def link(self, target: str, path: str) -> bool:
        """Make a symbolic link."""
        above, name = self.place(str(PurePosixPath(path).parent)), PurePosixPath(path).name
        place = str(PurePosixPath(above) / name)
        if not above or place in self.files or place in self.links:
            return False
        self.links[place] = target
        return True

    def run(
        self,
        argv: tuple[str, ...],
        *,
        env: Mapping[str, str],
        user: str,
        files: Files | None = None,
    ) -> Reply:
        """Run a command in the guest.

        Args:
            argv: the command.
            env: what this command gets on top of the guest's environment.
            user: who runs it.
            files: those it sees, where they are not this guest's own.

        Raises:
            UnknownInvocation: it is none of the scripts that this guest understands.
        """
        match argv:
            case (shell, "-c" | "-lc", script) if shell in _SHELLS:
                pass
            case _:
                script = shlex.join(argv)
        environment = {**self.env, **env}
        if script == ENVIRONMENT:
            printed = "".join(f"{name}={value}\0" for name, value in environment.items())
            return Reply(stdout=_bytes(printed))
        if script == USER:
            return Reply(stdout=f"{user}\n".encode())
        if answers := _ANSWERS.fullmatch(script):
            (out,), (err,) = shlex.split(answers["out"]), shlex.split(answers["err"])
            return Reply(returncode=int(answers["code"]), stdout=_bytes(out), stderr=_bytes(err))
        if dies := _DIES.fullmatch(script):
            return Reply(returncode=128 + int(dies["signal"]))
        return _run_one_command(script, files or self)


def _run_one_command(script: str, seen: Files) -> Reply:
    """The scripts that are one command each."""
    match shlex.split(script):
        case ["true"]:
            return Reply()
        case ["printf", "%s\\0", *words]:
            return Reply(stdout=_bytes("".join(f"{word}\0" for word in words)))
        case ["cat", "--", path]:
            contents = seen.read(path)
            return _missing("cat", path) if contents is None else Reply(stdout=contents)
        case ["stat", "-L", "-c", "%a", "--", path]:
            mode = seen.mode(path)
            return _missing("stat", path) if mode is None else Reply(stdout=b"%o\n" % mode)
        case ["ln", "-s", "--", target, path]:
            return Reply() if seen.link(target, path) else _missing("ln", path)
    message = f"the simulated guest does not understand {script!r}"
    raise UnknownInvocation(message)


def _missing(command: str, path: str) -> Reply:
    message = f"{command}: {path}: No such file or directory\n"
    return Reply(returncode=1, stderr=message.encode())


def _bytes(text: str) -> bytes:
    """A text as the system has it, whatever its encoding was."""
    return text.encode(errors="surrogateescape")
