"""What a run of tests leaves behind: found, named with its test, removed.

- ``_audit.py``: :func:`open_audit`, from the first test to the last.
- ``_temporary.py``: files and directories made by ``tempfile`` in this process.

What is left to the garbage collector is ``harness_core.base.unclosed``.

Each kind is attributed without guessing, so that of two runs at once neither is
accused of the other's leaks: processes by a mark that all of ours inherit, listeners by the process that has them open,
temporary files by having watched them being made, runs by the pid in their ledger. Databases are
looked at where they are made (``harness_core.infrastructure.databases.left_databases``).
"""

from harness_core.assurance.leaks._audit import Audit, Leak, open_audit

__all__ = [
    "Audit",
    "Leak",
    "open_audit",
]
