"""``docs/subject.md`` says what is declared, of every key and every capability."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from harness_core.assurance.requirements._problem import Problem
from harness_core.assurance.subject_page import PAGE, page_of, undocumented


def check_page(root: Path) -> Iterator[Problem]:
    """Keys without a meaning, and a page that is not the one that would be written.

    Args:
        root: of the tree; one without such a page has no findings.
    """
    wanted = page_of(root)
    if wanted is None:
        return
    for key in undocumented(root):
        file = Path(inspect.getsourcefile(key.owner) or "").resolve()
        yield Problem(
            path=file.relative_to(root).as_posix() if file.is_relative_to(root) else file.name,
            line=inspect.getsourcelines(key.owner)[1],
            rule="undocumented-key",
            advice=f"say under Attributes: of {key.owner.__name__} what `{key.name}` means",
        )
    found = (root / PAGE).read_text(encoding="utf-8")
    pairs = zip_longest(found.splitlines(), wanted.splitlines())
    for line, (there, due) in enumerate(pairs, start=1):
        if there != due:
            advice = "it is not what is declared: run `harness subject docs`"
            yield Problem(path=PAGE.as_posix(), line=line, rule="stale-page", advice=advice)
            return
