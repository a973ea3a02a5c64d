"""The suites of a tree: begun, checked, and what is shown of their requirements."""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
import sys
from pathlib import Path

import click

from harness_core.base.errors import BadInput
from harness_core.base.screen import show
from harness_core.front.cli._tree import FOUND, root_option
from harness_core.system.suites import load_suites


@click.group()
def new() -> None:
    """Write the beginning of something new."""


@new.command("suite")
@click.argument("name")
@click.option(
    "--processes",
    default=1,
    show_default=True,
    metavar="N",
    help="Of how many processes the system is made that comes with it: 1 to 9.",
)
@root_option
def new_suite(name: str, *, processes: int, root: Path) -> None:
    """Write suites/NAME: a small system, one scenario, one refusal, one planted fault."""
    from harness_core.front.scaffold import scaffold_suite

    folder = scaffold_suite(name, root=root, processes=processes)
    click.echo(f"wrote {folder}. Next: nox -s {name}, then nox -s faults -- {name}")


@new.command("project")
@click.argument("name")
@click.option(
    "--compose",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The compose file of what is tested. It stays as it is; how its services run without"
    " containers is written beside it.",
)
@click.option(
    "--command",
    metavar="ARGV",
    help="The command line of what is tested, as one word, with {port} where it listens.",
)
def new_project(name: str, *, compose: Path | None, command: str | None) -> None:
    """Write the folder NAME: a noxfile and one suite, of a product here, that runs.

    With neither --compose nor --command a small product comes along.
    """
    from harness_core.front.scaffold import scaffold_project

    if compose is not None and command is not None:
        raise click.UsageError("--compose and --command: give one of them")
    argv = shlex.split(command) if command is not None else []
    if command is not None and not argv:
        raise BadInput("harness new project", key="--command", found=command, expected="a command")
    begun = scaffold_project(name, parent=Path.cwd(), argv=argv, compose=compose)
    click.echo(f"wrote {os.path.relpath(begun.folder)}")
    if begun.recipes is not None:
        click.echo(f"wrote {os.path.relpath(begun.recipes)}: how each service runs; look it over")
    for service in begun.unknown:
        click.echo(f"  {service}: say there how it runs; {compose} does not show it")
    click.echo(f"Next: cd {os.path.relpath(begun.folder)} && nox")


@click.command()
@root_option
def lint(root: Path) -> None:
    """Check suites, reference systems and harness_core for what ruff cannot see.

    Ends with status 1 when there are findings.
    """
    from harness_core.assurance.requirements import check_tree
    from harness_core.front.cli._commands import commands_here
    from harness_core.front.pages import check_pages

    pages = check_pages(root, {"commands": commands_here})
    problems = sorted([*check_tree(root), *pages])
    for problem in problems:
        click.echo(str(problem))
    names = ", ".join(suite.name for suite in load_suites(root)) or "none"
    click.echo(f"{len(problems)} finding(s); suites: {names}")
    if problems:
        sys.exit(FOUND)


@click.command()
@click.argument("suite", required=False)
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@root_option
def ledger(*, suite: str | None, as_json: bool, root: Path) -> None:
    """Print the requirements of SUITE: what is shown of each by the newest reports, and why not.

    All suites that have a ledger when none is named. A row is shown when every case of every test
    that covers it passed.
    """
    from harness_core.assurance.requirements import ledger_rows, render_ledger

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
    if not tables:
        click.echo("no suite of this tree has a ledger: suite.toml, ledger")
