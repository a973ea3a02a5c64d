"""The pytest hooks for tests that are not run: refused in CI, counted, shown at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from harness_core.front.hooks._end import is_worker
from harness_core.front.skips._cause import Cause, Why, cause_of
from harness_core.front.skips._rule import SkipRule


class SkipHooks:
    """A pytest plugin; the controller of an xdist run counts what its workers report.

    Args:
        rule: which causes CI accepts.
    """

    def __init__(self, rule: SkipRule) -> None:
        self._rule = rule
        self._causes: Counter[str] = Counter()
        self._executed = 0
        self._judged = False
        self._nothing_shown = False

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Record why a test was skipped; in CI, fail it where that is not accepted."""
        report = yield
        if report.skipped and not hasattr(report, "wasxfail") and call.excinfo is not None:
            self._judge(report, cause_of(call.excinfo.value), item.path)
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """The same for a module that skips itself as a whole."""
        report = yield
        if report.skipped and isinstance(report.longrepr, tuple):
            reason = report.longrepr[2].removeprefix("Skipped: ")
            self._judge(report, Cause(why=Why.UNKNOWN, reason=reason), collector.path)
        return report

    def _judge(self, report: Any, cause: Cause, path: Path) -> None:
        verdict, text = self._rule.judge(cause, path), cause.text()
        report.not_run_chosen = cause.why in (Why.SUBJECT, Why.OPTIONS)
        report.not_run_judged = verdict.applies
        if verdict.refusal:
            report.outcome = "failed"
            report.harness_error = True
            report.longrepr = f"cannot leave a test out in CI: {text}. {verdict.refusal}."
            # Each test is an error; its cause is shown once, with their number.
            report.not_run = f"{text} (refused in CI)"
            return
        report.not_run = f"{text} (optional: {verdict.reason})" if verdict.reason else text
        if isinstance(report.longrepr, tuple):  # what the JUnit report says too
            report.longrepr = (*report.longrepr[:2], f"Skipped: {report.not_run}")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One phase of one test is over."""
        if hasattr(report, "not_run"):
            self._count(report)
        elif report.when == "call" and not hasattr(report, "wasxfail"):
            self._executed += 1

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """One module has been collected."""
        if hasattr(report, "not_run"):
            self._count(report)

    def _count(self, report: Any) -> None:
        self._causes[report.not_run] += 1
        self._judged = self._judged or report.not_run_judged

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """A run in which every test was skipped has shown nothing: it does not pass."""
        if is_worker(session.config):
            return
        if self._judged and not self._executed and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED
            self._nothing_shown = True

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """The causes of this run, the most frequent first."""
        if not self._causes:
            return
        total = self._causes.total()
        terminalreporter.ensure_newline()
        terminalreporter.section(f"not run: {total}")
        for text, count in self._causes.most_common():
            terminalreporter.write_line(f"{count:5} {text}")
        if self._nothing_shown:
            terminalreporter.write_line("Nothing was shown: every test was skipped.")
