"""Mutants of one's own: a TOML file of places in the product, and what stands there instead."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Final

from harness_core.assurance.mutation._index import Mutant
from harness_core.assurance.mutation._product import Product
from harness_core.base.errors import BadInput
from harness_core.base.reading import Table, Text, read_toml

#: What reports call the operator of these.
OPERATOR: Final = "written"

_ID_DIGITS: Final = 10


class _Row(Table, frozen=True):
    """One ``[[mutant]]``.

    Attributes:
        what: what is wrong then, in a sentence; the file has no two alike.
        file: as reports call it: relative to the tree.
        old: stands in it once.
        new: takes its place.
    """

    what: Text
    file: Text
    old: Text
    new: str


class WrittenFile(Table, frozen=True):
    """The file, as it is written.

    Attributes:
        mutant: one change each.
    """

    mutant: tuple[_Row, ...]


def load_written(path: Path, product: Product) -> tuple[Mutant, ...]:
    """The mutants of a file, as those that operators make.

    Raises:
        BadInput: it is malformed, or does not fit the product's code.
    """
    known: dict[str, Mutant] = {}
    for number, row in enumerate(read_toml(path, WrittenFile).mutant, start=1):
        mutant = _mutant(row, product, where=path, key=f"mutant {number}")
        if mutant.id in known:
            raise BadInput(
                path, key=f"mutant {number}.what", found=row.what, expected="a sentence used once"
            )
        known[mutant.id] = mutant
    return tuple(known.values())


_DEFINITIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _mutant(row: _Row, product: Product, *, where: Path, key: str) -> Mutant:
    if row.file not in product.files:
        some = ", ".join(sorted(product.files)[:5])
        raise BadInput(
            where, key=f"{key}.file", found=row.file, expected=f"a file of the product: {some} …"
        )
    source = product.files[row.file].read_bytes()
    places = source.count(row.old.encode())
    if places != 1:
        raise BadInput(
            where,
            key=f"{key}.old",
            found=f"{places} places in {row.file}",
            expected="a text that stands there once",
        )
    if row.new == row.old:
        raise BadInput(where, key=f"{key}.new", found="the text of old", expected="another text")
    start = source.index(row.old.encode())
    changed = _changed_lines(row, line=source.count(b"\n", 0, start) + 1)
    first, last = _whole_statements(source, *changed)
    function = _function_at(source, first, last)
    return Mutant(
        id=_hash(OPERATOR, row.file, row.what)[:_ID_DIGITS],
        file=row.file,
        function=function or "<module>",
        operator=OPERATOR,
        what=row.what,
        line=changed[0],
        first=first,
        last=last,
        at_import=not function,
        start=start,
        end=start + len(row.old.encode()),
        text=row.new,
        diff_hash=_hash(row.old, row.new)[:12],
        sha256=hashlib.sha256(source).hexdigest(),
    )


def _changed_lines(row: _Row, *, line: int) -> tuple[int, int]:
    """Of ``old``, which begins on ``line``: what differs, or both neighbours of what is put between."""
    old, new = row.old.splitlines(), row.new.splitlines()
    same_before = _alike(old, new)
    same_after = min(_alike(old[::-1], new[::-1]), min(len(old), len(new)) - same_before)
    first, last = line + same_before, line + len(old) - same_after - 1
    return (first, last) if first <= last else (max(line, last), first)


def _alike(one: list[str], other: list[str]) -> int:
    """How many lines are the same from the start."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _whole_statements(source: bytes, first: int, last: int) -> tuple[int, int]:
    """The lines with those of the statements around them: a text of many lines is run as its statement is.

    Of lines that are no statement, as ``finally:``, with the statement below them.
    """
    spans = sorted(_spans(source))
    met = [span for span in spans if span[0] <= last and first <= span[1]]
    met = met or [span for span in spans if span[0] > last][:1]
    return min([first, *(span[0] for span in met)]), max([last, *(span[1] for span in met)])


def _spans(source: bytes) -> Iterator[tuple[int, int]]:
    """The first and last line of each statement, of one with a body without it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt) and not isinstance(node, _DEFINITIONS):
            below = getattr(node, "body", None)
            yield node.lineno, below[0].lineno - 1 if below else node.end_lineno or node.lineno


def _function_at(source: bytes, first: int, last: int) -> str:
    """The qualified name of the innermost function whose body holds one of the lines; else empty."""
    found = ""
    for name, begin, end in _functions(ast.parse(source), ()):
        if begin <= last and first <= end:
            found = name  # an inner one comes after those around it
    return found


def _functions(node: ast.AST, outer: tuple[str, ...]) -> Iterator[tuple[str, int, int]]:
    for child in ast.iter_child_nodes(node):
        names = outer
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names = (*outer, child.name)
            if not isinstance(child, ast.ClassDef):
                yield ".".join(names), child.body[0].lineno, child.end_lineno or child.lineno
        yield from _functions(child, names)


def _hash(*words: str) -> str:
    return hashlib.sha256(json.dumps(words).encode()).hexdigest()
