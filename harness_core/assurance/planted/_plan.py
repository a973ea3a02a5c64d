"""``faults.toml``: which faults a reference system can be given, and which tests must notice."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from msgspec import Meta, structs

from harness_core.base.errors import BadInput
from harness_core.base.reading import (
    Misfit,
    SomeTexts,
    Table,
    Text,
    check_distinct,
    like,
    read_toml,
)

#: One fault run: booting a system, the named tests, taking it down. Slowest seen 40 s on a 2-core
#: machine; a fault that hangs a product must not hold up the others for much longer than that.
FAULT_S: Final = 300.0


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


class _Row(Table, frozen=True):
    """A :class:`Fault` as it is written.

    Attributes:
        id: kebab-case, unique in its suite.
        why: what a product with this fault does wrong.
        requirement: the id of the requirement it breaks, a row of the suite's ledger.
        env: variables that switch it on; read by the reference system alone.
        tests: ids of the tests that must fail, relative to the suite folder. An id without
            ``[param]`` stands for every row of that test: each of them must fail.
        says: a regular expression that the failure must match, so that a red test is red for this
            reason.
        limit_s: seconds its run may take on a calm machine.
    """

    id: Annotated[str, like(r"[a-z0-9]+(-[a-z0-9]+)*")]
    why: Text
    requirement: Text
    env: Annotated[
        dict[str, str], Meta(min_length=1, description="a table of texts with at least one entry")
    ]
    tests: SomeTexts
    says: Text
    limit_s: Annotated[float, Meta(gt=0, description="a positive number of seconds")] = FAULT_S

    def __post_init__(self) -> None:
        check_distinct(self, "tests")
        try:
            pattern = re.compile(self.says)
        except re.error as error:
            raise Misfit("says", expected=f"a regular expression ({error})") from error
        if pattern.search(""):
            raise Misfit("says", expected="a regular expression that does not match everything")


class FaultsFile(Table, frozen=True):
    """A file of faults, as it is written.

    Attributes:
        fault: one fault each.
    """

    fault: Annotated[tuple[_Row, ...], Meta(min_length=1, description="at least one [[fault]]")]


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
        for number, row in enumerate(read_toml(file, FaultsFile).fault):
            _check_tests(row, file, number, folder=path.parent)
            if row.id in faults:
                raise BadInput(file, key="fault.id", found=row.id, expected="an id used once")
            fields = structs.asdict(row) | {"says": re.compile(row.says)}
            faults[row.id] = Fault(**fields, file=file.stem)
    return tuple(faults.values())


def _check_tests(row: _Row, file: Path, number: int, *, folder: Path) -> None:
    for test in row.tests:
        path, separator, name = test.partition("::")
        if not separator or not name or not (folder / path).is_file():
            expected = f"file.py::test_name with a file relative to {folder}"
            raise BadInput(file, key=f"fault[{number}].tests", found=test, expected=expected)
