"""The pytest hooks: a failure's sentence when it happens, and the causes at the end of a run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import pytest

from harness_core.front.causes._group import Failure, causes_of
from harness_core.front.causes._interval import OBSERVED, Observed
from harness_core.front.causes._sentence import first_line

#: Of one cause, so many tests are named; the JUnit report has all.
_NAMED: Final = 20

#: Of one cause that is not what its tests say, so many of their sentences are shown.
_TOLD: Final = 3

#: Of a sentence, on one line of a terminal.
_SHOWN: Final = 300


class CauseHooks:
    """Keeps the failures of a run, on the controller, which sees all reports."""

    def __init__(self) -> None:
        self._product: dict[Failure, None] = {}
        self._harness: dict[Failure, None] = {}
        self._terminal: Any = None

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """The terminal is there."""
        self._terminal = session.config.pluginmanager.get_plugin("terminalreporter")

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One phase of one test is over: a failure is told at once."""
        if report.failed:
            self._note(report, phase="" if report.when == "call" else f" at {report.when}")

    @pytest.hookimpl(trylast=True)
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A module that cannot be collected says nothing of the product."""
        if report.failed:
            self._note(report, harness=True)

    def _note(self, report: Any, *, phase: str = "", harness: bool = False) -> None:
        """Keep a failure and tell it; workers report what they cannot collect each for itself."""
        observed: Observed = getattr(report, OBSERVED, Observed())
        harness = harness or getattr(report, "harness_error", False)
        failure = Failure(
            test=report.nodeid,
            sentence=first_line(report),
            deaths=tuple(observed.get("deaths", ())),
            log_error=observed.get("log_error", ""),
        )
        kept = self._harness if harness else self._product
        if failure in kept:
            return
        kept[failure] = None
        if self._terminal is not None:
            self._to_line_start()
            word = f"HARNESS ERROR{phase}" if harness else f"FAILED{phase}"
            self._terminal.write_line(
                f"{word} {failure.test} - {_shown(failure.sentence)}", red=True
            )

    def _to_line_start(self) -> None:
        """Dots of passed tests end their line; only the terminal's own writer knows of them."""
        if self._terminal._tw.width_of_current_line:  # noqa: SLF001
            self._terminal.ensure_newline()
        if self._terminal._tw.width_of_current_line:  # noqa: SLF001
            self._terminal.write("\n")

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Many tests, few causes: each once, with the tests that show it; the product's last."""
        _tell(terminalreporter, "harness could not run", self._harness)
        _tell(terminalreporter, "product failed", self._product)


def _tell(terminal: Any, what: str, failures: Iterable[Failure]) -> None:
    causes = causes_of(failures)
    if not causes:
        return
    tests = len({test for cause in causes for test in cause.tests})
    terminal.ensure_newline()
    terminal.section(f"{what}: {_count(tests, 'test')}, {_count(len(causes), 'cause')}", red=True)
    for number, cause in enumerate(causes, start=1):
        terminal.write_line(f"{number}. {_shown(cause.sentence)}", red=True)
        for sentence in cause.told[:_TOLD]:
            terminal.write_line(f"     told as: {_shown(sentence)}")
        for test in cause.tests[:_NAMED]:
            terminal.write_line(f"     {test}")
        if len(cause.tests) > _NAMED:
            terminal.write_line(f"     and {len(cause.tests) - _NAMED} more")


def _shown(sentence: str) -> str:
    return sentence if len(sentence) <= _SHOWN else f"{sentence[:_SHOWN]}…"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
