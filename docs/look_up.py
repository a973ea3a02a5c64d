"""What a page says of commands, keys and names, looked up where they are declared."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import click

from harness_core.front.cli import cli
from harness_core.front.pages import known_keys

ROOT: Final = Path(__file__).resolve().parent.parent


def check_keys(file: str, value: Mapping[str, Any]) -> str | None:
    """Say which keys of a table are none of a file; ``None`` when all are.

    Args:
        file: what the pages call it: ``suite.toml``, ``subject files``.
        value: the file, read.
    """
    wrong = list(_unknown(value, known_keys(file, ROOT), at=""))
    return f"{file} has no {', '.join(wrong)}" if wrong else None


def _unknown(value: Mapping[str, Any], known: frozenset[str], *, at: str) -> Iterator[str]:
    """Keys that there are not; those of a table of the author's own names are all right."""
    for key, inner in value.items():
        place, free = f"{at}{key}", f"{at}NAME"
        below = {each for each in (place, free) if any(k.startswith(f"{each}.") for k in known)}
        if place not in known and free not in known and not below:
            yield place
        for row in inner if isinstance(inner, list) else [inner]:
            if isinstance(row, dict) and below:
                yield from _unknown(row, known, at=f"{min(below)}.")


def check_imports(tree: ast.Module) -> str | None:
    """Say which names that a block imports are not there; ``None`` when all are.

    What it imports must be installed, so that code of other libraries is true to their releases.
    """
    wrong = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                import_module(each.name)
        elif isinstance(node, ast.ImportFrom) and node.module:
            module = import_module(node.module)
            wrong += [
                f"{node.module} has no {each.name}"
                for each in node.names
                if not hasattr(module, each.name)
            ]
    return "\n".join(wrong) or None


def check_command(command: str, *, folder: Path = ROOT) -> str | None:
    """Say what is wrong with a command line that is not run; ``None`` when nothing is, or nothing is known.

    Args:
        command: the line.
        folder: where it is said: sessions are those of a noxfile below it, else of this tree.
    """
    words = shlex.split(command, comments=True)
    while words and "=" in words[0]:
        words = words[1:]
    if words[:1] == ["harness"]:
        return _check_harness(words[1:], cli, command)
    if words[:2] == ["nox", "-s"] and words[2] not in _sessions(_noxfile(folder)):
        return f"nox has no session {words[2]}: {command}"
    return None


def _check_harness(words: list[str], group: click.Command, command: str) -> str | None:
    options = {name for each in group.params for name in [*each.opts, *each.secondary_opts]}
    for word in words:
        if word == "--":
            break
        if word.startswith("-"):
            known = options | {"-h", "--help", "--version"}
            if word.partition("=")[0] not in known and not _hands_on(group):
                return f"no option {word}: {command}"
        elif isinstance(group, click.Group):
            rest = words[words.index(word) :]
            # `harness mutate SUITE` is `harness mutate run SUITE`.
            name, rest = (word, rest[1:]) if word in group.commands else ("run", rest)
            if name not in group.commands:
                return f"no command {word}: {command}"
            return _check_harness(rest, group.commands[name], command)
    return None


def _hands_on(command: click.Command) -> bool:
    """Whether it gives words that it does not know to something else."""
    return bool(command.context_settings.get("ignore_unknown_options"))


def _noxfile(folder: Path) -> Path:
    found = folder.glob("*/noxfile.py") if folder != ROOT else iter(())
    return next(found, ROOT / "noxfile.py")


@cache
def _sessions(noxfile: Path) -> frozenset[str]:
    """What ``nox -s`` takes there."""
    done = subprocess.run(
        [sys.executable, "-m", "nox", "-l", "-f", str(noxfile)],
        capture_output=True,
        text=True,
        check=True,
    )
    return frozenset(re.findall(r"(?m)^[*-] ([\w-]+)", done.stdout))
