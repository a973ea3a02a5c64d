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

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness_core.base.errors import BadInput
from harness_core.system.suites import Table, read_toml

__all__ = ["Ledger", "Requirement", "load_ledger"]

_COVERED: Final = "covered"
_DEFERRED: Final = "deferred"
_PRIORITY: Final = r"[a-z][a-z0-9]*"
_PREFIX: Final = r"[A-Z][A-Z0-9]*(-[A-Z0-9]+)*-"
_REST: Final = r"[A-Z0-9]+(-[A-Z0-9]+)*"

#: Rules of ``_outside.py`` that a ledger may lift for its whole suite, with a reason.
OUTSIDE_RULES: Final = ("driver", "fake-client", "in-process", "local-write", "writes-rows")


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One row.

    Attributes:
        id: e.g. ``INT-003``, ``CONTRACT-5-SAFE``.
        title: what it is about.
        priority: a key of the ledger's ``priorities``; empty where it has none.
        asserts: what its tests must assert, in words.
        fails: what one of its tests must see refused or failing; empty when nothing can be.
        no_fail_path: why nothing can be; empty when something must be.
        covered: it has tests; otherwise it is deferred.
        reason: why it is deferred.
    """

    id: str
    title: str
    priority: str
    asserts: tuple[str, ...]
    fails: str
    no_fail_path: str
    covered: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """A ledger file.

    Attributes:
        path: the file.
        prefix: how every id begins.
        priorities: priority → the marker that its tests carry; empty where rows have none.
        faults_each: planted faults that every covered id must have.
        observers: modules of the outside world that tests may look with, besides the boundary.
        failures: texts and names, besides those of ``_fail_path.py``, of refusals and failures.
        stand_ins: fixture or method → the third party it stands in for, which the docstring of a
            test that uses it, or of its file, must say.
        allowed: rule of ``_outside.py`` that this suite is not held to → why.
        requirements: by id, in the order of the file.
    """

    path: Path
    prefix: str
    priorities: dict[str, str]
    faults_each: int
    observers: tuple[str, ...]
    failures: frozenset[str]
    stand_ins: dict[str, str]
    allowed: dict[str, str]
    requirements: dict[str, Requirement]

    @property
    def covered(self) -> tuple[Requirement, ...]:
        """The rows that have tests."""
        return tuple(row for row in self.requirements.values() if row.covered)

    @property
    def deferred(self) -> tuple[Requirement, ...]:
        """The rows that have none yet."""
        return tuple(row for row in self.requirements.values() if not row.covered)


def load_ledger(path: Path) -> Ledger:
    """Read a ledger.

    Raises:
        BadInput: the first mistake, with file and key.
    """
    content = read_toml(path)
    table = content.table("ledger")
    rows = content.tables("requirement")
    content.done()
    prefix = table.text("prefix", pattern=_PREFIX)
    priorities = table.mapping("priorities", default={})
    ledger = Ledger(
        path=path,
        prefix=prefix,
        priorities=priorities,
        faults_each=_count(table, "faults_each"),
        observers=table.texts("observers", default=()),
        failures=frozenset(table.texts("failures", default=())),
        stand_ins=table.mapping("stand_ins", default={}),
        allowed=table.mapping("allowed", default={}),
        requirements={},
    )
    table.done()
    for rule in ledger.allowed:
        if rule not in OUTSIDE_RULES:
            raise table.bad("allowed", rule, expected=f"rules out of {', '.join(OUTSIDE_RULES)}")
    for row in rows:
        requirement = _requirement(row, prefix=prefix, priorities=priorities)
        if requirement.id in ledger.requirements:
            raise row.bad("id", requirement.id, expected="an id used once")
        ledger.requirements[requirement.id] = requirement
    _check_numbers(ledger)
    return ledger


def _requirement(row: Table, *, prefix: str, priorities: dict[str, str]) -> Requirement:
    identity = row.text("id", pattern=f"{prefix}{_REST}")
    row = row.called(identity)
    priority = row.text("priority", default=None if priorities else "", pattern=_PRIORITY)
    if priority not in (priorities or {""}):
        known = (
            f"one of {', '.join(priorities)}" if priorities else "none: [ledger] has no priorities"
        )
        raise row.bad("priority", priority, expected=known)
    status = row.text("status")
    if status not in {_COVERED, _DEFERRED}:
        raise row.bad("status", status, expected=f"{_COVERED} or {_DEFERRED}")
    requirement = Requirement(
        id=identity,
        title=row.text("title"),
        priority=priority,
        asserts=row.texts("asserts"),
        fails=row.text("fails", default=""),
        no_fail_path=row.text("no_fail_path", default=""),
        covered=status == _COVERED,
        reason=row.text("reason", default=""),
    )
    row.done()
    if requirement.covered and requirement.reason:
        raise row.bad(
            "reason",
            requirement.reason,
            expected="none: the row is covered",
            next_step=f'Remove it, or set the status of {identity} to "{_DEFERRED}"',
        )
    if not requirement.covered and not requirement.reason:
        raise row.bad("reason", None, expected="a reason why the row is deferred")
    if bool(requirement.fails) == bool(requirement.no_fail_path):
        expected = "either what must be refused or fail, or no_fail_path: why nothing can be"
        raise row.bad("fails", requirement.fails or None, expected=expected)
    return requirement


def _count(table: Table, key: str) -> int:
    value = table.number(key, default=1)
    if value < 0:
        raise table.bad(key, value, expected="a number from 0 on")
    return value


def _check_numbers(ledger: Ledger) -> None:
    """Numbered ids count from 1 without a gap, so that a row cannot be dropped unseen.

    A number may have several rows, told apart by a word: ``CONTRACT-5-SAFE``.
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
