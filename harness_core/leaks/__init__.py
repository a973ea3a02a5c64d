"""What a run of tests leaves behind that nobody cleans up: found, named with its test, removed.

- ``_audit.py``: :func:`open_audit`, from the first test to the last.
- ``_temporary.py``: files and directories made by ``tempfile`` in this process.
- ``_unclosed.py``: what this process opened and left to the garbage collector, test by test.

Each kind is attributed without guessing, so that two runs at once accuse nobody of the other's
leaks: processes by a mark that all of ours inherit, listeners by the process that has them open,
temporary files by having watched them being made, runs by the pid in their ledger. Databases are
looked at where they are made (``harness_core.db.left_databases``).
"""

from harness_core.leaks._audit import Audit, Leak, open_audit
from harness_core.leaks._unclosed import (
    Unclosed,
    UnclosedThing,
    line_of_caller,
    unclosed_error,
    watch_unclosed,
)

__all__ = [
    "Audit",
    "Leak",
    "Unclosed",
    "UnclosedThing",
    "line_of_caller",
    "open_audit",
    "unclosed_error",
    "watch_unclosed",
]
