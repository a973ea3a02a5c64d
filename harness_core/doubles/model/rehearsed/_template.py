"""How an answer is wanted: JSON, or the arguments of a tool, with places for what a row says.

A JSON value whose texts hold ``{target}``, ``{prompt}``, ``{start}`` and ``{end}``. Wherever it comes
from, a text, a schema, a tool or the subject file, it is filled here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness_core.doubles.turns import Route, fill_in

#: What stands for each place, of one part of a message.
Part = Mapping[str, str | int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """An answer before it is filled in.

    Attributes:
        value: the JSON, or the arguments of ``tool``.
        tool: bare name of the tool that is to be called; empty for an answer in text.
    """

    value: Any
    tool: str = ""


def parts_of(message: str, routes: Sequence[Route]) -> tuple[Part, ...]:
    """Each route with its part of the message, and where in it that stands, in characters."""
    parts: list[Part] = []
    for route in routes:
        text, start = route.prompt or message, max(message.find(route.prompt), 0)
        parts.append(
            {"target": route.target, "prompt": text, "start": start, "end": start + len(text)}
        )
    return tuple(parts)


def holds_target(value: Any) -> bool:
    """Whether a target has its place in a template."""
    return "{target}" in json.dumps(value)


def keys_beside_target(value: Any) -> Iterator[str]:
    """The keys of the objects in a template that name a target."""
    inner = value if isinstance(value, list) else []
    if isinstance(value, Mapping):
        inner = list(value.values())
        if any(isinstance(each, str) and "{target}" in each for each in inner):
            yield from value
            return
    for each in inner:
        yield from keys_beside_target(each)


def filled(value: Any, parts: Sequence[Part]) -> Any:
    """The answer for all parts.

    A list of one element that holds the target is repeated for each part; a template without such a
    list takes the first part alone.
    """
    if isinstance(value, list) and len(value) == 1 and holds_target(value):
        return [fill_in(value[0], part) for part in parts]
    if isinstance(value, Mapping):
        return {key: filled(inner, parts) for key, inner in value.items()}
    return fill_in(value, parts[0]) if parts else value
