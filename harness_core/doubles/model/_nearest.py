"""Which recorded request is closest to one that was not recorded, and what differs, by field."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterator, Mapping
from typing import Any, Final

#: Differences shown in one message; the rest is counted.
_SHOWN: Final = 6

#: Characters shown on each side of the place where two texts part.
_AROUND: Final = 40

_MISSING: Final = object()


def nearest(asked: Mapping[str, Any], recorded: Mapping[str, Mapping[str, Any]]) -> str:
    """Names the closest recorded request, and what differs in it.

    Closest is what differs in the fewest fields; among equals, the most alike in their texts.

    Args:
        asked: a normalised request.
        recorded: name → normalised request, at least one.
    """
    own = dict(_leaves(asked))
    known = {name: dict(_leaves(request)) for name, request in recorded.items()}
    apart = {
        name: [
            path
            for path in {**theirs, **own}
            if theirs.get(path, _MISSING) != own.get(path, _MISSING)
        ]
        for name, theirs in known.items()
    }

    def distance(name: str) -> tuple[int, float]:
        before, now = (
            " ".join(str(request.get(path, "")) for path in sorted(apart[name]))
            for request in (known[name], own)
        )
        return len(apart[name]), -difflib.SequenceMatcher(a=before, b=now).quick_ratio()

    name = min(known, key=distance)
    shown = []
    for path in apart[name][:_SHOWN]:
        before, now = known[name].get(path, _MISSING), own.get(path, _MISSING)
        texts = isinstance(before, str) and isinstance(now, str)
        pairs = zip(before, now, strict=False) if texts else ()
        at = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
        shown.append(f"{path}: recorded {_cut(before, at)}, asked {_cut(now, at)}")
    more = f"; and {len(apart[name]) - _SHOWN} more" if len(apart[name]) > _SHOWN else ""
    differences = "; ".join(shown)
    return f"the nearest recorded request is {name}, which differs in {differences}{more}"


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for key in value:
            yield from _leaves(value[key], f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            # A tool is known by its name: one more in the middle is one difference, not twenty.
            name = item.get("name") if path == "tools" and isinstance(item, Mapping) else None
            yield from _leaves(item, f"{path}[{name or index}]")
    else:
        yield path, value


def _cut(value: Any, at: int) -> str:
    """A value; of a text what stands around the place where it parts from another."""
    if not isinstance(value, str):
        return "nothing" if value is _MISSING else repr(value)
    start, end = max(0, at - _AROUND), at + _AROUND
    front, back = "…" if start else "", "…" if end < len(value) else ""
    return repr(f"{front}{value[start:end]}{back}")
