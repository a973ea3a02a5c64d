"""The registry in a prompt: who may be chosen, in their own words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from harness_core.llm.policy._scoring import weigh
from harness_core.llm.policy._words import identifier_stems, stems, tokens

__all__ = ["Entry", "read_registry"]

_NAME_KEYS: Final = ("name", "id", "butler", "agent", "service", "target", "key")
_PROSE_KEYS: Final = ("description", "purpose", "summary", "about", "role", "handles")
_SKILL_KEYS: Final = ("capabilities", "skills", "tags", "keywords", "topics", "tools", "examples")

_BULLET: Final = re.compile(
    r"^[ \t]*(?:[-*•]|\d+[.)])[ \t]+[*`_\"]*(?P<name>[A-Za-z][\w-]*)[*`_\"]*[ \t]*"
    r"(?::|—|\u2013|-)[*]*[ \t]+(?P<prose>\S.*)$",
    re.MULTILINE,
)

#: What a description says it is *not* for must not attract anything.
_NEGATED: Final = re.compile(
    r"\b(?:not|never|except|excluding|without|other than|rather than|unlike|no)\b[^.;:—(\n]*",
    re.IGNORECASE,
)

#: Words by which a catch-all describes itself; the second group counts double.
_CATCH_ALL: Final = frozenset(
    ["else", "anything", "everything", "whatever", "otherwise", "miscellaneous", "other", "any"]
)
_CATCH_ALL_STRONG: Final = frozenset(
    ["general", "fallback", "catch", "catchall", "default", "unmatched", "unclassified", "misc"]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One that may be chosen."""

    name: str
    description: str = ""
    capabilities: tuple[str, ...] = ()

    def weights(self) -> dict[str, float]:
        """Its words for scoring: name before capabilities before prose."""
        prose = _NEGATED.sub(" ", self.description)
        skills = [word for skill in self.capabilities for word in stems(skill.replace("_", " "))]
        return weigh((identifier_stems([self.name]), 1.5), (skills, 1.2), (stems(prose), 1.0))

    def catches_all(self) -> float:
        """How much it describes itself as the place for what fits nowhere else."""
        text = " ".join([self.name, self.description, *self.capabilities]).replace("_", " ")
        words = {token.lower for token in tokens(text)}
        return 2.0 * len(words & _CATCH_ALL_STRONG) + len(words & _CATCH_ALL)


def read_registry(instructions: str) -> tuple[Entry, ...]:
    """Entries of the registry found in instructions; empty when there is none."""
    for value in _json_values(instructions):
        entries = _entries(value)
        if entries:
            return entries
    listed = tuple(
        Entry(name=match["name"], description=match["prose"].strip())
        for match in _BULLET.finditer(instructions)
    )
    return listed if _unique(listed) else ()


def _json_values(text: str) -> Iterator[Any]:
    """JSON arrays and objects written in a text, outermost first."""
    decoder = json.JSONDecoder()
    at = 0
    while (found := re.compile(r"[\[{]").search(text, at)) is not None:
        try:
            value, at = decoder.raw_decode(text, found.start())
        except ValueError:
            at = found.start() + 1
            continue
        yield value


def _entries(value: object) -> tuple[Entry, ...]:
    if isinstance(value, dict):
        for inner in value.values():
            if isinstance(inner, list) and (entries := _entries(inner)):
                return entries
        if value and all(isinstance(item, str) for item in value.values()) and len(value) > 1:
            keys = set(value) & {*_NAME_KEYS, *_PROSE_KEYS, "prompt", "segment"}
            spaced = all(" " in item for item in value.values())
            if not keys and spaced:
                return tuple(Entry(name=k, description=v) for k, v in value.items())
        return ()
    if not isinstance(value, list):
        return ()
    entries = tuple(entry for item in value if (entry := _entry(item)) is not None)
    return entries if len(entries) == len(value) and _unique(entries) else ()


def _entry(item: object) -> Entry | None:
    if not isinstance(item, dict):
        return None
    name = next((item[k] for k in _NAME_KEYS if isinstance(item.get(k), str)), "")
    prose = [item[key] for key in _PROSE_KEYS if isinstance(item.get(key), str)]
    skills = [text for key in _SKILL_KEYS for text in _texts(item.get(key))]
    if not name or not (prose or skills):
        return None
    return Entry(name=name, description=" ".join(prose), capabilities=tuple(skills))


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
