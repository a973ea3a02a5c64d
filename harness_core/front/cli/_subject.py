"""``harness subject``: what a subject file may say, and what a product can do."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click
import trio

from harness_core.base.errors import BadInput
from harness_core.base.screen import show
from harness_core.front.cli._tree import FOUND, provide_reference, root_option
from harness_core.system.suites import load_suites


@click.group()
def subject() -> None:
    """Subject files: what is tested, and what it can do."""


@subject.command()
@click.argument("suite")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("options", nargs=-1, type=click.UNPROCESSED, metavar="[-- PYTEST OPTIONS]")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@root_option
def check(*, suite: str, file: Path, options: Sequence[str], as_json: bool, root: Path) -> None:
    """Try on the product of FILE each capability that SUITE declares.

    Boots it by the suite's own tests and says which hold, which are claimed in vain, which could be
    claimed, and which could not be tried, and why. Ends with status 1 when the product does not start
    or something is claimed in vain.
    """
    from harness_core.assurance.trial import render_trial, to_json, try_capabilities
    from harness_core.system.staging import check_libraries, subject_of

    found = {each.name: each for each in load_suites(root) if each.reads_subject_files}
    if suite not in found:
        expected = f"a suite with subject files: {', '.join(found) or 'none in this tree'}"
        raise BadInput("harness subject check", key="SUITE", found=suite, expected=expected)
    chosen = found[suite]
    check_libraries(chosen, root=root, action=f"test by {suite}", seen=None)
    given = subject_of(chosen, file, root=root)
    if chosen.subject is not None and file.resolve() == chosen.subject.resolve():
        provide_reference(chosen, root=root)
    say = partial(click.echo, err=True)
    trial = trio.run(partial(try_capabilities, chosen, given, root=root, options=options, say=say))
    if as_json:
        click.echo(json.dumps(to_json(trial), indent=2))
    else:
        show(render_trial(trial))
        click.echo(f"  logs: {os.path.relpath(trial.evidence)}")
    if trial.in_vain:
        sys.exit(FOUND)
