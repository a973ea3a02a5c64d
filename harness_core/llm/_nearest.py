"""Which recorded request is closest to one that was not recorded, and what differs, by field."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["Difference", "differences", "nearest"]

#: Differences told in one message; the rest is counted.
SHOWN: Final = 6

#: Characters shown on each side of the place where two texts part.
_AROUND: Final = 40

_ABSENT: Final = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One field in which two requests differ.

    Attributes:
        field: e.g. ``messages[0].content[3].text``.
        recorded: what was recorded there, cut to where it differs.
        asked: what was asked, likewise.
    """

    field: str
    recorded: str
    asked: str

    def __str__(self) -> str:
        return f"{self.field}: recorded {self.recorded}, asked {self.asked}"


def nearest(
    asked: Mapping[str, Any], recorded: Iterable[tuple[str, Mapping[str, Any]]]
) -> tuple[str, tuple[Difference, ...]] | None:
    """The name of the closest recorded request and all that differs; ``None`` of nothing.

    Closest is what has the most fields in common; among equals, the most alike in the texts of
    those that differ.

    Args:
        asked: a normalised request.
        recorded: names and normalised requests.
    """
    own = dict(_leaves(asked))
    best: tuple[tuple[float, float], str, Mapping[str, Any]] | None = None
    for name, request in recorded:
        theirs = dict(_leaves(request))
        fields = own.keys() | theirs.keys()
        apart = [path for path in fields if own.get(path) != theirs.get(path)]
        alike = difflib.SequenceMatcher(
            a=" ".join(str(theirs.get(path, "")) for path in sorted(apart)),
            b=" ".join(str(own.get(path, "")) for path in sorted(apart)),
            autojunk=False,
        ).quick_ratio()
        score = (1 - len(apart) / max(1, len(fields)), alike)
        if best is None or score > best[0]:
            best = (score, name, request)
    return (best[1], differences(best[2], asked)) if best else None


def differences(recorded: Mapping[str, Any], asked: Mapping[str, Any]) -> tuple[Difference, ...]:
    """Every field in which two normalised requests differ, in order."""
    theirs, own = dict(_leaves(recorded)), dict(_leaves(asked))
    found = []
    for path in [*theirs, *(path for path in own if path not in theirs)]:
        before, now = theirs.get(path, _MISSING), own.get(path, _MISSING)
        if before != now:
            shown = _apart(before, now)
            found.append(Difference(field=path, recorded=shown[0], asked=shown[1]))
    return tuple(found)


_MISSING: Final = object()


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        if not value:
            yield path, "{}"
        for key in value:
            yield from _leaves(value[key], f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        if not value:
            yield path, "[]"
        for index, item in enumerate(value):
            # A tool is known by its name: one more in the middle is one difference, not twenty.
            name = item.get("name") if path == "tools" and isinstance(item, Mapping) else None
            yield from _leaves(item, f"{path}[{name or index}]")
    else:
        yield path, value


def _apart(before: Any, now: Any) -> tuple[str, str]:
    """Both values, long texts cut to the place where they part."""
    if not isinstance(before, str) or not isinstance(now, str):
        return _whole(before), _whole(now)
    at = next(
        (index for index, pair in enumerate(zip(before, now, strict=False)) if pair[0] != pair[1]),
        min(len(before), len(now)),
    )
    return _cut(before, at), _cut(now, at)


def _whole(value: Any) -> str:
    if value is _MISSING:
        return _ABSENT
    return _cut(value, 0) if isinstance(value, str) else repr(value)


def _cut(text: str, at: int) -> str:
    start, end = max(0, at - _AROUND), at + _AROUND
    front, back = "…" if start else "", "…" if end < len(text) else ""
    return repr(f"{front}{text[start:end]}{back}")
