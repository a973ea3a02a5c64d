"""What can stop a butler, and with which exit code.

Each error renders as one line: ``cannot VERB OBJECT: OBSERVED. NEXT STEP``.
"""

from __future__ import annotations

from pathlib import Path


class ButlerError(Exception):
    """A butler cannot do what it was asked; the text is one line for the operator."""

    exit_code = 1


class ConfigError(ButlerError):
    """A file or variable given to the butler is malformed.

    Args:
        where: the file (with line when known) or the environment.
        key: dotted key or variable name; empty when the whole is unreadable.
        found: what was there.
        expected: what would have been accepted.
    """

    exit_code = 2

    def __init__(self, where: str | Path, *, key: str = "", found: object, expected: str) -> None:
        at = f"{where}: {key}" if key else str(where)
        shown = found if isinstance(found, Missing) else repr(found)
        super().__init__(f"cannot read {at}: found {shown}, expected {expected}")
        self.where = str(where)
        self.key = key
        self.found = found
        self.expected = expected


class Missing:
    """Stands for "not there" in :class:`ConfigError`, and reads so."""

    def __init__(self, what: str = "nothing") -> None:
        self.what = what

    def __str__(self) -> str:
        return self.what

    __repr__ = __str__


class StartError(ButlerError):
    """The configuration is fine, the world is not: busy port, no database, no runtime."""


class DatabaseProblem(StartError):
    """The database does not exist, does not answer, or refuses a migration."""


class Rejected(ButlerError):
    """A request was refused before any work was done.

    Args:
        error_class: one of the outcome classes of the contract, e.g. ``overload_rejected``.
    """

    def __init__(self, message: str, *, error_class: str) -> None:
        super().__init__(message)
        self.error_class = error_class
