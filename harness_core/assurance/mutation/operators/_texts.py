"""Keys, environment variables, parts of texts, SQL."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import libcst as cst

from harness_core.assurance.mutation.operators._change import (
    Change,
    Site,
    keyword_of,
    name_of,
    names_of,
    operator,
)

#: Methods whose first argument is a key.
_LOOKUPS: Final = frozenset({"get", "pop", "setdefault"})

#: Arguments that people read, not programs.
_PROSE: Final = frozenset({"help", "description", "summary", "epilog", "metavar"})

_SQL: Final = re.compile(r"\s*(SELECT|INSERT INTO|UPDATE|DELETE FROM|WITH|MERGE)\s", re.IGNORECASE)

#: Where a clause ends: at the next one, at a closing parenthesis, or at the end.
_NEXT: Final = (
    r"(?=\bORDER\s+BY\b|\bGROUP\s+BY\b|\bLIMIT\b|\bOFFSET\b|\bON\s+CONFLICT\b|\bRETURNING\b"
    r"|\bFOR\s+(?:UPDATE|SHARE)\b|\bUNION\b|;|\Z)"
)

#: What is looked for in SQL, what takes its place, and what is wrong then. A placeholder stays.
_CLAUSES: Final = tuple(
    (re.compile(pattern, re.IGNORECASE | re.DOTALL), text, what)
    for pattern, text, what in (
        (rf"\bWHERE\s+([^()]*?)(\s*){_NEXT}", r"WHERE (\1 OR TRUE)\2", "WHERE has no effect"),
        (rf"\bORDER\s+BY\s+[^()]*?(\s*){_NEXT}", r"\1", "ORDER BY left out"),
        (r"\bDESC\b", "ASC", "ascending instead of descending"),
        (
            rf"(\bORDER\s+BY\s+(?:(?!\b(?:DESC|ASC)\b)[^(),])*?)(\s*){_NEXT}",
            r"\1 DESC\2",
            "descending instead of ascending",
        ),
        (r"\bLIMIT\s+(\d+)", r"LIMIT \1 + 1", "LIMIT is one more"),
        (r"\bLIMIT\s+\d+", "", "LIMIT left out"),
        (r"\bFOR\s+UPDATE(\s+SKIP\s+LOCKED|\s+NOWAIT)?", "", "rows are not locked"),
        (r"\bSKIP\s+LOCKED\b", "", "it waits for locked rows"),
        (r"\bON\s+CONFLICT\b[^;]*?DO\s+NOTHING", "", "ON CONFLICT left out"),
        (
            rf"(\bON\s+CONFLICT\b[^;]*?)DO\s+UPDATE\s+SET\s+[^?%$;:]*?(\s*){_NEXT}",
            r"\1DO NOTHING\2",
            "a row that is there is not brought up to date",
        ),
        (r"\bDISTINCT\b", "", "DISTINCT left out"),
        (r"\bLEFT\s+JOIN\b", "JOIN", "rows without a partner are lost"),
        (r"\bcount\(\*\)", "count(*) + 1", "the count is one more"),
    )
)


@operator("environment-lost", cst.SimpleString)
def variables(node: cst.SimpleString, site: Site) -> Iterator[Change]:
    """A variable of another name is read, or set."""
    if _is_variable(site) and (inside := _inside(node, site)) is not None:
        start, end = inside
        if start < end:
            yield Change(end, end, "_LOST", f"the variable {node.evaluated_value!s} is lost")


@operator("key-misspelt", cst.SimpleString)
def keys(node: cst.SimpleString, site: Site) -> Iterator[Change]:
    """A key of another name."""
    inside = _inside(node, site)
    if inside is not None and inside[0] < inside[1] and _is_key(node, site):
        yield Change(inside[1], inside[1], "_x", f"the key {node.evaluated_value!s} is misspelt")


@operator("text-emptied", cst.SimpleString)
def texts(node: cst.SimpleString, site: Site) -> Iterator[Change]:
    """Nothing instead of a text; errors are for people, and other operators have their own texts."""
    inside = _inside(node, site)
    if inside is None or inside[0] == inside[1]:
        return
    special = _is_variable(site) or _is_key(node, site) or _is_sql(node, site)
    if not special and not _is_prose(site):
        yield Change(*inside, "", f"{_short(site.text(node))} is empty")


@operator("part-left-out", cst.FormattedStringExpression)
def parts(node: cst.FormattedStringExpression, site: Site) -> Iterator[Change]:
    """A value is missing in a text."""
    if not _is_prose(site):
        yield site.replaced(node, "", f"{_short(site.text(node))} left out of the text")


@operator("sql", cst.SimpleString, cst.FormattedStringText)
def sql(node: cst.SimpleString | cst.FormattedStringText, site: Site) -> Iterator[Change]:
    """A clause of a statement is left out or changed."""
    if not _is_sql(node, site):
        return
    inside = _inside(node, site)
    if inside is None:
        return
    start, end = inside
    text = site.between(start, end)
    for pattern, new, what in _CLAUSES:
        for match in pattern.finditer(text):
            replaced = match.expand(new)
            if replaced != match[0]:
                at = start + len(text[: match.start()].encode())
                yield Change(at, at + len(match[0].encode()), replaced, f"SQL: {what}")


def _inside(node: cst.BaseExpression | cst.CSTNode, site: Site) -> tuple[int, int] | None:
    """The text of a literal without its quotes; ``None`` for bytes and raw regular expressions."""
    start, end = site.start(node), site.end(node)
    if isinstance(node, cst.FormattedStringText):
        return start, end
    if not isinstance(node, cst.SimpleString) or "b" in node.prefix.lower():
        return None
    quote = len(node.quote)
    return start + len(node.prefix) + quote, end - quote


def _is_sql(node: cst.CSTNode, site: Site) -> bool:
    """Whether the literal that it is part of begins as a statement."""
    whole = node
    for parent in site.parents:
        if not isinstance(parent, cst.ConcatenatedString | cst.FormattedString):
            break
        whole = parent
    text = site.text(whole).lstrip("rRfFuU").lstrip("\"'")
    return _SQL.match(text) is not None


def _is_variable(site: Site) -> bool:
    """Whether it names a variable of the environment."""
    if isinstance(site.parent, cst.Index):
        return _is_environ(
            next(each for each in site.parents if isinstance(each, cst.Subscript)).value
        )
    if isinstance(site.parent, cst.Arg) and isinstance(site.parents[1], cst.Call):
        call = site.parents[1]
        first = bool(call.args) and call.args[0] is site.parent
        of_environ = isinstance(call.func, cst.Attribute) and _is_environ(call.func.value)
        return first and (name_of(call) == "getenv" or of_environ)
    return False


def _is_environ(node: cst.CSTNode) -> bool:
    names = names_of(node)
    return bool(names) and names[0] in {"environ", "env", "environment"}


def _is_key(node: cst.SimpleString, site: Site) -> bool:
    """Whether it is a key: in brackets, of a look-up, or of a dict that is written out."""
    parent = site.parent
    if isinstance(parent, cst.Index):
        return not _is_variable(site)
    if isinstance(parent, cst.DictElement):
        return parent.key is node
    if isinstance(parent, cst.Arg) and isinstance(site.parents[1], cst.Call):
        call = site.parents[1]
        looks_up = isinstance(call.func, cst.Attribute) and name_of(call) in _LOOKUPS
        return looks_up and call.args[0] is parent and not _is_variable(site)
    return False


def _is_prose(site: Site) -> bool:
    """Whether people alone read it: the text of an error, the help of a command."""
    for node in site.parents:
        if isinstance(node, cst.Raise):
            return True
        if isinstance(node, cst.Arg) and keyword_of(node) in _PROSE:
            return True
        if isinstance(node, cst.BaseStatement):
            return False
    return False


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:60]}…"  # noqa: PLR2004 - what a table shows
