"""Every mistake that a configuration file can have, for the reader of that file.

From a file that is right: each key with a letter changed, each key left out, each value of another
kind. A reader must answer each with one :class:`BadInput` that names file and key; a key that is
left out may have a default.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from harness_core.base.errors import BadInput

#: Rows of one list that are looked at: the others are of the same shape.
_ROWS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """One wrong version of a file.

    Attributes:
        kind: ``misspelt``, ``missing`` or ``of another kind``.
        key: the right key, with dots and without numbers, e.g. ``fault.env``.
        names: what a message may call it: the right key, and as it is written.
        content: the whole file.
    """

    kind: str
    key: str
    names: tuple[str, ...]
    content: Mapping[str, Any]


def check_reader(
    read: Callable[[], object],
    path: Path,
    *,
    content: Mapping[str, Any],
    write: Callable[[Mapping[str, Any]], str],
    named_by_the_author: Sequence[str] = (),
    left_to_others: Sequence[str] = (),
) -> int:
    """Make every mistake in a file, one at a time, and read it.

    Args:
        read: reads the file.
        path: the file; is written again and again.
        content: what a file says that is right.
        write: content → text.
        named_by_the_author: keys that are names of the author's choice (``env.*``), in which no
            reader can see a misspelling.
        left_to_others: keys that the reader passes over, and all that is below them.

    Returns:
        How many mistakes were made.

    Raises:
        AssertionError: lists each that was accepted, or answered with anything else.
    """
    path.write_text(write(content), encoding="utf-8")
    read()
    made, wrong = 0, []
    for mistake in mistakes_in(content):
        if _any(mistake.key, left_to_others):
            continue
        if mistake.kind != "of another kind" and _any(mistake.key, named_by_the_author, exact=True):
            continue
        made += 1
        path.write_text(write(mistake.content), encoding="utf-8")
        if answer := _unfit(_answer(read), mistake, path=path):
            wrong.append(f"{mistake.key} {mistake.kind}: {answer}")
    if wrong:
        listed = "\n".join(wrong)
        raise AssertionError(f"expected {made} clear errors, found {len(wrong)} others:\n{listed}")
    return made


def _answer(read: Callable[[], object]) -> BaseException | None:
    try:
        read()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is reported
        return error
    return None


def _unfit(error: BaseException | None, mistake: Mistake, *, path: Path) -> str:
    if error is None:
        return "" if mistake.kind == "missing" else "accepted"
    if not isinstance(error, BadInput):
        return f"{type(error).__name__}: {error}"
    text = f"{error.key} {error.expected} {error.next_step}"
    if error.where != str(path):
        return f"names {error.where} instead of the file: {error}"
    if not any(name in text for name in mistake.names):
        return f"does not name the key: {error}"
    return ""


def mistakes_in(content: Mapping[str, Any]) -> Iterator[Mistake]:
    """Every mistake in a file that is right."""
    for steps in _keys(content):
        key = ".".join(step for step in steps if isinstance(step, str))
        last = str(steps[-1])
        for kind, names, change in (
            ("misspelt", (last, _misspelt(last)), _misspell),
            # A table that has nothing left is named itself.
            ("missing", (last, str(steps[-2:][0])), _drop),
            ("of another kind", (last,), _turn),
        ):
            wrong = copy.deepcopy(content)
            table = _reached(wrong, steps[:-1])
            change(table, last)
            yield Mistake(kind=kind, key=key, names=names, content=wrong)


def _keys(value: Any, steps: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield (*steps, key)
            yield from _keys(inner, (*steps, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value[:_ROWS]):
            yield from _keys(inner, (*steps, number))


def _reached(content: Any, steps: Sequence[str | int]) -> Any:
    for step in steps:
        content = content[step]
    return content


def _misspelt(key: str) -> str:
    middle = len(key) // 2
    return key[:middle] + ("x" if key[middle : middle + 1] != "x" else "y") + key[middle + 1 :]


def _misspell(table: dict[str, Any], key: str) -> None:
    items = [(_misspelt(key) if each == key else each, value) for each, value in table.items()]
    table.clear()
    table.update(items)


def _drop(table: dict[str, Any], key: str) -> None:
    del table[key]


def _turn(table: dict[str, Any], key: str) -> None:
    """A table where a value was, and a word where a table, a list or a flag was."""
    plain = isinstance(table[key], str | int | float) and not isinstance(table[key], bool)
    table[key] = {"wrong": 1} if plain else "wrong"


def to_toml(content: Mapping[str, Any]) -> str:
    """Plain values as TOML, on one line for each key at the top."""
    return "".join(f"{_inline(key)} = {_inline(value)}\n" for key, value in content.items())


def _inline(value: Any) -> str:
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_inline(key)} = {_inline(item)}" for key, item in value.items())
        return "{ " + inner + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _any(key: str, patterns: Sequence[str], *, exact: bool = False) -> bool:
    """Whether a key is one of these; or, unless ``exact``, lies below one."""
    return any(
        fnmatchcase(key, pattern) and key.count(".") == pattern.count(".")
        if exact
        else fnmatchcase(key, pattern) or fnmatchcase(key, f"{pattern}.*")
        for pattern in patterns
    )
