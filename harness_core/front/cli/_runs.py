"""``harness survey``: several products beside each other."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import trio

from harness_core.base.errors import BadInput
from harness_core.base.screen import progress, show
from harness_core.front.cli._tree import provide_reference, root_option
from harness_core.system.suites import Suite, SuiteSession, load_suites

if TYPE_CHECKING:
    from harness_core.front.runs import Ended


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("suite")
@click.option(
    "--subject",
    "subjects",
    multiple=True,
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Subject file of a product; repeatable.",
)
@click.option(
    "--session",
    "sessions",
    multiple=True,
    help="Whose tests; repeatable (default: those bare nox runs).",
)
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
@root_option
def survey(
    *,
    suite: str,
    subjects: Sequence[Path],
    sessions: Sequence[str],
    as_json: bool,
    words: Sequence[str],
    root: Path,
) -> None:
    """Run SUITE on several products, one after the other; print contract x product.

    WORDS go to pytest. Reports and evidence of each product lie in .evidence/survey/SUITE. Says what
    was found and judges nothing: the status is 0.
    """
    from harness_core.front.runs import products_of, render_matrix
    from harness_core.front.runs import survey as surveying

    chosen = _suite(load_suites(root), suite)
    products = products_of(chosen, subjects, root=root)
    if chosen.subject is not None and chosen.subject.resolve() in {p.subject for p in products}:
        provide_reference(chosen, root=root)
    with progress(f"survey of {suite}") as (say, _):
        surveyed = trio.run(
            partial(
                surveying,
                chosen,
                products,
                root=root,
                sessions=_sessions(chosen, sessions),
                words=words,
                say=partial(click.echo, err=True) if as_json else say,
            )
        )
    if as_json:
        click.echo(json.dumps([_plain(product) for product in surveyed], indent=2, default=str))
        return
    show(render_matrix(surveyed))


def _suite(suites: Sequence[Suite], name: str) -> Suite:
    """The suite of a name; it must have a subject and contracts."""
    found = {
        each.name: each for each in suites if each.ledger is not None and each.reads_subject_files
    }
    if name not in found:
        known = ", ".join(found) or "none in this tree"
        expected = f"a suite with a ledger and subject files: {known}"
        raise BadInput("harness survey", key="SUITE", found=name, expected=expected)
    return found[name]


def _sessions(suite: Suite, names: Sequence[str]) -> list[SuiteSession]:
    """Those named, else those that bare nox runs on the product."""
    ours = {each.name: each for each in suite.sessions if not each.own_tests}
    for name in names:
        if name not in ours:
            known = ", ".join(ours)
            raise BadInput("harness survey", key="--session", found=name, expected=known)
    return [each for each in ours.values() if each.name in names or (not names and each.default)]


def _plain(found: Ended | Any) -> dict[str, Any]:
    return dataclasses.asdict(found)
