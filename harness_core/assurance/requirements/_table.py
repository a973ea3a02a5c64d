"""What ``harness ledger`` prints: every id with its status, its tests, its faults, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness_core.assurance.planted import load_faults
from harness_core.assurance.requirements._coverage import covering_tests
from harness_core.assurance.requirements._requirements import load_ledger
from harness_core.assurance.requirements._results import (
    Status,
    read_reports,
    standings_of,
    tally,
)
from harness_core.assurance.requirements._tree import suite_sources
from harness_core.base.screen import columns, stacked, tinted
from harness_core.system.suites import Suite

if TYPE_CHECKING:
    from harness_core.base.screen import Cell, Shown


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """One requirement as it stands.

    Attributes:
        id: of the requirement.
        title: what it is about.
        priority: of the requirement; empty where its ledger has none.
        status: ``shown``, ``not shown``, ``failed``, ``error`` or ``deferred``.
        cause: why it is not shown: ``deferred``, ``skipped`` or ``not run``.
        why: what became of its cases, or the reason of a deferred row.
        tests: the ids of its tests, relative to the suite.
        faults: how many faults are planted against it.
    """

    id: str
    title: str
    priority: str
    status: Status
    cause: str
    why: str
    tests: tuple[str, ...]
    faults: int


def ledger_rows(suite: Suite, *, root: Path) -> tuple[LedgerRow, ...]:
    """The ledger of a suite by the newest reports; none for a suite that has no ledger.

    Raises:
        BadInput: the ledger, or a file of faults, is malformed.
    """
    if suite.ledger is None:
        return ()
    ledger = load_ledger(suite.ledger)
    faults = load_faults(suite.faults) if suite.faults is not None else ()
    planted = Counter(fault.requirement for fault in faults)
    tests = covering_tests(suite_sources(suite, root=root))
    prefix = suite.folder.relative_to(root).as_posix()
    standings = standings_of(ledger, tests, read_reports(root), prefix=prefix)
    return tuple(
        LedgerRow(
            id=row.id,
            title=row.title,
            priority=row.priority,
            status=standings[row.id].status,
            cause=standings[row.id].cause,
            why=standings[row.id].why,
            tests=tuple(test.nodeid for test in tests if row.id in test.ids),
            faults=planted[row.id],
        )
        for row in ledger.requirements.values()
    )


def render_ledger(rows: Sequence[LedgerRow], *, title: str) -> Shown:
    """The table for people."""
    count = tally([(row.status, row.cause) for row in rows], noun="rows")
    cells = [
        (row.id, row.priority, _status(row), f"{row.faults} faults", _account(row)) for row in rows
    ]
    return stacked(f"{title}: {count}", stacked(columns(cells, right=[3]), indent=2))


def _status(row: LedgerRow) -> Cell:
    if row.status in {Status.NOT_SHOWN, Status.DEFERRED}:
        return row.status
    return tinted(row.status, good=row.status is Status.SHOWN)


def _account(row: LedgerRow) -> str:
    """What it is about, why it stands so, and the files of its tests."""
    files = Counter(test.partition("::")[0] for test in row.tests)
    listed = ", ".join(f"{file} ({number})" for file, number in files.items())
    return "\n".join(filter(None, (row.title, row.why, listed)))
