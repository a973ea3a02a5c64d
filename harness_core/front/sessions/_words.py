"""Words of command lines: what follows ``--``, and what pytest is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from nox import Session

from harness_core.front.sessions._tree import REPORTS, Tree

__all__ = ["option", "pytest", "pytest_words", "subject_given"]

#: Folders of a tree that hold tests.
_TESTS: Final = frozenset({"suites", "harness_core"})

#: With these pytest needs the terminal, or lists what it collects, and workers have no part in either.
_WITHOUT_WORKERS: Final = frozenset({"--pdb", "--trace", "--co", "--collect-only"})


def pytest(session: Session, words: list[str], *, env: Mapping[str, str] | None = None) -> None:
    """Run pytest in the environment of a session.

    Args:
        session: whose.
        words: its arguments.
        env: variables besides those of the caller.
    """
    if _WITHOUT_WORKERS.intersection(words):
        words = [*words, "-n0"]
    session.run("pytest", *words, env={"HARNESS_SESSION": session.name, **(env or {})})


def pytest_words(
    tree: Tree,
    session: Session,
    *,
    paths: Sequence[str],
    markers: str = "",
    options: Sequence[str] = (),
    args: Sequence[str] | None = None,
) -> list[str]:
    """Arguments of pytest for the paths, or those named after ``--``, and a machine-readable report.

    Args:
        tree: of the session.
        session: gives the report its name.
        paths: what is run when no argument names tests.
        markers: an expression; every ``-m`` of the arguments narrows it.
        options: more arguments.
        args: of the caller; those after ``--`` when left out.
    """
    args = list(session.posargs if args is None else args)
    if any(map(_is_test_path, args)):
        paths = []
    # The last -m would win over an earlier one: join both instead.
    while "-m" in args[:-1]:
        at = args.index("-m")
        markers = f"({markers}) and ({args[at + 1]})" if markers else args[at + 1]
        del args[at : at + 2]
    report = f"--junitxml={tree.root / REPORTS / session.name}.xml"
    select = ["-m", markers] if markers else []
    return [*paths, *select, report, *options, *args]


def option(args: Sequence[str], name: str) -> str | None:
    """The value of ``--name VALUE`` or ``--name=VALUE``, the last one, or None."""
    found = None
    for arg, following in zip(args, [*args, None][1:], strict=True):
        if arg == name:
            found = following
        elif arg.startswith(f"{name}="):
            found = arg.partition("=")[2]
    return found


def subject_given(session: Session, options: Sequence[str] = ()) -> bool:
    """Whether this run tests something other than the reference system."""
    return any(arg.split("=")[0] == "--subject" for arg in [*options, *session.posargs])


def _is_test_path(arg: str) -> bool:
    """Whether an argument names tests: a folder or file of this tree, with or without ::test."""
    path = Path(arg.partition("::")[0])
    return any(path.parts[:1] == (folder,) for folder in _TESTS) and (
        path.is_dir() or path.suffix == ".py"
    )
