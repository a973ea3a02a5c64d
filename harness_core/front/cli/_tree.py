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

root_option = click.option(
    "--root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The tree that holds suites/; found from the current folder when left out.",
)


def root_if_any() -> Path | None:
    """The tree of the current folder; ``None`` outside of every tree."""
    try:
        return find_root(Path.cwd())
    except Unavailable:
        return None


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
