"""``faults.toml``: which faults a reference system can be given, and which tests must notice."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness_core.base.errors import BadInput
from harness_core.system.suites import Table, read_toml

__all__ = ["Fault", "load_faults"]

#: One fault run: booting a system, the named tests, taking it down. Slowest seen 40 s on a 2-core
#: machine; a fault that hangs a product must not hold up the others for much longer than that.
FAULT_S: Final = 300.0

_ID = r"[a-z0-9]+(-[a-z0-9]+)*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One way in which the product could be wrong.

    Attributes:
        id: kebab-case, unique in its suite.
        why: what a product with this fault does wrong.
        requirement: the id of the requirement it breaks.
        env: variables that switch it on; read by the reference system alone.
        tests: ids of the tests that must fail, relative to the suite folder. An id without
            ``[param]`` stands for every row of that test: each of them must fail.
        says: what the failure must say, so that a red test is red for this reason.
        limit_s: seconds its run may take.
        file: the name of its file, without ``.toml``.
    """

    id: str
    why: str
    requirement: str
    env: dict[str, str]
    tests: tuple[str, ...]
    says: re.Pattern[str]
    limit_s: float = FAULT_S
    file: str = ""


def load_faults(path: Path) -> tuple[Fault, ...]:
    """Read a ``faults.toml``, or every ``*.toml`` of a folder in the order of their names.

    Raises:
        BadInput: it is malformed, an id occurs twice, a test file does not exist, or the folder
            holds no such file.
    """
    files = sorted(path.glob("*.toml")) if path.is_dir() else [path]
    if not files:
        raise BadInput(path, found="no *.toml", expected="files with [[fault]] tables")
    faults: dict[str, Fault] = {}
    for file in files:
        content = read_toml(file)
        for row in content.tables("fault"):
            fault = _fault(row, path.parent, file=file.stem)
            if fault.id in faults:
                raise BadInput(file, key="fault.id", found=fault.id, expected="an id used once")
            faults[fault.id] = fault
        content.done()
    return tuple(faults.values())


def _fault(row: Table, folder: Path, *, file: str) -> Fault:
    says = row.text("says")
    try:
        pattern = re.compile(says)
    except re.error as error:
        raise row.bad("says", says, expected=f"a regular expression ({error})") from error
    if pattern.search(""):
        raise row.bad("says", says, expected="a regular expression that does not match everything")
    fault = Fault(
        id=row.text("id", pattern=_ID),
        why=row.text("why"),
        requirement=row.text("requirement"),
        env=row.mapping("env"),
        tests=row.texts("tests"),
        says=pattern,
        limit_s=row.seconds("limit_s", default=FAULT_S),
        file=file,
    )
    row.done()
    for test in fault.tests:
        path, separator, name = test.partition("::")
        if not separator or not name or not (folder / path).is_file():
            raise row.bad(
                "tests", test, expected=f"file.py::test_name with a file relative to {folder}"
            )
    return fault
