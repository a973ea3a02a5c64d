"""What runs inside a simulated guest: an environment, files, and the few scripts that look at them.

Every script a scenario runs in a guest is made here, and the simulated guest understands these and
no others. In the live lane the same scripts are run by the guest's own shell.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from suites.parity.compare import Reply, UnknownInvocation

__all__ = [
    "ENVIRONMENT",
    "USER",
    "Guest",
    "Ran",
    "read_environment",
    "script_that_answers",
    "script_that_dies",
    "script_that_reads",
]

#: The whole environment, NUL-terminated entries.
ENVIRONMENT: Final = "env -0"

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


def read_environment(printed: str) -> dict[str, str]:
    """What :data:`ENVIRONMENT` printed, as a mapping."""
    entries = (entry.partition("=") for entry in printed.split("\0") if entry)
    return {name: value for name, _, value in entries}


_ANSWERS: Final = re.compile(
    r"printf %s (?P<out>.*); printf %s (?P<err>.*) >&2; exit (?P<code>[0-9]+)", re.DOTALL
)
_DIES: Final = re.compile(r"kill -(?P<signal>[0-9]+) \$\$")
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
    """

    guest: str
    argv: tuple[str, ...]
    user: str
    tty: bool | None = None
    interactive: bool | None = None


@dataclass(slots=True, kw_only=True)
class Guest:
    """One simulated guest.

    Attributes:
        env: what every process in it inherits.
        files: path → contents; a stand-in for its file system.
        image: what it was made of.
        labels: what its tool knows it by, beside its name.
        is_running: commands can be run in it.
    """

    env: dict[str, str] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    image: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    is_running: bool = True

    def run(  # noqa: PLR0911 - one row per script
        self,
        argv: tuple[str, ...],
        *,
        env: Mapping[str, str],
        user: str,
        read: Callable[[str], bytes | None] | None = None,
    ) -> Reply:
        """Run a command in the guest.

        Args:
            argv: the command.
            env: what this command gets on top of the guest's environment.
            user: who runs it.
            read: how a file is read, where the guest's files are not in ``files``.

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
        match shlex.split(script):
            case ["true"]:
                return Reply()
            case ["cat", "--", path]:
                contents = (read or self.files.get)(path)
                if contents is not None:
                    return Reply(stdout=contents)
                message = f"cat: {path}: No such file or directory\n"
                return Reply(returncode=1, stderr=message.encode())
        message = f"the simulated guest does not understand {script!r}"
        raise UnknownInvocation(message)


def _bytes(text: str) -> bytes:
    """A text as the system has it, whatever its encoding was."""
    return text.encode(errors="surrogateescape")
