"""What a suite executes of its product: by file, as coverage.py counts it, and by test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness_core.assurance.mutation._map import CoverageMap
from harness_core.assurance.mutation._product import Product
from harness_core.assurance.mutation._unheard import words_about
from harness_core.base.screen import columns, stacked

if TYPE_CHECKING:
    from harness_core.base.screen import Shown

#: Tests that are shown; the JSON has all.
_SHOWN_TESTS: Final = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCoverage:
    """One file of the product.

    Attributes:
        file: its name.
        statements, missing: lines that can run, and those that did not.
        branches, partial: lines with several ways on, and those of which a way was not taken.
        percent: of both together.
    """

    file: str
    statements: int
    missing: tuple[int, ...]
    branches: int
    partial: int
    percent: float


def coverage_by_file(found: CoverageMap, product: Product) -> list[FileCoverage]:
    """Every file, the least covered first."""
    import coverage

    arcs = found.arcs_of()
    measured = coverage.Coverage(data_file=None, branch=True, config_file=False, messages=False)
    for pattern in ("if TYPE_CHECKING:", "@overload", r"\.\.\.$"):
        measured.exclude(pattern)
    data = measured.get_data()
    data.add_arcs({str(path): arcs.get(name, set()) for name, path in product.files.items()})
    rows = []
    for name, path in product.files.items():
        counted = measured._analyze(str(path)).numbers  # noqa: SLF001 - the only way to its numbers
        _, _, _, missing, _ = measured.analysis2(str(path))
        rows.append(
            FileCoverage(
                file=name,
                statements=counted.n_statements,
                missing=tuple(missing),
                branches=counted.n_branches,
                partial=counted.n_partial_branches,
                percent=round(counted.pc_covered, 1),
            )
        )
    return sorted(rows, key=lambda row: (row.percent, row.file))


def render_coverage(files: Sequence[FileCoverage], found: CoverageMap, *, title: str) -> Shown:
    """A table of files, and one of the tests that execute most."""
    rows = [
        (row.file, str(row.statements), str(len(row.missing)), str(row.partial), f"{row.percent} %")
        for row in files
    ]
    heads = ("file", "statements", "missing", "partial", "covered")
    lines = found.lines_of_tests()
    seconds = found.seconds
    most = sorted(lines, key=lambda test: -lines[test])[:_SHOWN_TESTS]
    tests = [(test, str(lines[test]), f"{seconds.get(test, 0.0):.2f} s") for test in most]
    total = sum(row.statements for row in files)
    missing = sum(len(row.missing) for row in files)
    share = f"{total - missing} of {total} statements are executed"
    return stacked(
        title,
        stacked(columns(rows, heads=heads, right=[1, 2, 3, 4]), share, indent=2),
        "tests that execute most",
        stacked(columns(tests, heads=("test", "lines", "takes"), right=[1, 2]), indent=2),
        *words_about(found.unheard),
    )


def coverage_json(
    files: Sequence[FileCoverage], found: CoverageMap, *, map_at: Path
) -> dict[str, Any]:
    """The same as plain data; the map itself has every arc by test."""
    return {
        "map": str(map_at),
        "files": [
            {
                "file": row.file,
                "statements": row.statements,
                "missing": list(row.missing),
                "branches": row.branches,
                "partial": row.partial,
                "percent": row.percent,
            }
            for row in files
        ],
        "lines_by_test": found.lines_of_tests(),
        "without_agent": [each._asdict() for each in found.unheard],
    }
