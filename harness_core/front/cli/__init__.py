"""The ``harness`` command: what a person asks of the harness outside of pytest.

- ``_machine.py``: doctor, sweep. ``_images.py``: images build, list, remove.
- ``_staging.py``: up, ps, logs, down, reference, gateway.
- ``_suites.py``: new suite, new project, lint, ledger. ``_faults.py``: faults. ``_mutate.py``: mutate.
- ``_report.py``: report. ``_runs.py``: survey.
- ``_subject.py``: subject check.
- ``_pages.py``: docs. ``_commands.py``: what such a page says of the commands themselves.
- ``_ci.py``: ci plan, report, table, durations.
- ``_tree.py``: ``--root``, and the commands of a reference system.

Commands import what they need when they run: ``harness lint`` works without the extras that
``harness gateway`` needs. A :class:`HarnessError` is printed as its text and ends with status 2.
"""

from __future__ import annotations

import sys
from typing import Final, NoReturn

import click

from harness_core.base.errors import HarnessError
from harness_core.front.cli import (
    _ci,
    _faults,
    _images,
    _machine,
    _mutate,
    _pages,
    _report,
    _runs,
    _staging,
    _subject,
    _suites,
)

__all__ = ["cli", "main"]

#: Exit status of a command that could not be run.
COULD_NOT: Final = 2


def main() -> NoReturn:
    """Run the command line; the only place where a HarnessError becomes an exit status."""
    try:
        cli.main(prog_name="harness", standalone_mode=True)
    except HarnessError as error:
        click.echo(str(error), err=True)
        sys.exit(COULD_NOT)
    sys.exit(0)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="staging-harness")
def cli() -> None:
    """Boot systems of several processes for real, drive them from outside, learn the truth."""


for _command in (
    *(_machine.doctor, _machine.sweep, _images.images, _staging.gateway, _suites.new),
    *(_staging.reference, _staging.up, _staging.ps, _staging.logs, _staging.down),
    *(_faults.faults, _mutate.mutate, _suites.lint, _suites.ledger, _ci.ci),
    *(_report.report, _runs.survey),
    *(_subject.subject, _pages.docs),
):
    cli.add_command(_command)
