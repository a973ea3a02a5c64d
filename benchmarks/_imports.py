"""What an import costs: the library, what every pytest loads of it, and what others load."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

from benchmarks._table import Table

__all__ = ["bench_imports"]

_OURS: Final = "harness_core"
_MODULES: Final = (
    _OURS,
    "harness_core.front.pytest_plugin",
    "harness_core.front.cli",
    "pytest",
    "trio",
    "pytest_postgresql.plugin",
    "testcontainers.postgres",
)

#: In a new process each time: seconds from before the import to after it.
_PROGRAM: Final = (
    "import time; began = time.perf_counter(); import {module}; print(time.perf_counter() - began)"
)


def bench_imports(*, rounds: int) -> tuple[Table, ...]:
    """Import each module in a process of its own, round by round."""
    table = Table("import, in a process of its own", ours=_OURS, contenders=_MODULES)
    for _ in range(rounds):
        for module in _MODULES:
            done = subprocess.run(
                [sys.executable, "-c", _PROGRAM.format(module=module)],
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode == 0:
                table.add(module, float(done.stdout))
            else:
                table.fail(module, done.stderr.strip().rpartition("\n")[2])
    return (table,)
