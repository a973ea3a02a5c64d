"""``harness report``: a page of a run, or two runs beside each other."""

from __future__ import annotations

import dataclasses
import json
import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from harness_core.base.errors import BadInput
from harness_core.base.screen import show
from harness_core.front.cli._tree import FOUND, root_option_if_any

if TYPE_CHECKING:
    from harness_core.front.report import Report
    from harness_core.front.runs import Ended, Run

_place = click.Path(exists=True, path_type=Path)
_file = click.Path(dir_okay=False, path_type=Path)

#: The page, when nobody says where; beside the folders of evidence.
PAGE: Final = "report.html"


@click.command()
@click.argument("runs", nargs=-1, type=_place)
@click.option("--compare", nargs=2, type=_place, metavar="A B", help="Two runs side by side.")
@click.option("--output", type=_file, help=f"The page (default: {PAGE} in the first run).")
@click.option("--open", "opened", is_flag=True, help="Show it in a browser.")
@click.option("--json", "as_json", is_flag=True, help="For machines, in place of a page.")
@click.option("--ctrf", type=_file, help="Also this file, as CTRF has it.")
@click.option("--junit", type=_file, help="Also this file, as JUnit has it: all sessions in one.")
@root_option_if_any
def report(  # noqa: PLR0913 - the options of a command
    *,
    runs: tuple[Path, ...],
    compare: tuple[Path, Path] | None,
    output: Path | None,
    opened: bool,
    as_json: bool,
    ctrf: Path | None,
    junit: Path | None,
    root: Path | None,
) -> None:
    """Make one page of RUNS: what failed and why, with all their evidence. Nothing else is needed.

    A run is a folder of evidence, .evidence when none is named, or of one machine or worker: several
    become one page. One that was killed has a page too. With --compare the page is of two runs, in
    the terminal: of two versions, or of two products; then the status is 1 when a test ended
    otherwise, or is in one of them alone.
    """
    root = root or Path.cwd()  # tests of a folder of their own, or what another machine left
    if compare is not None:
        _compare(compare, as_json=as_json, root=root)
        return
    from harness_core.front.report import build_report, to_ctrf, to_junit

    places = runs or (root / ".evidence",)
    if not runs and not places[0].is_dir():
        raise BadInput(places[0], found="no such folder", expected="evidence of a run, or RUNS")
    made = build_report(places, root=root)
    if ctrf is not None:
        ctrf.write_bytes(msgspec.json.encode(to_ctrf(made)))
    if junit is not None:
        junit.write_text(to_junit(made), encoding="utf-8")
    if as_json:
        click.echo(msgspec.json.encode(made, enc_hook=str))
        return
    path = write_page(made, output or _beside(places[0]))
    click.echo(f"{path} ({path.stat().st_size / 1e6:.1f} MB, {len(made.tests)} tests)")
    if opened:
        webbrowser.open(path.absolute().as_uri())


def write_page(made: Report, path: Path) -> Path:
    """Write the page of a report.

    Raises:
        Unavailable: the libraries of the extra are not there.
    """
    from harness_core.front.report.page import render_page

    path.write_text(render_page(made, at=path), encoding="utf-8", errors="replace")
    return path


def _beside(place: Path) -> Path:
    """Where the page of a run goes: into the folder that has its reports."""
    if place.is_file():
        return place.with_suffix(".html")
    inner = place / ".evidence"
    return (inner if (inner / "reports").is_dir() else place) / PAGE


def _compare(places: tuple[Path, Path], *, as_json: bool, root: Path) -> None:
    from harness_core.front.runs import compare as comparing
    from harness_core.front.runs import read_run, render_comparison

    found = comparing(*(read_run(place, root=root) for place in places))
    if as_json:
        pairs = {"otherwise": found.otherwise, "times": found.times}
        both = {
            key: {
                test: {"a": _plain(one), "b": _plain(other)} for test, (one, other) in rows.items()
            }
            for key, rows in pairs.items()
        }
        only = {
            "only_in_a": {test: _plain(each) for test, each in found.only_in_a.items()},
            "only_in_b": {test: _plain(each) for test, each in found.only_in_b.items()},
        }
        runs = {"a": _run(found.a), "b": _run(found.b)}
        click.echo(json.dumps({**runs, **both, **only}, indent=2))
    else:
        show(render_comparison(found))
    if found.differ:
        sys.exit(FOUND)


def _run(run: Run) -> dict[str, Any]:
    return {"place": str(run.place), "seconds": run.seconds, "tests": len(run.tests)}


def _plain(found: Ended) -> dict[str, Any]:
    return dataclasses.asdict(found)
