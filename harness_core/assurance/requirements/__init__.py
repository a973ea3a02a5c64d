"""Checks of the tests themselves.

- ``_blackbox.py``: tests that import their subject, patch, sleep or assert nothing.
- ``_requirements.py``: :func:`load_ledger`, a suite's requirements by id.
- ``_coverage.py``: requirements against tests, both ways, and the faults that each must have.
- ``_capabilities.py``: capabilities as declared, as marks of tests, as code asks for them.
- ``_outside.py``: the rules for tests that prove requirements of a running system.
- ``_fail_path.py``: the one of them about refusals and failures.
- ``_results.py``: what is shown of a requirement by what became of its tests.
- ``_table.py``: what ``harness ledger`` prints.
- ``_session.py``: ledgers in a pytest session: refused when they disagree, summed up at its end.
- ``_imports.py``: who may import whom, where import-linter cannot see.
- ``_circles.py``: modules that import each other in a circle.
- ``_problem.py``: a source file, walked once; one finding, as ``file:line: rule: what to do``.
- ``_tree.py``: every check over a whole tree; what ``harness lint`` runs.
"""

from harness_core.assurance.requirements._blackbox import check_test_file
from harness_core.assurance.requirements._circles import check_circles
from harness_core.assurance.requirements._coverage import (
    Covering,
    check_coverage,
    check_faults,
    covering_tests,
)
from harness_core.assurance.requirements._fail_path import check_fail_path
from harness_core.assurance.requirements._imports import check_core_imports, check_reference_imports
from harness_core.assurance.requirements._outside import check_outside, check_stand_ins
from harness_core.assurance.requirements._problem import Problem, SourceFile
from harness_core.assurance.requirements._requirements import (
    Ledger,
    LedgerFile,
    Requirement,
    load_ledger,
)
from harness_core.assurance.requirements._session import open_session
from harness_core.assurance.requirements._table import LedgerRow, ledger_rows, render_ledger
from harness_core.assurance.requirements._tree import (
    asked_capabilities,
    check_gates,
    check_tree,
    suite_sources,
)

__all__ = [
    "Covering",
    "Ledger",
    "LedgerFile",
    "LedgerRow",
    "Problem",
    "Requirement",
    "SourceFile",
    "asked_capabilities",
    "check_circles",
    "check_core_imports",
    "check_coverage",
    "check_fail_path",
    "check_faults",
    "check_gates",
    "check_outside",
    "check_reference_imports",
    "check_stand_ins",
    "check_test_file",
    "check_tree",
    "covering_tests",
    "ledger_rows",
    "load_ledger",
    "open_session",
    "render_ledger",
    "suite_sources",
]
