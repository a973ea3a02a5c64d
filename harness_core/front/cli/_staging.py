"""An environment held for a person: up, ps, logs, down, and what they boot it from."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path

import click
import msgspec
import trio

from harness_core.base import limits
from harness_core.base.errors import BadInput
from harness_core.front.budget import model_budget
from harness_core.front.cli._tree import (
    FOUND,
    provide_reference,
    root_option,
    root_option_if_any,
)
from harness_core.system.subject import subject_bin
from harness_core.system.suites import load_suites


@click.command(
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def gateway(args: Sequence[str]) -> None:
    """Serve the model gateway; --turns says what its model does."""
    from harness_core.doubles.model._cli import main as serve

    sys.exit(serve(list(args)))


@click.command()
@click.argument("suite")
@click.option(
    "--into",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of environments; .nox of the tree when left out.",
)
@click.option("--as-it-is", is_flag=True, help="Make nothing; use what is there.")
@root_option
def reference(*, suite: str, into: Path | None, as_it_is: bool, root: Path) -> None:
    """Find or make the environment of SUITE's reference system; print where its commands are.

    `up` and `faults` do so by themselves. For pytest without nox:
    HARNESS_SUBJECT_BIN=$(harness reference SUITE) pytest suites/SUITE
    """
    from harness_core.system.staging import reference_commands

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


@click.command()
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
@click.option(
    "--otlp", metavar="URL", help="Send spans on to this collector of yours (OTLP over HTTP)."
)
@click.option("--ui", is_flag=True, help="Serve a page of it on 127.0.0.1, and print its address.")
@root_option
def up(  # noqa: PLR0913 - the options of a command line
    *,
    suite: str | None,
    subject: Path | None,
    services: str,
    llm: str,
    llm_upstream: str | None,
    llm_budget_usd: float | None,
    quiet: bool,
    otlp: str | None,
    ui: bool,
    root: Path,
) -> None:
    """Boot what SUITE tests and hold it until Ctrl-C, SIGTERM or `harness down`.

    Prints every address and pid and follows the logs. SUITE may be left out where one suite alone
    has an environment. Ends with status 1 when it was stopped before it was up.
    """
    from harness_core.base.evidence import open_evidence
    from harness_core.system.staging import (
        Options,
        choose_suite,
        hold,
        messages_of,
        opener_of,
        subject_of,
    )

    chosen = choose_suite(load_suites(root), suite)
    if ui:
        from harness_core.front.live import open_page
    if subject is None:
        provide_reference(chosen, root=root)
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
        messages=messages_of(chosen, root=root) if ui else None,
        beside=partial(open_page, title=chosen.name, evidence=evidence) if ui else None,
    )
    with _spans_on(otlp):
        was_up = trio.run(holding)
    if not was_up:
        sys.exit(FOUND)


def _spans_on(otlp: str | None) -> AbstractContextManager[None]:
    if otlp is None:
        return nullcontext()
    from harness_core.doubles.http import check_endpoint, sending_on

    return sending_on(check_endpoint(otlp), say=partial(click.echo, err=True))


@click.command()
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.option("--reveal", is_flag=True, help="Show passwords and keys.")
def ps(*, as_json: bool, reveal: bool) -> None:
    """List the runs of this user, and every part of what they hold."""
    from harness_core.system.staging import render, runs_seen

    seen = runs_seen(reveal=reveal)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(seen)))
        return
    for line in render(seen):
        click.echo(line)


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("-f", "--follow", is_flag=True, help="Go on until it ends, or Ctrl-C.")
@click.option("-n", "--lines", type=click.IntRange(min=0), default=20, show_default=True)
@click.option("--run", metavar="ID", help="Which run, or the beginning of its id.")
@root_option_if_any
def logs(
    *, names: Sequence[str], follow: bool, lines: int, run: str | None, root: Path | None
) -> None:
    """Show the logs of the parts NAME (all of them when none is given).

    Without --run, of the only run of this tree that holds something.
    """
    from harness_core.system.staging import show_logs

    try:
        show_logs(names, run=run, root=root, follow=follow, lines=lines, say=click.echo)
    except KeyboardInterrupt:
        sys.exit(0)


@click.command()
@click.argument("run", required=False)
@click.option("--all", "every", is_flag=True, help="Every staged environment of this user.")
@root_option_if_any
def down(*, run: str | None, every: bool, root: Path | None) -> None:
    """Take down the staged environment RUN, or the only one of this tree.

    One whose holder is dead is swept.
    """
    from harness_core.system.staging import take_down

    take_down(run, every=every, root=root, say=click.echo)
