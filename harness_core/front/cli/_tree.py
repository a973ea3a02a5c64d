"""The tree that a command works on, its statuses, and the commands of a reference system."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Final

import click
import trio

from harness_core.base.errors import Unavailable
from harness_core.system.suites import Suite, find_root

#: Exit status of a command that found something.
FOUND: Final = 1

#: Before a command sets it itself, for one suite after the other.
_SUBJECT_BIN_GIVEN: Final = bool(os.environ.get("HARNESS_SUBJECT_BIN"))


def _root(_context: click.Context, _option: click.Parameter, given: Path | None) -> Path:
    return (given or find_root(Path.cwd())).resolve()


def _root_if_any(
    context: click.Context, option: click.Parameter, given: Path | None
) -> Path | None:
    try:
        return _root(context, option, given)
    except Unavailable:
        return None


_option = partial(
    click.option,
    "--root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The tree that holds suites/; found from the current folder when left out.",
)

#: Gives a command the argument ``root``; outside of every tree it ends with one error.
root_option = _option(callback=_root)

#: The same, ``None`` outside of every tree.
root_option_if_any = _option(callback=_root_if_any)


def provide_reference(suite: Suite, *, root: Path) -> None:
    """See to it that ``{bin}`` in the suite's own subject file is where its commands are.

    Whoever has set the variable, as nox does, has seen to it.
    """
    from harness_core.system.staging import reference_commands

    if _SUBJECT_BIN_GIVEN:
        return
    found = trio.run(partial(reference_commands, suite, root=root, say=click.echo))
    if found is not None:
        os.environ["HARNESS_SUBJECT_BIN"] = str(found)
