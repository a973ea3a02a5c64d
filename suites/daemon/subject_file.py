"""The subject file of a daemon, read whole: a table or key that no test reads is a mistake.

What each table means: README.md. What a capability needs of them must be there when the file claims
the capability.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from harness_core.base.errors import BadInput
from harness_core.system.subject import Subject, load_subject
from harness_core.system.suites import Shape

__all__ = ["read_subject"]

#: Names and values of environment variables, with ``{fields}`` in both.
_VARIABLES: Final[Shape] = {"*": str}

#: Settings that a test may turn.
KNOBS: Final = ("connections", "depth", "frame_characters", "frame_s", "idle_s", "refuse_shutdown")

#: Every table but ``[subject]`` and ``[env]``.
TABLES: Final[Shape] = {
    "emacs": {"library": [str], "say": str, "insert": str, "insert_under": str},
    "knobs": dict.fromkeys(KNOBS, _VARIABLES),
    "port": {"line!": str},
    "providers": {"all_down": str, "env": _VARIABLES, "each": _VARIABLES},
    "setup": {"argv!": [str]},
    "skills": {
        "directory!": str,
        "order": [str],
        "answers": {"*": str},
        "reasons": {"*": str},
        "files": {"*": str},
    },
    "texts": {"echo": str, "shell": str},
    "tui": {"argv": [str], "prompt": str, "connected": str, "lost": str},
}

#: Capability → the table and its keys that tests of it read.
_NEEDS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "echo": ("texts", ("echo",)),
    "emacs": ("emacs", ("library", "say", "insert", "insert_under")),
    "providers": ("providers", ("all_down", "env", "each")),
    "shell-text": ("texts", ("shell",)),
    "tui": ("tui", ("argv", "prompt", "connected", "lost")),
}

#: What tests look for when there are files of skills to look at.
_OF_SKILLS: Final = ("order", "answers", "reasons")


def read_subject(path: Path) -> Subject:
    """A subject file.

    Args:
        path: the file.

    Raises:
        BadInput: the first mistake in it, with file and key.
    """
    subject = load_subject(path)
    subject.check_tables(TABLES)
    for capability, (table, keys) in _NEEDS.items():
        if capability in subject.capabilities:
            _check(subject, table, keys, why=f"the capability {capability!r} is claimed")
    if "files" in subject.table("skills"):
        _check(subject, "skills", _OF_SKILLS, why="there are files of skills")
    return subject


def _check(subject: Subject, table: str, keys: tuple[str, ...], *, why: str) -> None:
    for key in keys:
        if key not in subject.table(table):
            raise BadInput(
                subject.path, key=f"{table}.{key}", found=None, expected=f"it there, since {why}"
            )
