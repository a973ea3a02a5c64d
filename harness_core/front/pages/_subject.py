"""Subject files: the keys that every suite of a tree reads, and the capabilities that it declares.

Keys are fields of types (:class:`harness_core.system.subject.Tables`, a suite's ``tables``); capabilities
stand in suite.toml.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from harness_core.front.pages._keys import Key, keys_of
from harness_core.front.pages._markdown import key_table, markdown, table
from harness_core.system.staging import tables_of
from harness_core.system.subject import SubjectTable
from harness_core.system.suites import Suite, load_suites

__all__ = ["subject_keys", "subject_text"]

#: The one table of every file that is no type.
_ENVIRONMENT: Final = Key(
    name="[env]",
    kind="table of texts",
    default="",
    meaning="its environment; `{fields}` may stand in names and values",
    owner=SubjectTable,
)


def subject_text(root: Path) -> str:
    """All of them, of every suite of a tree.

    Raises:
        BadInput: the types of a suite cannot be imported.
    """
    keys = (*keys_of(SubjectTable, at="subject"), _ENVIRONMENT)
    parts = ["## Keys of every subject file", key_table(keys).rstrip()]
    for suite in load_suites(root):
        parts += _suite_part(suite, root=root)
    return "\n".join(parts) + "\n"


def subject_keys(root: Path) -> Iterator[Key]:
    """The keys, without capabilities."""
    yield from (*keys_of(SubjectTable, at="subject"), _ENVIRONMENT)
    for suite in load_suites(root):
        if (kind := tables_of(suite, root=root)) is not None:
            yield from keys_of(kind, outside=("subject", "env"))


def _suite_part(suite: Suite, *, root: Path) -> Iterator[str]:
    kind = tables_of(suite, root=root)
    if suite.subject is None and kind is None:
        return
    yield f"\n## {suite.name}: {suite.summary}"
    if kind is not None:
        yield from _body(kind)
        yield key_table(keys_of(kind, outside=("subject", "env"))).rstrip()
        for title, heads, rows in kind.of_the_contract():
            yield f"\n### {title}"
            yield table(heads, rows).rstrip()
    if suite.capabilities:
        yield f"\n### Capabilities of {suite.name}"
        claims = [
            (f"`{each.name}`", each.demands, ", ".join(f"`{key}`" for key in each.needs))
            for each in suite.capabilities
        ]
        yield table(("capability", "what it demands", "needs"), claims).rstrip()


def _body(kind: type) -> Iterator[str]:
    """What the docstring of a type says between its first line and its attributes."""
    _, _, rest = inspect.cleandoc(kind.__doc__ or "").partition("\n\n")
    body, _, _ = rest.partition("Attributes:\n")
    if body.strip():
        yield f"{markdown(body.strip())}\n"
