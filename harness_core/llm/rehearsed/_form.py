"""What a subject says of its prompts (``[model]`` of a subject file), where that need not be guessed.

Source: docs/gateway.md, "Foreign prompts".
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from harness_core.errors import BadInput
from harness_core.llm.rehearsed._shape import Part

__all__ = ["Form", "Handover", "fill_part", "read_form"]

_KEYS: Final = ("message", "registry", "answer", "tool", "arguments", "servers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Handover:
    """A tool by which a classifying model hands a message over.

    Attributes:
        tool: its bare name.
        arguments: with ``{target}`` and ``{prompt}``.
    """

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """Where in a subject's prompts things stand, and how its classifier wants its answer.

    Attributes:
        message: finds the message, as the group ``message``; ``None``: read structurally.
        registry: finds the registry, as the group ``registry``; ``None``: read structurally.
        answer: JSON value with ``{target}`` and ``{prompt}`` in it; ``None``: as the prompt says.
        handover: the tool it wants to be called instead of an answer.
        servers: MCP servers whose tools may be called; empty for all that are offered.
    """

    message: re.Pattern[str] | None = None
    registry: re.Pattern[str] | None = None
    answer: Any = None
    handover: Handover | None = None
    servers: frozenset[str] = field(default_factory=frozenset)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the object in the answer that names the target."""
        return tuple(_keys_beside_target(self.answer))

    def written(self, parts: Sequence[Part]) -> str:
        """The answer that names these parts.

        A list of one element that holds the target is repeated for each part; an answer without
        such a list takes the first part alone.
        """
        return json.dumps(_repeat(self.answer, parts), ensure_ascii=False)


def read_form(path: Path) -> Form:
    """Read the table ``[model]`` of a TOML file; without one the form claims nothing.

    Raises:
        BadInput: the file cannot be read; else names the key.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8")).get("model", {})
    except (OSError, ValueError) as error:
        raise BadInput(path, found=str(error), expected="a TOML file with [model]") from error
    if not isinstance(table, Mapping):
        raise BadInput(path, key="model", found=table, expected="a table")
    return _form(table, where=str(path))


def _form(table: Mapping[str, Any], *, where: str) -> Form:
    for key in table:
        if key not in _KEYS:
            expected = f"one of {', '.join(_KEYS)}"
            raise BadInput(where, key=f"model.{key}", found=table[key], expected=expected)
    if "answer" in table and "tool" in table:
        expected = "either answer or tool: a classifier wants one of them"
        raise BadInput(where, key="model.tool", found=table["tool"], expected=expected)
    if ("tool" in table) != ("arguments" in table):
        found = table.get("arguments", table.get("tool"))
        expected = "tool and its arguments, both"
        raise BadInput(where, key="model.arguments", found=found, expected=expected)
    servers = table.get("servers", [])
    if not isinstance(servers, list) or not all(isinstance(each, str) for each in servers):
        raise BadInput(where, key="model.servers", found=servers, expected="a list of names")
    handover = None
    if "tool" in table:
        arguments = table["arguments"]
        if not isinstance(arguments, Mapping) or not _holds(arguments, "{target}"):
            expected = "a table with {target} in it"
            raise BadInput(where, key="model.arguments", found=arguments, expected=expected)
        handover = Handover(tool=str(table["tool"]), arguments=arguments)
    return Form(
        message=_place(table, "message", where=where),
        registry=_place(table, "registry", where=where),
        answer=_answer(table, where=where),
        handover=handover,
        servers=frozenset(servers),
    )


def _place(table: Mapping[str, Any], key: str, *, where: str) -> re.Pattern[str] | None:
    """A text with ``{message}`` or ``{registry}`` in it, as what finds it."""
    if key not in table:
        return None
    text = table[key]
    mark = f"{{{key}}}"
    if not isinstance(text, str) or text.count(mark) != 1 or text.strip() == mark:
        expected = f"what stands around it, with {mark} once"
        raise BadInput(where, key=f"model.{key}", found=text, expected=expected)
    before, after = (re.escape(part) for part in text.split(mark))
    # A message may itself hold what follows it, so it goes on to the last occurrence of that.
    inside = ".*" if key == "message" else ".*?"
    return re.compile(before + f"(?P<{key}>{inside})" + (after or r"\Z"), re.DOTALL)


def _answer(table: Mapping[str, Any], *, where: str) -> Any:
    if "answer" not in table:
        return None
    text = table["answer"]
    try:
        value = json.loads(text) if isinstance(text, str) else None
    except ValueError:
        value = None
    if value is None or not _holds(value, "{target}"):
        expected = "a JSON text with {target} in it"
        raise BadInput(where, key="model.answer", found=text, expected=expected)
    return value


def _holds(value: Any, mark: str) -> bool:
    return mark in json.dumps(value, ensure_ascii=False)


def _keys_beside_target(value: Any) -> list[str]:
    if isinstance(value, list):
        return [key for inner in value for key in _keys_beside_target(inner)]
    if not isinstance(value, Mapping):
        return []
    if any(isinstance(inner, str) and "{target}" in inner for inner in value.values()):
        return list(value)
    return [key for inner in value.values() for key in _keys_beside_target(inner)]


def _repeat(value: Any, parts: Sequence[Part]) -> Any:
    if isinstance(value, list) and len(value) == 1 and _holds(value, "{target}"):
        return [fill_part(value[0], part) for part in parts]
    if isinstance(value, Mapping):
        return {key: _repeat(inner, parts) for key, inner in value.items()}
    return fill_part(value, parts[0]) if parts else value


def fill_part(value: Any, part: Part) -> Any:
    """``value`` with the fields of a part filled in."""
    if isinstance(value, str):
        places = {"{start}": part.start, "{end}": part.start + len(part.text)}
        if value in places:
            return places[value]
        return value.replace("{target}", part.target).replace("{prompt}", part.text)
    if isinstance(value, Mapping):
        return {key: fill_part(inner, part) for key, inner in value.items()}
    if isinstance(value, list):
        return [fill_part(inner, part) for inner in value]
    return value
