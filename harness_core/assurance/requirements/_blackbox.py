"""Tests that look inside their subject, patch it, sleep, or assert nothing.

A test has an assertion when its body, or a function of the same file that it calls, holds an
``assert`` that could fail, a ``pytest.raises``, or a call of something named ``assert_…``,
``expect_…`` or ``check_…``. What only looks like one (a constant, a non-empty tuple,
``len(x) >= 0``) is a finding wherever it stands.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from harness_core.assurance.requirements._problem import (
    Function,
    Problem,
    SourceFile,
    below,
    dotted,
    helpers_in,
    imported_modules,
    reached,
    tests_in,
)

_PATCHING_FIXTURES = frozenset(
    {"monkeypatch", "mocker", "class_mocker", "module_mocker", "session_mocker"}
)
_PATCHING_MODULES = ("unittest.mock", "mock", "pytest_mock", "pytest.MonkeyPatch")
_SLEEPS = frozenset({"time.sleep", "trio.sleep", "asyncio.sleep", "anyio.sleep", "gevent.sleep"})
_BY_PATH = frozenset(
    {
        "importlib.util.spec_from_file_location",
        "runpy.run_module",
        "runpy.run_path",
        "site.addsitedir",
        "sys.path.append",
        "sys.path.extend",
        "sys.path.insert",
    }
)
_ASSERTING_PREFIXES = ("assert_", "expect_", "check_")
_ASSERTING_CALLS = frozenset({"raises", "warns", "deprecated_call", "RaisesGroup", "fail"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What one suite allows its files.

    Attributes:
        name: of the suite.
        internals: top-level modules of its reference system.
        may_import: of these, the dotted names any file may import.
        is_adapter: this file is the one that may import the subject.
        patching: the suite has said why its tests may patch.
    """

    name: str
    internals: frozenset[str] = frozenset()
    may_import: tuple[str, ...] = ()
    is_adapter: bool = False
    patching: bool = False


def check_test_file(file: SourceFile, rules: Rules) -> Iterator[Problem]:
    """Check one file of a suite."""
    yield from file.problems
    yield from _imports(file, rules)
    if not rules.patching:
        yield from _patching(file)
    yield from _sleeps(file)
    yield from _assertions(file)


def _imports(file: SourceFile, rules: Rules) -> Iterator[Problem]:
    for node, module in imported_modules(file.tree):
        top, _, rest = module.partition(".")
        if top == "suites" and rest.partition(".")[0] != rules.name:
            yield from file.problem(
                node,
                "imports-suite",
                "suites share nothing but harness_core; move it there or copy it",
            )
        contract = below(module, *rules.may_import)
        if top in rules.internals and not rules.is_adapter and not contract:
            yield from file.problem(
                node,
                "subject-internals",
                f"{top} is the subject's own code; reach it through its public boundary",
            )
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Call) and dotted(node.func) in _BY_PATH and not rules.is_adapter:
            yield from file.problem(
                node,
                "subject-internals",
                f"{dotted(node.func)} reaches code by its path; start the subject's command line",
            )


def _patching(file: SourceFile) -> Iterator[Problem]:
    advice = "start the subject with another configuration, or fake what is outside of it"
    for node, module in imported_modules(file.tree):
        if below(module, *_PATCHING_MODULES):
            yield from file.problem(node, "patching", advice)
    for node in ast.walk(file.tree):
        if isinstance(node, Function):
            for argument in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]:
                if argument.arg in _PATCHING_FIXTURES:
                    yield from file.problem(node, "patching", advice)
        elif isinstance(node, ast.Attribute) and dotted(node) == "pytest.MonkeyPatch":
            yield from file.problem(node, "patching", advice)


def _sleeps(file: SourceFile) -> Iterator[Problem]:
    named = {
        alias.asname or alias.name
        for node in ast.walk(file.tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if f"{node.module}.{alias.name}" in _SLEEPS
    }
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Call) and dotted(node.func) in _SLEEPS | named:
            yield from file.problem(
                node, "sleep", "wait on an observable: harness_core.base.wait.until or deadline"
            )


def _assertions(file: SourceFile) -> Iterator[Problem]:
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Assert) and (why := _vacuous(node.test)):
            yield from file.problem(
                node, "empty-assertion", f"{why} cannot fail; compare expected with actual"
            )
    helpers = helpers_in(file.tree)
    for _, test in tests_in(file.tree):
        if _only_passes(test):
            yield from file.problem(
                test, "pass-only", "it does nothing; write the test or remove it"
            )
        elif not any(map(_asserts, reached(test, helpers))):
            yield from file.problem(
                test,
                "no-assertion",
                "assert what must be true afterwards; 'does not crash' is a liveness probe",
            )


def _only_passes(test: Function) -> bool:
    return all(
        isinstance(node, ast.Pass | ast.Return)
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for node in test.body
    )


def _asserts(node: ast.AST) -> bool:
    """Whether it could fail as an assertion."""
    if isinstance(node, ast.Assert):
        return not _vacuous(node.test)
    if isinstance(node, ast.Raise):
        return "AssertionError" in ast.dump(node)
    called = dotted(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""
    return called.startswith(_ASSERTING_PREFIXES) or called in _ASSERTING_CALLS


def _vacuous(test: ast.expr) -> str:  # noqa: PLR0911 - one row per shape reads best
    """Why an assertion cannot fail; empty when it can."""
    match test:
        case ast.Constant(value=value) if value:
            return f"assert {value!r}"
        case ast.Tuple(elts=[_, *_]):
            return "a tuple with something in it"
        case ast.JoinedStr() | ast.Lambda():
            return "a value that is always true"
        case ast.List(elts=[_, *_]) | ast.Set(elts=[_, *_]) | ast.Dict(keys=[_, *_]):
            return "a literal with something in it"
        case ast.BoolOp(op=ast.Or(), values=values) if any(map(_vacuous, values)):
            return "an alternative that is always true"
        case ast.BoolOp(op=ast.And(), values=values) if all(map(_vacuous, values)):
            return "a condition that is always true"
        case ast.UnaryOp(op=ast.Not(), operand=ast.Constant(value=value)) if not value:
            return f"assert not {value!r}"
        case ast.Compare(
            left=ast.Call(func=ast.Name(id="len")),
            ops=[ast.GtE()],
            comparators=[ast.Constant(value=0)],
        ):
            return "a length of at least 0"
        case ast.Compare(left=left, ops=[ast.Eq() | ast.Is()], comparators=[right]) if ast.dump(
            left
        ) == ast.dump(right):
            return "comparing a thing with itself"
    return ""
