"""The registry in a prompt: who may be chosen, in their own words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

_NAME_KEYS: Final = ("name", "id", "butler", "agent", "service", "target", "key")
_PROSE_KEYS: Final = ("description", "purpose", "summary", "about", "role", "handles")
_SKILL_KEYS: Final = ("capabilities", "skills", "tags", "keywords", "topics", "tools", "examples")

_PLACE_KEYS: Final = ("address", "endpoint", "endpoint_url", "url")

_BULLET: Final = re.compile(
    r"^[ \t]*(?:[-*•]|\d+[.)])[ \t]+[*`_\"]*(?P<name>[A-Za-z][\w-]*)[*`_\"]*[ \t]*"
    r"(?::|—|\u2013|-)[*]*[ \t]+(?P<prose>\S.*)$",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One that may be chosen.

    Attributes:
        said: what the prompt says of it: its description, capabilities, or address. Without a word
            of it a reader cannot tell what it is for.
    """

    name: str
    said: str = ""


def read_registry(instructions: str) -> tuple[tuple[Entry, ...], str]:
    """Entries of the registry found in instructions (none: there is none), and what else stands there."""
    for value, start, end in _json_values(instructions):
        entries = _entries(value)
        if entries:
            return entries, instructions[:start] + instructions[end:]
    listed = tuple(
        Entry(name=match["name"], said=match["prose"].strip())
        for match in _BULLET.finditer(instructions)
    )
    return listed if _unique(listed) else (), instructions


def _json_values(text: str) -> Iterator[tuple[Any, int, int]]:
    """JSON arrays and objects written in a text, outermost first, and from where to where."""
    decoder = json.JSONDecoder()
    at = 0
    while (found := re.compile(r"[\[{]").search(text, at)) is not None:
        try:
            value, end = decoder.raw_decode(text, found.start())
        except ValueError:
            at = found.start() + 1
            continue
        yield value, found.start(), end
        at = end


def _entries(value: object) -> tuple[Entry, ...]:
    if isinstance(value, dict):
        for inner in value.values():
            if isinstance(inner, list) and (entries := _entries(inner)):
                return entries
        if value and all(isinstance(item, str) for item in value.values()) and len(value) > 1:
            keys = set(value) & {*_NAME_KEYS, *_PROSE_KEYS, "prompt", "segment"}
            spaced = all(" " in item for item in value.values())
            if not keys and spaced:
                return tuple(Entry(name=k, said=v) for k, v in value.items())
        return ()
    if not isinstance(value, list):
        return ()
    entries = tuple(entry for item in value if (entry := _entry(item)) is not None)
    spoken_of = any(entry.said for entry in entries)
    return entries if spoken_of and len(entries) == len(value) and _unique(entries) else ()


def _entry(item: object) -> Entry | None:
    if not isinstance(item, dict):
        return None
    name = next((item[k] for k in _NAME_KEYS if isinstance(item.get(k), str)), "")
    keys = (*_PROSE_KEYS, *_SKILL_KEYS, *_PLACE_KEYS)
    said = " ".join(text for key in keys for text in _texts(item.get(key)))
    return Entry(name=name, said=said.strip()) if name else None


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield str(key)
            yield from _texts(item)


def _unique(entries: tuple[Entry, ...]) -> bool:
    return bool(entries) and len({entry.name for entry in entries}) == len(entries)
