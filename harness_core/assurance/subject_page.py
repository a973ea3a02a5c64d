"""The keys of subject files and the capabilities of suites as a page, from where they are declared.

Keys are fields of types (:class:`harness_core.system.subject.Tables`, a suite's ``tables``); what a key
means stands under ``Attributes:`` in the docstring of its type. Capabilities stand in suite.toml.
The page keeps what is written by hand outside of its two marks.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import inspect as types

from harness_core.base.errors import BadInput
from harness_core.base.reading import read_text
from harness_core.system.staging import tables_of
from harness_core.system.subject import SubjectTable
from harness_core.system.suites import Suite, load_suites

__all__ = ["PAGE", "Key", "keys_of", "page_of", "undocumented"]

#: Where the page of a tree is; a tree without one has none to keep.
PAGE: Final = Path("docs") / "subject.md"

BEGIN: Final = (
    "<!-- from here on by `harness subject docs`: change what is declared, not this page -->"
)
END: Final = "<!-- to here -->"

_ENTRY: Final = re.compile(r"    (\w+(?:, \w+)*): (.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key of a subject file.

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


#: The one table of every file that is no type.
ENVIRONMENT: Final = Key(
    name="[env]",
    kind="table of texts",
    default="",
    meaning="its environment; `{fields}` may stand in names and values",
    owner=SubjectTable,
)


def page_of(root: Path) -> str | None:
    """The page as it must be; ``None`` for a tree without one.

    Raises:
        BadInput: it has not both marks, or a suite's types cannot be imported.
    """
    path = root / PAGE
    if not path.is_file():
        return None
    text = read_text(path, expected="a page")
    before, began, rest = text.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not began or not ended:
        raise BadInput(path, found="not both marks", expected=f"{BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{_generated(root)}\n{END}{after}"


def undocumented(root: Path) -> Iterator[Key]:
    """The keys whose types do not say what they mean."""
    kinds = [tables_of(suite, root=root) for suite in load_suites(root)]
    keys = [*keys_of(SubjectTable, at="subject")]
    keys += [key for kind in kinds if kind is not None for key in keys_of(kind)]
    yield from (key for key in keys if not key.meaning)


def keys_of(kind: type[msgspec.Struct], *, at: str = "") -> tuple[Key, ...]:
    """The keys of a table, and of those inside it, in the order of their declaration.

    Args:
        kind: the type of the table.
        at: the keys that lead to it, with dots; empty for a whole file.
    """
    return tuple(_keys(types.type_info(kind), at, rows=False))


# --- from types to keys -------------------------------------------------------------------------------


def _keys(table: types.Type, at: str, *, rows: bool) -> Iterator[Key]:
    assert isinstance(table, types.StructType)
    meanings = _meanings(table.cls)
    for field in table.fields:
        if not at and field.encode_name in {"subject", "env"}:
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
        return str(schema.get("description") or _kind(kind.type))
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


# --- from keys to the page ------------------------------------------------------------------------------


def _generated(root: Path) -> str:
    subject = keys_of(SubjectTable, at="subject")
    parts = [
        "## Keys of every subject file",
        _key_table([*subject, ENVIRONMENT]),
    ]
    for suite in load_suites(root):
        parts += _suite_part(suite, root=root)
    return "\n".join(parts)


def _suite_part(suite: Suite, *, root: Path) -> Iterator[str]:
    kind = tables_of(suite, root=root)
    if suite.subject is None and kind is None:
        return
    yield f"\n## {suite.name}: {suite.summary}"
    if kind is not None:
        yield from _body(kind)
        yield _key_table(keys_of(kind))
    if suite.capabilities:
        yield f"\n### Capabilities of {suite.name}"
        rows = [
            (f"`{each.name}`", each.demands, ", ".join(f"`{key}`" for key in each.needs))
            for each in suite.capabilities
        ]
        yield _table(("capability", "what it demands", "needs"), rows)


def _body(kind: type) -> Iterator[str]:
    """What the docstring of a type says between its first line and its attributes."""
    _, _, rest = inspect.cleandoc(kind.__doc__ or "").partition("\n\n")
    body, _, _ = rest.partition("Attributes:\n")
    if body.strip():
        yield f"{_markdown(body.strip())}\n"


def _key_table(keys: Sequence[Key]) -> str:
    rows = [(f"`{key.name}`", key.kind, key.default, key.meaning) for key in keys]
    return _table(("key", "type", "default", "meaning"), rows)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [" | ".join(heads), "|".join("---" for _ in heads)]
    lines += [" | ".join(_markdown(cell).replace("|", "\\|") for cell in row) for row in rows]
    return "\n".join(f"| {line} |" if "---" not in line[:3] else f"|{line}|" for line in lines)


def _markdown(text: str) -> str:
    return text.replace("``", "`")
