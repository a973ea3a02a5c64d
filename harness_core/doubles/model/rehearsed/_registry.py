"""The registry in a prompt: who may be chosen, and whether a reader can tell what each is for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

_NAME_KEYS: Final = ("name", "id", "butler", "agent", "service", "target", "key")

#: What says what an entry is for: prose, lists of skills, an address.
_DESCRIBING_KEYS: Final = (
    *("description", "purpose", "summary", "about", "role", "handles"),
    *("capabilities", "skills", "tags", "keywords", "topics", "tools", "examples"),
    *("address", "endpoint", "endpoint_url", "url"),
)

_BULLET: Final = re.compile(
    r"^[ \t]*(?:[-*•]|\d+[.)])[ \t]+[*`_\"]*([A-Za-z][\w-]*)[*`_\"]*[ \t]*"
    r"(?::|—|\u2013|-)[*]*[ \t]+\S.*$",
    re.MULTILINE,
)

#: Name → whether the prompt says what it is for. Empty: there is no registry.
Registry = dict[str, bool]


def read_registry(instructions: str) -> tuple[Registry, str]:
    """The registry found in instructions, and what else stands there."""
    for value, start, end in _json_values(instructions):
        for listed in value.values() if isinstance(value, dict) else (value,):
            if registry := _listed(listed):
                return registry, instructions[:start] + instructions[end:]
    names = _BULLET.findall(instructions)
    registry = dict.fromkeys(names, True)
    return registry if len(registry) == len(names) else {}, instructions


def _json_values(text: str) -> Iterator[tuple[Any, int, int]]:
    """JSON arrays and objects written in a text, outermost first, and from where to where."""
    decoder = json.JSONDecoder()
    at = 0
    while (found := re.compile(r"[\[{]").search(text, at)) is not None:
        try:
            value, at = decoder.raw_decode(text, found.start())
        except ValueError:
            at = found.start() + 1
        else:
            yield value, found.start(), at


def _listed(value: object) -> Registry:
    """A list of objects, each with a name of its own, of which one at least is described."""
    if not isinstance(value, list):
        return {}
    registry: Registry = {}
    for item in filter(lambda item: isinstance(item, dict), value):
        name = next((item[key] for key in _NAME_KEYS if isinstance(item.get(key), str)), "")
        registry[name] = any(item.get(key) for key in _DESCRIBING_KEYS)
    complete = "" not in registry and len(registry) == len(value)
    return registry if complete and any(registry.values()) else {}
