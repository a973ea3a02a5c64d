"""Every check over a whole tree: its suites, its reference systems, the harness itself."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from harness_core.assurance.gates import check_names
from harness_core.assurance.planted import Fault, foreign_products, load_faults
from harness_core.assurance.requirements._blackbox import Rules, check_test_file
from harness_core.assurance.requirements._capabilities import asked_names, check_capabilities
from harness_core.assurance.requirements._circles import check_circles
from harness_core.assurance.requirements._coverage import (
    Covering,
    check_coverage,
    check_fault_ids,
    check_faults,
    covering_tests,
)
from harness_core.assurance.requirements._fail_path import check_fail_path
from harness_core.assurance.requirements._imports import check_core_imports, check_reference_imports
from harness_core.assurance.requirements._outside import check_outside, check_stand_ins
from harness_core.assurance.requirements._problem import Problem, SourceFile
from harness_core.assurance.requirements._requirements import Ledger, load_ledger
from harness_core.assurance.requirements._sentence import check_sentences
from harness_core.system.suites import Suite, load_suites

_REFERENCE = "reference-system"
#: Small products of other makes, which the suite must get right as well.
_FOREIGN = "foreign"


def check_tree(root: Path) -> tuple[Problem, ...]:
    """Check everything below ``root`` that this lint knows; findings in reading order.

    Raises:
        BadInput: a suite.toml or faults.toml is malformed, or names a gate that there is not.
    """
    problems: list[Problem] = []
    for suite in load_suites(root):
        check_gates(suite, root=root)
        problems.extend(_check_suite(suite, root=root))
    core = [
        SourceFile.read(path, root=root)
        for path in _python(root / "harness_core")
        if "tests" not in path.parts
    ]
    problems.extend(check_core_imports(core))
    problems.extend(check_circles(core))
    return tuple(sorted(problems))


def _check_suite(suite: Suite, *, root: Path) -> Iterator[Problem]:
    reference = suite.folder / _REFERENCE
    product = [SourceFile.read(path, root=root) for path in _python(reference)]
    for file in product:
        yield from file.problems
        yield from check_reference_imports(file)
    yield from check_circles(product)
    for path in _python(suite.folder / _FOREIGN):
        yield from check_reference_imports(SourceFile.read(path, root=root))
    yield from _check_own_tests(suite, product, root=root)
    files = suite_sources(suite, root=root)
    internals = _top_level_modules(reference)
    for path, file in files.items():
        rules = Rules(
            name=suite.name,
            internals=internals,
            may_import=suite.may_import,
            is_adapter=suite.folder / path == suite.adapter,
            patching=bool(suite.patching),
        )
        yield from check_test_file(file, rules)
    tests = covering_tests(files)
    yield from check_capabilities(suite, list(files.values()), tests, root=root)
    faults = load_faults(suite.faults) if suite.faults is not None else ()
    yield from _check_faults(suite.faults or suite.folder, faults, tests, root=root)
    products = foreign_products(suite)
    for each in products:
        yield from _check_faults(each.file, each.faults, tests, root=root)
    if suite.ledger is not None:
        ledger = load_ledger(suite.ledger)
        yield from _check_ledger(ledger, files.values(), tests, faults)
        for each in products:
            yield from check_fault_ids(each.faults, tests, ledger)
    if not (suite.folder / "README.md").is_file():
        yield Problem(
            path=suite.folder.relative_to(root).as_posix(),
            line=1,
            rule="readme",
            advice="write README.md: what is under test, how to run one test, what it needs, "
            "how to add one, how to read a failure",
        )


def _check_own_tests(
    suite: Suite, product: Iterable[SourceFile], *, root: Path
) -> Iterator[Problem]:
    """The tests that a reference system has of its own are those of some session."""
    run = [
        (suite.folder / path).relative_to(root)
        for session in suite.sessions
        if session.own_tests
        for path in session.paths
    ]
    for file in product:
        path = Path(file.path)
        if path.name.startswith("test_") and not any(map(path.is_relative_to, run)):
            yield Problem(
                path=file.path,
                line=1,
                rule="unrun-test",
                advice="name it in a [[session]] with own_tests = true",
            )


def check_gates(suite: Suite, *, root: Path) -> None:
    """Check that what a suite lists as optional are gates: the harness's, or of its own files.

    Raises:
        BadInput: a name that is none.
    """
    if not suite.optional_gates:
        return
    own = {
        str(keyword.value.value)
        for path in _own_files(suite)
        # Few of them name one: the others need not be parsed.
        if "Gate" in path.read_text(encoding="utf-8")
        for node, called in SourceFile.read(path, root=root).calls
        if called.rpartition(".")[2] == "Gate"
        for keyword in node.keywords
        if keyword.arg == "name" and isinstance(keyword.value, ast.Constant)
    }
    where = suite.folder / "suite.toml"
    check_names(list(suite.optional_gates), where=where, key="optional_gates", registered=own)


def suite_sources(suite: Suite, *, root: Path) -> dict[Path, SourceFile]:
    """The files of a suite without the products beside it: path relative to its folder → source."""
    return {
        path.relative_to(suite.folder): SourceFile.read(path, root=root)
        for path in _own_files(suite)
    }


def _own_files(suite: Suite) -> list[Path]:
    products = {suite.folder / _REFERENCE, suite.folder / _FOREIGN}
    return [path for path in _python(suite.folder) if products.isdisjoint(path.parents)]


def asked_capabilities(suite: Suite, *, root: Path) -> frozenset[str]:
    """The capabilities that code of a suite asks its subject for, besides the marks of tests."""
    return frozenset(asked_names(list(suite_sources(suite, root=root).values())))


def _check_ledger(
    ledger: Ledger, files: Iterable[SourceFile], tests: Sequence[Covering], faults: Sequence[Fault]
) -> Iterator[Problem]:
    """Requirements against tests and planted faults, and the rules for tests from outside."""
    yield from check_coverage(tests, ledger)
    proving = {test.file.path for test in tests if test.ids}
    only_aside = {test.file.path for test in tests} - proving
    for file in files:
        if file.path not in only_aside:
            yield from check_outside(file, ledger)
    yield from check_fail_path(tests, ledger)
    proving_tests = [test for test in tests if test.ids]
    for test in proving_tests:
        yield from check_stand_ins(test, ledger)
    # A helper that several tests reach is one finding.
    yield from dict.fromkeys(found for test in proving_tests for found in check_sentences(test))
    yield from check_faults(faults, tests, ledger)


def _check_faults(
    file: Path, faults: Iterable[Fault], tests: Iterable[Covering], *, root: Path
) -> Iterator[Problem]:
    """The tests that faults name exist; running them is what proves the rest."""
    known = {test.nodeid for test in tests}
    known |= {nodeid.rpartition("::")[0] for nodeid in known}
    for fault in faults:
        for test in fault.tests:
            if test.partition("[")[0] not in known:
                yield Problem(
                    path=file.relative_to(root).as_posix(),
                    line=1,
                    rule="fault-names-no-test",
                    advice=f"fault {fault.id} names {test}, which does not exist",
                )


def _python(folder: Path) -> Iterable[Path]:
    """Python files below a folder, without environments and build products."""
    return sorted(
        path
        for path in folder.rglob("*.py")
        if not any(
            part.startswith(".") or part in {"__pycache__", "build", "node_modules"}
            for part in path.relative_to(folder).parts
        )
    )


def _top_level_modules(reference: Path) -> frozenset[str]:
    """What the distributions of a reference system can be imported as."""
    homes = [path.parent for path in reference.rglob("pyproject.toml")]
    found: set[str] = set()
    for home in [*homes, *(home / "src" for home in homes)]:
        found.update(path.parent.name for path in home.glob("*/__init__.py"))
        # A distribution of several packages keeps each in a folder of its own.
        found.update(
            path.parent.name
            for path in home.glob("*/*/__init__.py")
            if not (path.parent.parent / "__init__.py").exists()
        )
        found.update(path.stem for path in home.glob("*.py"))
    return frozenset(found - sys.stdlib_module_names - {"conftest"})
