"""What is the value of this expression? A safe subset of Lisp for `/eval`.

Numbers, strings, lists, `quote`, `if`, `let`, `and`, `or`, arithmetic, comparison, and a few
functions on lists. Nothing reaches outside: no names but those bound by `let`, bounded
steps, bounded sizes.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from sexpd import faults
from sexpd.sexpr import Dotted, ReadError, Symbol, read, write

STEPS = 10_000
DEPTH = 32
BITS = 4096
CHARS = 100_000


class EvaluationError(ValueError):
    """An expression without a value here; the text says why."""


def evaluate_text(text: str) -> str:
    """Read one expression, evaluate it, write its value.

    Raises:
        EvaluationError: it has none.
    """
    try:
        return write(evaluate(read(text, depth=DEPTH)))
    except ReadError as error:
        raise EvaluationError(str(error)) from error


def evaluate(form: Any) -> Any:
    """The value of a form that was read.

    Raises:
        EvaluationError: it has none.
    """
    return _Evaluation().value(form, {})


class _Evaluation:
    def __init__(self) -> None:
        self._steps = 0

    def value(self, form: Any, names: dict[str, Any]) -> Any:
        self._steps += 1
        if self._steps > STEPS:
            raise EvaluationError(f"it takes more than {STEPS} steps")
        if isinstance(form, Symbol):
            if form.name not in names:
                raise EvaluationError(f"nothing is called {form.name}")
            return names[form.name]
        if isinstance(form, Dotted):
            raise EvaluationError("a dotted pair is no expression")
        if not isinstance(form, list):
            return form
        head, *rest = form
        if not isinstance(head, Symbol):
            raise EvaluationError(f"{write(head)} is no function")
        if head.name in _FORMS:
            return _FORMS[head.name](self, rest, names)
        if head.name not in _FUNCTIONS:
            raise EvaluationError(f"there is no function {head.name}")
        arguments = [self.value(item, names) for item in rest]
        try:
            return _bounded(_FUNCTIONS[head.name](*arguments))
        except (TypeError, ValueError, ArithmeticError) as error:
            if isinstance(error, EvaluationError):
                raise
            shown = " ".join(write(item) for item in arguments)
            raise EvaluationError(f"({head.name} {shown}) makes no sense") from error

    def _if(self, rest: list[Any], names: dict[str, Any]) -> Any:
        if not 2 <= len(rest) <= 3:
            raise EvaluationError("IF takes a test and one or two branches")
        if self.value(rest[0], names) is not None:
            return self.value(rest[1], names)
        return self.value(rest[2], names) if len(rest) == 3 else None

    def _let(self, rest: list[Any], names: dict[str, Any]) -> Any:
        bindings = (rest[0] or []) if rest else None
        if not isinstance(bindings, list):
            raise EvaluationError("LET takes a list of bindings and a body")
        inner = dict(names)
        for binding in bindings:
            if not (
                isinstance(binding, list) and len(binding) == 2 and isinstance(binding[0], Symbol)
            ):
                raise EvaluationError("a binding of LET is a list of a name and a value")
            inner[binding[0].name] = self.value(binding[1], names)
        return self._progn(rest[1:], inner)

    def _progn(self, rest: list[Any], names: dict[str, Any]) -> Any:
        value = None
        for form in rest:
            value = self.value(form, names)
        return value

    def _quote(self, rest: list[Any], names: dict[str, Any]) -> Any:
        if len(rest) != 1:
            raise EvaluationError("QUOTE takes one form")
        return rest[0]

    def _and(self, rest: list[Any], names: dict[str, Any]) -> Any:
        value: Any = True
        for form in rest:
            if (value := self.value(form, names)) is None:
                return None
        return value

    def _or(self, rest: list[Any], names: dict[str, Any]) -> Any:
        for form in rest:
            if (value := self.value(form, names)) is not None:
                return value
        return None


_FORMS: dict[str, Callable[[_Evaluation, list[Any], dict[str, Any]], Any]] = {
    "AND": _Evaluation._and,
    "IF": _Evaluation._if,
    "LET": _Evaluation._let,
    "OR": _Evaluation._or,
    "PROGN": _Evaluation._progn,
    "QUOTE": _Evaluation._quote,
}


def _bounded(value: Any) -> Any:
    if isinstance(value, int) and value.bit_length() > BITS:
        raise EvaluationError("a number grows too large")
    if isinstance(value, Fraction):
        _bounded(value.numerator)
        _bounded(value.denominator)
        return value.numerator if value.denominator == 1 else value
    if isinstance(value, float) and value - value != 0:
        raise EvaluationError("a number grows beyond all bounds")
    if isinstance(value, (str, list)) and len(value) > CHARS:
        raise EvaluationError("a value grows too large")
    return value or None if isinstance(value, list) else value


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float, Fraction)):
        raise TypeError
    return value


def _folded(function: Callable[[Any, Any], Any], start: int) -> Callable[..., Any]:
    def fold(*values: Any) -> Any:
        return functools.reduce(lambda a, b: _bounded(function(a, b)), map(_number, values), start)

    return fold


def _minus(first: Any, *rest: Any) -> Any:
    value = _number(first)
    return functools.reduce(operator.sub, map(_number, rest), value) if rest else -value


def _divide(first: Any, *rest: Any) -> Any:
    values = [_number(first), *map(_number, rest)] if rest else [1, _number(first)]
    exact = [v if isinstance(v, float) else Fraction(v) for v in values]
    if faults.on("floats-divided-exactly"):
        exact = [Fraction(v) for v in values]
    return functools.reduce(operator.truediv, exact)


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[..., Any]:
    def check(first: Any, *rest: Any) -> Any:
        values = [_number(first), *map(_number, rest)]
        return all(compare(a, b) for a, b in zip(values, values[1:], strict=False)) or None

    return check


def _different(first: Any, *rest: Any) -> Any:
    """Whether no two of some numbers are equal, however far apart they stand."""
    values = [_number(first), *map(_number, rest)]
    return len(set(values)) == len(values) or None


def _items(value: Any) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise TypeError
    return value


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "*": _folded(operator.mul, 1),
    "+": _folded(operator.add, 0),
    "-": _minus,
    "/": _divide,
    "/=": _different,
    "<": _ordered(operator.lt),
    "<=": _ordered(operator.le),
    "=": _ordered(operator.eq),
    ">": _ordered(operator.gt),
    ">=": _ordered(operator.ge),
    "CAR": lambda a: (_items(a) or [None])[0],
    "CDR": lambda a: _items(a)[1:],
    "CONS": lambda a, b: [a, *_items(b)],
    "EQUAL": lambda a, b: (type(a) is type(b) and a == b) or None,
    "LENGTH": lambda a: len(a) if isinstance(a, str) else len(_items(a)),
    "LIST": lambda *items: list(items),
    "NOT": lambda a: True if a is None else None,
}
