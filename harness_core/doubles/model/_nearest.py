"""Which recorded request is closest to one that was not recorded, and what differs, by field."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

#: Differences shown in one message; the rest is counted.
_SHOWN: Final = 6

#: Characters shown on each side of the place where two texts part.
_AROUND: Final = 40

_MISSING: Final = object()


def nearest(asked: Mapping[str, Any], recorded: Iterable[tuple[str, Mapping[str, Any]]]) -> str:
    """Names the closest recorded request, and what differs in it.

    Closest is what has the most fields in common; among equals, the most alike in the texts of
    those that differ.

    Args:
        asked: a normalised request.
        recorded: names and normalised requests, at least one.
    """
    own = dict(_leaves(asked))
    name, theirs = max(
        ((name, dict(_leaves(request))) for name, request in recorded),
        key=lambda each: _alike(each[1], own),
    )
    apart = [
        f"{path}: recorded {before}, asked {now}"
        for path in _apart(theirs, own)
        for before, now in [_shown(theirs.get(path, _MISSING), own.get(path, _MISSING))]
    ]
    more = f"; and {len(apart) - _SHOWN} more" if len(apart) > _SHOWN else ""
    differences = "; ".join(apart[:_SHOWN])
    return f"the nearest recorded request is {name}, which differs in {differences}{more}"


def _apart(theirs: Mapping[str, Any], own: Mapping[str, Any]) -> list[str]:
    return [
        path for path in {**theirs, **own} if theirs.get(path, _MISSING) != own.get(path, _MISSING)
    ]


def _alike(theirs: Mapping[str, Any], own: Mapping[str, Any]) -> tuple[float, float]:
    apart = sorted(_apart(theirs, own))
    texts = difflib.SequenceMatcher(
        a=" ".join(str(theirs.get(path, "")) for path in apart),
        b=" ".join(str(own.get(path, "")) for path in apart),
        autojunk=False,
    )
    return 1 - len(apart) / max(1, len(theirs.keys() | own.keys())), texts.quick_ratio()


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for key in value:
            yield from _leaves(value[key], f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple) and value:
        for index, item in enumerate(value):
            # A tool is known by its name: one more in the middle is one difference, not twenty.
            name = item.get("name") if path == "tools" and isinstance(item, Mapping) else None
            yield from _leaves(item, f"{path}[{name or index}]")
    else:
        yield path, value


def _shown(before: Any, now: Any) -> tuple[str, str]:
    """Both values, long texts cut to the place where they part."""
    at = 0
    if isinstance(before, str) and isinstance(now, str):
        pairs = enumerate(zip(before, now, strict=False))
        shorter = min(len(before), len(now))
        at = next((index for index, (one, other) in pairs if one != other), shorter)
    return _cut(before, at), _cut(now, at)


def _cut(value: Any, at: int) -> str:
    if not isinstance(value, str):
        return "nothing" if value is _MISSING else repr(value)
    start, end = max(0, at - _AROUND), at + _AROUND
    front, back = "…" if start else "", "…" if end < len(value) else ""
    return repr(f"{front}{value[start:end]}{back}")
