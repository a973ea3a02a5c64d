"""When a text is a rehearsed message, and what stands where the message has its placeholders."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from harness_core.base.texts import map_texts

#: ``{who}`` is any text, ``{token:word}`` one without a space, ``{dose:number}`` a number.
_FIELD: Final = re.compile(r"\{([a-z][a-z0-9_]*)(?::(number|word))?\}")

_KINDS: Final = {"": ".+?", "word": r"[^\s()]+", "number": r"[-+]?[0-9]+(?:[.][0-9]+)?"}

_UNICODE: Final = re.compile(r"(?:\\u[0-9a-fA-F]{4})+")

#: What a prompt writes into a text so that it cannot end its own quotation.
_ESCAPES: Final = re.compile(r"[\\\u200b\u200c\u200d\u2060]")


def as_read(text: str) -> str:
    """A text as a reader takes it in: white space and escapes make no difference."""
    spelt = _UNICODE.sub(_spelt_out, text).replace("\\n", " ").replace("\\t", " ")
    return " ".join(_ESCAPES.sub("", html.unescape(spelt)).split())


def _spelt_out(match: re.Match[str]) -> str:
    units = bytes.fromhex(match[0].replace("\\u", ""))
    return units.decode("utf-16-be", "replace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message as it is rehearsed, placeholders and all."""

    text: str
    _pattern: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        parts: list[str] = []
        at = 0
        seen: set[str] = set()
        plain = as_read(self.text)
        for match in _FIELD.finditer(plain):
            parts.append(re.escape(plain[at : match.start()]))
            name, kind = match[1], match[2] or ""
            if name in seen:
                parts.append(f"(?P={name})")
            else:
                parts.append(f"(?P<{name}>{_KINDS[kind]})")
                seen.add(name)
            at = match.end()
        parts.append(re.escape(plain[at:]))
        object.__setattr__(self, "_pattern", re.compile("".join(parts), re.DOTALL))

    @property
    def is_literal(self) -> bool:
        """Whether it has no placeholders."""
        return not self._pattern.groups

    def match(self, text: str) -> dict[str, Any] | None:
        """What stands for each placeholder when ``text`` is this message; ``None`` when it is not."""
        found = self._pattern.fullmatch(as_read(text))
        return None if found is None else self._values(found)

    def _values(self, found: re.Match[str]) -> dict[str, Any]:
        numbers = {name for name, kind in _FIELD.findall(as_read(self.text)) if kind == "number"}
        return {
            name: _number(value) if name in numbers else value
            for name, value in found.groupdict().items()
        }


def _number(text: str) -> int | float:
    return float(text) if "." in text else int(text)


def with_kinds(text: str, *, like: str) -> str:
    """``text`` with its placeholders of the kinds that they have in another text."""
    kinds = {match[1]: match[0] for match in _FIELD.finditer(like)}
    return _FIELD.sub(lambda match: kinds.get(match[1], match[0]), text)


def fill_in(value: Any, values: Mapping[str, Any]) -> Any:
    """``value`` with its placeholders filled; a text that is nothing else takes the value's type."""

    def filled(text: str) -> Any:
        only = _FIELD.fullmatch(text)
        if only is not None and only[1] in values:
            return values[only[1]]
        return _FIELD.sub(lambda match: str(values.get(match[1], match[0])), text)

    return map_texts(value, filled)
