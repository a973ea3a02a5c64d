"""Requirement x tests x planted faults: the ledgers of the suites that a report tells of."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from harness_core.assurance.planted import load_faults
from harness_core.assurance.requirements import covering_tests, load_ledger, suite_sources
from harness_core.base.reading import read_json
from harness_core.front.outcomes import Word
from harness_core.front.report._schema import Planted, Requirement
from harness_core.system.suites import Suite, load_suites

#: What the cases of a requirement make of it; the first that occurs decides.
_DECIDES = (
    (Word.FAILED, "failed"),
    (Word.HARNESS, "error"),
    (Word.KNOWN, "failed"),
    (Word.NOT_RUN, "not shown"),
)


def requirements_of(
    words: Mapping[str, Word], *, places: Iterable[Path], root: Path
) -> list[Requirement]:
    """The rows of every suite of which a test is in the report, in the order of their ledgers.

    Args:
        words: id of a test → how it ended.
        places: folders of evidence, with what became of planted faults.
        root: of the tree; where there is no suite in it, there is no row.

    Raises:
        BadInput: a ledger or a file of faults is malformed.
    """
    if not (root / "pyproject.toml").is_file():  # tests of a folder of their own
        return []
    verdicts = _verdicts([*places, root / ".evidence"])
    rows: list[Requirement] = []
    for suite in load_suites(root):
        prefix = suite.folder.relative_to(root).as_posix() + "/"
        ours = {test: word for test, word in words.items() if test.startswith(prefix)}
        if suite.ledger is not None and ours:
            rows += _rows(suite, ours, verdicts.get(suite.name, {}), root=root)
    return rows


def _rows(
    suite: Suite, words: Mapping[str, Word], verdicts: Mapping[str, str], *, root: Path
) -> list[Requirement]:
    assert suite.ledger is not None
    prefix = suite.folder.relative_to(root).as_posix()
    cases: dict[str, list[str]] = defaultdict(list)
    for test in words:
        cases[test.partition("[")[0].removeprefix(f"{prefix}/")].append(test)
    covering: dict[str, list[str]] = defaultdict(list)
    for each in covering_tests(suite_sources(suite, root=root)):
        for identity in map(str, each.ids):
            covering[identity].append(each.nodeid)
    faults: dict[str, list[Planted]] = defaultdict(list)
    for fault in load_faults(suite.faults) if suite.faults is not None else ():
        told = Planted(id=fault.id, why=fault.why, verdict=verdicts.get(fault.id, ""))
        faults[fault.requirement].append(told)
    found: list[Requirement] = []
    for row in load_ledger(suite.ledger).requirements.values():
        tests = covering[row.id]
        ours = [case for test in tests for case in cases[test]]
        missing = [test for test in tests if not cases[test]]
        counts = Counter(str(words[case]) for case in ours)
        found.append(
            Requirement(
                suite=suite.name,
                id=row.id,
                title=row.title,
                priority=row.priority,
                status=_status(counts, missing) if row.covered else "deferred",
                why=_why(missing, len(tests)) if row.covered else row.reason,
                counts=dict(counts),
                tests=tuple(ours),
                faults=tuple(faults[row.id]),
            )
        )
    return found


def _status(counts: Mapping[str, int], missing: Sequence[str]) -> str:
    for word, status in _DECIDES:
        if counts.get(word):
            return status
    return "shown" if counts and not missing else "not shown"


def _why(missing: Sequence[str], tests: int) -> str:
    if not missing:
        return ""
    if len(missing) == tests:
        return f"none of its {tests} tests is in this report"
    return f"{len(missing)} of {tests} tests are not in this report"


class _Verdict(msgspec.Struct, frozen=True):
    id: str
    verdict: str


def _verdicts(places: Iterable[Path]) -> dict[str, dict[str, str]]:
    """Suite → fault → the verdict on it when it was planted last."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    paths = {path.resolve() for place in places for path in place.glob("faults/*/report.json")}
    for path in sorted(paths, key=lambda each: each.stat().st_mtime):
        rows = read_json(path, tuple[_Verdict, ...], expected="a report of planted faults")
        found[path.parent.name] |= {row.id: row.verdict for row in rows}
    return found
