"""An answer, or the arguments of a call, with places for a part of the message and its target.

A JSON value whose texts hold ``{target}``, ``{prompt}``, ``{start}`` and ``{end}``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness_core.base.texts import map_texts


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


def holds_target(template: Any) -> bool:
    """Whether a target has its place in it."""
    return "{target}" in json.dumps(template)


def keys_beside_target(template: Any) -> Iterator[str]:
    """The keys of the objects in it that name a target."""
    inner = template if isinstance(template, list) else []
    if isinstance(template, Mapping):
        inner = list(template.values())
        if any(isinstance(each, str) and "{target}" in each for each in inner):
            yield from template
            return
    for each in inner:
        yield from keys_beside_target(each)


def fill_part(template: Any, part: Part) -> Any:
    """The value for one part."""
    places = {"{start}": part.start, "{end}": part.start + len(part.text)}

    def filled(text: str) -> Any:
        words = text.replace("{target}", part.target).replace("{prompt}", part.text)
        return places.get(text, words)

    return map_texts(template, filled)


def fill_parts(template: Any, parts: Sequence[Part]) -> Any:
    """The value for all parts.

    A list of one element that holds the target is repeated for each part; a template without such
    a list takes the first part alone.
    """
    if isinstance(template, list) and len(template) == 1 and holds_target(template):
        return [fill_part(template[0], part) for part in parts]
    if isinstance(template, Mapping):
        return {key: fill_parts(inner, parts) for key, inner in template.items()}
    return fill_part(template, parts[0]) if parts else template
