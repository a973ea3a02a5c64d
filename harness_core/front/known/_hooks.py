"""The pytest hooks for known failures: neither green nor red when they fail as listed."""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from harness_core.front.causes import said
from harness_core.front.known._file import Known, KnownFile, known_file, read_known
from harness_core.system.suites import suite_folder

_ROWS: Final = pytest.StashKey[Sequence[Known]]()
_RAN: Final = pytest.StashKey[bool]()
_FAILED: Final = pytest.StashKey[bool]()


class KnownHooks:
    """A pytest plugin.

    Args:
        config: of the run.
        foreign: the product is one that was given, not the suite's own.
    """

    def __init__(self, config: pytest.Config, *, foreign: bool) -> None:
        self._config = config
        self._foreign = foreign
        self._known: dict[str, str] = {}
        self._files: dict[Path, KnownFile] = {}

    def collected(
        self, items: Sequence[pytest.Item], *, subjects: dict[Path, Path], whole: bool
    ) -> None:
        """Give tests the rows that are about them.

        Args:
            items: all that were collected, the deselected too.
            subjects: folder of a suite → its subject file in this run.
            whole: nothing kept a test of what the command line names from being collected.

        Raises:
            BadInput: a file is malformed, or a row is about no test of a suite that was collected
                as a whole.
        """
        for folder, subject in subjects.items():
            file = self._files[folder] = read_known(known_file(subject))
            prefix = Path(os.path.relpath(folder, self._config.rootpath)).as_posix()
            tests = [item for item in items if suite_folder(item.path) == folder]
            if whole and self._is_named(folder):
                file.check((item.nodeid for item in tests), prefix=prefix)
            for item in tests:
                rows = [row for row in file.rows if row.is_about(item.nodeid, prefix=prefix)]
                if rows:
                    item.stash[_ROWS] = rows

    def _is_named(self, folder: Path) -> bool:
        """Whether the command line names the folder, or one around it."""
        option = self._config.option
        if option.ignore or option.ignore_glob:
            return False
        paths = [self._config.invocation_params.dir / each for each in self._config.args]
        return any(folder.is_relative_to(path.resolve()) for path in paths)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Judge one phase of a listed test; an error of the harness is no failure of the product."""
        report = yield
        if rows := item.stash.get(_ROWS, ()):
            self._judge(item, report, rows)
        return report

    def _judge(self, item: pytest.Item, report: Any, rows: Sequence[Known]) -> None:
        file = self._files[suite_folder(item.path) or item.path].path
        if report.failed:
            item.stash[_FAILED] = True
            if getattr(report, "harness_error", False):
                return
            text = said(report)
            row = next((row for row in rows if row.says in text), None)
            if row is None:
                expected = " or ".join(repr(row.says) for row in rows)
                note = f"{file} lists this test as failing with {expected}: it fails otherwise"
                report.sections.append(("known failures", note))
                return
            report.outcome = "skipped"
            report.wasxfail = row.why
            report.harness_known = row.why
            report.not_run_chosen = self._foreign
        elif report.when == "call" and report.passed:
            item.stash[_RAN] = True
            report.harness_listed = True
        elif (
            report.when == "teardown" and item.stash.get(_RAN, False) and _FAILED not in item.stash
        ):
            report.outcome = "failed"
            report.harness_listed = True
            report.longrepr = (
                f"it passed, and {file} lists it as failing with {rows[0].says!r}: {rows[0].why}. "
                "Take the row out"
            )

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: Any) -> tuple[str, str, Any] | None:
        """A known failure has a counter of its own; a listed test has passed when it is torn down."""
        if hasattr(report, "harness_known"):
            return "known", "k", ("KNOWN", {"yellow": True})
        if getattr(report, "harness_listed", False):
            return ("failed", "F", "FAILED") if report.failed else ("", "", "")
        return None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One phase of one test is over; also what a worker reports."""
        if why := getattr(report, "harness_known", ""):
            self._known[report.nodeid] = why

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """What failed as listed, by its reason."""
        if not self._known:
            return
        terminalreporter.ensure_newline()
        terminalreporter.section(f"known failures: {len(self._known)}")
        for why in dict.fromkeys(self._known.values()):
            terminalreporter.write_line(why)
            for test in (test for test, its in self._known.items() if its == why):
                terminalreporter.write_line(f"     {test}")
