"""Values made of texts, changed text by text."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct, structs


def map_texts(value: Any, change: Callable[[str], Any]) -> Any:  # noqa: PLR0911 - one per kind
    """``value`` with every text inside it changed: in mappings, lists, structs and dataclasses.

    Args:
        value: keys and whatever is no text stay as they are.
        change: text → what stands in its place.
    """

    def inside(names: tuple[str, ...]) -> dict[str, Any]:
        return {name: map_texts(getattr(value, name), change) for name in names}

    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {key: map_texts(inner, change) for key, inner in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(**inside(value._fields))
    if isinstance(value, list | tuple | set | frozenset):
        return type(value)(map_texts(inner, change) for inner in value)
    if isinstance(value, Struct):
        return structs.replace(value, **inside(value.__struct_fields__))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = tuple(field.name for field in dataclasses.fields(value) if field.init)
        return dataclasses.replace(value, **inside(names))
    return value
