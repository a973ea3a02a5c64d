"""A start before and after it: its arguments, its log, why it failed."""

from __future__ import annotations

import errno
import pwd
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness_core.base.errors import BadInput, Unavailable
from harness_core.base.evidence import Evidence
from harness_core.process import _warden


def check_name(name: str, *, where: str) -> None:
    """Refuse a name that would lead to another directory.

    Raises:
        BadInput: it is no single path component.
    """
    if not name or name in {".", ".."} or "/" in name or "\0" in name:
        raise BadInput(where, key="name", found=name, expected="one path component")


def check_arguments(
    name: str, *, argv: tuple[str, ...], env: Mapping[str, str], listen: Sequence[socket.socket]
) -> None:
    """Refuse what the kernel or the control socket would refuse without saying which it was.

    Raises:
        BadInput: with the argument in ``key``.
    """
    if not argv or not argv[0]:
        raise BadInput(name, key="argv", found=list(argv), expected="at least a program")
    for number, word in enumerate(argv):
        if "\0" in word:
            raise BadInput(name, key=f"argv[{number}]", found=word, expected="no null character")
    for key, value in env.items():
        if not key or "=" in key or "\0" in key + value:
            raise BadInput(
                name,
                key=f"env.{key}",
                found=value,
                expected="a name without '=', and no null character",
            )
    if len(listen) >= _warden.FDS_PER_FRAME:
        raise BadInput(
            name,
            key="listen",
            found=f"{len(listen)} sockets",
            expected=f"at most {_warden.FDS_PER_FRAME - 1}",
        )
    for number, sock in enumerate(listen):
        if sock.fileno() < 0:
            raise BadInput(
                name, key=f"listen[{number}]", found="a closed socket", expected="an open one"
            )


def group_of(user: int) -> int:
    """The primary group of a user; for a number without a name, the group of that number."""
    try:
        return pwd.getpwuid(user).pw_gid
    except KeyError:
        return user


def new_log(evidence: Evidence, name: str) -> Path:
    """An empty log; two children of one name in one directory would write into one file."""
    evidence.path.mkdir(parents=True, exist_ok=True)
    path, number = evidence.path / f"{name}.log", 2
    while True:
        try:
            path.touch(exist_ok=False)
        except FileExistsError:
            path, number = evidence.path / f"{name}-{number}.log", number + 1
        else:
            return path


def not_started(name: str, request: Mapping[str, Any], failed: Mapping[str, Any]) -> Unavailable:
    """Which of the things a start needs was missing, in words."""
    program = request["argv"][0]
    objects = {
        "chdir": (f"enter its working directory {request['cwd']}", "Make that directory first"),
        "become": (
            f"become user {request['uid']}, group {request['gid']}",
            "Run the harness as root, or the child as the same user",
        ),
        "execute": (
            f"execute {program}",
            "Check that it is installed and on the PATH given to it",
        ),
    }
    attempt, next_step = objects.get(
        failed["step"], (f"make a process for {program}", "See what the machine has run out of")
    )
    there = "/" in program and Path(request["cwd"] or ".", program).is_file()
    if failed["step"] == "execute" and failed.get("errno") == errno.ENOENT and there:
        next_step = "The file is there: check the interpreter that its first line names"
    action = f"start {name}"
    return Unavailable(action, observed=f"cannot {attempt}: {failed['text']}", next_step=next_step)
