"""``harness faults``: which faults of which suites, planted one after the other."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click
import trio

from harness_core.base.errors import BadInput
from harness_core.base.screen import progress, show
from harness_core.front.cli._tree import FOUND, provide_reference, root_option
from harness_core.system.suites import Suite, load_suites


@click.command()
@click.argument("names", nargs=-1)
@click.option("--fault", "ids", multiple=True, metavar="ID", help="Plant this fault; repeatable.")
@click.option("--list", "listed", is_flag=True, help="Plant nothing, print the chosen faults.")
@click.option(
    "--subject",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Plant those of another product, which stand in the faults.toml beside its subject file.",
)
@click.option(
    "--file", "files", multiple=True, metavar="NAME", help="Faults of NAME.toml alone; repeatable."
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="How many faults at once; each has a run of its own.",
)
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    metavar="N",
    help="Plant N faults of each suite, spread over its files, that the seed chooses.",
)
@click.option("--seed", metavar="WORD", help="Chooses the sample (default: the git commit).")
@click.option("--shard", metavar="I/N", help="Plant the I-th of N parts of each suite's faults.")
@click.option(
    "--durations-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Durations (JSON) that shards are balanced by; brought up to date, by a shard beside it.",
)
@root_option
def faults(  # noqa: PLR0913 - the options of a command line
    *,
    names: Sequence[str],
    ids: Sequence[str],
    listed: bool,
    subject: Path | None,
    files: Sequence[str],
    jobs: int,
    sample: int | None,
    seed: str | None,
    shard: str | None,
    durations_file: Path | None,
    root: Path,
) -> None:
    """Plant faults: each must turn its named tests red, by assertion, for the right reason.

    NAMES are suites (all that have a faults.toml when none is given) and ids of faults. Ends with
    status 1 unless every fault was killed.
    """
    from harness_core.assurance.planted import (
        Choice,
        Verdict,
        choose_faults,
        commit_of,
        evidence_of,
        load_product,
        render_table,
        run_faults,
        to_json,
    )
    from harness_core.assurance.shards import (
        Durations,
        Shard,
        part_of,
        read_durations,
        update_durations,
    )
    from harness_core.base.evidence import open_evidence
    from harness_core.system.staging import check_libraries

    chosen, wanted = _suites_and_faults(load_suites(root), names, one=subject is not None)
    if sample is not None:
        seed = seed or commit_of(root)
    elif seed:
        raise BadInput("harness faults", key="--seed", found=seed, expected="--sample N with it")
    part = Shard.parse(shard) if shard is not None else None
    durations = read_durations(durations_file) if durations_file is not None else Durations()
    choice = Choice(
        subject=subject,
        only=[*wanted, *ids],
        files=files,
        sample=sample,
        seed=seed or "",
        shard=part,
        seconds=durations.seconds,
    )
    missed = 0
    for suite in chosen:
        product = load_product(suite, subject)
        if listed:
            for fault in choose_faults(product, choice):
                click.echo(f"{product.name} {fault.id}: {fault.why}")
            continue
        if subject is None:
            action = f"plant the faults of {suite.name}"
            check_libraries(suite, root=root, action=action, seen=None)
            provide_reference(suite, root=root)
        with progress(f"faults of {product.name}") as (say, count):
            planting = partial(
                run_faults, suite, root=root, choice=choice, jobs=jobs, say=say, count=count
            )
            results = trio.run(planting)
        folder = evidence_of(product, root=root)
        report = open_evidence(folder).write_json("report.json", to_json(results))
        show(render_table(results, title=f"planted faults of {product.name}"))
        click.echo(f"  report: {os.path.relpath(report)}, logs beside it")
        if durations_file is not None:
            taken = {f"{product.name}/{row.fault.id}": row.duration_s for row in results}
            measured = {name: seconds for name, seconds in taken.items() if seconds > 0}
            update_durations(part_of(durations_file, part), measured, workers=jobs)
        left = [result.fault.id for result in results if result.verdict is not Verdict.KILLED]
        if left:
            click.echo(f"  rerun: {Choice(subject=subject, only=left).rerun(suite.name)}")
        missed += len(left)
    if missed:
        sys.exit(FOUND)


def _suites_and_faults(
    suites: Sequence[Suite], names: Sequence[str], *, one: bool
) -> tuple[list[Suite], list[str]]:
    """Which words of the command line are suites; the rest are fault ids."""
    planted = [suite for suite in suites if suite.faults is not None]
    chosen = [suite for suite in planted if suite.name in names]
    rest = [name for name in names if name not in {suite.name for suite in chosen}]
    known = ", ".join(suite.name for suite in planted)
    if not planted:
        raise BadInput("suites", found="no faults.toml", expected="a suite with planted faults")
    if rest and not chosen:
        raise BadInput("harness faults", key="SUITE", found=rest[0], expected=f"one of {known}")
    chosen = chosen or planted
    if one and len(chosen) > 1:
        raise BadInput("harness faults", key="SUITE", found=None, expected="one, with --subject")
    return chosen, rest
