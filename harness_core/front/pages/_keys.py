"""The keys of TOML files, from the types that read them.

A key is a field of a :class:`~harness_core.base.reading.Table`; what it means stands under
``Attributes:`` in the docstring of its type.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from msgspec import inspect as types

__all__ = ["Key", "keys_of"]

_ENTRY: Final = re.compile(r"    (\w+(?:, \w+)*): (.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key of a file.

    Attributes:
        name: as it is written: ``[cli] say``, ``[[migrations]] path``, ``[knobs.idle_s]``.
        kind: what its value must be, in words.
        default: what it is when left out; ``required`` when it may not be.
        meaning: one sentence or more; empty when its type does not say.
        owner: the type that has it.
    """

    name: str
    kind: str
    default: str
    meaning: str
    owner: type


def keys_of(
    kind: type[msgspec.Struct], *, at: str = "", outside: Collection[str] = ()
) -> tuple[Key, ...]:
    """The keys of a table, and of those inside it, in the order of their declaration.

    Args:
        kind: the type of the table.
        at: the keys that lead to it, with dots; empty for a whole file.
        outside: keys of it that are left out.
    """
    return tuple(_keys(types.type_info(kind), at, rows=False, outside=outside))


# --- from types to keys -------------------------------------------------------------------------------


def _keys(
    table: types.Type, at: str, *, rows: bool, outside: Collection[str] = ()
) -> Iterator[Key]:
    assert isinstance(table, types.StructType)
    meanings = _meanings(table.cls)
    for field in table.fields:
        if field.encode_name in outside:
            continue
        inner, many, named = _inside(field.type)
        place = f"{at}.{field.encode_name}" if at else field.encode_name
        yield Key(
            name=_written(at, field.encode_name, field.type, rows=rows),
            kind=_kind(field.type),
            default=_default(field),
            meaning=meanings.get(field.name, ""),
            owner=table.cls,
        )
        if inner is not None:
            yield from _keys(inner, f"{place}.NAME" if named else place, rows=many)


def _inside(kind: types.Type) -> tuple[types.StructType | None, bool, bool]:
    """The table in a value, whether it is one of several in a list, or under a name of the author's."""
    for each in _members(kind):
        if isinstance(each, types.StructType):
            return each, False, False
        if isinstance(each, types.VarTupleType | types.ListType):
            return _inside(each.item_type)[0], True, False
        if isinstance(each, types.DictType) and (inner := _inside(each.value_type)[0]):
            return inner, False, True
    return None, False, False


def _written(at: str, name: str, kind: types.Type, *, rows: bool) -> str:
    """How a key is written in a file: a table by its head, any other below the head of its table."""
    place = f"{at}.{name}" if at else name
    inner, many, named = _inside(kind)
    if inner is not None:
        return f"[[{place}]]" if many else f"[{place}.NAME]" if named else f"[{place}]"
    if any(isinstance(each, types.DictType) for each in _members(kind)):
        return f"[{place}]"
    return (f"[[{at}]] " if rows else f"[{at}] " if at else "") + name


def _members(kind: types.Type) -> list[types.Type]:
    if isinstance(kind, types.Metadata):
        return _members(kind.type)
    if isinstance(kind, types.UnionType):
        return [member for each in kind.types for member in _members(each)]
    return [] if isinstance(kind, types.NoneType) else [kind]


def _kind(kind: types.Type) -> str:
    """A type in words."""
    if isinstance(kind, types.Metadata) and (schema := kind.extra_json_schema):
        worded = str(schema.get("description", ""))
        # A pattern is for the error; a reader of a table wants the meaning.
        return worded if worded and " like " not in worded else _kind(kind.type)
    return " or ".join(dict.fromkeys(_word(each) for each in _members(kind)))


def _word(kind: types.Type) -> str:
    if isinstance(kind, types.LiteralType):
        return " or ".join(f"`{value}`" for value in kind.values)
    if isinstance(kind, types.VarTupleType | types.ListType | types.SetType | types.FrozenSetType):
        return f"list of {_plural(_kind(kind.item_type))}"
    if isinstance(kind, types.DictType):
        return f"table of {_plural(_kind(kind.value_type))}"
    words: dict[type, str] = {
        types.StrType: "text",
        types.IntType: "whole number",
        types.FloatType: "number",
        types.BoolType: "true or false",
        types.StructType: "table",
        types.CustomType: "path",
        types.AnyType: "value",
    }
    return words.get(type(kind), "value")


def _plural(words: str) -> str:
    words = words.removesuffix(" that is not empty")
    plain = {
        "text": "texts",
        "table": "tables",
        "number": "numbers",
        "path": "paths",
        "value": "values",
    }
    first, _, rest = words.removeprefix("a ").partition(" ")
    return " ".join(filter(None, (plain.get(first, first), rest)))


def _default(field: types.Field) -> str:
    if field.required:
        return "required"
    value: Any = field.default
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str) and value:
        return f"`{json.dumps(value)}`"
    if isinstance(value, tuple | frozenset) and value:
        return f"`{json.dumps(list(value))}`"
    return f"`{value}`" if isinstance(value, int | float) else ""


def _meanings(owner: type) -> dict[str, str]:
    """What the docstrings of a type and its bases say of its attributes."""
    found: dict[str, str] = {}
    for each in reversed(owner.__mro__):
        _, _, section = inspect.cleandoc(each.__doc__ or "").partition("Attributes:\n")
        names: list[str] = []
        for line in section.splitlines():
            if entry := _ENTRY.fullmatch(line):
                names = entry[1].split(", ")
                found |= dict.fromkeys(names, entry[2])
            elif names and line.startswith("        "):
                found |= {name: f"{found[name]} {line.strip()}" for name in names}
            elif line.strip():
                break
    return found
