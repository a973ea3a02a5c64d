"""How an answer is wanted: JSON that the instructions write down, or a tool that hands over."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

#: Something in braces with quoted keys, one level of nesting inside.
_TEMPLATE: Final = re.compile(r"\{(?:[^{}]|\{[^{}]*\})*\}")
_QUOTED: Final = re.compile(r"[\"'`]([A-Za-z_][\w-]*)[\"'`]")
_KEY: Final = re.compile(r"[\"'`]([A-Za-z_][\w-]*)[\"'`]\s*:")
_WRAPPER: Final = re.compile(r"[\"']([A-Za-z_][\w-]*)[\"']\s*:\s*\[\s*\{")
_PROSE: Final = re.compile(
    r"\b(?:keys?|fields?|properties)\b[^\n.:]{0,20}?:?\s+"
    r"((?:[\"'`]?[a-z_]\w*[\"'`]?(?:\s*,\s*and\s+|\s*,\s*|\s+and\s+)?)+)",
    re.IGNORECASE,
)
#: A list of definitions, a line per key: ``"butler": the name of one butler``.
_DEFINITION: Final = re.compile(
    r"^\s*(?:[-*•]\s*)?[\"'`]([A-Za-z_][\w-]*)[\"'`]\s*[:=\u2013-]", re.MULTILINE
)
_DEMAND: Final = re.compile(
    r"\bJSON\b[^.\n]{0,60}?\b(array|list|object)\b|\b(array|list|object)\b[^.\n]{0,40}?\bJSON\b"
    r"|\bJSON\b[^.\n]{0,60}?[\[{]",
    re.IGNORECASE,
)

#: Words in the names of keys, by what is wanted there.
TARGET_WORDS: Final = frozenset(
    [
        "butler",
        "target",
        "agent",
        "route",
        "recipient",
        "service",
        "domain",
        "handler",
        "assistant",
        "destination",
        "specialist",
        "to",
    ]
)
_NUMBER_WORDS: Final = frozenset(["confidence", "score", "probability", "certainty"])
_REASON_WORDS: Final = frozenset(["reason", "rationale", "why", "explanation", "reasoning"])
_START_WORDS: Final = frozenset(["start", "begin", "from", "offset"])
_END_WORDS: Final = frozenset(["end", "stop", "until"])

_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")

_CERTAIN: Final = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of the message and who it is for.

    Attributes:
        text: the part, as the message has it.
        start: where in the message it begins, in characters.
    """

    target: str
    text: str
    start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What is to be answered.

    Attributes:
        is_array: an array of objects; otherwise one object.
        wrapper: key of an outer object that holds the array; empty for a bare one.
        keys: keys of each object, in the order written, with the example value of each.
    """

    is_array: bool
    keys: Mapping[str, Any] = field(default_factory=dict)
    wrapper: str = ""

    @property
    def target_key(self) -> str:
        """The key that takes the target; empty when none of them reads like it."""
        return next((key for key in self.keys if words_of(key) & TARGET_WORDS), "")

    def answer(self, parts: Sequence[Part]) -> str:
        """The JSON text that says which part is for whom."""
        items = [self._item(part) for part in parts]
        answer: Any = items if self.is_array else (items[0] if items else {})
        return json.dumps({self.wrapper: items} if self.wrapper else answer, ensure_ascii=False)

    def _item(self, part: Part) -> dict[str, Any]:
        return {
            key: part.target if key == self.target_key else _value(key, example, part)
            for key, example in self.keys.items()
        }


def words_of(name: str) -> frozenset[str]:
    """The words of an identifier, in lower case."""
    return frozenset(word.lower() for word in _WORD.findall(name))


def read_shape(instructions: str) -> Shape | None:
    """The shape instructions demand; ``None`` when they demand no JSON with a target in it."""
    demand = _DEMAND.search(instructions)
    if demand is None:
        return None
    is_array = (demand[1] or demand[2] or demand[0][-1]).lower() in ("array", "list", "[")
    wrapper = _WRAPPER.search(instructions)
    for template in _TEMPLATE.finditer(instructions):
        keys = _keys(template[0])
        shape = Shape(
            is_array=is_array or wrapper is not None,
            keys=keys,
            wrapper=wrapper[1] if wrapper is not None else "",
        )
        if shape.target_key and not _is_registry_entry(keys):
            return shape
    names = _DEFINITION.findall(instructions)
    if len(names) < 2 and (prose := _PROSE.search(instructions)) is not None:  # noqa: PLR2004
        words = re.findall(r"[a-z_]\w*", prose[1], re.IGNORECASE)
        names = [word for word in words if word.lower() != "and"]
    shape = Shape(is_array=is_array, keys=dict.fromkeys(names, ""))
    return shape if shape.target_key else None


def shape_of_schema(schema: Mapping[str, Any]) -> Shape | None:
    """The shape of a demanded JSON schema: an object, or a list of them, alone or wrapped."""
    if schema.get("type") == "array":
        inner = schema.get("items")
        keys = _properties(inner)
        return Shape(is_array=True, keys=keys) if keys else None
    for name, inner in (schema.get("properties") or {}).items():
        if isinstance(inner, Mapping) and inner.get("type") == "array":
            keys = _properties(inner.get("items"))
            if keys:
                return Shape(is_array=True, keys=keys, wrapper=name)
    keys = _properties(schema)
    return Shape(is_array=False, keys=keys) if keys else None


def _properties(schema: object) -> dict[str, Any]:
    """Each property with a value that stands for its type; empty without a target among them."""
    if not isinstance(schema, Mapping):
        return {}
    examples = {"array": [], "number": 0.0, "integer": 0}
    keys = {
        name: examples.get(str(inner.get("type")), "") if isinstance(inner, Mapping) else ""
        for name, inner in (schema.get("properties") or {}).items()
    }
    return keys if any(words_of(key) & TARGET_WORDS for key in keys) else {}


def _keys(template: str) -> dict[str, Any]:
    try:
        value = json.loads(template)
    except ValueError:
        found = _KEY.findall(template) or _QUOTED.findall(template)
        return dict.fromkeys(found, "")
    if not isinstance(value, dict):
        return {}
    inner = next((v[0] for v in value.values() if isinstance(v, list) and v), None)
    return inner if isinstance(inner, dict) and len(value) == 1 else value


def _is_registry_entry(keys: Mapping[str, Any]) -> bool:
    return {"name", "description"} <= set(keys)


def _value(key: str, example: object, part: Part) -> Any:  # noqa: PLR0911 - one per kind of key
    words = words_of(key)
    end = part.start + len(part.text)
    if isinstance(example, dict):
        return {inner: _value(inner, value, part) for inner, value in example.items()}
    if "span" in words or "range" in words:
        return [part.start, end]
    if words & _START_WORDS:
        return part.start
    if words & _END_WORDS:
        return end
    if words & _NUMBER_WORDS or isinstance(example, int | float):
        return _CERTAIN
    if words & _REASON_WORDS:
        return "as rehearsed"
    return [part.text] if isinstance(example, list) else part.text
