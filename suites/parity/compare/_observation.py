"""What one backend did with a scenario, as named fields that can be compared.

An observation is a mapping: guest environment, files, calls, errors, whatever a scenario looks at.
Mappings and sequences inside it are taken apart into *fields*, one per leaf, so that a difference
names ``env.TOKEN`` or ``calls[2].argv[0]`` instead of showing two large dictionaries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final

__all__ = ["ABSENT", "fields_of", "shown"]


class _Absent:
    """A field that one side has and the other has not; equal to nothing but itself."""

    def __repr__(self) -> str:
        return "absent"


ABSENT: Final = _Absent()

#: Characters of a value shown in a difference.
_SHOWN_CHARACTERS: Final = 120


def fields_of(observation: Mapping[str, Any]) -> dict[str, Any]:
    """Take an observation apart: field → leaf, in the order of the observation.

    An empty mapping or sequence is a leaf itself, or its absence could not be distinguished from emptiness.
    """
    fields: dict[str, Any] = {}
    for name, value in observation.items():
        _take_apart(str(name), value, fields)
    return fields


def _take_apart(path: str, value: Any, fields: dict[str, Any]) -> None:
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            _take_apart(f"{path}.{key}", item, fields)
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes) and value:
        for index, item in enumerate(value):
            _take_apart(f"{path}[{index}]", item, fields)
    elif isinstance(value, AbstractSet):
        fields[path] = sorted(value, key=repr)
    else:
        fields[path] = value


def shown(value: object) -> str:
    """A value as a difference shows it, shortened from the middle."""
    text = repr(value)
    if len(text) <= _SHOWN_CHARACTERS:
        return text
    half = _SHOWN_CHARACTERS // 2
    return f"{text[:half]} … {text[-half:]} ({len(text)} characters)"
