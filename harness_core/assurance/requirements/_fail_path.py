"""Whether a test sees something refused or fail.

It does, itself or by a helper of its file, when it calls ``expect_refused`` or its like or
``pytest.raises``, or when an assertion, or what is ``expected``, names a failure: a status from 400
on, a failed state, a ``success`` that is ``False``, or a word of the ledger's ``failures``. Such a word
may be a text that is compared with, or a name: of a helper, or of what an assertion is about.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, TypeGuard

from harness_core.assurance.requirements._coverage import Covering
from harness_core.assurance.requirements._problem import Problem, dotted
from harness_core.assurance.requirements._requirements import Ledger

#: Names of helpers that see a refusal or a failure; their own tests hold them to it.
_SEEING: Final = ("expect_failed", "expect_refused", "expect_refusal", "expect_silence")
_ERROR_STATUS: Final = range(400, 600)
_FAILED_WORDS: Final = frozenset({"cancelled", "failed", "interrupted", "unhealthy"})


def check_fail_path(tests: Sequence[Covering], ledger: Ledger) -> Iterator[Problem]:
    """One test of each requirement that names what must be refused or fail sees that."""
    for requirement in ledger.covered:
        own = [test for test in tests if requirement.id in test.ids]
        if requirement.fails and own and not any(_sees(test, ledger.failures) for test in own):
            advice = (
                f"{requirement.id} demands: {requirement.fails}; have one of its tests assert it "
                "(expect_refused, a status from 400 on, a failed state)"
            )
            yield from own[0].report("no-fail-path", advice)


def _sees(test: Covering, words: AbstractSet[str]) -> bool:
    return any(_sees_failure(node, words) for node in test.file.reached(test.function))


def _sees_failure(node: ast.AST, words: AbstractSet[str]) -> bool:
    if isinstance(node, ast.Assert):
        return _asserts_failure(node.test, words)
    if isinstance(node, ast.Call):
        name = dotted(node.func).rpartition(".")[2]
        return name.startswith(_SEEING) or name in words or dotted(node.func) == "pytest.raises"
    return _is_expected(node) and _names_failure(node.value, words)


def _is_expected(node: ast.AST) -> TypeGuard[ast.Assign | ast.keyword]:
    """``expected = …`` and ``expected=…``, which is compared elsewhere."""
    if isinstance(node, ast.keyword):
        return node.arg == "expected"
    return isinstance(node, ast.Assign) and [dotted(each) for each in node.targets] == ["expected"]


def _asserts_failure(test: ast.expr, words: AbstractSet[str]) -> bool:
    """It is about a word of the ledger, or equality with, or membership of, what names a failure."""
    if any(name in words for name in _names(test)):
        return True
    for compare in ast.walk(test):
        if not isinstance(compare, ast.Compare):
            continue
        if not all(isinstance(op, ast.Eq | ast.In | ast.Is) for op in compare.ops):
            continue
        sides = (compare.left, *compare.comparators)
        if any(_names_failure(side, words) for side in sides):
            return True
        constants = [each for side in sides for each in _constants(side)]
        if any(each is False for each in constants) and "success" in constants:
            return True
    return False


def _names(test: ast.AST) -> Iterator[str]:
    """Names and attributes of an assertion, but for what it denies."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return
    if isinstance(test, ast.Name):
        yield test.id
    if isinstance(test, ast.Attribute):
        yield test.attr
    for node in ast.iter_child_nodes(test):
        yield from _names(node)


def _names_failure(value: ast.expr, words: AbstractSet[str]) -> bool:
    """A constant in it is a status of an error, or a text that names a failed state."""
    return any(
        (type(each) is int and each in _ERROR_STATUS) or each in _FAILED_WORDS or each in words
        for each in _constants(value)
    )


def _constants(value: ast.expr) -> list[object]:
    """The constants in it that are no keys of a dictionary."""
    keys = [key for node in ast.walk(value) if isinstance(node, ast.Dict) for key in node.keys]
    return [
        node.value
        for node in ast.walk(value)
        if isinstance(node, ast.Constant) and node not in keys
    ]
