"""Ids that earlier tool results of the conversation gave away."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from harness_core.llm.policy._prompt import Done
from harness_core.llm.policy._words import identifier_stems, stem, stems

__all__ = ["find_id", "result_objects"]

_DEPTH: Final = 6


def result_objects(text: str, *, depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """Objects of a result, also where JSON holds JSON as text, as MCP servers answer."""
    if depth > _DEPTH:
        return
    try:
        value = json.loads(text)
    except ValueError:
        return
    yield from _walk(value, depth=depth)


def _walk(value: object, *, depth: int) -> Iterator[Mapping[str, Any]]:
    if depth > _DEPTH:
        return
    if isinstance(value, str):
        if value.lstrip()[:1] in ("{", "["):
            yield from result_objects(value, depth=depth + 1)
    elif isinstance(value, list):
        for item in value:
            yield from _walk(item, depth=depth + 1)
    elif isinstance(value, dict):
        yield value
        for item in value.values():
            yield from _walk(item, depth=depth + 1)


def find_id(name: str, *, done: Iterable[Done], text: str, plain_name: str) -> Any | None:
    """A value for an id parameter.

    Args:
        name: the parameter, e.g. ``contact_id``.
        done: earlier calls.
        text: the message; an object whose words it holds is preferred.
        plain_name: the tool's own noun, for a parameter called only ``id``.

    Returns:
        The id of the object that fits best; of several that fit alike the first; ``None`` when no
        result holds one, or when none of several has anything to do with the text.
    """
    noun = name.lower().removesuffix("_id").removesuffix("id").strip("_") or plain_name
    said = set(stems(text))
    found: list[tuple[int, Any]] = []
    for call in done:
        if call.is_error or not call.answered:
            continue
        about = stem(noun) in identifier_stems([call.name])
        for item in result_objects(call.result):
            value = item.get(name, item.get("id") if about else None)
            if isinstance(value, (str, int)) and not isinstance(value, bool):
                words = set(stems(" ".join(v for v in item.values() if isinstance(v, str))))
                found.append((len(words & said), value))
    if not found:
        return None
    best = max(found, key=lambda pair: pair[0])
    distinct = {str(value) for _, value in found}
    return best[1] if best[0] > 0 or len(distinct) == 1 else None
