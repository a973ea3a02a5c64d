"""Why one test is not run."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NoReturn

import pytest


class Why(StrEnum):
    """Kinds of causes.

    A gate is closed on this machine; the subject does not claim what the test is about; the options
    of the run exclude the test; or no kind was given, which CI never accepts.
    """

    GATE = "gate"
    SUBJECT = "subject"
    OPTIONS = "options"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Why a test was not run.

    Attributes:
        why: its kind.
        reason: a phrase for people.
        gate: the gate that is closed, for that kind.
    """

    why: Why
    reason: str
    gate: str = ""

    def text(self) -> str:
        """The cause in one line."""
        return f"gate {self.gate!r}: {self.reason}" if self.gate else self.reason


class NotRun(pytest.skip.Exception):  # type: ignore[name-defined,misc]  # it is, at run time
    """Ends a test that is not run; raised by :func:`not_run`."""

    def __init__(self, cause: Cause) -> None:
        super().__init__(cause.text(), _use_item_location=True)
        self.cause = cause


def not_run(why: str, reason: str, *, gate: str = "") -> NoReturn:
    """End the test that runs now without an outcome.

    Args:
        why: ``"gate"``, ``"subject"`` or ``"options"``.
        reason: a phrase that names what is missing.
        gate: which gate, for ``"gate"``.
    """
    raise NotRun(Cause(why=Why(why), reason=reason, gate=gate))


def cause_of(skipped: BaseException) -> Cause:
    """The cause that a skip carries; a plain ``pytest.skip`` is of no known kind."""
    if isinstance(skipped, NotRun):
        return skipped.cause
    reason = getattr(skipped, "msg", None) or "no reason given"
    return Cause(why=Why.UNKNOWN, reason=str(reason))
