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

    @property
    def places(self) -> dict[str, str | int]:
        """What stands for each placeholder."""
        end = self.start + len(self.text)
        return {"target": self.target, "prompt": self.text, "start": self.start, "end": end}


def parts_of(message: str, routes: Sequence[Route]) -> tuple[Part, ...]:
    """Each route with its part of the message, and where in it that begins."""
    return tuple(
        Part(
            target=route.target,
            text=route.prompt or message,
            start=max(message.find(route.prompt), 0),
        )
        for route in routes
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """An answer before it is filled in.

    Attributes:
        value: the JSON, or the arguments of ``tool``.
        tool: bare name of the tool that is to be called; empty for an answer in text.
    """

    value: Any
    tool: str = ""

    @property
    def holds_target(self) -> bool:
        """Whether a target has its place in it."""
        return _holds_target(self.value)

    def keys_beside_target(self) -> Iterator[str]:
        """The keys of the objects in it that name a target."""
        return _keys_beside_target(self.value)

    def filled(self, parts: Sequence[Part]) -> Any:
        """The answer for all parts.

        A list of one element that holds the target is repeated for each part; a template without
        such a list takes the first part alone.
        """
        return _fill_all(self.value, parts)

    def calls(self, parts: Sequence[Part]) -> list[Any]:
        """The arguments of the tool, called once for each part."""
        return [fill_in(self.value, part.places) for part in parts]


def _holds_target(value: Any) -> bool:
    return "{target}" in json.dumps(value)


def _keys_beside_target(value: Any) -> Iterator[str]:
    inner = value if isinstance(value, list) else []
    if isinstance(value, Mapping):
        inner = list(value.values())
        if any(isinstance(each, str) and "{target}" in each for each in inner):
            yield from value
            return
    for each in inner:
        yield from _keys_beside_target(each)


def _fill_all(value: Any, parts: Sequence[Part]) -> Any:
    if isinstance(value, list) and len(value) == 1 and _holds_target(value):
        return [fill_in(value[0], part.places) for part in parts]
    if isinstance(value, Mapping):
        return {key: _fill_all(inner, parts) for key, inner in value.items()}
    return fill_in(value, parts[0].places) if parts else value
