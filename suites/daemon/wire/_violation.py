"""Whose fault it is when a conversation breaks, and how far it got.

What we read comes from the other side, so what is wrong with it is the product's doing: an
assertion. What we print comes from us, so what is wrong with it is a mistake in a test: a harness
error. (The split into local and remote errors is that of h11.)
"""

from __future__ import annotations

from enum import StrEnum

from harness_core.base.errors import HarnessError

__all__ = ["LocalProtocolError", "RemoteProtocolError", "Violation"]


class Violation(StrEnum):
    """In which way the other side broke the protocol."""

    PREFIX = "prefix"
    """Something other than six hexadecimal digits where a frame begins."""

    SIZE = "size"
    """More than the reader is willing to take."""

    ENCODING = "encoding"
    """Bytes that are no UTF-8."""

    SYNTAX = "syntax"
    """Text that is not one s-expression of the subset."""

    READER_MACRO = "reader macro"
    """``#`` and whatever it would make a Lisp reader do; ``#.`` would evaluate."""

    DEPTH = "depth"
    """Lists nested deeper than the reader follows."""

    SHAPE = "shape"
    """A well-formed s-expression that is not what was agreed on, e.g. no property list."""

    TRUNCATED = "truncated"
    """The connection ended inside a frame."""

    CLOSED = "closed"
    """The connection ended, or was reset, where an answer was due."""

    SILENT = "silent"
    """Nothing, or not enough, came in the time it had."""


class RemoteProtocolError(AssertionError):
    """The other side broke the protocol: the product failed.

    Args:
        violation: in which way.
        observed: what was read instead of what was due.
        progress: how far reading got, e.g. ``"read 3 of 6 prefix digits"``.
        transcript: the bytes exchanged so far, as text, when a connection was involved.
    """

    def __init__(
        self, violation: Violation, *, observed: str, progress: str = "", transcript: str = ""
    ) -> None:
        super().__init__(violation, observed)
        self.violation = violation
        self.observed = observed
        self.progress = progress
        self.transcript = transcript

    def __str__(self) -> str:
        text = f"{self.violation}: {self.observed}"
        if self.progress:
            text += f"; {self.progress}"
        if self.transcript:
            text += f"\nbytes exchanged:\n{self.transcript}"
        return text


class LocalProtocolError(HarnessError):
    """A test asked for something that cannot be put on the wire.

    Args:
        observed: what it asked for.
    """

    def __init__(self, observed: str, *, next_step: str = "") -> None:
        super().__init__("print a frame", observed=observed, next_step=next_step)
