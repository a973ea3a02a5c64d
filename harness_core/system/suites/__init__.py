"""What a suite folder declares about itself, and where the suites of a tree are.

- ``_root.py``: the root of a tree of suites, and the suite of a file, found from below.
- ``_capability.py``: :class:`Capability`, what products of its kind may be able to do.
- ``_suite.py``: ``suite.toml`` read and checked into :class:`Suite` and :class:`SuiteSession`.
- ``_pyproject.py``: what the ``pyproject.toml`` of a tree says of its suites.

``docs/reference/suite-toml.md`` is the page for people; ``harness_core.front.sessions`` reads the same files for nox,
with fewer checks, because it must run where nothing but nox is installed.
"""

from harness_core.system.suites._capability import Capability
from harness_core.system.suites._pyproject import Pyproject, StagingHarness, read_pyproject
from harness_core.system.suites._root import find_root, suite_folder
from harness_core.system.suites._suite import (
    RESERVED,
    RESERVED_BENCHES,
    Suite,
    SuiteBench,
    SuiteFile,
    SuiteSession,
    load_suite,
    load_suites,
)

__all__ = [
    "RESERVED",
    "RESERVED_BENCHES",
    "Capability",
    "Pyproject",
    "StagingHarness",
    "Suite",
    "SuiteBench",
    "SuiteFile",
    "SuiteSession",
    "find_root",
    "load_suite",
    "load_suites",
    "read_pyproject",
    "suite_folder",
]
