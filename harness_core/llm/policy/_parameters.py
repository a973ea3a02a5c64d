"""A tool's parameters as their schema describes them, in one plain form."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from harness_core.llm.policy._words import identifier_words, stem, stems

__all__ = ["Parameter", "read_parameters"]

#: How deep references and alternatives are followed.
_DEPTH: Final = 8

_EXAMPLES: Final = re.compile(
    r"(?:\be\.?g\.?,?|\bsuch as|\bfor example,?|\bfor instance,?|\blike|\bexamples?:|\bone of:?)\s+"
    r"([^.;()\n]+)",
    re.IGNORECASE,
)
_SEPARATOR: Final = re.compile(r"\s*(?:,|/|\||\bor\b|\band\b|\betc\b)\s*", re.IGNORECASE)

#: An example of prose longer than this is a sentence, not a word to look for.
_EXAMPLE_WORDS: Final = 4


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One parameter.

    Attributes:
        types: JSON types it takes, ``null`` left out; empty for any.
        examples: values its schema gives, and those its description names ("e.g. headache").
        items: the element, for an array.
        fields: the properties, for an object.
    """

    name: str
    required: bool = False
    types: tuple[str, ...] = ()
    description: str = ""
    format: str = ""
    pattern: str = ""
    enum: tuple[Any, ...] = ()
    has_const: bool = False
    const: Any = None
    has_default: bool = False
    minimum: float | None = None
    maximum: float | None = None
    exclusive_minimum: float | None = None
    exclusive_maximum: float | None = None
    max_length: int | None = None
    examples: tuple[Any, ...] = ()
    items: Parameter | None = None
    fields: tuple[Parameter, ...] = field(default=())

    @cached_property
    def words(self) -> frozenset[str]:
        """The words of its name, as written."""
        return frozenset(identifier_words(self.name))

    @cached_property
    def name_stems(self) -> frozenset[str]:
        """Stems of the words of its name."""
        return frozenset(stem(word) for word in self.words)

    @cached_property
    def description_stems(self) -> frozenset[str]:
        """Stems of its description."""
        return frozenset(stems(self.description))

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:
        """Words its schema offers as values, the longest first."""
        words = [str(value) for value in (*self.enum, *self.examples) if isinstance(value, str)]
        return tuple(sorted(dict.fromkeys(words), key=lambda word: (-len(word.split()), word)))

    def accepts(self, kind: str) -> bool:
        """Whether it takes values of a JSON type."""
        return not self.types or kind in self.types

    def admits(self, number: float) -> bool:
        """Whether a number is within its bounds."""
        low, high = self.minimum, self.maximum
        above, below = self.exclusive_minimum, self.exclusive_maximum
        return (
            (low is None or number >= low)
            and (high is None or number <= high)
            and (above is None or number > above)
            and (below is None or number < below)
        )


def read_parameters(schema: Mapping[str, Any]) -> tuple[Parameter, ...]:
    """Parameters of an object schema, in the order written."""
    return _fields(schema, root=schema, depth=0)


def _fields(
    schema: Mapping[str, Any], *, root: Mapping[str, Any], depth: int
) -> tuple[Parameter, ...]:
    properties = schema.get("properties")
    if not isinstance(properties, dict) or depth > _DEPTH:
        return ()
    required = schema.get("required")
    needed = set(required) if isinstance(required, list) else set()
    return tuple(
        _parameter(name, body, required=name in needed, root=root, depth=depth)
        for name, body in properties.items()
        if isinstance(body, dict)
    )


def _parameter(
    name: str, schema: Mapping[str, Any], *, required: bool, root: Mapping[str, Any], depth: int
) -> Parameter:
    flat, types = _flatten(schema, root=root, depth=depth)
    description = str(flat.get("description") or flat.get("title") or "")
    given = flat.get("examples")
    examples = tuple(given) if isinstance(given, list) else ()
    items = flat.get("items")
    enum = flat.get("enum")
    return Parameter(
        name=name,
        required=required,
        types=types,
        description=description,
        format=str(flat.get("format") or ""),
        pattern=str(flat.get("pattern") or ""),
        enum=tuple(value for value in enum if value is not None) if isinstance(enum, list) else (),
        has_const="const" in flat,
        const=flat.get("const"),
        has_default="default" in flat,
        minimum=_number(flat.get("minimum")),
        maximum=_number(flat.get("maximum")),
        exclusive_minimum=_number(flat.get("exclusiveMinimum")),
        exclusive_maximum=_number(flat.get("exclusiveMaximum")),
        max_length=flat.get("maxLength") if isinstance(flat.get("maxLength"), int) else None,
        examples=(*examples, *_told_examples(description)),
        items=_parameter(name, items, required=True, root=root, depth=depth + 1)
        if isinstance(items, dict) and depth < _DEPTH
        else None,
        fields=_fields(flat, root=root, depth=depth + 1),
    )


def _flatten(
    schema: Mapping[str, Any], *, root: Mapping[str, Any], depth: int
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """References resolved and alternatives joined, ``null`` left out."""
    flat = {key: value for key, value in schema.items() if key not in ("anyOf", "oneOf", "allOf")}
    kinds: list[str] = []
    reference = flat.pop("$ref", None)
    branches: list[Any] = [_resolve(reference, root)] if isinstance(reference, str) else []
    for key in ("anyOf", "oneOf", "allOf"):
        value = schema.get(key)
        branches += value if isinstance(value, list) else []
    own = flat.pop("type", None)
    kinds += own if isinstance(own, list) else [own] if isinstance(own, str) else []
    for branch in branches:
        if isinstance(branch, dict) and branch.get("type") != "null" and depth < _DEPTH:
            inner, inner_kinds = _flatten(branch, root=root, depth=depth + 1)
            flat = inner | flat
            kinds += inner_kinds
    return flat, tuple(dict.fromkeys(kind for kind in kinds if kind != "null"))


def _resolve(reference: str, root: Mapping[str, Any]) -> object:
    node: object = root
    for part in reference.removeprefix("#/").split("/"):
        node = node.get(part) if isinstance(node, Mapping) else None
    return node


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _told_examples(description: str) -> tuple[str, ...]:
    words: list[str] = []
    for match in _EXAMPLES.finditer(description):
        for part in _SEPARATOR.split(match[1]):
            word = part.strip(" '\"`“”\u2018\u2019")
            if word and len(word.split()) <= _EXAMPLE_WORDS:
                words.append(word)
    return tuple(words)
