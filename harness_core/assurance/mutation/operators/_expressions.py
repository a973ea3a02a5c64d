"""Comparisons, arithmetic, conditions, constants, arguments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import libcst as cst

from harness_core.assurance.mutation.operators._change import (
    Change,
    Site,
    keyword_of,
    name_of,
    operator,
    without,
)

_NEGATED: Final = {
    "==": "!=",
    "!=": "==",
    "in": "not in",
    "not in": "in",
    "is": "is not",
    "is not": "is",
}
_NEXT: Final = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
_OPPOSITE: Final = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}

_ARITHMETIC: Final = {
    "+": "-",
    "-": "+",
    "*": "//",
    "/": "*",
    "//": "*",
    "%": "//",
    "**": "*",
    "<<": ">>",
    ">>": "<<",
    "&": "|",
    "|": "&",
    "^": "&",
}

#: What is joined rather than added; the other operator would fail at once.
_JOINED: Final = (
    cst.SimpleString,
    cst.FormattedString,
    cst.ConcatenatedString,
    cst.List,
    cst.ListComp,
    cst.Tuple,
    cst.Dict,
)

#: Of these the order of the arguments is the grammar of Python, or means nothing.
_ORDERLESS: Final = frozenset(
    {*("isinstance", "issubclass", "getattr", "setattr", "hasattr", "range", "min", "max", "cast")}
)

#: Methods without which a text or a list is nearly the same.
_TIDYING: Final = frozenset(
    {*("strip", "lstrip", "rstrip", "lower", "upper", "casefold", "copy", "absolute", "resolve")}
)


@operator("limit-off-by-one", cst.ComparisonTarget)
def limits(node: cst.ComparisonTarget, site: Site) -> Iterator[Change]:
    """``<`` for ``<=`` and the like."""
    yield from _operator_as(node.operator, _NEXT, site)


@operator("comparison", cst.ComparisonTarget)
def comparisons(node: cst.ComparisonTarget, site: Site) -> Iterator[Change]:
    """The opposite, unless negating the whole condition is the same change."""
    yield from _operator_as(node.operator, _NEGATED, site)
    if not isinstance(site.parents[1], cst.If | cst.IfExp | cst.CompIf):
        yield from _operator_as(node.operator, _OPPOSITE, site)


@operator("arithmetic", cst.BinaryOperation)
def arithmetic(node: cst.BinaryOperation, site: Site) -> Iterator[Change]:
    """The inverse; of what is joined, the left part alone."""
    left = node.left.right if isinstance(node.left, cst.BinaryOperation) else node.left
    if isinstance(left, _JOINED) or isinstance(node.right, _JOINED):
        if isinstance(node.operator, cst.Add):
            cut = site.text(node.right)
            yield Change(site.end(node.left), site.end(node), "", f"{_short(cut)} left out")
        return
    yield from _operator_as(node.operator, _ARITHMETIC, site)


@operator("arithmetic", cst.AugAssign)
def counted(node: cst.AugAssign, site: Site) -> Iterator[Change]:
    """``-=`` for ``+=``."""
    if not isinstance(node.value, _JOINED):
        yield from _operator_as(node.operator, {"+=": "-=", "-=": "+=", "*=": "+="}, site)


@operator("boolean", cst.BooleanOperation)
def booleans(node: cst.BooleanOperation, site: Site) -> Iterator[Change]:
    """``or`` for ``and``; one side alone."""
    yield from _operator_as(node.operator, {"and": "or", "or": "and"}, site)
    for side in (node.left, node.right):
        other = node.right if side is node.left else node.left
        text = _wrapped(side, site)
        yield site.replaced(node, text, f"{_short(site.text(other))} left out of the condition")


@operator("boolean", cst.UnaryOperation)
def negations(node: cst.UnaryOperation, site: Site) -> Iterator[Change]:
    """Without ``not``; without the minus."""
    if isinstance(node.operator, cst.Not | cst.Minus):
        what = "not" if isinstance(node.operator, cst.Not) else "the minus"
        yield site.replaced(node, _wrapped(node.expression, site), f"{what} left out")


@operator("condition-negated", cst.If, cst.IfExp, cst.CompIf)
def negated(node: cst.If | cst.IfExp | cst.CompIf, site: Site) -> Iterator[Change]:
    """``if not (…)``."""
    negated = isinstance(node.test, cst.UnaryOperation) and isinstance(node.test.operator, cst.Not)
    if not negated:  # what is negated loses its `not` by another operator
        text = site.text(node.test)
        yield site.replaced(node.test, f"(not ({text}))", f"{_short(text)} negated")


@operator("constant", cst.Integer)
def integers(node: cst.Integer, site: Site) -> Iterator[Change]:
    """One more; a default has an operator of its own."""
    if not _is_default(site) and not _is_sign(site):
        yield site.replaced(node, str(node.evaluated_value + 1), f"{node.value} is one more")


@operator("constant", cst.Float)
def floats(node: cst.Float, site: Site) -> Iterator[Change]:
    """Ten times as much."""
    if not _is_default(site):
        yield site.replaced(
            node, repr(node.evaluated_value * 10 or 1.0), f"{node.value} ten times as much"
        )


@operator("constant", cst.Name)
def truths(node: cst.Name, site: Site) -> Iterator[Change]:
    """``False`` for ``True``."""
    other = {"True": "False", "False": "True"}.get(node.value)
    if other and not _is_default(site):
        yield site.replaced(node, other, f"{node.value} is {other}")


@operator("default-changed", cst.Param)
def defaults(node: cst.Param, site: Site) -> Iterator[Change]:
    """Another default."""
    value = node.default
    other = ""
    if isinstance(value, cst.Integer):
        other = str(value.evaluated_value + 1)
    elif isinstance(value, cst.Float):
        other = repr(value.evaluated_value * 10 or 1.0)
    elif isinstance(value, cst.Name):
        other = {"True": "False", "False": "True"}.get(value.value, "")
    elif isinstance(value, cst.SimpleString):
        other = '""' if value.evaluated_value else '"other"'
    if value is not None and other:
        what = f"the default of {node.name.value} is {other} instead of {site.text(value)}"
        yield site.replaced(value, other, what)


@operator("arguments-swapped", cst.Call)
def swapped(node: cst.Call, site: Site) -> Iterator[Change]:
    """The first two arguments in the other order."""
    if len(node.args) < 2 or name_of(node) in _ORDERLESS:  # noqa: PLR2004 - two to swap
        return
    first, second = node.args[:2]
    if first.star or second.star or keyword_of(first) or keyword_of(second):
        return
    one, two = site.text(first.value), site.text(second.value)
    plain = isinstance(first.value, cst.BaseString) and isinstance(second.value, cst.BaseNumber)
    if one != two and not plain:
        between = site.between(site.end(first.value), site.start(second.value))
        if "(" in between or ")" in between:
            return
        yield Change(
            site.start(first.value),
            site.end(second.value),
            f"{two}{between}{one}",
            f"{_short(one)} and {_short(two)} swapped",
        )


@operator("keyword-dropped", cst.Call)
def keywords(node: cst.Call, site: Site) -> Iterator[Change]:
    """One keyword argument left out, where the call can do without it."""
    needed = site.required.get(name_of(node), frozenset())
    for place, argument in enumerate(node.args):
        keyword = keyword_of(argument)
        if keyword and not argument.star and keyword not in needed and keyword not in _TIMED:
            yield without(node, place, site, f"{keyword}= left out")


#: What other operators drop, in words of their own.
_TIMED: Final = frozenset({"timeout", "tz", "tzinfo", "reverse", "help", "description", "summary"})


@operator("normalisation", cst.Call)
def untidied(node: cst.Call, site: Site) -> Iterator[Change]:
    """What is called on a text to make it comparable is left out."""
    if isinstance(node.func, cst.Attribute) and node.func.attr.value in _TIDYING:
        receiver = site.source[site.start(node) : site.end(node)]
        # The receiver with its parentheses is what stands before the dot of the call.
        dot = receiver.rindex(f".{node.func.attr.value}".encode())
        yield Change(
            site.start(node) + dot, site.end(node), "", f".{node.func.attr.value}() left out"
        )


@operator("any-all", cst.Call)
def quantified(node: cst.Call, site: Site) -> Iterator[Change]:
    """``all`` for ``any``, ``max`` for ``min``."""
    other = {"any": "all", "all": "any", "min": "max", "max": "min"}
    if isinstance(node.func, cst.Name) and node.func.value in other:
        new = other[node.func.value]
        yield site.replaced(node.func, new, f"{new}() for {node.func.value}()")


@operator("slice", cst.Slice)
def slices(node: cst.Slice, site: Site) -> Iterator[Change]:
    """One more at either end."""
    for bound, side in ((node.lower, "begins"), (node.upper, "ends")):
        # A number is changed as a constant is.
        if bound is not None and not isinstance(bound, cst.Integer | cst.UnaryOperation):
            text = site.text(bound)
            yield site.replaced(bound, f"({text}) + 1", f"the slice {side} one later")


def _operator_as(node: cst.CSTNode, others: dict[str, str], site: Site) -> Iterator[Change]:
    text = site.text(node)
    token = text.strip()
    if token in others:
        new = others[token]
        at = site.start(node) + len(text) - len(text.lstrip())
        yield Change(at, at + len(token.encode()), new, f"{new} for {token}")


def _wrapped(node: cst.BaseExpression, site: Site) -> str:
    text = site.text(node)
    atom = isinstance(node, cst.Name | cst.Attribute | cst.Call | cst.Subscript)
    return text if atom and "\n" not in text else f"({text})"


def _is_default(site: Site) -> bool:
    return isinstance(site.parent, cst.Param)


def _is_sign(site: Site) -> bool:
    return isinstance(site.parent, cst.UnaryOperation) and not isinstance(
        site.parent.operator, cst.Minus
    )


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:60]}…"  # noqa: PLR2004 - what a table shows
