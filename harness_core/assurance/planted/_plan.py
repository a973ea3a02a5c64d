"""``faults.toml``: which faults a product can be given, and which tests must notice."""

from __future__ import annotations

import re
from collections.abc import Iterable
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
    Texts,
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


class Asked(Table, frozen=True):
    """``[asked]`` in the file of a product of another make: what is asked of it, and where.

    Attributes:
        needs: gates of the machine without which the product cannot run, e.g. ``node``.
        right: files, folders and ids of tests that are asked of it as it is; ``.`` for all.
        beside: those that are asked of it with a fault, besides the tests of all its faults.
        markers: a pytest ``-m`` expression that narrows both.
        passes: so many tests of ``right`` pass at least.
    """

    needs: Texts = ()
    right: SomeTexts = (".",)
    beside: Texts = ()
    markers: str = ""
    passes: Annotated[int, Meta(ge=1, description="a whole number from 1 on")] = 1

    def __post_init__(self) -> None:
        check_distinct(self, "needs", "right", "beside")


class FaultsFile(Table, frozen=True):
    """A file of faults, as it is written.

    Attributes:
        asked: what is asked of a product of another make; the reference system has none.
        fault: one fault each.
    """

    fault: Annotated[tuple[_Row, ...], Meta(min_length=1, description="at least one [[fault]]")]
    asked: Asked | None = None


def load_faults(path: Path) -> tuple[Fault, ...]:
    """Read a ``faults.toml``, or every ``*.toml`` of a folder in the order of their names.

    Raises:
        BadInput: it is malformed, an id occurs twice, a test file does not exist, or the folder
            holds no such file.
    """
    files = sorted(path.glob("*.toml")) if path.is_dir() else [path]
    if not files:
        raise BadInput(path, found="no *.toml", expected="files with [[fault]] tables")
    rows = []
    for file in files:
        read = read_toml(file, FaultsFile)
        if read.asked is not None:
            expected = "none: it is for products of other makes"
            raise BadInput(file, key="asked", found=read.asked, expected=expected)
        rows += [(file, row) for row in enumerate(read.fault)]
    return _faults(rows, folder=path.parent)


def load_asked(path: Path, *, folder: Path) -> tuple[Asked, tuple[Fault, ...]]:
    """Read the ``faults.toml`` of a product of another make.

    Args:
        path: the file.
        folder: of the suite, to which its tests are relative.

    Raises:
        BadInput: as :func:`load_faults`.
    """
    read = read_toml(path, FaultsFile)
    asked = read.asked or Asked()
    for key in ("right", "beside"):
        for test in getattr(asked, key):
            if not (folder / test.partition("::")[0]).exists():
                expected = f"a file or folder relative to {folder}, or file.py::test_name"
                raise BadInput(path, key=f"asked.{key}", found=test, expected=expected)
    return asked, _faults([(path, row) for row in enumerate(read.fault)], folder=folder)


def _faults(rows: Iterable[tuple[Path, tuple[int, _Row]]], *, folder: Path) -> tuple[Fault, ...]:
    """Rows with their files and numbers as faults, each id once."""
    faults: dict[str, Fault] = {}
    for file, (number, row) in rows:
        for test in row.tests:
            path, separator, name = test.partition("::")
            if not separator or not name or not (folder / path).is_file():
                expected = f"file.py::test_name with a file relative to {folder}"
                raise BadInput(file, key=f"fault[{number}].tests", found=test, expected=expected)
        if row.id in faults:
            raise BadInput(file, key="fault.id", found=row.id, expected="an id used once")
        fields = structs.asdict(row) | {"says": re.compile(row.says)}
        faults[row.id] = Fault(**fields, file=file.stem)
    return tuple(faults.values())
