"""The pages of a tree: which have blocks, how each must read, and what is wrong with those there."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Final

from harness_core.assurance.requirements import Problem
from harness_core.front.pages._files import FILES
from harness_core.front.pages._keys import Key
from harness_core.front.pages._markdown import key_table
from harness_core.front.pages._page import Blocks, blocks_in, page_text
from harness_core.front.pages._subject import subject_keys, subject_text

__all__ = ["check_pages", "known_keys", "pages_of"]

_SUBJECT: Final = "subject files"
#: No blocks besides those of this package.
_NONE: Final[Blocks] = {}
_DOTTED: Final = str.maketrans("", "", "[]")


def pages_of(root: Path, more: Blocks = _NONE) -> dict[Path, str]:
    """Each page of a tree that has blocks, as it must be.

    Args:
        root: of the tree; pages are the ``*.md`` below its ``docs``.
        more: blocks besides, of what the caller alone knows: the command line.

    Raises:
        BadInput: a mark is malformed, or the types of a suite cannot be imported.
    """
    return {path: page_text(path, {**_blocks(root), **more}) for path in _pages(root)}


def check_pages(root: Path, more: Blocks = _NONE) -> tuple[Problem, ...]:
    """Pages that are not what would be written, and keys on them without a meaning."""
    wanted = pages_of(root, more).items()
    problems = [problem for path, text in wanted for problem in _stale(path, text, root=root)]
    named = {name for path in _pages(root) for name in blocks_in(path.read_text(encoding="utf-8"))}
    keys = [key for name in named if name in FILES for key in FILES[name]()]
    keys += subject_keys(root) if _SUBJECT in named else []
    problems += [_undocumented(key, root) for key in keys if not key.meaning]
    return tuple(sorted(problems))


def known_keys(name: str, root: Path) -> frozenset[str]:
    """The keys of a file with dots and without brackets: ``session.name``, ``cli.say``.

    Args:
        name: what pages call the file; a key of ``[knobs.NAME]`` stands for every name.
        root: of the tree, for subject files.
    """
    keys = subject_keys(root) if name == _SUBJECT else FILES[name]()
    return frozenset(key.name.translate(_DOTTED).replace(" ", ".") for key in keys)


def _pages(root: Path) -> list[Path]:
    """Those with blocks; few trees have any."""
    pages = sorted(root.glob("docs/**/*.md"))
    return [path for path in pages if blocks_in(path.read_text(encoding="utf-8"))]


def _blocks(root: Path) -> Blocks:
    """All that there are; each is made when a page has it."""
    return {
        _SUBJECT: lambda: subject_text(root),
        **{name: partial(_file_text, name) for name in FILES},
        "fixtures": lambda: _plugin("fixtures"),
        "marks": lambda: _plugin("marks"),
        "options of pytest": lambda: _plugin("options"),
    }


def _file_text(name: str) -> str:
    return key_table(FILES[name]())


def _plugin(what: str) -> str:
    from harness_core.front.pages import _plugin

    return {
        "fixtures": _plugin.fixtures_text,
        "marks": _plugin.marks_text,
        "options": _plugin.options_text,
    }[what]()


def _stale(path: Path, wanted: str, *, root: Path) -> Iterator[Problem]:
    """The first line that is not as it must be."""
    pairs = zip_longest(path.read_text(encoding="utf-8").splitlines(), wanted.splitlines())
    for line, (there, due) in enumerate(pairs, start=1):
        if there != due:
            yield Problem(
                path=path.relative_to(root).as_posix(),
                line=line,
                rule="stale-page",
                advice="it is not what is declared: run `harness docs`",
            )
            return


def _undocumented(key: Key, root: Path) -> Problem:
    file = Path(inspect.getsourcefile(key.owner) or "").resolve()
    return Problem(
        path=file.relative_to(root).as_posix() if file.is_relative_to(root) else file.name,
        line=inspect.getsourcelines(key.owner)[1],
        rule="undocumented-key",
        advice=f"say under Attributes: of {key.owner.__name__} what `{key.name}` means",
    )
