"""How an answer is wanted: JSON that the instructions write down, or a tool that hands over."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
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


def words_of(name: str) -> frozenset[str]:
    """The words of an identifier, in lower case."""
    return frozenset(word.lower() for word in _WORD.findall(name))


def read_template(instructions: str) -> Any:
    """The answer that instructions demand; ``None`` when they demand no JSON with a target in it."""
    demand = _DEMAND.search(instructions)
    if demand is None:
        return None
    is_array = (demand[1] or demand[2] or demand[0][-1]).lower() in ("array", "list", "[")
    wrapper = _WRAPPER.search(instructions)
    for written in _TEMPLATE.finditer(instructions):
        keys = _keys(written[0])
        if not {"name", "description"} <= keys.keys() and (item := _item(keys)) is not None:
            return {wrapper[1]: [item]} if wrapper else [item] if is_array else item
    names = _DEFINITION.findall(instructions)
    if len(names) < 2 and (prose := _PROSE.search(instructions)) is not None:  # noqa: PLR2004
        words = re.findall(r"[a-z_]\w*", prose[1], re.IGNORECASE)
        names = [word for word in words if word.lower() != "and"]
    item = _item(dict.fromkeys(names, ""))
    return [item] if item is not None and is_array else item


def template_of_schema(schema: Mapping[str, Any]) -> Any:
    """The answer that a JSON schema demands: an object, or a list of them, alone or wrapped."""
    if schema.get("type") == "array":
        item = _item(_examples(schema.get("items")))
        return None if item is None else [item]
    for name, inner in (schema.get("properties") or {}).items():
        if isinstance(inner, Mapping) and inner.get("type") == "array":
            item = _item(_examples(inner.get("items")))
            if item is not None:
                return {name: [item]}
    return _item(_examples(schema))


def _examples(schema: object) -> dict[str, Any]:
    """Each property with a value that stands for its type."""
    properties = (schema.get("properties") if isinstance(schema, Mapping) else None) or {}
    values = {"array": [], "number": 0.0, "integer": 0}
    return {
        name: values.get(str(inner.get("type")), "") if isinstance(inner, Mapping) else ""
        for name, inner in properties.items()
    }


def _keys(template: str) -> dict[str, Any]:
    try:
        value = json.loads(template)
    except ValueError:
        return dict.fromkeys(_KEY.findall(template) or _QUOTED.findall(template), "")
    if not isinstance(value, dict):
        return {}
    inner = next((v[0] for v in value.values() if isinstance(v, list) and v), None)
    return inner if isinstance(inner, dict) and len(value) == 1 else value


def _item(keys: Mapping[str, Any]) -> dict[str, Any] | None:
    """An object with these keys, by their example values; ``None`` when no key takes a target."""
    target = next((key for key in keys if words_of(key) & TARGET_WORDS), None)
    if target is None:
        return None
    return {key: _place(key, example) for key, example in keys.items()} | {target: "{target}"}


def _place(key: str, example: object) -> Any:  # noqa: PLR0911 - one per kind of key
    words = words_of(key)
    if isinstance(example, dict):
        return {inner: _place(inner, value) for inner, value in example.items()}
    if words & {"span", "range"}:
        return ["{start}", "{end}"]
    if words & _START_WORDS:
        return "{start}"
    if words & _END_WORDS:
        return "{end}"
    if words & _NUMBER_WORDS or isinstance(example, int | float):
        return _CERTAIN
    if words & _REASON_WORDS:
        return "as rehearsed"
    return ["{prompt}"] if isinstance(example, list) else "{prompt}"
