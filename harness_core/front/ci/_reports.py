"""The reports that a job left: pytest's JUnit file, and the JSON of planted faults."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from harness_core.assurance.junit import Case, read_session
from harness_core.assurance.planted import Verdict
from harness_core.base.reading import read_json

#: Lines of a cause that are shown; the evidence has the rest.
CAUSE_LINES: Final = 3

_PLACE = re.compile(r"^(?P<path>[^\s:]+\.py):(?P<line>[0-9]+): ", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One test that failed, or one planted fault that was not killed.

    Attributes:
        name: the node id of the test, or the fault's id.
        kind: ``failed``, ``error`` or ``HARNESS ERROR`` of a test; the verdict on a fault.
        cause: the first lines of its message.
        file: where it failed, relative to the root; empty when that is not in the tree.
        line: in that file; 0 when it is not known.
        rerun: the command that runs it again.
    """

    name: str
    kind: str
    cause: tuple[str, ...]
    file: str = ""
    line: int = 0
    rerun: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What one session came to.

    Attributes:
        session: its name.
        passed: tests that passed, or faults that were killed.
        failures: those that did not, in the order of the file.
        skips: for each reason, how many were skipped.
        seconds: how long it took.
    """

    session: str
    passed: int
    failures: tuple[Failure, ...]
    seconds: float
    skips: Mapping[str, int] = field(default_factory=dict)


def read_reports(root: Path) -> tuple[Report, ...]:
    """Every report in the evidence of a tree: of sessions first, then of planted faults.

    Raises:
        BadInput: a file is no report.
    """
    evidence = root / ".evidence"
    tests = [read_report(path, root=root) for path in sorted(evidence.glob("reports/*.xml"))]
    planted = [read_faults(path) for path in sorted(evidence.glob("faults/*/report.json"))]
    return (*tests, *planted)


def read_report(path: Path, *, root: Path) -> Report:
    """Read the JUnit file of a session.

    Raises:
        BadInput: it is no such file.
    """
    session = read_session(path, root=root)
    # A test whose body and teardown failed is there twice.
    passed = {case.nodeid: case.ending == "passed" for case in session.cases}
    skips = Counter(
        (case.message or "no reason").strip().splitlines()[0]
        for case in session.cases
        if case.ending == "skipped"
    )
    return Report(
        session=session.name,
        passed=sum(passed.values()),
        failures=tuple(
            _failure(case, session=session.name, root=root)
            for case in session.cases
            if case.ending in {"failure", "error"}
        ),
        skips=dict(skips.most_common()),
        seconds=session.seconds,
    )


def _failure(case: Case, *, session: str, root: Path) -> Failure:
    text = case.said
    # The harness's plugin says so; a module that could not be collected has no such property.
    harness = case.harness or text.startswith("harness_core.base.errors.")
    kind = "HARNESS ERROR" if harness else "error" if case.ending == "error" else "failed"
    cause = [line for line in text.splitlines() if line.strip()][:CAUSE_LINES]
    where, line = _place(case, root=root)
    return Failure(
        name=case.nodeid,
        kind=kind,
        cause=tuple(cause) or ("no message",),
        file=where,
        line=line,
        rerun=shlex.join(["nox", "-s", session, "--", case.nodeid]),
    )


def _place(case: Case, *, root: Path) -> tuple[str, int]:
    """Where a failure is shown: the last line of the test's own file, else of another in the tree."""
    places = [(match["path"], int(match["line"])) for match in _PLACE.finditer(case.text)]
    own = [place for place in places if place[0] == case.file]
    near = [place for place in places if (root / place[0]).is_file() and place[0][0] != "/"]
    return (own or near or [(case.file, 0)])[-1]


class _Test(msgspec.Struct, frozen=True):
    test: str
    verdict: str
    detail: str


class _Fault(msgspec.Struct, frozen=True):
    """What ``harness_core.assurance.planted.to_json`` writes of a fault, as far as it is shown."""

    id: str
    verdict: str
    duration_s: float
    tests: tuple[_Test, ...]


def read_faults(path: Path) -> Report:
    """Read ``.evidence/faults/SUITE/report.json``.

    Raises:
        BadInput: it is no such file.
    """
    suite = path.parent.name
    rows = read_json(path, tuple[_Fault, ...], expected="a report of planted faults")
    alive = [row for row in rows if row.verdict != Verdict.KILLED]
    return Report(
        session=f"faults-{suite}",
        passed=len(rows) - len(alive),
        failures=tuple(
            Failure(
                name=row.id,
                kind=row.verdict,
                cause=tuple(
                    f"{test.test}: {test.detail}"
                    for test in row.tests
                    if test.verdict != Verdict.KILLED
                )[:CAUSE_LINES],
                rerun=f"nox -s faults -- {suite} {row.id}",
            )
            for row in alive
        ),
        seconds=sum(row.duration_s for row in rows),
    )
