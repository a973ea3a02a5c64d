"""What can run on this machine, and what dead runs left on it."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence

import click

from harness_core.base.errors import BadInput
from harness_core.base.screen import columns, show, tinted
from harness_core.front.cli._tree import FOUND


@click.command()
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
        sys.exit(FOUND)


@click.command()
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
        sys.exit(FOUND)
