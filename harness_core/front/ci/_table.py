"""The table that ends a run of CI: what each session came to, and why some tests were not run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from harness_core.base.reading import read_json
from harness_core.base.screen import columns, stacked
from harness_core.front.ci._reports import Report

if TYPE_CHECKING:
    from harness_core.base.screen import Shown

#: Failures of a session that are named below the table.
NAMED: Final = 20


def render_reports(reports: Sequence[Report], *, left_out: Iterable[str] = ()) -> Shown:
    """One line for each session, one for each reason of its skips.

    Args:
        reports: of all sessions.
        left_out: what was not run at all, each with its reason.
    """
    rows = [
        (
            report.session,
            str(report.passed),
            str(len(report.failures)),
            str(sum(report.skips.values())),
            "\n".join(f"{count} {reason}" for reason, count in report.skips.items()),
        )
        for report in reports
    ]
    heads = ("session", "passed", "failed", "skipped", "why")
    table = columns(rows, heads=heads, right=[1, 2, 3])
    return stacked(table, *(f"not run: {reason}" for reason in left_out))


def problems_of(reports: Sequence[Report]) -> list[str]:
    """Why a run with these reports has not shown what it should, each in a sentence."""
    problems = [line for report in reports for line in _failures(report)]
    problems += [
        f"{r.session}: nothing ran, every test was skipped"
        for r in reports
        if not r.passed and not r.failures
    ]
    names = [report.session for report in reports]
    if not any(name.startswith("faults-") for name in names):
        problems.append("no planted fault was tried")
    if not {name for name in names if not name.startswith("faults-")} - {"core"}:
        problems.append("no suite ran: no session but core left a report")
    return problems


def _failures(report: Report) -> list[str]:
    """How many failed, and which, each with the first line of its cause."""
    if not report.failures:
        return []
    return [
        f"{report.session}: {len(report.failures)} failed",
        *(
            f"  {failure.name}: {failure.cause[0] if failure.cause else failure.kind}"
            for failure in report.failures[:NAMED]
        ),
        *(["  and more: see .evidence/reports"] if len(report.failures) > NAMED else []),
    ]


def missing_sessions(path: Path) -> list[str]:
    """The sessions of a ``nox --report`` that did not succeed.

    Raises:
        BadInput: it is no such file.
    """
    report = read_json(path, _Nox, expected="a report of nox --report")
    return [session.name for session in report.sessions if session.result != "success"]


class _Ended(msgspec.Struct, frozen=True):
    name: str
    result: str


class _Nox(msgspec.Struct, frozen=True):
    sessions: tuple[_Ended, ...]
