"""The suites of a tree: begun, checked, and what is shown of their requirements."""

from __future__ import annotations

import dataclasses
import json
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
@root_option
def new_suite(name: str, root: Path) -> None:
    """Write suites/NAME: a small system, one scenario, one refusal, one planted fault."""
    from harness_core.front.scaffold import scaffold_suite

    folder = scaffold_suite(name, root=root)
    click.echo(f"wrote {folder}. Next: nox -s {name}, then nox -s faults -- {name}")


@click.command()
@root_option
def lint(root: Path) -> None:
    """Check suites, reference systems and harness_core for what ruff cannot see.

    Ends with status 1 when there are findings.
    """
    from harness_core.assurance.requirements import check_tree

    problems = check_tree(root)
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
