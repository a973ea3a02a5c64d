"""Requirements against tests, both ways: each covered id has tests, each test an id or a reason.

A test names what it covers with ``@pytest.mark.covers("ID", …)``, or its class or its file does
(``pytestmark``); the nearest one counts. One that proves the suite and no requirement says why:
``@pytest.mark.aside("reason")``. Read from the source, so that it does not depend on which tests a
run selects.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness_core.assurance.planted import Fault
from harness_core.assurance.requirements._problem import (
    Function,
    Problem,
    SourceFile,
    dotted,
)
from harness_core.assurance.requirements._requirements import Ledger

COVERS: Final = "covers"
ASIDE: Final = "aside"

#: Name and arguments of a mark.
_Mark = tuple[str, list[ast.expr]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Covering:
    """One test function, with the marks nearest to it.

    Attributes:
        file: its file.
        function: its syntax tree.
        nodeid: its id relative to the suite folder, without parameters.
        ids: what its ``covers`` names, whatever that is.
        aside: the reasons of its ``aside``, whatever they are.
        marks: names of all its marks, those of its class and module included.
    """

    file: SourceFile
    function: Function
    nodeid: str
    ids: tuple[object, ...]
    aside: tuple[object, ...]
    marks: frozenset[str]

    def report(self, rule: str, advice: str) -> Iterator[Problem]:
        """A finding about this test."""
        yield from self.file.report([(self.function, rule, advice)])


def covering_tests(files: Mapping[Path, SourceFile]) -> tuple[Covering, ...]:
    """Every test function of a suite.

    Args:
        files: path relative to the suite folder → source.
    """
    return tuple(
        test
        for path, file in files.items()
        if path.name.startswith("test_") or path.name.endswith("_test.py")
        for test in _tests_of(file, path.as_posix())
    )


def check_coverage(tests: Sequence[Covering], ledger: Ledger) -> Iterator[Problem]:
    """What does not agree between the ledger and the tests."""
    covered: set[str] = set()
    for test in tests:
        yield from _check_test(test, ledger)
        covered.update(map(str, test.ids))
    for requirement in ledger.covered:
        if requirement.id not in covered:
            yield _row(
                ledger,
                requirement.id,
                "id-without-test",
                f"{requirement.id} is covered by no test; write one with "
                f'@pytest.mark.{COVERS}("{requirement.id}"), or defer it with a reason',
            )


def _check_test(test: Covering, ledger: Ledger) -> Iterator[Problem]:
    if ASIDE in test.marks and test.aside:
        if test.ids or not all(isinstance(reason, str) and reason.strip() for reason in test.aside):
            advice = (
                f'a test without a requirement says why: @pytest.mark.{ASIDE}("reason"), and '
                "covers none"
            )
            yield from test.report("test-without-id", advice)
        return
    if not test.ids:
        first = next(iter(ledger.requirements))
        advice = (
            f'a test here covers a requirement: @pytest.mark.{COVERS}("{first}"), or says why it '
            f'covers none: @pytest.mark.{ASIDE}("reason")'
        )
        yield from test.report("test-without-id", advice)
        return
    wanted: set[str] = set()
    for identity in test.ids:
        requirement = ledger.requirements.get(str(identity))
        if requirement is None:
            yield from test.report("unknown-id", f"{identity!r} is no id of {ledger.path.name}")
            continue
        if not requirement.covered:
            advice = f"{identity} is deferred in {ledger.path.name}; set its status to covered"
            yield from test.report("id-deferred", advice)
        if requirement.priority:
            wanted.add(ledger.priorities[requirement.priority])
    found = test.marks & set(ledger.priorities.values())
    if wanted and found != wanted:
        advice = (
            f"by what it covers, mark it {' and '.join(sorted(wanted))} "
            f"(found {', '.join(sorted(found)) or 'no priority'})"
        )
        yield from test.report("priority", advice)


def check_fault_ids(
    faults: Iterable[Fault], tests: Sequence[Covering], ledger: Ledger
) -> Iterator[Problem]:
    """A fault breaks a requirement of the ledger, and names a test of it."""
    ids = {test.nodeid: set(map(str, test.ids)) for test in tests}
    for fault in faults:
        if fault.requirement not in ledger.requirements:
            yield _row(
                ledger,
                "",
                "unknown-id",
                f"fault {fault.id} breaks {fault.requirement!r}, which is no id of this ledger",
            )
        elif not any(
            fault.requirement in ids.get(name.partition("[")[0], ()) for name in fault.tests
        ):
            yield _row(
                ledger,
                fault.requirement,
                "fault-elsewhere",
                f"fault {fault.id} breaks {fault.requirement}, and no test that it names covers it",
            )


def check_faults(
    faults: Sequence[Fault], tests: Sequence[Covering], ledger: Ledger
) -> Iterator[Problem]:
    """The same, and every covered id has the faults that prove its tests able to fail."""
    yield from check_fault_ids(faults, tests, ledger)
    planted = Counter(fault.requirement for fault in faults)
    for requirement in ledger.covered:
        count = planted[requirement.id]
        if count < ledger.faults_each:
            yield _row(
                ledger,
                requirement.id,
                "too-few-faults",
                f"{requirement.id} has {count} planted fault(s), {ledger.faults_each} are due: plant "
                f'more with requirement = "{requirement.id}"',
            )


def _row(ledger: Ledger, identity: str, rule: str, advice: str) -> Problem:
    """A finding about a row of the ledger, at its line."""
    line = 1
    for number, text in enumerate(ledger.path.read_text(encoding="utf-8").splitlines(), start=1):
        if identity and text.replace(" ", "") == f'id="{identity}"':
            line = number
    return Problem(path=_shown(ledger.path), line=line, rule=rule, advice=advice)


def _shown(path: Path) -> str:
    """From the folder ``suites`` on, as findings about source files are shown."""
    parts = path.parts
    return "/".join(parts[parts.index("suites") :]) if "suites" in parts else path.name


def _tests_of(file: SourceFile, path: str) -> Iterator[Covering]:
    """The test functions of a file and of its test classes."""
    of_module = _marks(_pytestmark(file.tree))
    for owner, function in file.tests:
        of_class = _marks(owner.decorator_list) if owner is not None else []
        around = f"{path}::{owner.name}" if owner is not None else path
        yield _covering(file, function, f"{around}::{function.name}", [of_class, of_module])


def _covering(
    file: SourceFile, function: Function, nodeid: str, around: Sequence[Sequence[_Mark]]
) -> Covering:
    levels = [_marks(function.decorator_list), *around]
    nearest = next((marks for marks in levels if {COVERS, ASIDE} & {name for name, _ in marks}), ())
    return Covering(
        file=file,
        function=function,
        nodeid=nodeid,
        ids=tuple(_arguments(nearest, COVERS)),
        aside=tuple(_arguments(nearest, ASIDE)),
        marks=frozenset(name for marks in levels for name, _ in marks),
    )


def _arguments(marks: Iterable[_Mark], wanted: str) -> Iterator[object]:
    """What marks of a name were given; of one without arguments, the empty text."""
    for name, arguments in marks:
        if name == wanted:
            for argument in arguments or [ast.Constant(value="")]:
                yield (
                    argument.value if isinstance(argument, ast.Constant) else ast.unparse(argument)
                )


def _pytestmark(tree: ast.Module) -> list[ast.expr]:
    """What ``pytestmark`` is, as a list."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "pytestmark" for target in node.targets
        ):
            value = node.value
            return value.elts if isinstance(value, ast.List | ast.Tuple) else [value]
    return []


def _marks(nodes: Iterable[ast.expr]) -> list[_Mark]:
    """Those of ``pytest.mark.NAME`` and ``pytest.mark.NAME(…)``."""
    found = []
    for node in nodes:
        called, arguments = (node.func, node.args) if isinstance(node, ast.Call) else (node, [])
        name = dotted(called)
        if name.startswith("pytest.mark."):
            found.append((name.removeprefix("pytest.mark."), list(arguments)))
    return found
