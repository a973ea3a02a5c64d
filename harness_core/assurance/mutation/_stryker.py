"""Results in Stryker's mutation-testing-report-schema (version 2), which existing viewers open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from harness_core.assurance.mutation._campaign import each_result
from harness_core.assurance.mutation._index import Mutant
from harness_core.assurance.mutation._product import Product
from harness_core.assurance.mutation._store import Store
from harness_core.assurance.mutation._verdict import Verdict

#: What the schema calls a verdict. It knows no kill by accident: what only broke is an error there.
_STATUS: Final[Mapping[Verdict, str]] = {
    Verdict.KILLED: "Killed",
    Verdict.KILLED_BADLY: "RuntimeError",
    Verdict.SURVIVED: "Survived",
    Verdict.NOT_COVERED: "NoCoverage",
    Verdict.EQUIVALENT: "Ignored",
    Verdict.STILLBORN: "CompileError",
    Verdict.NO_VERDICT: "Pending",
}


def to_stryker(store: Store, product: Product, mutants: Iterable[Mutant]) -> dict[str, Any]:
    """A report for viewers; files without a mutant that was run are left out."""
    known = {mutant.id: mutant for mutant in mutants}
    files: dict[str, dict[str, Any]] = {}
    tests: dict[str, None] = {}
    for row, result in each_result(store):
        mutant = known.get(str(row["id"]))
        if mutant is None:
            continue
        source = product.files[mutant.file].read_bytes()
        file = files.setdefault(
            mutant.file, {"language": "python", "source": source.decode(), "mutants": []}
        )
        status = _STATUS[result.verdict]
        if result.detail.startswith("no end within"):
            status = "Timeout"
        shown: dict[str, Any] = {
            "id": mutant.id,
            "mutatorName": mutant.operator,
            "description": mutant.what,
            "replacement": mutant.text,
            "location": {
                "start": _position(source, mutant.start),
                "end": _position(source, max(mutant.end, mutant.start + 1)),
            },
            "status": status,
            "statusReason": result.detail,
            "testsCompleted": result.tests_run,
            "duration": round(result.duration_s * 1000),
        }
        if result.test and result.verdict is Verdict.KILLED:
            shown["killedBy"] = [result.test]
            tests[result.test] = None
        file["mutants"].append(shown)
    report: dict[str, Any] = {
        "schemaVersion": "2",
        "thresholds": {"high": 90, "low": 75},
        "framework": {"name": "staging-harness"},
        "files": files,
    }
    if tests:
        report["testFiles"] = _by_file(tests)
    return report


def _by_file(tests: Iterable[str]) -> dict[str, Any]:
    files: dict[str, Any] = {}
    for test in tests:
        file, _, name = test.partition("::")
        files.setdefault(file, {"tests": []})["tests"].append({"id": test, "name": name})
    return files


def _position(source: bytes, place: int) -> dict[str, int]:
    """Line and column, both from 1."""
    begin = source.rfind(b"\n", 0, place) + 1
    return {
        "line": source.count(b"\n", 0, place) + 1,
        "column": len(source[begin:place].decode()) + 1,
    }
