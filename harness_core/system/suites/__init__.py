"""What a suite folder declares about itself, and where the suites of a tree are.

- ``_root.py``: the root of a tree of suites, and the suite of a file, found from below.
- ``_suite.py``: ``suite.toml`` read and checked into :class:`Suite` and :class:`SuiteSession`.
- ``_shape.py``: which keys a table may have, said as a table.
- ``_table.py``: a TOML table read key by key; whatever is wrong names file, key and value.

``docs/suite-toml.md`` is the page for people; the noxfile reads the same files with fewer checks,
because it must run where harness_core is not installed.
"""

from harness_core.system.suites._root import find_root, suite_folder
from harness_core.system.suites._shape import Shape, check_shape
from harness_core.system.suites._suite import (
    RESERVED,
    RESERVED_BENCHES,
    Suite,
    SuiteBench,
    SuiteSession,
    load_suite,
    load_suites,
)
from harness_core.system.suites._table import Table, closest, read_toml

__all__ = [
    "RESERVED",
    "RESERVED_BENCHES",
    "Shape",
    "Suite",
    "SuiteBench",
    "SuiteSession",
    "Table",
    "check_shape",
    "closest",
    "find_root",
    "load_suite",
    "load_suites",
    "read_toml",
    "suite_folder",
]
