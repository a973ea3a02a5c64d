"""What installing the harness adds to pytest: options, gates, fixtures, evidence, honest outcomes.

This module registers the others and brings together what a run leaves for its end: summaries, leaks,
refusals, the exit status, also those of xdist workers.

- ``hooks/_options.py``: ``--subject``, ``--services``, ``--llm`` and the like, and the marks.
- ``hooks/_gates.py``: ``@pytest.mark.requires("docker")``.
- ``hooks/_evidence.py``: where evidence goes, and the fixtures ``evidence``, ``harness_run`` and so on.
- ``hooks/_outcomes.py``: a :class:`HarnessError` is a ``HARNESS ERROR``, never a failure of the product.
- ``hooks/_leaks.py``: what a test leaves to the garbage collector, and a run on the machine.
- ``skips``, ``budget``, ``suite_fixtures.py``, ``harness_core.assurance.shards``: likewise.

A run in which nothing but the harness went wrong exits with ``HARNESS_ERROR_EXIT`` instead of 1.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any, Final

import pytest

from harness_core.assurance import gates, shards
from harness_core.assurance.requirements import open_session
from harness_core.base.errors import HarnessError
from harness_core.base.machine import disk_full, is_disk_full
from harness_core.front.budget import CostHooks
from harness_core.front.hooks import _evidence, _gates, _leaks, _outcomes
from harness_core.front.hooks._leaks import leaks_of
from harness_core.front.hooks._options import add_marks, add_options, check_options
from harness_core.front.hooks._outcomes import (
    COUNTER,
    HARNESS_ERROR_EXIT,
    KEPT,
    explain_failures,
    has_failed,
)
from harness_core.front.skips import SkipHooks, SkipRule
from harness_core.front.suite_fixtures import check_subjects, give_fixtures
from harness_core.system.suites import suite_folder

__all__ = [
    "HARNESS_ERROR_EXIT",
    "add_kept",
    "add_summary",
    "explain_failures",
    "has_failed",
]


SUMMARY: Final = pytest.StashKey[list[tuple[str, str]]]()
_LEAKS: Final = pytest.StashKey[list[str]]()
_SKIP_RULE: Final = pytest.StashKey[SkipRule]()
_REFUSED: Final = pytest.StashKey[dict[str, None]]()

#: What a worker of xdist tells its controller.
_XDIST_SUMMARY: Final = "harness_summary"
_XDIST_LEAKS: Final = "harness_leaks"
_XDIST_REFUSED: Final = "harness_refused"


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the options that every suite understands, and register the hooks and fixtures."""
    for module in (_gates, _outcomes, _evidence, _leaks):
        pluginmanager.register(module)
    group = parser.getgroup("staging harness")
    add_options(group)
    shards.add_options(group)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker and check what the environment demands, before anything runs."""
    add_marks(config)
    config.stash[SUMMARY] = []
    config.stash[_LEAKS] = []
    config.stash[_REFUSED] = {}
    rule = SkipRule(config.rootpath, foreign=bool(config.getoption("--subject")))
    config.stash[_SKIP_RULE] = rule
    config.pluginmanager.register(SkipHooks(rule))
    config.pluginmanager.register(CostHooks(config), CostHooks.NAME)
    check_options(config)
    open_session(config)
    shards.configure(config)


def pytest_collectstart(collector: pytest.Collector) -> None:
    """Give a suite the fixtures that its suite.toml names."""
    give_fixtures(collector)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None, None, None]:
    """Refuse to run with a mistake in a marker or a file, also one that a suite's conftest finds."""
    collected = list(items)
    try:
        yield
        _check_collection(config, collected)
    except HarnessError as error:
        refusal = str(error)
    else:
        return
    workeroutput = getattr(config, "workeroutput", None)
    if workeroutput is None:
        raise pytest.UsageError(refusal)
    # An error here would be an INTERNALERROR of xdist: the controller tells it.
    workeroutput[_XDIST_REFUSED] = refusal
    items.clear()


def _check_collection(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Markers and files that name no gate, now that every conftest has registered its own.

    Raises:
        BadInput: the first one.
    """
    config.stash[_SKIP_RULE].check(item.path for item in items)
    check_subjects(config, {folder for item in items if (folder := suite_folder(item.path))})
    for item in items:
        for marker in item.iter_markers("requires"):
            gates.check_names(marker.args, where=f"{item.nodeid}: requires")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, None, None]:
    """Give a run that only the harness spoilt an exit status of its own; hand over summaries.

    The status is set last: other plugins join theirs to it bit by bit.
    """
    workeroutput = getattr(session.config, "workeroutput", None)
    if workeroutput is not None:
        workeroutput[_XDIST_SUMMARY] = session.config.stash[SUMMARY]
    yield
    harness_errors = session.config.stash[COUNTER].harness_errors
    only_harness = 0 < harness_errors == session.testsfailed
    if only_harness and session.exitstatus == pytest.ExitCode.TESTS_FAILED:
        session.exitstatus = HARNESS_ERROR_EXIT
    if session.config.stash[_REFUSED]:
        session.exitstatus = pytest.ExitCode.USAGE_ERROR


@pytest.hookimpl(trylast=True, specname="pytest_sessionfinish")
def pytest_audit_leaks(session: pytest.Session) -> None:
    """Fail a run that left something behind, when everything of it should be gone."""
    leaks = session.config.stash[_LEAKS]
    leaks.extend(leaks_of(session.config))
    workeroutput = getattr(session.config, "workeroutput", None)
    if workeroutput is not None:
        workeroutput[_XDIST_LEAKS] = leaks
    elif leaks:
        told = "\n".join(leaks)
        fail_run(
            session,
            "leaks",
            f"{len(leaks)} thing(s) outlived the run; they were ended or removed:\n{told}",
        )


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


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over what an xdist worker left for the end of the run."""
    for title, text in getattr(node, "workeroutput", {}).get(_XDIST_SUMMARY, ()):
        add_summary(node.config, title, text)
    node.config.stash[_LEAKS].extend(getattr(node, "workeroutput", {}).get(_XDIST_LEAKS, ()))
    if refusal := getattr(node, "workeroutput", {}).get(_XDIST_REFUSED):
        node.config.stash[_REFUSED][refusal] = None  # every worker refuses the same


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print what fixtures left for the end of the run: cost, where the report is."""
    for title, text in config.stash.get(SUMMARY, []):
        terminalreporter.ensure_newline()
        terminalreporter.section(title)
        terminalreporter.write_line(text)
    for refusal in config.stash.get(_REFUSED, {}):
        if refusal not in config.stash[COUNTER].told:
            terminalreporter.ensure_newline()
            terminalreporter.write_line(f"ERROR: {refusal}", red=True)


def add_summary(config: pytest.Config, title: str, text: str) -> None:
    """Leave a section for the end of the terminal output."""
    config.stash[SUMMARY].append((title, text))


def fail_run(session: pytest.Session, title: str, text: str) -> None:
    """Fail a run for what no test can be blamed for: the text at its end, and its exit status."""
    add_summary(session.config, title, text)
    if session.exitstatus in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}:
        session.exitstatus = HARNESS_ERROR_EXIT


def add_kept(item: pytest.Item, text: str) -> None:
    """Tell the reader of a failure what was kept, e.g. a database URL with its password out.

    It stands below the failure; what is kept when the test is torn down, after its failure was
    reported, stands at the end of the run.
    """
    if has_failed(item):
        add_summary(item.config, "kept for you", f"{item.nodeid}: {text}")
    else:
        item.stash.setdefault(KEPT, []).append(text)
