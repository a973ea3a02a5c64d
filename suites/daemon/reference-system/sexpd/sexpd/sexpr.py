"""What does this s-expression say, and how is a value written as one?

The subset: lists, dotted pairs, strings (a backslash makes the next character literal), integers,
ratios, floats, symbols, keywords, quote and line comments. Reading never evaluates: every `#`
syntax is refused. Values are Python's own where they fit:

| s-expression | value |
|---|---|
| `NIL`, `()` | None |
| `T` | True |
| `"text"` | str |
| `12`, `-1.5e3`, `1/2` | int, float, Fraction |
| `:TYPE` | Keyword("TYPE") |
| `FOO` | Symbol("FOO") |
| `(a b)` | list |
| `(a . b)` | Dotted([a], b) |
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sexpd import faults

# Longer tokens are neither names nor numbers anybody means; int() is quadratic in them.
TOKEN_CHARS = 256


@dataclass(frozen=True, slots=True)
class Symbol:
    """A name, case already decided."""

    name: str


@dataclass(frozen=True, slots=True)
class Keyword:
    """A name in the keyword package, without its colon."""

    name: str


@dataclass(frozen=True, slots=True)
class Dotted:
    """A list that ends in something else than NIL."""

    items: list[Any]
    tail: Any


class ReadError(ValueError):
    """Text that is not one s-expression.

    Attributes:
        at: the character where reading stopped, from 0.
    """

    def __init__(self, problem: str, *, at: int) -> None:
        self.problem, self.at = problem, at
        place = len(problem) if faults.on("wrong-place-named") else at
        super().__init__(f"{problem} at character {place}")


_SPACE = " \t\r\n\f\v"
_ENDS = frozenset(_SPACE + '()";\'')
_INTEGER = re.compile(r"[+-]?\d+\.?")
_RATIO = re.compile(r"([+-]?\d+)/(\d+)")
_FLOAT = re.compile(r"([+-]?(?:\d+\.\d+|\.\d+|\d+\.?(?=[esfdl])))(?:[esfdl]([+-]?\d+))?", re.I)


def read(text: str, *, depth: int, evaluate: Callable[[Any], Any] | None = None) -> Any:
    """The one s-expression in a text, with nothing but whitespace around it.

    Args:
        text: all of it.
        depth: how many lists may be open at once.
        evaluate: what `#.` does to the form behind it; given by a planted fault only.

    Raises:
        ReadError: anything else than one well-formed s-expression.
    """
    reader = _Reader(text, depth=depth, evaluate=evaluate)
    value = reader.value()
    reader.skip_space()
    if reader.at < len(text):
        raise ReadError("more text after the s-expression", at=reader.at)
    return value


@dataclass(slots=True)
class _Open:
    """A list that is being read; ``dot`` counts what follows a dot."""

    kind: str  # "list" or "quote"
    items: list[Any]
    dot: int = -1
    tail: Any = None


class _Reader:
    def __init__(
        self, text: str, *, depth: int, evaluate: Callable[[Any], Any] | None
    ) -> None:
        self.text, self.depth, self.evaluate, self.at = text, depth, evaluate, 0

    def skip_space(self) -> None:
        text, at, end = self.text, self.at, len(self.text)
        while at < end:
            if text[at] in _SPACE:
                at += 1
            elif text[at] == ";":
                newline = text.find("\n", at)
                at = end if newline < 0 else newline + 1
            else:
                break
        self.at = at

    def value(self) -> Any:
        """Read one value with a stack of our own: nesting never costs Python's."""
        stack: list[_Open] = []
        while True:
            self.skip_space()
            if self.at >= len(self.text):
                if not stack:
                    raise ReadError("no s-expression, the text ended", at=self.at)
                raise ReadError(f"the text ended with {len(stack)} open", at=self.at)
            char = self.text[self.at]
            if char in "('":
                if len(stack) >= self.depth and not faults.on("depth-unbounded"):
                    raise ReadError(f"nested deeper than {self.depth}", at=self.at)
                self.at += 1
                stack.append(_Open("list" if char == "(" else "quote", []))
                continue
            if char == ")":
                done: Any = self._close(stack)
            elif char == '"':
                done = self._string()
            else:
                token = self._token()
                if token is _DOT:
                    self._dot(stack)
                    continue
                done = token
            while True:
                if not stack:
                    return done
                top = stack[-1]
                if top.kind == "quote":
                    stack.pop()
                    done = [Symbol("QUOTE"), done]
                    continue
                self._add(top, done)
                break

    def _add(self, top: _Open, value: Any) -> None:
        if top.dot < 0:
            top.items.append(value)
        elif top.dot == 0:
            top.dot, top.tail = 1, value
        else:
            raise ReadError("more than one value after a dot", at=self.at)

    def _dot(self, stack: list[_Open]) -> None:
        if not stack or stack[-1].kind != "list" or not stack[-1].items or stack[-1].dot >= 0:
            raise ReadError("a dot where no dot can be", at=self.at)
        stack[-1].dot = 0

    def _close(self, stack: list[_Open]) -> Any:
        if not stack or stack[-1].kind == "quote":
            raise ReadError("a closing parenthesis that closes nothing", at=self.at)
        top = stack.pop()
        if top.dot == 0:
            raise ReadError("no value after a dot", at=self.at)
        self.at += 1
        if top.dot < 0 or top.tail is None:
            return top.items or None
        if isinstance(top.tail, list):
            return top.items + top.tail
        if isinstance(top.tail, Dotted):
            return Dotted(top.items + top.tail.items, top.tail.tail)
        return Dotted(top.items, top.tail)

    def _string(self) -> str:
        start, parts = self.at, []
        at = start + 1
        while True:
            match = _STRING_RUN.match(self.text, at)
            assert match is not None  # it matches the empty string
            parts.append(match[0])
            at = match.end()
            if at >= len(self.text) or (self.text[at] == "\\" and at + 1 >= len(self.text)):
                raise ReadError("the text ended inside a string that began", at=start)
            if self.text[at] == '"':
                self.at = at + 1
                return "".join(parts)
            parts.append(self.text[at + 1])
            at += 2

    def _token(self) -> Any:
        start = self.at
        # Most tokens have nothing special in them; one character at a time costs ten times more.
        if plain := _PLAIN_TOKEN.match(self.text, start):
            self.at = plain.end()
            name = plain[0] if faults.on("keywords-kept") else plain[0].upper()
            return _atom(name, escaped=False, keyword=name[0] == ":", at=start)
        return self._special_token()

    def _special_token(self) -> Any:
        start = self.at
        name: list[str] = []
        escaped = False
        keyword = self.text[start] == ":"
        while self.at < len(self.text) and self.text[self.at] not in _ENDS:
            char = self.text[self.at]
            if char == "#" and self.at == start:
                return self._sharp()
            if char in "`,":
                raise ReadError(f"{char} is not part of this subset", at=self.at)
            if char == "\\" and self.at + 1 < len(self.text):
                escaped = True
                name.append(self.text[self.at + 1])
                self.at += 2
            elif char == "|":
                run = _BAR_RUN.match(self.text, self.at + 1)
                if run is None:
                    raise ReadError("the text ended inside |a name| that began", at=start)
                escaped = True
                name.append(re.sub(r"\\(.)", r"\1", run[1], flags=re.S))
                self.at = run.end()
            elif char == "\\":
                raise ReadError("the text ended after a backslash", at=self.at)
            else:
                name.append(char if faults.on("keywords-kept") else char.upper())
                self.at += 1
        token = "".join(name)
        if len(token) > TOKEN_CHARS:
            raise ReadError(f"a name or number longer than {TOKEN_CHARS}", at=start)
        return _atom(token, escaped=escaped, keyword=keyword, at=start)

    def _sharp(self) -> Any:
        if self.evaluate is not None and self.text.startswith("#.", self.at):
            self.at += 2
            return self.evaluate(self.value())
        form = self.text[self.at : self.at + 2]
        raise ReadError(f"{form} is refused: reading never evaluates,", at=self.at)


_PLAIN_TOKEN = re.compile(
    rf"[^\s()\"';#`,\\|]{{1,{TOKEN_CHARS}}}(?=[ \t\r\n\f\v()\"';]|\Z)"
)
# Between bars a backslash makes the next character literal, as in a string.
_BAR_RUN = re.compile(r"((?:[^|\\]|\\.)*)\|", re.S)
_STRING_RUN = re.compile(r'[^"\\]*')
_DOT = object()


def _atom(token: str, *, escaped: bool, keyword: bool, at: int) -> Any:
    if not escaped:
        if token == ".":
            return _DOT
        if token.strip(".") == "":
            raise ReadError("dots alone are no name", at=at)
        if (number := _number(token, at=at)) is not None:
            return number
        if token in {"NIL", "T"}:
            return None if token == "NIL" else True
    if keyword and (escaped or not token.startswith("::")):
        if token == ":":
            raise ReadError("a keyword without a name", at=at)
        return Keyword(token[1:])
    return Symbol(token)


def _number(token: str, *, at: int) -> int | float | Fraction | None:
    if _INTEGER.fullmatch(token):
        return int(token.rstrip("."))
    if match := _RATIO.fullmatch(token):
        if not int(match[2]):
            raise ReadError("a ratio over zero", at=at)
        ratio = Fraction(int(match[1]), int(match[2]))
        return ratio.numerator if ratio.denominator == 1 else ratio
    if match := _FLOAT.fullmatch(token):
        number = float(f"{match[1]}e{match[2] or 0}")
        if not math.isfinite(number):
            raise ReadError("a float beyond all bounds", at=at)
        return number
    return None


# --- Writing ----------------------------------------------------------------------------------------


def write(value: Any) -> str:
    """The text of a value, such that reading it gives the value back.

    Raises:
        TypeError: a value that is no s-expression, which is a mistake of ours.
    """
    out: list[str] = []
    todo: list[Any] = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, _Raw):
            out.append(item.text)
        elif isinstance(item, (list, tuple)) and item:
            todo += [_Raw(")"), *_spaced(item), _Raw("(")]
        elif isinstance(item, Dotted):
            todo += [_Raw(")"), item.tail, _Raw(" . "), *_spaced(item.items), _Raw("(")]
        else:
            out.append(_written(item))
    return "".join(out)


@dataclass(frozen=True, slots=True)
class _Raw:
    text: str


def _spaced(items: Iterable[Any]) -> list[Any]:
    """The items in reverse with spaces between, for a stack."""
    spaced: list[Any] = []
    for item in reversed(list(items)):
        spaced += [item, _Raw(" ")]
    return spaced[:-1]


def _written(value: Any) -> str:
    if value is None or value is False or value == [] or value == ():
        return "NIL"
    if value is True:
        return "T"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, Keyword):
        return ":" + _name(value.name)
    if isinstance(value, Symbol):
        return _name(value.name, symbol=True)
    if isinstance(value, float):
        return repr(value) if "." in repr(value) or "e" not in repr(value) else _exponent(value)
    if isinstance(value, (int, Fraction)):
        return str(value)
    raise TypeError(f"cannot write {value!r} as an s-expression")


def _exponent(value: float) -> str:
    """1e+30 as 1.0e+30: without a point some readers take it for a name."""
    mantissa, exponent = repr(value).split("e")
    return f"{mantissa}.0e{exponent}"


_PLAIN = re.compile(r"[A-Z0-9!$%&*+/<=>?@^_~.\-\[\]{}]+")


def _name(name: str, *, symbol: bool = False) -> str:
    if not name:
        return "||"
    text = "".join(c if _PLAIN.fullmatch(c) else "\\" + c for c in name)
    # Escaped, it cannot be taken for a number, a dot, NIL or T.
    return "\\" + text if symbol and text == name and _means_more(name) else text


def _means_more(name: str) -> bool:
    try:
        return not name.strip(".") or name in {"NIL", "T"} or _number(name, at=0) is not None
    except ReadError:
        return True


# --- Property lists ---------------------------------------------------------------------------------


def plist(**values: Any) -> list[Any]:
    """A property list: ``plist(exit_code=0)`` is ``(:EXIT-CODE 0)``."""
    out: list[Any] = []
    for key, value in values.items():
        out += [Keyword(key.upper().replace("_", "-")), value]
    return out


def as_plist(value: Any) -> dict[str, Any] | None:
    """The properties of a property list by name, the first of equals; None when it is not one."""
    if value is None:
        return {}
    if not isinstance(value, list) or len(value) % 2:
        return None
    found: dict[str, Any] = {}
    for key, item in zip(value[::2], value[1::2], strict=True):
        if not isinstance(key, Keyword):
            return None
        found.setdefault(key.name, item)
    return found


def keyword_name(value: Any) -> str:
    """The name of a keyword or symbol, or the empty string."""
    return value.name if isinstance(value, (Keyword, Symbol)) else ""
