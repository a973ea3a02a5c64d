"""The shape an answer must have, as the instructions write it down."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = ["Shape", "read_shape"]

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
    r"\bJSON\b[^.\n]{0,60}?\b(array|list|object)\b|\b(array|list|object)\b[^.\n]{0,40}?\bJSON\b",
    re.IGNORECASE,
)


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


def read_shape(instructions: str) -> Shape | None:
    """The shape instructions demand; ``None`` when they demand no JSON."""
    demand = _DEMAND.search(instructions)
    if demand is None:
        return None
    is_array = (demand[1] or demand[2]).lower() in ("array", "list")
    wrapper = _WRAPPER.search(instructions)
    for template in _TEMPLATE.finditer(instructions):
        keys = _keys(template[0])
        if keys and not _is_registry_entry(keys):
            if wrapper is not None and set(keys) == {wrapper[1]}:
                continue
            return Shape(
                is_array=is_array or wrapper is not None,
                keys=keys,
                wrapper=wrapper[1] if wrapper is not None else "",
            )
    defined = _DEFINITION.findall(instructions)
    if len(defined) > 1:
        return Shape(is_array=is_array, keys=dict.fromkeys(defined, ""))
    prose = _PROSE.search(instructions)
    if prose is None:
        return None
    names = [n for n in re.findall(r"[a-z_]\w*", prose[1], re.IGNORECASE) if n.lower() != "and"]
    return Shape(is_array=is_array, keys=dict.fromkeys(names, "")) if names else None


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
