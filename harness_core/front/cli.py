"""The ``harness`` command: what a person asks of the harness outside of pytest.

Commands import what they need when they run: ``harness lint`` works without the extras that
``harness gateway`` needs. A :class:`HarnessError` is printed as its text and ends with status 2.
"""

from __future__ import annotations

import dataclasses
import json
import os
import platform
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NoReturn

import click
import trio

from harness_core.base import limits
from harness_core.base.errors import BadInput, HarnessError, Unavailable
from harness_core.base.screen import columns, progress, show, tinted
from harness_core.front.budget import model_budget
from harness_core.system.subject import subject_bin
from harness_core.system.suites import Suite, find_root, load_suites

__all__ = ["cli", "main"]

#: Before a command sets it itself, for one suite after the other.
_SUBJECT_BIN_GIVEN = bool(os.environ.get("HARNESS_SUBJECT_BIN"))


_FOUND = 1
_COULD_NOT = 2

_root_option = click.option(
    "--root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The tree that holds suites/; found from the current folder when left out.",
)


def main() -> NoReturn:
    """Run the command line; the only place where a HarnessError becomes an exit status."""
    try:
        cli.main(prog_name="harness", standalone_mode=True)
    except HarnessError as error:
        click.echo(str(error), err=True)
        sys.exit(_COULD_NOT)
    sys.exit(0)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="staging-harness")
def cli() -> None:
    """Boot systems of several processes for real, drive them from outside, learn the truth."""


@cli.command()
def doctor() -> None:
    """Say what can run on this machine, and why the rest cannot.

    Ends with status 1 when something that HARNESS_REQUIRE names is missing.
    """
    from harness_core.assurance.gates import closed_reason, gates, required

    demanded = required()
    click.echo(f"python {platform.python_version()} on {platform.platform()}")
    reasons = {gate.name: closed_reason(gate.name) for gate in gates()}
    closed = [name for name, reason in reasons.items() if reason]
    rows = []
    for gate in gates():
        below = [gate.summary, reasons[gate.name] or gate.found()]
        if gate.name == "docker" and gate.name not in closed:
            from harness_core.infrastructure.containers import engine_report

            below += engine_report()
        opened = tinted("no" if gate.name in closed else "yes", good=gate.name not in closed)
        rows.append((opened, gate.name, "\n".join(filter(None, below))))
    show(columns(rows))
    if missing := sorted(demanded.intersection(closed)):
        click.echo(f"HARNESS_REQUIRE demands {', '.join(missing)}", err=True)
        sys.exit(_FOUND)


@cli.command()
@click.option(
    "--forget",
    metavar="RUN",
    multiple=True,
    help="Give up what this dead run left on a server that is no more.",
)
def sweep(forget: Sequence[str]) -> None:
    """Remove what dead runs left on this machine, and nothing else.

    Ends with status 1 when something should be gone and is not.
    """
    from harness_core.process import installed_sweepers
    from harness_core.process import sweep as sweep_runs

    report = sweep_runs(sweepers=installed_sweepers(), forget=forget)
    for line in report.removed:
        click.echo(f"removed {line}")
    for line in report.forgotten:
        click.echo(f"given up: {line}")
    for line in report.problems:
        click.echo(line, err=True)
    click.echo(f"{len(report.dead_runs)} dead run(s) swept, {len(report.live_runs)} left alone")
    for run in sorted(set(forget) - set(report.dead_runs)):
        raise BadInput("harness sweep", key="--forget", found=run, expected="a run that is dead")
    if report.problems:
        sys.exit(_FOUND)


@cli.group()
def images() -> None:
    """Build, list and remove the images of the container lane."""


@images.command("build")
@click.argument("names", nargs=-1)
@click.option(
    "--bases",
    type=click.Choice(["auto", "public", "debootstrap"]),
    default="auto",
    help="Where the lowest image comes from (auto: pulled where it can be, else made here).",
)
def build_images_(names: Sequence[str], bases: str) -> None:
    """Build what is missing of NAMES, or of all; an image whose inputs are unchanged stays."""
    from harness_core.infrastructure.containers import build_images
    from harness_core.infrastructure.engine import find_engine

    for reference in build_images(find_engine(), names=names, bases=bases, say=click.echo):
        click.echo(f"ready: {reference}")


@images.command("list")
def list_images() -> None:
    """List them: current, missing, or outdated (their inputs have changed since)."""
    from harness_core.infrastructure.containers import image_rows
    from harness_core.infrastructure.engine import find_engine

    rows = [
        (row.state, row.reference, f"{row.size_bytes / 1e6:.0f} MB" if row.size_bytes else "")
        for row in image_rows(find_engine())
    ]
    show(columns(rows, right=[2]))


@images.command("remove")
@click.option("--outdated", is_flag=True, help="Only those whose inputs have changed since.")
def remove_images_(outdated: bool) -> None:  # noqa: FBT001 - click passes by name
    """Remove them, and no other image."""
    from harness_core.infrastructure.containers import remove_images
    from harness_core.infrastructure.engine import find_engine

    for reference in remove_images(find_engine(), outdated=outdated):
        click.echo(f"removed {reference}")


@cli.command(
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def gateway(args: Sequence[str]) -> None:
    """Serve the model gateway; --turns says what its model does."""
    from harness_core.doubles.model._cli import main as serve

    sys.exit(serve(list(args)))


@cli.group()
def new() -> None:
    """Write the beginning of something new."""


@new.command("suite")
@click.argument("name")
@_root_option
def new_suite(name: str, root: Path | None) -> None:
    """Write suites/NAME: a small system, one scenario, one refusal, one planted fault."""
    from harness_core.front.scaffold import scaffold_suite

    folder = scaffold_suite(name, root=root or find_root(Path.cwd()))
    click.echo(f"wrote {folder}. Next: nox -s {name}, then nox -s faults -- {name}")


@cli.command()
@click.argument("suite")
@click.option(
    "--into",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of environments; .nox of the tree when left out.",
)
@click.option("--as-it-is", is_flag=True, help="Make nothing; use what is there.")
@_root_option
def reference(*, suite: str, into: Path | None, as_it_is: bool, root: Path | None) -> None:
    """Find or make the environment of SUITE's reference system; print where its commands are.

    `up` and `faults` do so by themselves. For pytest without nox:
    HARNESS_SUBJECT_BIN=$(harness reference SUITE) pytest suites/SUITE
    """
    from harness_core.system.staging import reference_commands

    root = (root or find_root(Path.cwd())).resolve()
    found = {each.name: each for each in load_suites(root)}
    if suite not in found:
        expected = f"one of {', '.join(found)}"
        raise BadInput("harness reference", key="SUITE", found=suite, expected=expected)
    commands = trio.run(
        partial(
            reference_commands,
            found[suite],
            root=root,
            into=into,
            make=not as_it_is,
            say=partial(click.echo, err=True),
        )
    )
    click.echo(str(commands or subject_bin()))


@cli.command()
@click.argument("suite", required=False)
@click.option("--subject", type=click.Path(path_type=Path), help="Subject file (TOML).")
@click.option("--services", type=click.Choice(["local", "container", "external"]), default="local")
@click.option(
    "--llm",
    type=click.Choice(["rehearsed", "live"]),
    default="rehearsed",
    show_default=True,
    help="rehearsed: its models do what SUITE has rehearsed, without key or network; live: a"
    " provider answers.",
)
@click.option("--llm-upstream", metavar="URL", help="Base URL of the provider for --llm live.")
@click.option(
    "--llm-budget-usd",
    type=click.FloatRange(min=0),
    metavar="USD",
    help="Hard limit of what its models may cost.  [default: budget_usd of its suite.toml, else "
    f"{limits.LLM_BUDGET_USD:.2f}]",
)
@click.option("--quiet", is_flag=True, help="Do not follow the logs.")
@_root_option
def up(  # noqa: PLR0913 - the options of a command line
    *,
    suite: str | None,
    subject: Path | None,
    services: str,
    llm: str,
    llm_upstream: str | None,
    llm_budget_usd: float | None,
    quiet: bool,
    root: Path | None,
) -> None:
    """Boot what SUITE tests and hold it until Ctrl-C, SIGTERM or `harness down`.

    Prints every address and pid and follows the logs. SUITE may be left out where one suite alone
    has an environment. Ends with status 1 when it was stopped before it was up.
    """
    from harness_core.base.evidence import open_evidence
    from harness_core.system.staging import Options, choose_suite, hold, opener_of, subject_of

    root = (root or find_root(Path.cwd())).resolve()
    chosen = choose_suite(load_suites(root), suite)
    if subject is None:
        _provide_reference(chosen, root=root)
    budget = model_budget(chosen.folder, given=llm_budget_usd)
    if llm == "live":
        click.echo(f"models (live): {chosen.name} may spend {budget.usd:.2f} USD ({budget.source})")
    options = Options(
        services=services,
        llm=llm,
        llm_upstream=llm_upstream,
        budget_usd=budget.usd,
    )
    evidence = open_evidence(
        root / ".evidence" / "staging" / f"{chosen.name}-{os.getpid()}", wipe=True
    )
    holding = partial(
        hold,
        opener_of(chosen, root=root),
        subject_of(chosen, subject, root=root) if chosen.subject or subject else None,
        options,
        title=chosen.name,
        root=root,
        evidence=evidence,
        say=click.echo,
        quiet=quiet,
    )
    if not trio.run(holding):
        sys.exit(_FOUND)


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.option("--reveal", is_flag=True, help="Show passwords and keys.")
def ps(*, as_json: bool, reveal: bool) -> None:
    """List the runs of this user, and every part of what they hold."""
    from harness_core.system.staging import render, runs_seen

    seen = runs_seen(reveal=reveal)
    if as_json:
        click.echo(json.dumps([dataclasses.asdict(run) for run in seen], indent=2))
        return
    for line in render(seen):
        click.echo(line)


@cli.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("-f", "--follow", is_flag=True, help="Go on until it ends, or Ctrl-C.")
@click.option("-n", "--lines", type=click.IntRange(min=0), default=20, show_default=True)
@click.option("--run", metavar="ID", help="Which run, or the beginning of its id.")
@_root_option
def logs(
    *, names: Sequence[str], follow: bool, lines: int, run: str | None, root: Path | None
) -> None:
    """Show the logs of the parts NAME (all of them when none is given).

    Without --run, of the only run of this tree that holds something.
    """
    from harness_core.system.staging import show_logs

    root = root or _root_if_any()
    try:
        show_logs(names, run=run, root=root, follow=follow, lines=lines, say=click.echo)
    except KeyboardInterrupt:
        sys.exit(0)


@cli.command()
@click.argument("run", required=False)
@click.option("--all", "every", is_flag=True, help="Every staged environment of this user.")
@_root_option
def down(*, run: str | None, every: bool, root: Path | None) -> None:
    """Take down the staged environment RUN, or the only one of this tree.

    One whose holder is dead is swept.
    """
    from harness_core.system.staging import take_down

    take_down(run, every=every, root=root or _root_if_any(), say=click.echo)


@cli.command()
@click.argument("names", nargs=-1)
@click.option("--fault", "ids", multiple=True, metavar="ID", help="Plant this fault; repeatable.")
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
@_root_option
def faults(  # noqa: PLR0913 - the options of a command line
    *,
    names: Sequence[str],
    ids: Sequence[str],
    files: Sequence[str],
    jobs: int,
    sample: int | None,
    seed: str | None,
    shard: str | None,
    durations_file: Path | None,
    root: Path | None,
) -> None:
    """Plant faults: each must turn its named tests red, by assertion, for the right reason.

    NAMES are suites (all that have a faults.toml when none is given) and ids of faults. Ends with
    status 1 unless every fault was killed.
    """
    from harness_core.assurance.planted import (
        Choice,
        Verdict,
        commit_of,
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

    root = (root or find_root(Path.cwd())).resolve()
    chosen, wanted = _suites_and_faults(load_suites(root), names)
    if sample is not None:
        seed = seed or commit_of(root)
    elif seed:
        raise BadInput("harness faults", key="--seed", found=seed, expected="--sample N with it")
    part = Shard.parse(shard) if shard is not None else None
    durations = read_durations(durations_file) if durations_file is not None else Durations()
    choice = Choice(
        only=[*wanted, *ids],
        files=files,
        sample=sample,
        seed=seed or "",
        shard=part,
        seconds=durations.seconds,
    )
    missed = 0
    for suite in chosen:
        action = f"plant the faults of {suite.name}"
        check_libraries(suite, root=root, action=action, seen=None)
        _provide_reference(suite, root=root)
        with progress(f"faults of {suite.name}") as (say, count):
            planting = partial(
                run_faults, suite, root=root, choice=choice, jobs=jobs, say=say, count=count
            )
            results = trio.run(planting)
        folder = root / ".evidence" / "faults" / suite.name
        report = open_evidence(folder).write_json("report.json", to_json(results))
        show(render_table(results, title=f"planted faults of {suite.name}"))
        click.echo(f"  report: {os.path.relpath(report)}, logs beside it")
        if durations_file is not None:
            taken = {f"{suite.name}/{row.fault.id}": row.duration_s for row in results}
            measured = {name: seconds for name, seconds in taken.items() if seconds > 0}
            update_durations(part_of(durations_file, part), measured, workers=jobs)
        left = [result.fault.id for result in results if result.verdict is not Verdict.KILLED]
        if left:
            click.echo(f"  rerun: {Choice(only=left).rerun(suite.name)}")
        missed += len(left)
    if missed:
        sys.exit(_FOUND)


@cli.command()
@_root_option
def lint(root: Path | None) -> None:
    """Check suites, reference systems and harness_core for what ruff cannot see.

    Ends with status 1 when there are findings.
    """
    from harness_core.assurance.requirements import check_tree

    root = root or find_root(Path.cwd())
    problems = check_tree(root)
    for problem in problems:
        click.echo(str(problem))
    names = ", ".join(suite.name for suite in load_suites(root)) or "none"
    click.echo(f"{len(problems)} finding(s); suites: {names}")
    if problems:
        sys.exit(_FOUND)


@cli.command()
@click.argument("suite", required=False)
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@_root_option
def ledger(*, suite: str | None, as_json: bool, root: Path | None) -> None:
    """Print the requirements of SUITE: what is shown of each by the newest reports, and why not.

    All suites that have a ledger when none is named. A row is shown when every case of every test
    that covers it passed.
    """
    from harness_core.assurance.requirements import ledger_rows, render_ledger

    root = root or find_root(Path.cwd())
    found = {each.name: each for each in load_suites(root) if each.ledger is not None}
    if suite is not None and suite not in found:
        known = ", ".join(found) or "none in this tree"
        expected = f"a suite with a ledger: {known}"
        raise BadInput("harness ledger", key="SUITE", found=suite, expected=expected)
    chosen = [found[suite]] if suite else list(found.values())
    tables = {each.name: ledger_rows(each, root=root) for each in chosen}
    if as_json:
        plain = {name: [dataclasses.asdict(row) for row in rows] for name, rows in tables.items()}
        click.echo(json.dumps(plain, indent=2))
        return
    for name, rows in tables.items():
        show(render_ledger(rows, title=name))


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@_root_option
def suites(as_json: bool, root: Path | None) -> None:  # noqa: FBT001 - click passes by name
    """List the suites of this tree and the nox sessions they declare."""
    found = load_suites(root or find_root(Path.cwd()))
    if as_json:
        click.echo(json.dumps([_as_json(suite) for suite in found]))
        return
    for suite in found:
        click.echo(f"{suite.name}: {suite.summary}")
        for session in suite.sessions:
            mark = "*" if session.default else "-"
            click.echo(f"  {mark} {session.name}: {session.summary}")


@cli.group("ci")
def ci_() -> None:
    """What a workflow asks: which jobs to start, what to show of those that ended."""


@ci_.command("plan")
@click.option(
    "--durations",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".durations"),
    show_default=True,
    help="Folder of measured durations.",
)
@click.option("--arguments", default="", help="More words for what follows -- of every session.")
@_root_option
def ci_plan(*, durations: Path, arguments: str, root: Path | None) -> None:
    """Read what `nox -l --json` printed from stdin, print the jobs of a matrix as JSON on one line.

    Several lists may stand one after the other. A session that takes longer than a job should is
    divided into shards.
    """
    from harness_core.assurance.planted import load_faults
    from harness_core.front.ci import plan_jobs, read_sessions

    planted = {
        f"faults-{suite.name}": len(load_faults(suite.faults))
        for suite in load_suites(root or find_root(Path.cwd()))
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


@ci_.command("report")
@click.option("--title", default="tests", show_default=True, help="Heading of the summary.")
@click.option(
    "--summary",
    type=click.Path(dir_okay=False, path_type=Path),
    envvar="GITHUB_STEP_SUMMARY",
    help="File that the summary is appended to (default: GITHUB_STEP_SUMMARY, else stdout).",
)
@_root_option
def ci_report(*, title: str, summary: Path | None, root: Path | None) -> None:
    """Print failures as annotations and write the summary, from the reports in .evidence.

    Says what was found and judges nothing: the status is 0.
    """
    from harness_core.front.ci import annotate, read_reports, summarize

    reports = read_reports(root or find_root(Path.cwd()))
    for line in annotate(reports):
        click.echo(line)
    text = summarize(reports, title=title)
    if summary is None:
        click.echo(text)
        return
    with summary.open("a", encoding="utf-8") as file:
        file.write(text + "\n")


@ci_.command("table")
@click.option(
    "--nox",
    "nox_report",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="What `nox --report` wrote.",
)
@click.option("--left-out", multiple=True, metavar="REASON", help="What was not run; repeatable.")
@_root_option
def ci_table(*, nox_report: Path, left_out: Sequence[str], root: Path | None) -> None:
    """Print what every session came to: passed, failed, skipped and why.

    Ends with status 1 when a session failed, or showed nothing, or no planted fault was tried.
    """
    from harness_core.front.ci import missing_sessions, problems_of, read_reports, render_reports

    reports = read_reports(root or find_root(Path.cwd()))
    show(render_reports(reports, left_out=left_out))
    problems = [f"{name}: it did not succeed" for name in missing_sessions(nox_report)]
    problems += problems_of(reports)
    for problem in problems:
        click.echo(problem, err=True)
    if problems:
        sys.exit(_FOUND)


@ci_.command("durations")
@click.argument("into", type=click.Path(file_okay=False, path_type=Path))
@click.argument("parts", type=click.Path(exists=True, file_okay=False, path_type=Path))
def ci_durations(*, into: Path, parts: Path) -> None:
    """Bring the durations of the folder INTO up to date with those that jobs left in PARTS."""
    from harness_core.assurance.shards import merge_durations, read_durations

    for path in merge_durations(into, parts):
        durations = read_durations(path)
        click.echo(f"{path}: {len(durations.measured)} measured, {durations.total_s:.0f} s")


def _provide_reference(suite: Suite, *, root: Path) -> None:
    """See to it that ``{bin}`` in the suite's own subject file is where its commands are.

    Whoever has set the variable, as nox does, has seen to it.
    """
    from harness_core.system.staging import reference_commands

    if _SUBJECT_BIN_GIVEN:
        return
    found = trio.run(partial(reference_commands, suite, root=root, say=click.echo))
    if found is not None:
        os.environ["HARNESS_SUBJECT_BIN"] = str(found)


def _root_if_any() -> Path | None:
    """The tree of the current folder; ``None`` outside of every tree."""
    try:
        return find_root(Path.cwd())
    except Unavailable:
        return None


def _suites_and_faults(
    suites: Sequence[Suite], names: Sequence[str]
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
    return chosen or planted, rest


def _as_json(suite: Suite) -> dict[str, object]:
    return {
        "name": suite.name,
        "summary": suite.summary,
        "folder": str(suite.folder),
        "faults": suite.faults is not None,
        "sessions": [
            {
                "name": session.name,
                "summary": session.summary,
                "tags": session.tags,
                "default": session.default,
            }
            for session in suite.sessions
        ],
    }


if __name__ == "__main__":
    main()
