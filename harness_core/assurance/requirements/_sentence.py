"""Assertions on what came from the product say in a sentence which promise is broken.

``assert [1, 2] == rows`` shows two lists to somebody who knows neither the test nor the product. A
test that covers a requirement therefore gives each assertion on a product's value a message: the
promise, then what was expected and what was found. Tests that are ``aside`` judge the suite's own
helpers, and are free.

A value is the product's when it was awaited, when it was read from a fixture or given to one, or when
it was made from such a value. Rows of ``parametrize`` and the test's own literals are not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from harness_core.assurance.requirements._coverage import Covering
from harness_core.assurance.requirements._problem import Finding, Function, Problem, dotted

_RULE: Final = "no-sentence"
_ADVICE: Final = (
    "the value is the product's: say which promise is broken, expected before found "
    '(assert expected == found, f"a closed stream stays closed: expected …, found …")'
)

#: Fixtures that hold nothing of a product.
_OWN_FIXTURES: Final = frozenset({"evidence", "pytestconfig", "request", "token"})

#: A message of fewer is a value, not a sentence.
_FEWEST_WORDS: Final = 3


def check_sentences(test: Covering) -> Iterator[Problem]:
    """Check a test that covers a requirement, and the functions of its file that it reaches."""
    for function in _functions(test):
        yield from test.file.report(_bare(function, own=_own_names(function)))


def _functions(test: Covering) -> Iterator[Function]:
    """The test, and the helpers of its file that it reaches."""
    helpers = {node.name: node for node in test.file.nodes if isinstance(node, Function)}
    seen = {test.function.name}
    yield test.function
    for node in test.file.reached(test.function):
        name = dotted(node).rpartition(".")[2]
        if name in helpers and name not in seen:
            seen.add(name)
            yield helpers[name]


def _own_names(function: Function) -> frozenset[str]:
    """Parameters that are no fixtures with a product behind them."""
    names = set(_OWN_FIXTURES)
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and dotted(decorator.func).endswith("parametrize"):
            for argument in decorator.args[:1]:
                for node in ast.walk(argument):
                    if isinstance(node, ast.Constant) and isinstance(node.value, str):
                        names.update(name.strip() for name in node.value.split(","))
    return frozenset(names)


def _bare(function: Function, *, own: frozenset[str]) -> Iterator[Finding]:
    arguments = function.args
    given = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    reached_by = {each.arg for each in given} - own
    values = _values(function, reached_by)
    for node in ast.walk(function):
        if (
            isinstance(node, ast.Assert)
            and _is_of_product(node.test, reached_by, values)
            and not (node.msg is not None and _is_sentence(node.msg, function))
        ):
            yield node, _RULE, _ADVICE


def _values(function: Function, reached_by: set[str]) -> set[str]:
    """Names that hold something of the product."""
    bindings = [pair for node in ast.walk(function) for pair in _bindings(node)]
    found: set[str] = set()
    while True:
        new = {
            name
            for target, value in bindings
            if _is_of_product(value, reached_by, found)
            for name in _names(target)
        }
        if new <= found:
            return found
        found |= new


def _bindings(node: ast.AST) -> Iterator[tuple[ast.AST, ast.expr]]:
    """Targets with what they are bound to."""
    if isinstance(node, ast.Assign):
        yield from ((target, node.value) for target in node.targets)
    elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr):
        if node.value is not None:
            yield node.target, node.value
    elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
        yield node.target, node.iter
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        yield node.optional_vars, node.context_expr


def _names(target: ast.AST) -> Iterator[str]:
    for node in ast.walk(target):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def _is_of_product(value: ast.expr, reached_by: set[str], values: set[str]) -> bool:
    """Whether an expression holds something that came from the product."""
    for node in ast.walk(value):
        if isinstance(node, ast.Await):
            return True
        if isinstance(node, ast.Name) and node.id in values:
            return True
        if isinstance(node, ast.Attribute | ast.Subscript) and _root(node) in reached_by:
            return True
        if isinstance(node, ast.Call):
            handed = [*node.args, *(each.value for each in node.keywords)]
            if any(isinstance(each, ast.Name) and each.id in reached_by for each in handed):
                return True
    return False


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_sentence(message: ast.expr, function: Function) -> bool:
    """Whether a message has words of its own; what a function makes is taken for one."""
    if isinstance(message, ast.Call):
        return dotted(message.func) not in {"str", "repr"}
    return _words(message, function) >= _FEWEST_WORDS


def _words(message: ast.expr, function: Function) -> int:  # noqa: PLR0911 - one row per shape reads best
    """How many words of its own a message has at least; a value in the midst of them counts as one."""
    match message:
        case ast.Constant(value=str(text)):
            return len(text.split())
        case ast.JoinedStr(values=values) if any(isinstance(each, ast.Constant) for each in values):
            texts = [each.value if isinstance(each, ast.Constant) else "value" for each in values]
            return len(" ".join(map(str, texts)).split())
        case ast.BinOp(left=left, right=right):
            return _words(left, function) + _words(right, function)
        case ast.IfExp(body=body, orelse=orelse):
            return min(_words(body, function), _words(orelse, function))
        case ast.BoolOp(values=several):
            return max(_words(each, function) for each in several)
        case ast.Name(id=name):
            bound = [
                value
                for node in ast.walk(function)
                for target, value in _bindings(node)
                if name in _names(target) and value is not message
            ]
            sentences = any(_is_sentence(value, function) for value in bound)
            return _FEWEST_WORDS if sentences else 0
    return 0
