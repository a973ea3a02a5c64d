"""What installing the harness adds to pytest: options, gates, fixtures, evidence, honest outcomes.

This module registers the others, refuses a run with a mistake in a marker or a file, and sets the exit
status.

- ``hooks/_options.py``: ``--subject``, ``--services``, ``--llm`` and the like, and the marks.
- ``hooks/_gates.py``: ``@pytest.mark.requires("docker")``.
- ``hooks/_evidence.py``: where evidence goes, and the fixtures ``evidence``, ``harness_run`` and so on.
- ``hooks/_outcomes.py``: a :class:`HarnessError` is a ``HARNESS ERROR``, never a failure of the product.
- ``hooks/_explore.py``: tests marked ``explore``, their share of the time, the fixture ``explore``.
- ``hooks/_leaks.py``: what a test leaves to the garbage collector, and a run on the machine.
- ``fixtures``: ``database``, ``stack`` and the like, as ``[tool.staging_harness]`` configures them.
- ``hooks/_screen.py``: a run on a terminal: at its foot what boots, what runs, how it stands.
- ``hooks/_end.py``: what a run leaves for its end, that of xdist workers too.
- ``hooks/_report.py``: ``--report``, a page of the run. ``hooks/_otlp.py``: ``--otlp``.
- ``causes``: each failure at once, with the product's log; at the end their causes.
- ``known``: failures that a file beside the subject file lists are neither green nor red.
- ``outcomes``: what became of each test so far, beside the JUnit file.
- ``skips``, ``budget``, ``suite_fixtures.py``, ``harness_core.assurance.shards``: likewise.

A run in which nothing but the harness went wrong exits with ``HARNESS_ERROR_EXIT`` instead of 1.
"""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from harness_core.assurance import gates, shards
from harness_core.assurance.requirements import open_session
from harness_core.base.errors import HarnessError
from harness_core.base.evidence import Redactor
from harness_core.base.machine import disk_full, is_disk_full
from harness_core.front.budget import CostHooks, costs_by_test
from harness_core.front.causes import CauseHooks, IntervalHooks
from harness_core.front.fixtures import MODULES
from harness_core.front.hooks import (
    _end,
    _evidence,
    _explore,
    _gates,
    _leaks,
    _otlp,
    _outcomes,
    _report,
)
from harness_core.front.hooks._end import (
    HARNESS_ERROR_EXIT,
    add_summary,
    fail_run,
    is_worker,
    rows_for_the_end,
)
from harness_core.front.hooks._evidence import (
    evidence_folders,
    folder_on_disk,
    keep_of_failure,
    redactor_of,
    share_with_workers,
)
from harness_core.front.hooks._options import add_marks, add_options, check_options
from harness_core.front.hooks._outcomes import COUNTER, add_kept, explain_failures, has_failed
from harness_core.front.hooks._report import check_report, outcomes_file
from harness_core.front.hooks._screen import show_screen
from harness_core.front.known import KnownHooks
from harness_core.front.outcomes import EndingHooks, OutcomeHooks
from harness_core.front.settings import settings_of
from harness_core.front.skips import SkipHooks, SkipRule
from harness_core.front.suite_fixtures import check_subjects, give_fixtures
from harness_core.system.suites import suite_folder

__all__ = ["HARNESS_ERROR_EXIT", "add_kept", "add_summary", "explain_failures", "has_failed"]

_SKIP_RULE: Final = pytest.StashKey[SkipRule]()
_KNOWN: Final = pytest.StashKey[KnownHooks]()


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the options that every suite understands, and register the hooks and fixtures."""
    for module in (_end, _gates, _outcomes, _evidence, _explore, _leaks, _otlp, _report, *MODULES):
        pluginmanager.register(module)
    group = parser.getgroup("staging harness")
    add_options(group)
    _explore.add_options(group)
    shards.add_options(group)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker and check what the environment demands, before anything runs."""
    add_marks(config)
    foreign = bool(config.getoption("--subject"))
    rule = SkipRule(config.rootpath, foreign=foreign)
    config.stash[_SKIP_RULE] = rule
    config.pluginmanager.register(SkipHooks(rule))
    config.pluginmanager.register(CostHooks(config))
    config.pluginmanager.register(IntervalHooks(evidence_folders, keep=keep_of_failure))
    config.pluginmanager.register(EndingHooks(partial(redactor_of, config)))
    if not is_worker(config):
        config.pluginmanager.register(CauseHooks())
        _write_outcomes(config)
    show_screen(config)
    config.stash[_KNOWN] = KnownHooks(config, foreign=foreign)
    config.pluginmanager.register(config.stash[_KNOWN])
    check_options(config)
    check_report(config)
    _otlp.send_spans_on(config)
    open_session(config)
    share_with_workers(config)
    shards.configure(config)


def _write_outcomes(config: pytest.Config) -> None:
    """Beside a JUnit file, which is there at the end alone, what became of each test so far."""
    if path := outcomes_file(config):
        hooks = OutcomeHooks(
            path,
            folder_of=partial(folder_on_disk, config),
            costs=partial(costs_by_test, config),
            arguments=tuple(map(Redactor().redact, map(str, config.invocation_params.args))),
        )
        config.pluginmanager.register(hooks)


def pytest_collectstart(collector: pytest.Collector) -> None:
    """Give a suite the fixtures that its suite.toml names."""
    give_fixtures(collector)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> Generator[None, None, None]:
    """Refuse to run with a mistake in a marker or a file, also one that a suite's conftest finds."""
    collected = list(items)
    try:
        yield
        _check_collection(config, collected, whole=not session.testsfailed)
    except HarnessError as error:
        if not is_worker(config):
            raise pytest.UsageError(str(error)) from None
        # An error here would be an INTERNALERROR of xdist: the controller shows it.
        rows_for_the_end(config, "refusals").append(str(error))
        items.clear()


def _check_collection(config: pytest.Config, items: list[pytest.Item], *, whole: bool) -> None:
    """Markers and files that name no gate, now that every conftest has registered its own.

    Args:
        config: of the run.
        items: all that were collected.
        whole: every module could be collected.

    Raises:
        BadInput: the first one.
    """
    settings_of(config)
    config.stash[_SKIP_RULE].check(item.path for item in items)
    folders = {folder for item in items if (folder := suite_folder(item.path))}
    subjects = check_subjects(config, folders)
    config.stash[_KNOWN].collected(items, subjects=subjects, whole=whole)
    for item in items:
        for marker in item.iter_markers("requires"):
            gates.check_names(marker.args, where=f"{item.nodeid}: requires")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, None, None]:
    """Give a run that only the harness spoilt an exit status of its own.

    The status is set last: other plugins join theirs to it bit by bit.
    """
    yield
    harness_errors = session.config.stash[COUNTER].harness_errors
    only_harness = 0 < harness_errors == session.testsfailed
    if only_harness and session.exitstatus == pytest.ExitCode.TESTS_FAILED:
        session.exitstatus = HARNESS_ERROR_EXIT
    if rows_for_the_end(session.config, "refusals"):
        session.exitstatus = pytest.ExitCode.USAGE_ERROR


@pytest.hookimpl(wrapper=True, trylast=True, specname="pytest_sessionfinish")
def pytest_survive_full_disk(session: pytest.Session) -> Generator[None, None, None]:
    """Print the end of a run also where its report finds no room, which fails the run."""
    try:
        yield
    except OSError as error:
        if not is_disk_full(error):
            raise
        path = Path(getattr(session.config.option, "xmlpath", None) or session.config.rootpath)
        lack = disk_full(path, what="the report of the run", elsewhere="--junitxml=FILE")
        fail_run(session, "disk", str(lack))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print what workers refused; each of them refuses the same."""
    for refusal in dict.fromkeys(rows_for_the_end(config, "refusals")):
        if refusal not in config.stash[COUNTER].shown:
            terminalreporter.ensure_newline()
            terminalreporter.write_line(f"ERROR: {refusal}", red=True)
