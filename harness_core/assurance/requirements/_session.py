"""What the ledgers of the suites under test add to a pytest session.

Before anything runs: ledger and tests must agree, else pytest ends with one usage error. At its end:
how many requirements this very session has shown, and which not, and why; it is red where a priority that
must be shown whole is not. Only the process that the
user started does either; an xdist worker knows a part of the tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness_core.assurance.requirements._coverage import Covering, check_coverage, covering_tests
from harness_core.assurance.requirements._requirements import Ledger, Requirement, load_ledger
from harness_core.assurance.requirements._results import (
    Ending,
    Outcome,
    Standing,
    standings_of,
    tally,
    worse,
)
from harness_core.assurance.requirements._tree import suite_sources
from harness_core.base.errors import BadInput
from harness_core.system.suites import Suite, load_suite


def open_session(config: pytest.Config) -> None:
    """Register the marks of each suite that the command line names, check its ledger, watch its tests.

    Raises:
        pytest.UsageError: a suite.toml or ledger is malformed, or a ledger and its tests disagree.
    """
    in_worker = hasattr(config, "workerinput")
    for folder in dict.fromkeys(_suite_folders(config)):
        try:
            suite = load_suite(folder)
            if suite.ledger is None:
                continue
            ledger = load_ledger(suite.ledger)
            for priority, marker in ledger.priorities.items():
                config.addinivalue_line("markers", f"{marker}: proves a requirement of {priority}")
        except BadInput as error:
            raise pytest.UsageError(str(error)) from error
        if in_worker:
            continue
        files = suite_sources(suite, root=folder.parent.parent)
        tests = covering_tests(files)
        unread = any(file.problems for file in files.values())  # pytest itself says what is wrong
        if not unread and (problems := sorted(check_coverage(tests, ledger))):
            raise pytest.UsageError("\n".join(map(str, problems)))
        if folder.is_relative_to(config.rootpath):
            prefix = folder.relative_to(config.rootpath).as_posix()
            watch = Watch(suite, ledger, tests, prefix=prefix)
            config.pluginmanager.register(watch, f"ledger of {suite.name}")


def _suite_folders(config: pytest.Config) -> Iterator[Path]:
    """The suites of what the command line names: around each path, else below it."""
    for argument in config.args:
        path = config.invocation_params.dir / argument.partition("::")[0]
        around = [each for each in (path, *path.parents) if (each / "suite.toml").is_file()]
        if around:
            yield around[0]
        else:
            for pattern in ("suites/*/suite.toml", "*/suite.toml"):
                yield from (found.parent for found in sorted(path.glob(pattern)))


class Watch:
    """Follows the tests of one suite, and reports at the end what they have shown."""

    def __init__(
        self, suite: Suite, ledger: Ledger, tests: Sequence[Covering], *, prefix: str
    ) -> None:
        self._suite = suite
        self._ledger = ledger
        self._tests = tests
        self._prefix = prefix
        self._outcomes: dict[str, Outcome] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One phase of one case is over."""
        ours = report.nodeid.startswith(f"{self._prefix}/")
        if ours and (report.when == "call" or not report.passed):
            outcome = _outcome(report)
            before = self._outcomes.get(report.nodeid, outcome)
            self._outcomes[report.nodeid] = worse(before, outcome)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """A row of a whole priority that was left out is no success, on whatever machine."""
        if session.exitstatus == pytest.ExitCode.OK and self._left_out():
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _left_out(self) -> list[str]:
        """Rows of whole priorities that a case was left out of: a closed gate, a plain skip.

        What the subject or the command line leaves out, and tests that were not chosen, are no such.
        """
        standings = standings_of(self._ledger, self._tests, self._outcomes, prefix=self._prefix)
        return [
            row.id
            for row in self._ledger.covered
            if row.priority in self._ledger.whole and standings[row.id].lacks
        ]

    def pytest_terminal_summary(self, terminalreporter: Any, config: pytest.Config) -> None:
        """Print what is shown of the priorities that this session is about."""
        if config.option.collectonly:
            return
        standings = standings_of(self._ledger, self._tests, self._outcomes, prefix=self._prefix)
        wanted = self._priorities(config.option.markexpr)
        lines: list[str] = []
        for priority in [each for each in ("", *self._ledger.priorities) if each in wanted]:
            rows = [row for row in self._ledger.requirements.values() if row.priority == priority]
            noun = f"{priority.upper()} rows" if priority else "requirements"
            lines += _account(rows, standings, noun=noun)
        if lines:
            terminalreporter.ensure_newline()
            terminalreporter.section(f"requirements of {self._suite.name} shown by this session")
            if left_out := self._left_out():
                lines.append(f"  to be shown whole, and left out: {' '.join(left_out)}")
            terminalreporter.write_line("\n".join(lines))

    def _priorities(self, expression: str) -> frozenset[str]:
        """Those of the requirements whose tests ran, and those that ``-m`` asked for."""
        ran = {nodeid.partition("[")[0] for nodeid in self._outcomes}
        ids = {
            str(identity)
            for test in self._tests
            if f"{self._prefix}/{test.nodeid}" in ran
            for identity in test.ids
        }
        covered = {row.priority for row in self._ledger.covered if row.id in ids}
        words = set(expression.replace("(", " ").replace(")", " ").split())
        asked = {name for name, marker in self._ledger.priorities.items() if marker in words}
        return frozenset(covered | asked)


def _outcome(report: pytest.TestReport) -> Outcome:
    if report.failed:
        ours = getattr(report, "harness_error", False)
        return Outcome(ending=Ending.ERROR if ours else Ending.FAILED)
    if report.skipped:
        chosen = getattr(report, "not_run_chosen", False)
        expected = getattr(report, "wasxfail", None)
        if expected is not None:
            reason = f"known failure: {expected.removeprefix('reason: ')}"
            return Outcome(ending=Ending.SKIPPED, reason=reason, chosen=chosen)
        text = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        reason = text.removeprefix("Skipped: ") or "without a reason"
        return Outcome(ending=Ending.SKIPPED, reason=reason, chosen=chosen)
    return Outcome(ending=Ending.PASSED)


def _account(
    rows: Iterable[Requirement], standings: dict[str, Standing], *, noun: str
) -> Iterator[str]:
    """The sum, then each row that is not shown, those of one cause in one line."""
    standing = {row.id: standings[row.id] for row in rows}
    yield tally([(each.status, each.cause) for each in standing.values()], noun=noun)
    alike: dict[str, list[str]] = {}
    for identity, each in standing.items():
        if each.cause in {"deferred", "not run"}:
            alike.setdefault(each.cause, []).append(identity)
        elif each.status != "shown":
            yield f"  {each.cause or each.status}: {identity}: {each.why}"
    for cause, identities in alike.items():
        yield f"  {cause}: {' '.join(identities)}"
