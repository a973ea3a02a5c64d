"""A suite's ledger of requirements: every id, what must be asserted for it, covered or deferred.

[ledger]
prefix = "INT-"
priorities = { p0 = "integration_p0", p1 = "integration_p1" }

[[requirement]]
id = "INT-003"
title = "Sessions cannot read each other"
priority = "p0"
asserts = ["two sessions at work at the same time each see their own files alone"]
fails = "reading the other session's file by any path is refused"
status = "covered"
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Final, Literal

from msgspec import Meta, field, structs

from harness_core.base.errors import BadInput
from harness_core.base.reading import (
    Misfit,
    SomeTexts,
    Table,
    Text,
    Texts,
    check_distinct,
    like,
    read_toml,
)

_REST: Final = r"[A-Z0-9]+(-[A-Z0-9]+)*"
_Status = Annotated[Literal["covered", "deferred"], Meta(description="covered or deferred")]
_TEXT_BY_NAME: Final = "a table of texts with at least one entry"
_ByName = Annotated[dict[str, str], Meta(min_length=1, description=_TEXT_BY_NAME)]

#: Rules of ``_outside.py`` that a ledger may lift for its whole suite, with a reason.
OUTSIDE_RULES: Final = ("driver", "fake-client", "in-process", "local-write", "writes-rows")


class Requirement(Table, frozen=True):
    """One row.

    Attributes:
        id: e.g. ``INT-003``, ``CONTRACT-5-SAFE``.
        title: what it is about.
        asserts: what its tests must assert, in words.
        status: ``covered``: it has tests; ``deferred``: it has none yet.
        priority: a key of the ledger's ``priorities``; empty where it has none.
        fails: what one of its tests must see refused or failing; empty when nothing can be.
        no_fail_path: why nothing can be; empty when something must be.
        reason: why it is deferred.
    """

    id: Text
    title: Text
    asserts: SomeTexts
    status: _Status
    priority: str = ""
    fails: str = ""
    no_fail_path: str = ""
    reason: str = ""

    def __post_init__(self) -> None:
        check_distinct(self, "asserts")
        if self.covered and self.reason:
            raise Misfit(
                "reason",
                expected="none: the row is covered",
                next_step=f'Remove it, or set the status of {self.id} to "deferred"',
            )
        if not self.covered and not self.reason.strip():
            raise Misfit("reason", expected="a reason why the row is deferred")
        if bool(self.fails.strip()) == bool(self.no_fail_path.strip()):
            expected = "either what must be refused or fail, or no_fail_path: why nothing can be"
            raise Misfit("fails", expected=expected)

    @property
    def covered(self) -> bool:
        """It has tests; otherwise it is deferred."""
        return self.status == "covered"


class _LedgerTable(Table, frozen=True):
    """``[ledger]``.

    Attributes:
        prefix: how every id begins.
        priorities: priority → the marker that its tests carry; empty where rows have none.
        whole: priorities that must be shown whole: none of their rows is deferred, and a session in
            which one ends skipped or known to fail is red.
        faults_each: planted faults that every covered id must have.
        observers: modules of the outside world that tests may look with, besides the boundary.
        failures: texts and names, besides the usual ones, by which tests see a refusal or a failure.
        stand_ins: fixture or method → the third party it stands in for, which the docstring of a
            test that uses it, or of its file, must say.
        allowed: rule for tests from outside that this suite is not held to → why.
    """

    prefix: Annotated[str, like(r"[A-Z][A-Z0-9]*(-[A-Z0-9]+)*-")]
    priorities: _ByName = field(default_factory=dict)
    whole: Texts = ()
    faults_each: Annotated[int, Meta(ge=0)] = 1
    observers: Texts = ()
    failures: frozenset[Text] = frozenset()
    stand_ins: _ByName = field(default_factory=dict)
    allowed: _ByName = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_distinct(self, "observers")
        check_distinct(self, "whole")
        for priority in self.whole:
            if priority not in self.priorities:
                expected = f"priorities out of {', '.join(self.priorities) or 'none'}"
                raise Misfit("whole", found=priority, expected=expected)
        for rule in self.allowed:
            if rule not in OUTSIDE_RULES:
                expected = f"rules out of {', '.join(OUTSIDE_RULES)}"
                raise Misfit("allowed", found=rule, expected=expected)


class Ledger(_LedgerTable, frozen=True, kw_only=True):
    """A ledger file: what its first table says, besides the following.

    Attributes:
        path: the file.
        requirements: by id, in the order of the file.
    """

    path: Path
    requirements: dict[str, Requirement]

    @property
    def covered(self) -> tuple[Requirement, ...]:
        """The rows that have tests."""
        return tuple(row for row in self.requirements.values() if row.covered)

    @property
    def deferred(self) -> tuple[Requirement, ...]:
        """The rows that have none yet."""
        return tuple(row for row in self.requirements.values() if not row.covered)


class LedgerFile(Table, frozen=True):
    """The file, as it is written.

    Attributes:
        ledger: what holds for all rows.
        requirement: one row each.
    """

    ledger: _LedgerTable
    requirement: Annotated[
        tuple[Requirement, ...], Meta(min_length=1, description="at least one [[requirement]]")
    ]

    def __post_init__(self) -> None:
        identity = rf"{self.ledger.prefix}{_REST}"
        priorities = self.ledger.priorities
        known = f"one of {', '.join(priorities)}" if priorities else "none: [ledger] has none"
        seen: set[str] = set()
        for number, row in enumerate(self.requirement):
            if not re.fullmatch(identity, row.id):
                raise Misfit("requirement", number, "id", expected=f"a text like {identity}")
            if row.id in seen:
                raise Misfit("requirement", number, "id", expected="an id used once")
            seen.add(row.id)
            if row.priority not in (priorities or {""}):
                raise Misfit("requirement", number, "priority", expected=known)
            if row.priority in self.ledger.whole and not row.covered:
                expected = f"covered: {row.priority} is shown whole, see [ledger]"
                raise Misfit("requirement", number, "status", expected=expected)


def load_ledger(path: Path) -> Ledger:
    """Read a ledger.

    Raises:
        BadInput: the first mistake, with file and key.
    """
    file = read_toml(path, LedgerFile, named_by="id")
    requirements = {row.id: row for row in file.requirement}
    ledger = Ledger(**structs.asdict(file.ledger), path=path, requirements=requirements)
    _check_numbers(ledger)
    return ledger


def _check_numbers(ledger: Ledger) -> None:
    """Numbered ids count from 1 without a gap, so that a row cannot be dropped unseen.

    A number may have several rows, distinguished by a word: ``CONTRACT-5-SAFE``.
    """
    numbers = [
        identity.removeprefix(ledger.prefix).partition("-")[0] for identity in ledger.requirements
    ]
    if not any(number.isdecimal() for number in numbers):
        return
    width, last = len(numbers[0]), 0
    for index, (identity, number) in enumerate(zip(ledger.requirements, numbers, strict=True)):
        same, following = f"{last:0{width}}", f"{last + 1:0{width}}"
        if number != following and (number != same or not last):
            raise BadInput(
                ledger.path,
                key=f"requirement[{index}].id",
                found=identity,
                expected=f"{ledger.prefix}{following}: numbered ids in order and without a gap, "
                "deferred ones included",
            )
        last = int(number)
