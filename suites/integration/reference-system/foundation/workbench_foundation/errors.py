"""What stops a service; the text is one line for the operator."""

from __future__ import annotations


class ConfigError(Exception):
    """A setting is missing or malformed.

    Args:
        name: of the environment variable.
        found: its value.
        expected: what would have been taken.
    """

    def __init__(self, name: str, *, found: str | None, expected: str) -> None:
        shown = "nothing" if found is None else repr(found)
        super().__init__(f"cannot read the environment: {name} is {shown}, expected {expected}")
        self.name = name


def describe(error: BaseException) -> str:
    """An error in one line; of a group, its first."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
