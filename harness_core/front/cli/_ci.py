"""``harness ci``: which jobs a workflow starts, and what is shown of those that ended."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from harness_core.base.screen import show
from harness_core.front.cli._tree import FOUND, root_option
from harness_core.system.suites import load_suites


@click.group()
def ci() -> None:
    """What a workflow asks: which jobs to start, what to show of those that ended."""


@ci.command("plan")
@click.option(
    "--durations",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".durations"),
    show_default=True,
    help="Folder of measured durations.",
)
@click.option("--arguments", default="", help="More words for what follows -- of every session.")
@root_option
def plan(*, durations: Path, arguments: str, root: Path) -> None:
    """Read what `nox -l --json` printed from stdin, print the jobs of a matrix as JSON on one line.

    Several lists may stand one after the other. A session that takes longer than a job should is
    divided into shards.
    """
    from harness_core.assurance.planted import load_faults
    from harness_core.front.ci import plan_jobs, read_sessions

    planted = {
        f"faults-{suite.name}": len(load_faults(suite.faults))
        for suite in load_suites(root)
        if suite.faults is not None
    }
    jobs = plan_jobs(
        read_sessions(sys.stdin.read()),
        durations=durations,
        faults=planted,
        arguments=arguments.split(),
    )
    for job in jobs:
        click.echo(f"{job.name:32} {job.minutes:3} min  {job.arguments}", err=True)
    click.echo(json.dumps([dataclasses.asdict(job) for job in jobs]))


@ci.command("report")
@click.option("--title", default="tests", show_default=True, help="Heading of the summary.")
@click.option(
    "--summary",
    type=click.Path(dir_okay=False, path_type=Path),
    envvar="GITHUB_STEP_SUMMARY",
    help="File that the summary is appended to (default: GITHUB_STEP_SUMMARY, else stdout).",
)
@root_option
def report(*, title: str, summary: Path | None, root: Path) -> None:
    """Print failures as annotations and write the summary, from the reports in .evidence.

    Says what was found and judges nothing: the status is 0.
    """
    from harness_core.front.ci import annotate, read_reports, summarize

    reports = read_reports(root)
    for line in annotate(reports):
        click.echo(line)
    text = summarize(reports, title=title)
    if summary is None:
        click.echo(text)
        return
    with summary.open("a", encoding="utf-8") as file:
        file.write(text + "\n")


@ci.command("table")
@click.option(
    "--nox",
    "nox_report",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="What `nox --report` wrote.",
)
@click.option("--left-out", multiple=True, metavar="REASON", help="What was not run; repeatable.")
@root_option
def table(*, nox_report: Path, left_out: Sequence[str], root: Path) -> None:
    """Print what every session came to: passed, failed, skipped and why; name what failed.

    Ends with status 1 when a session failed, or showed nothing, or no planted fault was tried.
    """
    from harness_core.front.ci import missing_sessions, problems_of, read_reports, render_reports

    reports = read_reports(root)
    show(render_reports(reports, left_out=left_out))
    told = {report.session for report in reports if report.failures}
    problems = [
        f"{name}: it did not succeed" for name in missing_sessions(nox_report) if name not in told
    ]
    problems += problems_of(reports)
    for problem in problems:
        click.echo(problem, err=True)
    if problems:
        sys.exit(FOUND)


@ci.command("durations")
@click.argument("into", type=click.Path(file_okay=False, path_type=Path))
@click.argument("parts", type=click.Path(exists=True, file_okay=False, path_type=Path))
def durations_(*, into: Path, parts: Path) -> None:
    """Bring the durations of the folder INTO up to date with those that jobs left in PARTS."""
    from harness_core.assurance.shards import merge_durations, read_durations

    for path in merge_durations(into, parts):
        durations = read_durations(path)
        click.echo(f"{path}: {len(durations.measured)} measured, {durations.total_s:.0f} s")
