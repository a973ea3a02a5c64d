"""Whose error it was: a failure of the product, an error of the harness, or no outcome at all.

A test that ends in a :class:`HarnessError` is reported as ``HARNESS ERROR``, never as a failure of
the product, and never as an expected failure. The text of a failure says where its evidence is, what
was kept, how to run it again, and what a suite knows of its cause.
"""

from __future__ import annotations

import datetime as dt
import os
import shlex
from collections.abc import Callable, Generator
from typing import Any, Final

import pytest

from harness_core.base.errors import HarnessError
from harness_core.base.evidence import Evidence, failure_text
from harness_core.base.groups import unwrap
from harness_core.base.machine import is_disk_full
from harness_core.front.hooks._end import add_summary
from harness_core.front.hooks._gates import GATE_DEMANDED

#: Of a test: its evidence, what was kept for its reader.
EVIDENCE: Final = pytest.StashKey[Evidence]()
_KEPT: Final = pytest.StashKey[list[str]]()

#: Of a run: how many errors were the harness's.
COUNTER: Final = pytest.StashKey["Counter"]()

_FAILED: Final = pytest.StashKey[bool]()
_BEGAN: Final = pytest.StashKey[dt.datetime]()

#: What is known of a failed test that began then; empty for nothing.
Explain = Callable[[pytest.Item, dt.datetime], str]
_EXPLAIN: Final = pytest.StashKey[list[Explain]]()

#: How a test ends that has not failed.
_NO_FAILURES: Final = (pytest.skip.Exception, pytest.xfail.Exception, pytest.exit.Exception)

#: Options that change what is tested, so a rerun needs them too.
_RERUN_OPTIONS: Final = (
    *("--subject", "--services", "--llm", "--llm-cassette"),
    *("--explore-seed", "--explore-seconds"),
)


def pytest_configure(config: pytest.Config) -> None:
    """Count the errors of the harness."""
    config.stash[COUNTER] = Counter()
    config.pluginmanager.register(config.stash[COUNTER])


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Note when the test began: what a suite knows of a failure is from then on."""
    item.stash[_BEGAN] = dt.datetime.now(dt.UTC)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """What a module finds wrong with a file, a row of scenarios for one, is shown in one sentence."""
    report = yield
    call: pytest.CallInfo[Any] | None = getattr(report, "call", None)
    if report.failed and call is not None and call.excinfo is not None:
        error = unwrap(call.excinfo.value)
        if isinstance(error, HarnessError):
            report.longrepr = str(error)
            report.harness_error = True  # type: ignore[attr-defined]
    return report


class Counter:
    """Counts failed reports of the harness, on the controller, which sees all reports.

    Attributes:
        harness_errors: how many there were.
        shown: texts of those that a failed collection has shown already.
    """

    def __init__(self) -> None:
        self.harness_errors = 0
        self._blamed: set[str] = set()
        self.shown: set[str] = set()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One phase of one test is over; the JUnit report of the last one says whose error it was."""
        if report.failed and getattr(report, "harness_error", False):
            self.harness_errors += 1
            self._blamed.add(report.nodeid)
        if report.when == "teardown" and report.nodeid in self._blamed:
            report.user_properties.append(("harness_error", "true"))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """One module has been collected."""
        if report.failed and getattr(report, "harness_error", False):
            self.harness_errors += 1
            self.shown.add(report.longreprtext)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Generator[None, object, object]:
    """Show what an async test raised, not the nursery it was raised in.

    pytest-trio runs the test inside a nursery, which wraps its error in a group of one; a failed
    assertion must look, and be counted, like one.
    """
    try:
        return (yield)
    except pytest.skip.Exception as skipped:
        # pytest-trio skips once more, without the reason.
        reason = unwrap(skipped.__context__) if skipped.__context__ is not None else skipped
        if not skipped.msg and isinstance(reason, pytest.skip.Exception):
            raise reason from None
        raise
    except BaseExceptionGroup as group:
        error = unwrap(group)
        if error is group:
            raise
        raise error from error.__cause__


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Tell harness errors from failures; say where the evidence of a failed test lies."""
    if call.excinfo is not None and call.when != "teardown":
        _explain(item, call.excinfo.value)
    report = yield
    if call.excinfo is None:
        return report
    harness_error = _is_harness_error(call.excinfo.value) or item.stash.get(GATE_DEMANDED, False)
    if harness_error and hasattr(report, "wasxfail"):
        # A known failure of the product was not seen, for the harness could not judge.
        report.outcome = "failed"
        del report.wasxfail
    if report.failed:
        item.stash[_FAILED] = True
        report.harness_error = harness_error  # type: ignore[attr-defined]
        if (evidence := item.stash.get(EVIDENCE, None)) is not None:
            kept: list[str] = item.stash.setdefault(_KEPT, [])
            text = failure_text(evidence=evidence.path, rerun=_rerun(item), kept=kept)
            report.sections.append(("where to look", text))
    return report


def _explain(item: pytest.Item, error: BaseException) -> None:
    """Add to a failure what is known of its cause; it stands in its text."""
    if isinstance(error, _NO_FAILURES):
        return
    for explain in item.config.stash.get(_EXPLAIN, []):
        try:
            cause = explain(item, item.stash.get(_BEGAN, dt.datetime.now(dt.UTC)))
        except HarnessError as unexplained:
            cause = f"nothing more is known: {unexplained}"
        # One error of a fixture fails every test that uses it.
        if cause and cause not in getattr(error, "__notes__", ()):
            error.add_note(cause)


def explain_failures(config: pytest.Config, explain: Explain) -> None:
    """Ask ``explain`` about every test that fails, in its setup or its call.

    Args:
        config: of the run.
        explain: what is known of the failure of a test, given when it began; it becomes part of
            the failure's text. Empty for nothing.
    """
    config.stash.setdefault(_EXPLAIN, []).append(explain)


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """A test that ended in a HarnessError is an error, not a failure of the product."""
    if report.failed and getattr(report, "harness_error", False):
        return "error", "E", "HARNESS ERROR"
    return None


def add_kept(item: pytest.Item, text: str) -> None:
    """Show the reader of a failure what was kept, e.g. a database URL with its password out.

    It stands below the failure; what is kept when the test is torn down, after its failure was
    reported, stands at the end of the run.
    """
    if has_failed(item):
        add_summary(item.config, "kept for you", f"{item.nodeid}: {text}")
    else:
        item.stash.setdefault(_KEPT, []).append(text)


def has_failed(item: pytest.Item) -> bool:
    """Whether the test has failed so far; known to what tears a fixture down."""
    return item.stash.get(_FAILED, False)


def _is_harness_error(error: BaseException) -> bool:
    """Whether the harness is to blame; one failed assertion in a group blames the product."""
    error = unwrap(error)
    if isinstance(error, BaseExceptionGroup):
        harness, _ = error.split(HarnessError)
        failures, _ = error.split(AssertionError)
        return harness is not None and failures is None
    # A disk without room says nothing of the product, whoever met it.
    return isinstance(error, HarnessError) or is_disk_full(error)


def _rerun(item: pytest.Item) -> str:
    words = [item.nodeid]
    for option in _RERUN_OPTIONS:
        value = item.config.getoption(option)
        if value and value not in {"local", "rehearsed"}:
            words.append(f"{option}={value}")
    session = os.environ.get("HARNESS_SESSION")
    start = ["nox", "-s", session, "--"] if session else ["pytest"]
    return shlex.join([*start, *words])
