"""TOML and JSON that people write, as typed values: msgspec reads, a mistake becomes :class:`BadInput`.

A shape is a :class:`Table`, or any other type that msgspec converts to. What a key expects is worded
by its type, or by itself: ``Annotated[int, Meta(ge=1, description="from 1 on")]``.
What no type can say is checked in ``__post_init__``, which raises :class:`Misfit` with the key.
A :class:`~pathlib.Path` is written relative to its file.
"""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import inspect

from harness_core.base.errors import BadInput

T = TypeVar("T")

#: A text with something in it, and a list of such.
Text = Annotated[str, msgspec.Meta(pattern=r"\S", description="a text that is not empty")]
Texts = Annotated[tuple[Text, ...], msgspec.Meta(description="a list of texts")]
SomeTexts = Annotated[
    tuple[Text, ...], msgspec.Meta(min_length=1, description="a list of texts, at least one")
]

#: A key of a table, or a position in a list.
Step = str | int

#: What a type is called where a mistake is shown; the API of a provider has names of its own.
WORDS: Final[Mapping[type, str]] = {
    inspect.StrType: "a text",
    inspect.IntType: "a whole number",
    inspect.FloatType: "a number",
    inspect.BoolType: "true or false",
    inspect.DictType: "a table",
    inspect.ListType: "a list",
    inspect.VarTupleType: "a list",
}

#: The same in JSON.
JSON_WORDS: Final = {
    **WORDS,
    inspect.DictType: "an object",
    inspect.ListType: "an array",
    inspect.VarTupleType: "an array",
}

#: The same in YAML.
YAML_WORDS: Final = {**WORDS, inspect.DictType: "a mapping"}

#: How msgspec ends its messages: where the mistake is.
_PLACE: Final = re.compile(r" - at `(?:key` in `)?(\$[^`]*)`\Z")
_STEP: Final = re.compile(r"\.([^.\[]+)|\[(\d+)\]|(\[\.\.\.\])")
_MISSING: Final = re.compile(r"Object missing required field `([^`]*)`")
_UNKNOWN: Final = re.compile(r"Object contains unknown field `([^`]*)`")

#: Characters of a value that are shown.
_SHOWN_CHARS: Final = 200


class Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of a table whose keys are all known: any other key is a mistake."""


class SharedTable(msgspec.Struct, frozen=True, kw_only=True):
    """The base of a table with other readers, whose keys are not known here.

    An unknown key is a mistake when it is as long as, and nearly, a known one that is missing:
    ``schedul3`` for ``schedule``, and not ``scheduler``.
    """


class Misfit(ValueError):  # noqa: N818 - names what was wrong, as BadInput does
    """One thing that is wrong in a value.

    Args:
        path: keys and positions from the value to what is wrong.
        expected: what would be right.
        found: what is there; looked up when left out, ``None`` for a key that is not there.
        next_step: what to do about it.

    Attributes:
        missing: a key is not there that must be.
    """

    def __init__(
        self, *path: Step, expected: str, found: object = ..., next_step: str = ""
    ) -> None:
        super().__init__(expected)
        self.path = path
        self.expected = expected
        self.found = found
        self.next_step = next_step
        self.missing = False

    def inside(self, path: tuple[Step, ...]) -> Misfit:
        """The same, as seen from a value around it."""
        self.path = (*path, *self.path)
        return self

    @property
    def key(self) -> str:
        """The place in one text, e.g. ``answers[0].status``."""
        return _named(self.path, None, "")

    def bad_input(self, where: str | Path, *, key: str = "") -> BadInput:
        """The error for people; ``where`` is the file, or what else has the value."""
        return BadInput(
            where,
            key=key or self.key,
            found=_shown(self.found),
            expected=self.expected,
            next_step=self.next_step,
        )


def like(pattern: str) -> msgspec.Meta:
    """For a text that is to match ``pattern`` from its beginning to its end."""
    return msgspec.Meta(pattern=rf"\A(?:{pattern})\Z", description=f"a text like {pattern}")


def nearest(word: str, known: Iterable[str]) -> str:
    """The one of ``known`` that was probably meant; empty when none is near."""
    return "".join(difflib.get_close_matches(word, known, n=1))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The sentence that names the nearest of ``known``; empty when none is near."""
    near = nearest(word, known)
    return f"Did you mean {near}?" if near else ""


def check_distinct(table: msgspec.Struct, *keys: str) -> None:
    """Check that lists of a table have no entry twice.

    Raises:
        Misfit: the first that has.
    """
    for key in keys:
        entries = getattr(table, key)
        if len(set(entries)) < len(entries):
            raise Misfit(key, expected="a list without repetition")


def read_toml(path: Path, kind: type[T], *, expected: str = "a TOML file", named_by: str = "") -> T:
    """Read a TOML file; ``named_by`` as for :func:`convert`.

    Raises:
        BadInput: it cannot be read, or names the key that is wrong.
    """
    return convert(load_toml(path, expected=expected), kind, where=path, named_by=named_by)


def load_toml(path: Path, *, expected: str = "a TOML file") -> dict[str, Any]:
    """A TOML file as plain values, for readers of a part of it.

    Raises:
        BadInput: it cannot be read.
    """
    found: dict[str, Any] = _loaded(path, tomllib.loads, expected)
    return found


def read_json(path: Path, kind: type[T], *, expected: str = "a JSON file") -> T:
    """Read a JSON file.

    Raises:
        BadInput: it cannot be read, or names the key that is wrong.
    """
    return convert(_loaded(path, json.loads, expected), kind, where=path, words=JSON_WORDS)


def _loaded(path: Path, loads: Callable[[str], Any], expected: str) -> Any:
    text = read_text(path, expected=expected)
    try:
        return loads(text)
    except ValueError as error:
        raise BadInput(path, found=str(error), expected=expected) from error


def read_text(path: Path, *, expected: str) -> str:
    """The text of a file.

    Raises:
        BadInput: it cannot be read, or is no UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput(path, found=error.strerror or str(error), expected=expected) from error
    except UnicodeDecodeError as error:
        raise BadInput(path, found=str(error), expected="UTF-8 text") from error


def json_value(raw: bytes, *, where: str) -> Any:
    """The value of a JSON text.

    Raises:
        BadInput: it is none.
    """
    try:
        return json.loads(raw)
    except ValueError as error:
        shown = raw[:_SHOWN_CHARS].decode("utf-8", "replace")
        raise BadInput(where, found=shown, expected="JSON") from error


def convert(
    value: object,
    kind: type[T],
    *,
    where: str | Path,
    words: Mapping[type, str] = WORDS,
    named_by: str = "",
) -> T:
    """A value of plain lists, tables, texts and numbers as ``kind``.

    Args:
        value: as a parser of TOML, YAML or JSON made it.
        kind: the type wanted.
        where: the file, or ``request body``.
        words: what types are called.
        named_by: the key whose value names a row in messages: ``fault[3](lost-update).tests``.

    Raises:
        BadInput: the first mistake in it.
    """
    folder = where.parent if isinstance(where, Path) else Path()
    try:
        return parse(value, kind, words=words, folder=folder)
    except Misfit as misfit:
        if misfit.missing:
            _find_misspelt(misfit, value, kind)
        raise misfit.bad_input(where, key=_named(misfit.path, value, named_by)) from None


def parse(
    value: object,
    kind: type[T],
    *,
    at: tuple[Step, ...] = (),
    words: Mapping[type, str] = WORDS,
    folder: Path = Path(),
) -> T:
    """The same, for callers with an error of their own.

    Args:
        value: as a parser made it.
        kind: the type wanted.
        at: where the value stands in a larger one.
        words: what types are called in :attr:`Misfit.expected`.
        folder: what paths are relative to.

    Raises:
        Misfit: the first one, with its place.
    """
    try:
        found = _converted(value, kind, folder)
    except msgspec.ValidationError as error:
        path = _path(str(error), value, partial(_converted, kind=kind, folder=folder))
        raise _misfit(error, path, value, kind, words).inside(at) from None
    if isinstance(found, SharedTable):
        _check_shared(found, value, at)
    return found


def _converted(value: object, kind: type[T], folder: Path) -> T:
    return msgspec.convert(value, kind, dec_hook=partial(_path_below, folder))


def _path_below(folder: Path, kind: type, value: object) -> Path:
    """What msgspec asks for a value of a type that is not its own."""
    assert kind is Path, f"no value of a file is a {kind}"
    if not isinstance(value, str) or not value.strip():
        raise Misfit(expected="a path relative to the file")
    return folder / value


def _check_shared(table: SharedTable, value: Any, at: tuple[Step, ...]) -> None:
    """Refuse keys that are nearly known ones, in a table and in those inside."""
    known = {field.encode_name for field in msgspec.structs.fields(table)}
    for key in value.keys() - known:
        near = nearest(key, known - value.keys())
        if len(near) == len(key):
            next_step = did_you_mean(key, [near])
            raise Misfit(*at, key, expected=near, found=value[key], next_step=next_step)
    for key in value.keys() & known:
        inner = getattr(table, key)
        rows = enumerate(inner) if isinstance(inner, list | tuple) else [(None, inner)]
        for number, row in rows:
            if isinstance(row, SharedTable):
                steps = (key,) if number is None else (key, number)
                _check_shared(row, _at(value, steps), (*at, *steps))


def _find_misspelt(misfit: Misfit, value: object, kind: type) -> None:
    """A key that is not there, where one of nearly that name is, is taken to be misspelt."""
    *outer, key = misfit.path
    path = tuple(outer)
    table = _at(value, path)
    known = _keys(_type_at(kind, path))
    if near := nearest(str(key), [each for each in table if each not in known]):
        misfit.path, misfit.found = (*path, near), table[near]
        misfit.expected += f", as {key}"
        misfit.next_step = did_you_mean(near, [str(key)])


def _named(path: tuple[Step, ...], value: object, by: str) -> str:
    """A place in one text; a row with the name that it has."""
    text = ""
    for number, step in enumerate(path):
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
        row = _at(value, path[: number + 1])
        inside = number + 1 < len(path) and path[number + 1] != by
        if inside and isinstance(row, Mapping) and isinstance(row.get(by), str):
            text += f"({row[by]})"
    return text.removeprefix(".")


def _misfit(
    error: msgspec.ValidationError,
    path: tuple[Step, ...],
    value: object,
    kind: type,
    words: Mapping[type, str],
) -> Misfit:
    text = str(error)
    inner = error.__cause__
    if isinstance(inner, Misfit):
        if inner.found is ...:
            inner.found = _at(value, (*path, *inner.path))
        return inner.inside(path)
    if missing := _MISSING.match(text):
        path += (missing[1],)
        misfit = Misfit(*path, expected=_expected(kind, path, words), found=None)
        misfit.missing = True
        return misfit
    if unknown := _UNKNOWN.match(text):
        known = _keys(_type_at(kind, path))
        free = [key for key in known if key not in _at(value, path)]
        return Misfit(
            *path,
            unknown[1],
            expected=f"one of {', '.join(known)}" if known[1:] else f"{known[0]} and nothing else",
            found=_at(value, (*path, unknown[1])),
            next_step=did_you_mean(unknown[1], free) or did_you_mean(unknown[1], known),
        )
    return Misfit(*path, expected=_expected(kind, path, words), found=_at(value, path))


# --- where it is --------------------------------------------------------------------------------------


def _path(text: str, value: object, converted: Callable[[object], object]) -> tuple[Step, ...]:
    place = _PLACE.search(text)
    path: tuple[Step, ...] = ()
    for name, position, some in _STEP.findall(place[1] if place else ""):
        step = _entry(text, value, converted, path) if some else int(position) if position else name
        path += (step,)
    return path


def _entry(
    text: str, value: object, converted: Callable[[object], object], path: tuple[Step, ...]
) -> Step:
    """Which key of a table it is about: msgspec says only that it is one of them."""
    table = _at(value, path)
    for key in table if isinstance(table, Mapping) else ():
        try:
            converted(_with(value, path, {key: table[key]}))
        except msgspec.ValidationError as error:
            if str(error) == text:
                return str(key)
    return "…"


def _with(value: Any, path: tuple[Step, ...], inner: object) -> object:
    """A copy of ``value`` with something else at one place."""
    if not path:
        return inner
    copy = value.copy()
    copy[path[0]] = _with(value[path[0]], path[1:], inner)
    return copy


def _at(value: Any, path: tuple[Step, ...]) -> Any:
    for step in path:
        try:
            value = value[step]
        except (LookupError, TypeError):
            return None
    return value


# --- what would be right ------------------------------------------------------------------------------


def _expected(kind: type, path: tuple[Step, ...], words: Mapping[type, str]) -> str:
    wanted = _type_at(kind, path)
    for each in wanted.types if isinstance(wanted, inspect.UnionType) else (wanted,):
        schema = getattr(each, "extra_json_schema", None) or {}
        if description := schema.get("description"):
            return str(description)
    return _in_words(wanted, words)


def _type_at(kind: type, path: tuple[Step, ...]) -> inspect.Type:
    """The type wanted at a place."""
    wanted = inspect.type_info(kind)
    for step in path:
        wanted = _inside(_members(wanted), step)
    return wanted


def _members(wanted: inspect.Type) -> list[inspect.Type]:
    """What a value may be: the types of a union, or the one type, without their metadata."""
    if isinstance(wanted, inspect.Metadata):
        return _members(wanted.type)
    if isinstance(wanted, inspect.UnionType):
        return [member for each in wanted.types for member in _members(each)]
    return [wanted]


def _inside(members: Sequence[inspect.Type], step: Step) -> inspect.Type:
    for member in members:
        if isinstance(member, inspect.StructType):
            if member.tag_field == step:
                return inspect.LiteralType(_tags(members))
            for field in member.fields:
                if field.encode_name == step:
                    return field.type
        elif isinstance(member, inspect.DictType) and isinstance(step, str):
            return member.value_type
        elif isinstance(member, inspect.ListType | inspect.VarTupleType) and isinstance(step, int):
            return member.item_type
    return inspect.AnyType()


def _tags(members: Iterable[inspect.Type]) -> tuple[str, ...]:
    """The values by which the structs of a union are distinguished."""
    structs = (member for member in members if isinstance(member, inspect.StructType))
    return tuple(str(struct.tag) for struct in structs if struct.tag is not None)


def _keys(wanted: inspect.Type) -> list[str]:
    structs = (each for each in _members(wanted) if isinstance(each, inspect.StructType))
    return [field.encode_name for struct in structs for field in struct.fields]


def _in_words(wanted: inspect.Type, words: Mapping[type, str]) -> str:
    members = [each for each in _members(wanted) if each != inspect.NoneType()]
    if len(_tags(members)) > 1:
        others = [each for each in members if not isinstance(each, inspect.StructType)]
        return " or ".join([words[inspect.DictType], *(_word(each, words) for each in others)])
    return " or ".join(_word(each, words) for each in members)


def _word(wanted: inspect.Type, words: Mapping[type, str]) -> str:
    if isinstance(wanted, inspect.LiteralType):
        return " or ".join(map(repr, wanted.values))
    if isinstance(wanted, inspect.StructType):
        needed = [field.encode_name for field in wanted.fields if field.required]
        return words[inspect.DictType] + (f" with {' and '.join(needed)}" if needed else "")
    return words.get(type(wanted), "another value") + _bounds(wanted)


def _bounds(wanted: inspect.Type) -> str:
    low, high = getattr(wanted, "ge", None), getattr(wanted, "le", None)
    if low is not None:
        return f" from {low} on" if high is None else f" from {low} to {high}"
    return " that is not empty" if getattr(wanted, "min_length", None) else ""


def _shown(found: object) -> object:
    text = repr(found)
    return found if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"
