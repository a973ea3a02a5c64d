"""Expressions of GitHub's workflows (``${{ … }}``), as far as ours use them; the rest is refused by name.

Source: docs.github.com, "Evaluate expressions in workflows and actions".
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

__all__ = ["CannotEvaluateError", "condition", "substitute"]

_TOKENS = re.compile(
    r"\s*(?:(?P<string>'(?:[^']|'')*')|(?P<number>-?[0-9]+(?:\.[0-9]+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_-]*)|(?P<mark>==|!=|&&|\|\||[!().\[\],]))"
)
_INSIDE = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
_CONSTANTS = {"true": True, "false": False, "null": None}


class CannotEvaluateError(Exception):
    """Something in an expression is not known here."""


@dataclass
class _Parser:
    """Reads one expression and computes its value on the way."""

    text: str
    contexts: Mapping[str, object]
    functions: Mapping[str, Callable[..., object]]

    def value(self) -> object:
        """The value of the whole expression."""
        self.tokens = list(self._split())
        found = self._either()
        if self.tokens:
            raise CannotEvaluateError(f"{self.text.strip()!r}: unexpected {self.tokens[0][1]!r}")
        return found

    def _split(self) -> Iterator[tuple[str, str]]:
        at, text = 0, self.text.strip()
        while at < len(text):
            matched = _TOKENS.match(text, at)
            if matched is None:
                raise CannotEvaluateError(f"{text!r}: unexpected {text[at:]!r}")
            at = matched.end()
            kind = matched.lastgroup or ""
            yield kind, matched[kind]

    def _take(self, *marks: str) -> str:
        if self.tokens and self.tokens[0][0] == "mark" and self.tokens[0][1] in marks:
            return self.tokens.pop(0)[1]
        return ""

    def _either(self) -> object:
        left = self._both()
        while self._take("||"):
            right = self._both()
            left = left if _true(left) else right
        return left

    def _both(self) -> object:
        left = self._compared()
        while self._take("&&"):
            right = self._compared()
            left = right if _true(left) else left
        return left

    def _compared(self) -> object:
        left = self._negated()
        while mark := self._take("==", "!="):
            same = _same(left, self._negated())
            left = same if mark == "==" else not same
        return left

    def _negated(self) -> object:
        return not _true(self._negated()) if self._take("!") else self._single()

    def _single(self) -> object:
        if self._take("("):
            found = self._either()
            self._expect(")")
            return found
        if not self.tokens:
            raise CannotEvaluateError(f"{self.text.strip()!r}: it ends too early")
        kind, word = self.tokens.pop(0)
        if kind == "string":
            return word[1:-1].replace("''", "'")
        if kind == "number":
            return float(word) if "." in word else int(word)
        if kind != "name":
            raise CannotEvaluateError(f"{self.text.strip()!r}: unexpected {word!r}")
        if self._take("("):
            return self._called(word)
        if word in _CONSTANTS:
            return _CONSTANTS[word]
        return self._looked_up(word)

    def _called(self, name: str) -> object:
        arguments = []
        while not self._take(")"):
            arguments.append(self._either())
            if not self._take(","):
                self._expect(")")
                break
        if name not in self.functions:
            raise CannotEvaluateError(f"the function {name}() is not known here")
        return self.functions[name](*arguments)

    def _looked_up(self, name: str) -> object:
        path, found = name, self.contexts.get(name)
        if name not in self.contexts:
            raise CannotEvaluateError(f"the context {name!r} is not known here")
        while mark := self._take(".", "["):
            if mark == ".":
                key = self.tokens.pop(0)[1] if self.tokens else ""
            else:
                key = str(self._either())
                self._expect("]")
            path += f".{key}"
            if not isinstance(found, Mapping) or key not in found:
                raise CannotEvaluateError(f"{path} is not known here: --set {path}=VALUE")
            found = found[key]
        return found

    def _expect(self, mark: str) -> None:
        if not self._take(mark):
            raise CannotEvaluateError(f"{self.text.strip()!r}: no {mark!r} where one must be")


def substitute(
    text: object, contexts: Mapping[str, object], functions: Mapping[str, Callable[..., object]]
) -> object:
    """The text with every ``${{ … }}`` replaced; a text that is nothing else becomes its value.

    Raises:
        CannotEvaluateError: an expression needs something that is not known here.
    """
    if not isinstance(text, str):
        return text
    every = {"fromJSON": lambda value: json.loads(str(value)), "toJSON": json.dumps, **functions}
    whole = _INSIDE.fullmatch(text.strip())
    if whole is not None and "${{" not in whole[1]:
        return _Parser(whole[1], contexts, every).value()
    return _INSIDE.sub(lambda found: _written(_Parser(found[1], contexts, every).value()), text)


def condition(
    text: object, contexts: Mapping[str, object], functions: Mapping[str, Callable[..., object]]
) -> bool:
    """Whether an ``if`` holds; its text is an expression, with or without ``${{ … }}``."""
    if not isinstance(text, str):
        return _true(text)
    return _true(substitute(text if "${{" in text else f"${{{{{text}}}}}", contexts, functions))


def _true(value: object) -> bool:
    return isinstance(value, (Mapping, list)) or bool(value)


def _same(left: object, right: object) -> bool:
    if isinstance(left, str) and isinstance(right, str):
        return left.casefold() == right.casefold()
    if type(left) is type(right):
        return left == right
    return _number(left) == _number(right)


def _number(value: object) -> float:
    if value is None or isinstance(value, (bool, int, float)):
        return float(value or 0)
    try:
        return float(str(value).strip() or 0)
    except ValueError:
        return math.nan


def _written(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false"}.get(value, "")
    if isinstance(value, Mapping) or (isinstance(value, Sequence) and not isinstance(value, str)):
        raise CannotEvaluateError(f"a list or an object stands where a text must: {value!r}")
    return str(value)
