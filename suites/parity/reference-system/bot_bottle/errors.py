"""What a launcher refuses, in one sentence each. No message ever holds a value of an environment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class BottleError(Exception):
    """Base of everything the launcher raises on purpose."""


class ManifestError(BottleError):
    """A manifest is malformed: names file and key."""

    def __init__(self, path: object, key: str, problem: str) -> None:
        at = f"{path}: {key}" if key else str(path)
        super().__init__(f"cannot read {at}: {problem}")


class EnvError(BottleError):
    """An environment cannot be resolved: names the variable, never a value."""


class StateError(BottleError):
    """What is recorded of a bottle cannot be used."""


class HeldError(StateError):
    """A launcher that lives holds the bottle."""


class BackendError(BottleError):
    """A backend could not do its work."""


class RemediationError(BottleError):
    """A proposal cannot be applied; it stays pending and the bottle lives."""


@contextmanager
def told(kind: type[BottleError], doing: str) -> Iterator[None]:
    """What the host's file system refuses in this block is a refusal of the launcher.

    Raises:
        BottleError: of this kind, with what was being done and why it cannot be.
    """
    try:
        yield
    except OSError as error:
        raise kind(f"cannot {doing}: {error.strerror or error}") from error
