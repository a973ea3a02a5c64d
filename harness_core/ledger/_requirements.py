"""A suite's ledger of requirements: every id, what must be asserted for it, covered or deferred.

[ledger]
prefix = "INT-"
marker = "int_id"
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

from harness_core.errors import BadInput
from harness_core.suites import Table, read_toml

__all__ = ["Ledger", "Requirement", "load_ledger"]

_COVERED: Final = "covered"
_DEFERRED: Final = "deferred"
_WORD: Final = r"[a-z][a-z0-9_]*"
_PRIORITY: Final = r"[a-z][a-z0-9]*"
_PREFIX: Final = r"[A-Z][A-Z0-9]*-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One row.

    Attributes:
        id: e.g. ``INT-003``.
        title: what it is about.
        priority: a key of the ledger's ``priorities``.
        asserts: what its test must assert, in words.
        fails: what its test must see refused or failing; empty when nothing can be.
        no_fail_path: why nothing can be; empty when something must be.
        covered: it has a test; otherwise it is deferred.
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
        marker: the pytest marker that names the id a test covers.
        priorities: priority → the marker that its tests carry.
        faults_each: planted faults that every covered id must have.
        observers: modules of the outside world that tests may look with, besides HTTP.
        stand_ins: fixture or method → the third party it stands in for, which a test that uses it
            must say in its docstring.
        requirements: by id, in the order of the file.
    """

    path: Path
    prefix: str
    marker: str
    priorities: dict[str, str]
    faults_each: int
    observers: tuple[str, ...]
    stand_ins: dict[str, str]
    requirements: dict[str, Requirement]

    @property
    def covered(self) -> tuple[Requirement, ...]:
        """The rows that have a test."""
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
    priorities = table.mapping("priorities")
    ledger = Ledger(
        path=path,
        prefix=prefix,
        marker=table.text("marker", pattern=_WORD),
        priorities=priorities,
        faults_each=_count(table, "faults_each"),
        observers=table.texts("observers", default=()),
        stand_ins={str(key): str(value) for key, value in table.optional("stand_ins").items()},
        requirements={},
    )
    table.done()
    for row in rows:
        requirement = _requirement(row, prefix=prefix, priorities=priorities)
        if requirement.id in ledger.requirements:
            raise row.bad("id", requirement.id, expected="an id used once")
        ledger.requirements[requirement.id] = requirement
    _check_numbers(ledger)
    return ledger


def _requirement(row: Table, *, prefix: str, priorities: dict[str, str]) -> Requirement:
    identity = row.text("id", pattern=rf"{prefix}\d{{3}}")
    row = row.called(identity)
    priority = row.text("priority", pattern=_PRIORITY)
    if priority not in priorities:
        raise row.bad("priority", priority, expected=f"one of {', '.join(priorities)}")
    status = row.text("status")
    if status not in {_COVERED, _DEFERRED}:
        raise row.bad("status", status, expected=f"{_COVERED} or {_DEFERRED}")
    reason = row.text("reason", default="")
    if bool(reason) != (status == _DEFERRED):
        expected = "a reason for a deferred row" if status == _DEFERRED else "none: it is covered"
        raise row.bad("reason", reason or None, expected=expected)
    fails, no_fail_path = row.text("fails", default=""), row.text("no_fail_path", default="")
    if bool(fails) == bool(no_fail_path):
        expected = "either what must be refused or fail, or no_fail_path: why nothing can be"
        raise row.bad("fails", fails or None, expected=expected)
    requirement = Requirement(
        id=identity,
        title=row.text("title"),
        priority=priority,
        asserts=row.texts("asserts"),
        fails=fails,
        no_fail_path=no_fail_path,
        covered=status == _COVERED,
        reason=reason,
    )
    row.done()
    return requirement


def _count(table: Table, key: str) -> int:
    value = table.number(key, default=1)
    if value < 0:
        raise table.bad(key, value, expected="a number from 0 on")
    return value


def _check_numbers(ledger: Ledger) -> None:
    """Ids are counted from 001 without a gap: a row cannot be dropped unseen."""
    ids = list(ledger.requirements)
    for number, wanted in enumerate(f"{ledger.prefix}{n:03d}" for n in range(1, len(ids) + 1)):
        if wanted not in ledger.requirements:
            raise BadInput(
                ledger.path,
                key="requirement.id",
                found=f"{len(ids)} rows, and none of them is {wanted}",
                expected=f"every id from {ledger.prefix}001 on, deferred ones included",
            )
        if ids[number] != wanted:
            raise BadInput(
                ledger.path,
                key=f"requirement[{number}].id",
                found=ids[number],
                expected=f"{wanted}: ids in order",
            )
