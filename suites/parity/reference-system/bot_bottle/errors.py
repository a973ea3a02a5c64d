"""What a launcher refuses, in one sentence each. No message ever holds a value of an environment."""

from __future__ import annotations


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


class BackendError(BottleError):
    """A backend could not do its work."""


class RemediationError(BottleError):
    """A proposal cannot be applied; it stays pending and the bottle lives."""
