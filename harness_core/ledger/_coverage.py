"""Requirements against tests, both ways: each covered id has one test, each test a covered id.

Read from the source, so that it does not depend on which tests a run selects.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness_core.faults import Fault
from harness_core.ledger._problem import Problem, SourceFile, dotted
from harness_core.ledger._requirements import Ledger

__all__ = ["Covering", "check_coverage", "check_fault_counts", "covering_tests"]

_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Covering:
    """One test function, and what its decorators say of it.

    Attributes:
        file: its file.
        function: its syntax tree.
        nodeid: its id relative to the suite folder.
        ids: what its ``int_id`` names, whatever that is.
        marks: names of its other marks, those of its module included.
    """

    file: SourceFile
    function: _Function
    nodeid: str
    ids: tuple[object, ...]
    marks: frozenset[str]


def covering_tests(files: Mapping[Path, SourceFile], ledger: Ledger) -> Iterator[Covering]:
    """Every test function of a suite.

    Args:
        files: path relative to the suite folder → source.
        ledger: of the suite.
    """
    for path, file in files.items():
        if not (path.name.startswith("test_") or path.name.endswith("_test.py")):
            continue
        module_marks = frozenset(_module_marks(file.tree))
        for function, owner in _tests(file.tree):
            marks = [_mark(each) for each in function.decorator_list]
            ids = [
                argument.value if isinstance(argument, ast.Constant) else ast.unparse(argument)
                for mark in marks
                if mark and mark[0] == ledger.marker
                for argument in mark[1]
            ]
            inside = f"{owner}::" if owner else ""
            yield Covering(
                file=file,
                function=function,
                nodeid=f"{path.as_posix()}::{inside}{function.name}",
                ids=tuple(ids),
                marks=module_marks | {mark[0] for mark in marks if mark},
            )


def check_coverage(files: Mapping[Path, SourceFile], ledger: Ledger) -> Iterator[Problem]:
    """What does not agree between the ledger and the tests."""
    covering: dict[str, list[Covering]] = defaultdict(list)
    for test in covering_tests(files, ledger):
        yield from _check_test(test, ledger)
        for identity in test.ids:
            covering[str(identity)].append(test)
    for requirement in ledger.requirements.values():
        tests = covering[requirement.id]
        if requirement.covered and not tests:
            yield _row(
                ledger,
                requirement.id,
                "id-without-test",
                f"{requirement.id} is covered by no test; write one with "
                f'@pytest.mark.{ledger.marker}("{requirement.id}"), or defer it with a reason',
            )
        for test in tests[1:]:
            yield from test.file.problem(
                test.function,
                "id-covered-twice",
                f"{requirement.id} has a test already, {tests[0].nodeid}; one function covers an id, "
                "parametrised where it has several cases",
            )


def _check_test(test: Covering, ledger: Ledger) -> Iterator[Problem]:
    if "aside" in test.marks:
        return
    if len(test.ids) != 1:
        yield from test.file.problem(
            test.function,
            "test-without-id",
            f'a test here covers one id: @pytest.mark.{ledger.marker}("{ledger.prefix}001")',
        )
        return
    identity = test.ids[0]
    requirement = ledger.requirements.get(str(identity))
    if requirement is None:
        yield from test.file.problem(
            test.function, "unknown-id", f"{identity!r} is no id of {ledger.path.name}"
        )
        return
    if not requirement.covered:
        yield from test.file.problem(
            test.function,
            "id-deferred",
            f"{identity} is deferred in {ledger.path.name}; set its status to covered",
        )
    wanted = ledger.priorities[requirement.priority]
    found = sorted(test.marks & set(ledger.priorities.values()))
    if found != [wanted]:
        yield from test.file.problem(
            test.function,
            "priority",
            f"{identity} is {requirement.priority}: mark it {wanted} "
            f"(found {', '.join(found) or 'no priority'})",
        )


def check_fault_counts(faults: Iterable[Fault], ledger: Ledger) -> Iterator[Problem]:
    """Every covered id has the planted faults that prove its test able to fail."""
    planted: dict[str, int] = defaultdict(int)
    for fault in faults:
        planted[fault.requirement] += 1
        if fault.requirement not in ledger.requirements:
            yield _row(
                ledger,
                "",
                "unknown-id",
                f"fault {fault.id} breaks {fault.requirement!r}, which is no id of this ledger",
            )
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


def _tests(tree: ast.Module) -> Iterator[tuple[_Function, str]]:
    for node in tree.body:
        if isinstance(node, _Function) and node.name.startswith("test"):
            yield node, ""
        elif isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            for inner in node.body:
                if isinstance(inner, _Function) and inner.name.startswith("test"):
                    yield inner, node.name


def _module_marks(tree: ast.Module) -> Iterator[str]:
    """``pytestmark = pytest.mark.x`` or a list of such."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "pytestmark" for target in node.targets
        ):
            value = node.value
            rows = value.elts if isinstance(value, ast.List | ast.Tuple) else [value]
            for row in rows:
                mark = _mark(row)
                if mark:
                    yield mark[0]


def _mark(node: ast.expr) -> tuple[str, list[ast.expr]] | None:
    """Name and arguments of ``pytest.mark.NAME`` or ``pytest.mark.NAME(…)``."""
    called, arguments = (node.func, node.args) if isinstance(node, ast.Call) else (node, [])
    name = dotted(called)
    if not name.startswith("pytest.mark."):
        return None
    return name.removeprefix("pytest.mark."), list(arguments)
