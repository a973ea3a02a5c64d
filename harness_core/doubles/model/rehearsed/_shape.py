"""How a prompt wants its answer: in JSON that it writes down, by a schema, or by a tool that hands over."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from harness_core.doubles.model._request import Tool
from harness_core.doubles.model.rehearsed._template import Template
from harness_core.doubles.model.rehearsed._tools import bare

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

#: Words in the names of tools that hand a message over, and of the keys that take target and text.
_HANDOVER: Final = re.compile("route|dispatch|delegate|assign|handoff|hand|forward|send")
_TARGET: Final = re.compile(
    "butler|target|agent|route|recipient|service|domain|handler|assistant|destination|specialist|to"
)
_TEXT: Final = re.compile("prompt|text|message|input|request|instruction|task|segment")

_CERTAIN: Final = 0.9

#: Words in the names of other keys → what stands there; in any other, the text.
_PLACES: Final[Sequence[tuple[re.Pattern[str], Any]]] = (
    (re.compile("span|range"), ["{start}", "{end}"]),
    (re.compile("start|begin|from|offset"), "{start}"),
    (re.compile("end|stop|until"), "{end}"),
    (re.compile("confidence|score|probability|certainty"), _CERTAIN),
    (re.compile("reason|rationale|why|explanation|reasoning"), "as rehearsed"),
)

_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def template_of_text(instructions: str) -> Template | None:
    """The answer that instructions demand; ``None`` when they demand no JSON with a target in it."""
    demand = _DEMAND.search(instructions)
    if demand is None:
        return None
    is_array = (demand[1] or demand[2] or demand[0][-1]).lower() in ("array", "list", "[")
    wrapper = _WRAPPER.search(instructions)
    for written in _TEMPLATE.finditer(instructions):
        keys = _keys(written[0])
        if not {"name", "description"} <= keys.keys() and (item := _item(keys)) is not None:
            if wrapper is not None:
                return Template(value={wrapper[1]: [item]})
            return Template(value=[item] if is_array else item)
    names = _DEFINITION.findall(instructions)
    if len(names) < 2 and (prose := _PROSE.search(instructions)) is not None:  # noqa: PLR2004
        words = re.findall(r"[a-z_]\w*", prose[1], re.IGNORECASE)
        names = [word for word in words if word.lower() != "and"]
    item = _item(dict.fromkeys(names, ""))
    return None if item is None else Template(value=[item] if is_array else item)


def template_of_schema(schema: Mapping[str, Any]) -> Template | None:
    """The answer that a JSON schema demands: an object, or a list of them, alone or wrapped."""
    if (listed := _listed(schema)) is not None:
        return Template(value=listed)
    for name, inner in (schema.get("properties") or {}).items():
        if (listed := _listed(inner)) is not None:
            return Template(value={name: listed})
    item = _item(_examples(schema))
    return None if item is None else Template(value=item)


def template_of_tool(tool: Tool) -> Template | None:
    """The arguments of a tool that reads like one that hands over: a target, and a text."""
    keys = tool.input_schema.get("properties") or {}
    target = next((key for key in keys if _says(key, _TARGET)), "")
    text = next((key for key in keys if _says(key, _TEXT)), "")
    if not target or not text or not _says(bare(tool.name), _HANDOVER):
        return None
    return Template(value={target: "{target}", text: "{prompt}"}, tool=bare(tool.name))


def _listed(schema: object) -> list[Any] | None:
    """A list of the objects with a target that an array's schema demands."""
    if not isinstance(schema, Mapping) or schema.get("type") != "array":
        return None
    item = _item(_examples(schema.get("items")))
    return None if item is None else [item]


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
    target = next((key for key in keys if _says(key, _TARGET)), None)
    if target is None:
        return None
    return {key: _place(key, example) for key, example in keys.items()} | {target: "{target}"}


def _place(key: str, example: object) -> Any:
    if isinstance(example, dict):
        return {inner: _place(inner, value) for inner, value in example.items()}
    found = next((place for words, place in _PLACES if _says(key, words)), None)
    if found is None and isinstance(example, int | float):
        return _CERTAIN
    return found or (["{prompt}"] if isinstance(example, list) else "{prompt}")


def _says(name: str, words: re.Pattern[str]) -> bool:
    """Whether one of the words of an identifier is one of these."""
    return any(words.fullmatch(word.lower()) for word in _WORD.findall(name))
