"""How a prompt wants its answer: in JSON that it writes down, by a schema, or by a tool that hands over."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from harness_core.doubles.model._request import Tool, bare
from harness_core.doubles.model.rehearsed._template import Template

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
    for written in _TEMPLATE.finditer(instructions):
        example = _example_in(written[0])
        if not {"name", "description"} <= example.keys() and (placed := _placed(example)):
            return Template(
                value=[placed] if is_array and "{target}" in placed.values() else placed
            )
    names = _DEFINITION.findall(instructions)
    if len(names) < 2 and (prose := _PROSE.search(instructions)) is not None:  # noqa: PLR2004
        words = re.findall(r"[a-z_]\w*", prose[1], re.IGNORECASE)
        names = [word for word in words if word.lower() != "and"]
    placed = _placed(dict.fromkeys(names, ""))
    return placed and Template(value=[placed] if is_array else placed)


def template_of_schema(schema: Mapping[str, Any]) -> Template | None:
    """The answer that a JSON schema demands: an object, or a list of them, alone or wrapped."""
    placed = _placed(_example_of(schema))
    return placed and Template(value=placed)


def template_of_tool(tool: Tool) -> Template | None:
    """The arguments of a tool that reads like one that hands over: a target, and a text."""
    keys = tool.input_schema.get("properties") or {}
    target = next((key for key in keys if _says(key, _TARGET)), "")
    text = next((key for key in keys if _says(key, _TEXT)), "")
    if not target or not text or not _says(bare(tool.name), _HANDOVER):
        return None
    return Template(value={target: "{target}", text: "{prompt}"}, tool=bare(tool.name))


def _example_of(schema: object) -> Any:
    """A value that a schema describes."""
    if not isinstance(schema, Mapping):
        return ""
    if schema.get("type") == "array":
        return [_example_of(schema.get("items"))]
    if properties := schema.get("properties"):
        return {name: _example_of(inner) for name, inner in properties.items()}
    return 0 if schema.get("type") in ("number", "integer") else ""


def _example_in(written: str) -> dict[str, Any]:
    """The object that a prompt writes down, or what can be read of one that is no JSON."""
    try:
        example: dict[str, Any] = json.loads(written)
    except ValueError:
        example = dict.fromkeys(_KEY.findall(written) or _QUOTED.findall(written), "")
        if (wrapper := _WRAPPER.search(written)) is not None:
            del example[wrapper[1]]
            return {wrapper[1]: [example]}
    return example


def _placed(example: object) -> Any:
    """An example with places in it; ``None`` when no key of an object in it takes a target."""
    if isinstance(example, list):
        inner = _placed(example[0]) if example else None
        return inner and [inner]
    if not isinstance(example, Mapping):
        return None
    for key, value in example.items():
        if isinstance(value, list) and (listed := _placed(value)):
            return {name: _place(name, inner) for name, inner in example.items()} | {key: listed}
    target = next((key for key in example if _says(key, _TARGET)), None)
    if target is None:
        return None
    return {key: _place(key, value) for key, value in example.items()} | {target: "{target}"}


def _place(key: str, example: object) -> Any:
    if isinstance(example, Mapping):
        return {inner: _place(inner, value) for inner, value in example.items()}
    found = next((place for words, place in _PLACES if _says(key, words)), None)
    if found is None and isinstance(example, int | float):
        return _CERTAIN
    return found or (["{prompt}"] if isinstance(example, list) else "{prompt}")


def _says(name: str, words: re.Pattern[str]) -> bool:
    """Whether one of the words of an identifier is one of these."""
    return any(words.fullmatch(word.lower()) for word in _WORD.findall(name))
