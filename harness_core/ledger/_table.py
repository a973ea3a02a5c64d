"""What ``harness ledger`` prints: every id with its status, its test, its faults, its last result."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness_core.faults import load_faults
from harness_core.ledger._coverage import covering_tests
from harness_core.ledger._requirements import load_ledger
from harness_core.ledger._tree import suite_sources
from harness_core.suites import Suite

__all__ = ["LedgerRow", "ledger_rows", "render_ledger"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """One requirement as it stands.

    Attributes:
        id: of the requirement.
        title: what it is about.
        priority: of the requirement.
        status: ``covered`` or ``deferred``.
        test: the id of its test relative to the suite; for a deferred row, why it has none.
        faults: how many faults are planted against it.
        last: ``passed``, ``failed``, ``error`` or ``skipped`` in the newest report that has its test;
            empty when there is none.
    """

    id: str
    title: str
    priority: str
    status: str
    test: str
    faults: int
    last: str


def ledger_rows(suite: Suite, *, root: Path) -> tuple[LedgerRow, ...]:
    """The ledger of a suite; none for a suite that has no ledger.

    Raises:
        BadInput: the ledger, or a file of faults, is malformed.
    """
    if suite.ledger is None:
        return ()
    ledger = load_ledger(suite.ledger)
    faults = load_faults(suite.faults) if suite.faults is not None else ()
    planted = Counter(fault.requirement for fault in faults)
    tests = {
        str(test.ids[0]): test.nodeid
        for test in covering_tests(suite_sources(suite, root=root), ledger)
        if len(test.ids) == 1
    }
    results = _last_results(root / ".evidence" / "reports")
    prefix = suite.folder.relative_to(root).as_posix()
    return tuple(
        LedgerRow(
            id=row.id,
            title=row.title,
            priority=row.priority,
            status="covered" if row.covered else "deferred",
            test=tests.get(row.id, "") if row.covered else row.reason,
            faults=planted[row.id],
            last=results.get(f"{prefix}/{tests[row.id]}", "") if row.id in tests else "",
        )
        for row in ledger.requirements.values()
    )


def render_ledger(rows: Sequence[LedgerRow], *, title: str) -> str:
    """The table for people."""
    covered = sum(row.status == "covered" for row in rows)
    lines = [f"{title}: {covered} of {len(rows)} covered"]
    for row in rows:
        lines.append(
            f"  {row.id} {row.priority} {row.status:8} {row.faults:2} faults  {row.last or '-':7} "
            f"{row.title}"
        )
        lines.append(f"          {row.test}")
    return "\n".join(lines)


def _last_results(folder: Path) -> Mapping[str, str]:
    """Test id without parameters → its worst outcome in the newest report that has it."""
    found: dict[str, str] = {}
    reports = sorted(folder.glob("*.xml"), key=lambda path: path.stat().st_mtime)
    for path in reports:
        try:
            tree = ET.parse(path)  # noqa: S314 - see above
        except ET.ParseError:
            continue  # of a run that is still under way, or was killed
        newest: dict[str, str] = {}
        for case in tree.iter("testcase"):
            name = _nodeid(case)
            outcome = _outcome(case)
            if _BADNESS.index(outcome) >= _BADNESS.index(newest.get(name, _BADNESS[0])):
                newest[name] = outcome
        found |= newest
    return found


_BADNESS = ("passed", "skipped", "failed", "error")


def _outcome(case: ET.Element) -> str:
    names = {child.tag for child in case}
    if "error" in names:
        return "error"
    if "failure" in names:
        return "failed"
    return "skipped" if "skipped" in names else "passed"


def _nodeid(case: ET.Element) -> str:
    """``suites/x/test_a.py::test_b`` from what JUnit calls class and name."""
    parts = (case.get("classname") or "").split(".")
    at = next((n for n, part in enumerate(parts) if part.startswith("test_")), len(parts) - 1)
    path = "/".join(parts[: at + 1]) + ".py"
    function = (case.get("name") or "").partition("[")[0]
    return "::".join([path, *parts[at + 1 :], function])
