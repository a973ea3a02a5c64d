"""What is shown of a requirement: what became of its tests, case by case.

A requirement is *shown* when every test that covers it ran and every case of each passed. A case that
was skipped, is expected to fail, or never ran proves nothing: then it is *not shown*, however many
others passed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from harness_core.assurance.junit import Case, read_session
from harness_core.assurance.requirements._coverage import Covering
from harness_core.assurance.requirements._requirements import Ledger, Requirement
from harness_core.base.errors import BadInput


class Status(StrEnum):
    """What is known of a requirement."""

    SHOWN = "shown"
    NOT_SHOWN = "not shown"
    FAILED = "failed"
    ERROR = "error"
    DEFERRED = "deferred"


class Ending(StrEnum):
    """How one case of a test ended, best first."""

    PASSED = "passed"
    SKIPPED = "skipped"
    ERROR = "error"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one case.

    Attributes:
        ending: how it ended.
        reason: of a skip.
        chosen: the options of the run or the subject leave it out, nothing that is missing.
    """

    ending: Ending
    reason: str = ""
    chosen: bool = False


#: Id of a case, with its parameters, relative to the root → what became of it.
Outcomes = Mapping[str, Outcome]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What is known of one requirement.

    Attributes:
        status: in one word.
        cause: why it is not shown: ``deferred``, ``skipped`` or ``not run``; else empty.
        why: counts of cases, reasons of skips, tests that did not run.
        lacks: a case was skipped that nobody chose to leave out.
    """

    status: Status
    cause: str = ""
    why: str = ""
    lacks: bool = False


def worse(one: Outcome, other: Outcome) -> Outcome:
    """The one that weighs more against the case."""
    return max(one, other, key=lambda outcome: list(Ending).index(outcome.ending))


def standings_of(
    ledger: Ledger, tests: Sequence[Covering], outcomes: Outcomes, *, prefix: str
) -> dict[str, Standing]:
    """Requirement → what is known of it.

    Args:
        ledger: the requirements.
        tests: of the suite.
        outcomes: what became of cases.
        prefix: of the suite's folder in their ids.
    """
    cases: dict[str, list[Outcome]] = defaultdict(list)
    for nodeid, outcome in outcomes.items():
        if nodeid.startswith(f"{prefix}/"):
            cases[nodeid.partition("[")[0].removeprefix(f"{prefix}/")].append(outcome)
    return {
        row.id: _standing(row, {t.nodeid: cases[t.nodeid] for t in tests if row.id in t.ids})
        for row in ledger.requirements.values()
    }


def _standing(requirement: Requirement, tests: Mapping[str, Sequence[Outcome]]) -> Standing:
    """What its tests, each with the outcomes of its cases, show of a requirement."""
    if not requirement.covered:
        return Standing(status=Status.DEFERRED, cause="deferred", why=requirement.reason)
    cases = [case for ended in tests.values() for case in ended]
    missing = [test for test, ended in tests.items() if not ended]
    counts = Counter(case.ending for case in cases)
    skipped = [case for case in cases if case.ending is Ending.SKIPPED]
    reasons = {case.reason for case in skipped}
    reason = {Ending.SKIPPED: f" ({'; '.join(sorted(reasons))})"}
    parts = [
        f"{counts[ending]} {ending}{reason.get(ending, '')}"
        for ending in reversed(Ending)
        if counts[ending]
    ]
    if missing:
        parts.append(
            f"no test ran of {len(tests)}"
            if len(missing) == len(tests)
            else f"{len(missing)} of {len(tests)} tests not run ({', '.join(missing)})"
        )
    why = ", ".join(parts)
    if counts[Ending.FAILED]:
        return Standing(status=Status.FAILED, why=why)
    if counts[Ending.ERROR]:
        return Standing(status=Status.ERROR, why=why)
    if missing or reasons:
        cause = "skipped" if reasons else "not run"
        lacks = not all(case.chosen for case in skipped)
        return Standing(status=Status.NOT_SHOWN, cause=cause, why=why, lacks=lacks)
    return Standing(status=Status.SHOWN, why=why)


def tally(rows: Sequence[tuple[Status, str]], *, noun: str) -> str:
    """``34 p0 rows: 14 shown, 20 not shown (20 deferred)``, from status and cause of each row."""
    counts = Counter(status for status, _ in rows)
    causes = Counter(cause for _, cause in rows if cause)
    parts = [f"{counts[Status.SHOWN]} shown"]
    parts += [f"{counts[each]} {each}" for each in (Status.FAILED, Status.ERROR) if counts[each]]
    if causes:
        by_cause = ", ".join(f"{number} {cause}" for cause, number in causes.items())
        parts.append(f"{causes.total()} not shown ({by_cause})")
    return f"{len(rows)} {noun}: {', '.join(parts)}"


def read_reports(root: Path) -> Outcomes:
    """What became of each case in the newest JUnit file of a tree that ran it.

    Each session keeps its newest file. A skip in one counts for nothing beside a session that ran the
    case: a session on real tools that are not there, against the one on their models.
    """
    found: dict[str, Outcome] = {}
    reports = (root / ".evidence" / "reports").glob("*.xml")
    for path in sorted(reports, key=lambda path: path.stat().st_mtime):
        newest: dict[str, Outcome] = {}
        try:
            cases = read_session(path, root=root).cases
        except BadInput:
            continue  # of a run that is still under way, or was killed
        for case in cases:
            outcome = _outcome(case)
            newest[case.nodeid] = worse(newest.get(case.nodeid, outcome), outcome)
        ran = {nodeid for nodeid, outcome in found.items() if outcome.ending is not Ending.SKIPPED}
        found |= {
            nodeid: outcome
            for nodeid, outcome in newest.items()
            if outcome.ending is not Ending.SKIPPED or nodeid not in ran
        }
    return found


def _outcome(case: Case) -> Outcome:
    if case.ending == "passed":
        return Outcome(ending=Ending.PASSED)
    if case.ending == "skipped":
        known = "known failure: " if case.known else ""
        return Outcome(ending=Ending.SKIPPED, reason=known + (case.message or "without a reason"))
    return Outcome(ending=Ending.ERROR if case.harness else Ending.FAILED)
