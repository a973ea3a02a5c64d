"""What the dispatcher says about a command."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


class Refused(Exception):
    """A command that will not run; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A command that may run.

    Attributes:
        ours: files and directories that are the commands' own afterwards, if they are there.
        writes: whether it changes anything: what holds now must hold until it has run.
    """

    ours: tuple[Path, ...]
    writes: bool
