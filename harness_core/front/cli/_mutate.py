"""``harness mutate``: how much of what could go wrong in a product do the tests of a suite notice?"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import trio

from harness_core.base.errors import BadInput
from harness_core.base.screen import progress, show
from harness_core.front.cli._tree import provide_reference, root_option
from harness_core.system.suites import Suite, find_root, load_suites

if TYPE_CHECKING:
    from harness_core.assurance.mutation import Plan, Setting, Store


class _WithDefault(click.Group):
    """``harness mutate SUITE`` is ``harness mutate run SUITE``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the default command before what names none."""
        if args and args[0] not in {*self.commands, "-h", "--help"}:
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_WithDefault)
def mutate() -> None:
    """Change the product in small ways: do the tests of a suite notice? (docs/how-to/mutation.md)."""


_file = click.Path(exists=True, dir_okay=False, path_type=Path)
_folder = click.Path(exists=True, file_okay=False, path_type=Path)
_written = click.Path(dir_okay=False, path_type=Path)

_suite = click.argument("suite")
_subject = click.option("--subject", type=_file, help="Subject file of the product to mutate.")
_source = click.option(
    "--source", "sources", type=_folder, multiple=True, help="Folder of its code; repeatable."
)
_python = click.option(
    "--python", type=_file, help="Its Python (default: beside its command in the subject file)."
)
_here = click.option(
    "--here", is_flag=True, help="The product's processes run in the harness's own environment too."
)
_session = click.option(
    "--session",
    "sessions",
    multiple=True,
    help="Whose tests; repeatable (default: those bare nox runs).",
)


@mutate.command()
@_suite
@_subject
@_source
@_python
@_here
@_session
@click.option("--sample", type=click.IntRange(min=1), metavar="N", help="N mutants by the seed.")
@click.option("--seed", default="0", show_default=True, metavar="WORD", help="Chooses the sample.")
@click.option("--file", "files", multiple=True, metavar="GLOB", help="Files; repeatable.")
@click.option("--only", multiple=True, metavar="ID", help="This mutant; repeatable.")
@click.option("--from", "written", type=_file, help="Mutants of your own instead (TOML).")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="At once.")
@click.option(
    "--budget-s",
    type=click.FloatRange(min=0.0, min_open=True),
    help="Seconds that the tests of one mutant may take without it.",
)
@click.option("--resume", is_flag=True, help="Keep the verdicts of the last campaign.")
@click.option("--shard", metavar="I/N", help="The I-th of N parts.")
@click.option("--scheduler", default="", metavar="URL", help="Run on this Dask cluster.")
@click.option("--json", "json_file", type=_written, help="Write the report as JSON.")
@click.option("--stryker", type=_written, help="Write a report for Stryker's viewers.")
@root_option
def run(  # noqa: PLR0913 - the options of a command line
    *,
    suite: str,
    subject: Path | None,
    sources: Sequence[Path],
    python: Path | None,
    here: bool,
    sessions: Sequence[str],
    sample: int | None,
    seed: str,
    files: Sequence[str],
    only: Sequence[str],
    written: Path | None,
    jobs: int,
    budget_s: float | None,
    resume: bool,
    shard: str | None,
    scheduler: str,
    json_file: Path | None,
    stryker: Path | None,
    root: Path | None,
) -> None:
    """Run the mutants of SUITE's product, each by the tests that execute it.

    The coverage map is measured first when it is missing or stale. Survivors are listed with
    their diffs; the results are kept below .evidence/mutation/SUITE.
    """
    from harness_core.assurance.mutation import BUDGET_S, Choice, Plan, run_campaign
    from harness_core.assurance.shards import Shard

    root = (root or find_root(Path.cwd())).resolve()
    chosen, setting = _setting(suite, root, subject, sources, python, here=here)
    plan = Plan(
        setting=setting,
        choice=Choice(
            only=only,
            files=files,
            sample=sample,
            seed=seed,
            shard=Shard.parse(shard) if shard is not None else None,
        ),
        sessions=sessions,
        budget_s=budget_s or BUDGET_S,
        jobs=jobs,
        scheduler=scheduler,
        resume=resume,
        written=written.absolute() if written is not None else None,
    )
    with progress(f"mutants of {suite}") as (say, count):
        store = trio.run(partial(run_campaign, chosen, plan, say=say, count=count))
    _report(store, plan, json_file=json_file, stryker=stryker)


@mutate.command()
@click.argument("files", nargs=-1, required=True, type=_file)
@click.option("--into", type=_written, help="Default: results.sqlite beside the first.")
@click.option("--json", "json_file", type=_written, help="Write the report as JSON.")
def merge(*, files: Sequence[Path], into: Path | None, json_file: Path | None) -> None:
    """Merge the results of shards, and report on all of them."""
    from harness_core.assurance.mutation import merge_stores

    into = into or files[0].with_name("results.sqlite")
    if into.resolve() in {file.resolve() for file in files}:
        raise BadInput("harness mutate merge", key="--into", found=into, expected="another file")
    _report(merge_stores(files, into), None, json_file=json_file, stryker=None)


@mutate.command()
@_suite
@_subject
@_source
@_python
@_here
@_session
@click.option("--json", "json_file", type=_written, help="Write the report as JSON.")
@root_option
def coverage(  # noqa: PLR0913 - the options of a command line
    *,
    suite: str,
    subject: Path | None,
    sources: Sequence[Path],
    python: Path | None,
    here: bool,
    sessions: Sequence[str],
    json_file: Path | None,
    root: Path | None,
) -> None:
    """Report what SUITE executes of its product, in all its processes, by file and by test."""
    from harness_core.assurance.mutation import coverage_by_file, coverage_json, render_coverage

    root = (root or find_root(Path.cwd())).resolve()
    chosen, setting = _setting(suite, root, subject, sources, python, here=here)
    product = setting.product()
    with progress(f"coverage of {suite}") as (say, _):
        found = trio.run(partial(_measured, chosen, setting, sessions, say))
    rows = coverage_by_file(found, product)
    show(render_coverage(rows, found, title=f"what {suite} executes of its product"))
    if json_file is not None:
        content = coverage_json(rows, found, map_at=found.path)
        _write(json_file, content)
    found.close()


async def _measured(suite: Suite, setting: Setting, sessions: Sequence[str], say: Any) -> Any:
    from contextlib import ExitStack

    from harness_core.assurance.mutation import (
        choose_sessions,
        enter_environment,
        folder_of,
        measured_map,
    )
    from harness_core.assurance.planted import PytestRuns
    from harness_core.base.evidence import open_evidence
    from harness_core.process import open_run

    root = Path(setting.root)
    product = setting.product()
    evidence = open_evidence(folder_of(root, suite.name))
    async with open_run(evidence=evidence) as run:
        with ExitStack() as stack:
            enter_environment(product, setting, stack, run)
            return await measured_map(
                suite,
                setting=setting,
                product=product,
                sessions=choose_sessions(suite, sessions),
                pytest=PytestRuns(run=run, root=root),
                evidence=evidence,
                say=say,
            )


def _setting(
    name: str,
    root: Path,
    subject: Path | None,
    sources: Sequence[Path],
    python: Path | None,
    *,
    here: bool,
) -> tuple[Suite, Setting]:
    from harness_core.assurance.mutation import Setting

    suites = {suite.name: suite for suite in load_suites(root)}
    if name not in suites:
        known = ", ".join(suites) or "none in this tree"
        raise BadInput("harness mutate", key="SUITE", found=name, expected=f"one of {known}")
    if subject is None:
        provide_reference(suites[name], root=root)
    setting = Setting(
        root=str(root),
        suite=name,
        subject=os.path.relpath(subject, root) if subject is not None else "",
        sources=tuple(os.path.relpath(source, root) for source in sources),
        python=str(python.absolute()) if python is not None else "",
        here=here,
    )
    return suites[name], setting


def _report(
    store: Store, plan: Plan | None, *, json_file: Path | None, stryker: Path | None
) -> None:
    from harness_core.assurance.mutation import render_survivors, to_json, to_stryker

    show(render_survivors(store))
    click.echo(f"  results: {os.path.relpath(store.path)}")
    if json_file is not None:
        _write(json_file, to_json(store))
    if stryker is not None and plan is not None:
        product = plan.setting.product()
        _write(stryker, to_stryker(store, product, plan.mutants(product)))
    store.close()


def _write(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    click.echo(f"  report: {os.path.relpath(path)}")
