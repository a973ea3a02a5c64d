"""What holds the tests themselves to account.

- ``_blackbox.py``: tests that look inside, patch, sleep or assert nothing.
- ``_imports.py``: who may import whom, where import-linter cannot see.
- ``_problem.py``: one finding, as ``file:line: rule: what to do``.
- ``_tree.py``: every check over a whole tree; what ``harness lint`` runs.

Source: style 31, 38, 41-45.
"""

from harness_core.ledger._blackbox import check_test_file
from harness_core.ledger._imports import check_core_imports, check_reference_imports
from harness_core.ledger._problem import Problem, SourceFile
from harness_core.ledger._tree import check_tree

__all__ = [
    "Problem",
    "SourceFile",
    "check_core_imports",
    "check_reference_imports",
    "check_test_file",
    "check_tree",
]
