"""Tests that import their subject, patch it, sleep, or assert nothing.

A test has an assertion when its body, or a function of the same file that it calls, holds an
``assert`` that could fail, a ``pytest.raises``, or a call of something named ``assert_…``,
``expect_…`` or ``check_…``, or explores: a machine's rules and invariants judge. What only looks like one (a constant, a non-empty tuple,
``len(x) >= 0``) is a finding wherever it stands.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from harness_core.assurance.requirements._problem import (
    Finding,
    Function,
    Problem,
    SourceFile,
    below,
    dotted,
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
_EXPLORING_CALLS = frozenset({"explore", "explore.run"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What one suite allows its files.

    Attributes:
        name: of the suite.
        internals: top-level modules of its reference system.
        may_import: of these, the dotted names any file may import.
        is_adapter: this file is the one that may import the subject.
        patching: its tests may patch; suite.toml has the reason.
    """

    name: str
    internals: frozenset[str] = frozenset()
    may_import: tuple[str, ...] = ()
    is_adapter: bool = False
    patching: bool = False


def check_test_file(file: SourceFile, rules: Rules) -> Iterator[Problem]:
    """Check one file of a suite."""
    yield from file.problems
    yield from file.report(_imports(file, rules))
    if not rules.patching:
        yield from file.report(_patching(file))
    yield from file.report(_calls(file, rules))
    yield from file.report(_assertions(file))


def _imports(file: SourceFile, rules: Rules) -> Iterator[Finding]:
    for node, module in file.imports:
        top, _, rest = module.partition(".")
        if top == "suites" and rest.partition(".")[0] != rules.name:
            advice = "suites share nothing but harness_core; move it there or copy it"
            yield node, "imports-suite", advice
        contract = below(module, *rules.may_import)
        if top in rules.internals and not rules.is_adapter and not contract:
            advice = f"{top} is the subject's own code; reach it through its public boundary"
            yield node, "subject-internals", advice


def _patching(file: SourceFile) -> Iterator[Finding]:
    found = [node for node, module in file.imports if below(module, *_PATCHING_MODULES)]
    for node in file.nodes:
        if isinstance(node, Function):
            given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            found += [node for argument in given if argument.arg in _PATCHING_FIXTURES]
        elif dotted(node) == "pytest.MonkeyPatch":
            found.append(node)
    advice = "start the subject with another configuration, or fake what is outside of it"
    yield from ((node, "patching", advice) for node in found)


def _calls(file: SourceFile, rules: Rules) -> Iterator[Finding]:
    sleeps = _SLEEPS | {
        alias.asname or alias.name
        for node in file.nodes
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if f"{node.module}.{alias.name}" in _SLEEPS
    }
    for node, name in file.calls:
        if name in _BY_PATH and not rules.is_adapter:
            advice = f"{name} reaches code by its path; start the subject's command line"
            yield node, "subject-internals", advice
        if name in sleeps:
            advice = "wait on an observable: harness_core.base.wait.until or deadline"
            yield node, "sleep", advice


def _assertions(file: SourceFile) -> Iterator[Finding]:
    for node in file.nodes:
        if isinstance(node, ast.Assert) and (why := _vacuous(node.test)):
            yield node, "empty-assertion", f"{why} cannot fail; compare expected with actual"
    for _, test in file.tests:
        if _only_passes(test):
            yield test, "pass-only", "it does nothing; write the test or remove it"
        elif not any(map(_asserts, file.reached(test))):
            advice = "assert what must be true afterwards; 'does not crash' is a liveness probe"
            yield test, "no-assertion", advice


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
    if not isinstance(node, ast.Call):
        return False
    if dotted(node.func) in _EXPLORING_CALLS:
        return True
    called = dotted(node.func).rpartition(".")[2]
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
