"""What pytest does about money: the limit of a suite, and what its tests would have cost offline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pytest

from harness_core.assurance import gates
from harness_core.base.errors import BadInput
from harness_core.front.budget._plan import cost_plan, model_budget
from harness_core.front.hooks._end import rows_for_the_end
from harness_core.system.suites import suite_folder

if TYPE_CHECKING:
    # The gateway is an extra: whoever has totals to report has it.
    from harness_core.doubles.model import Totals

__all__ = ["CostHooks", "costs_by_test", "llm_budget_usd", "report_costs"]

#: What a test would have cost, by its id, when it last passed offline; in pytest's cache.
_COSTS: Final = "harness/offline_costs_usd"

#: Modes of the gateway, and a gate, with which a test asks a provider that wants money.
_PAID_MODES: Final = frozenset({"live", "record"})
_PAID_GATE: Final = "live-llm"


def llm_budget_usd(config: pytest.Config, folder: Path) -> float:
    """The hard limit of what the models of the suite in ``folder`` may cost in this run."""
    return model_budget(folder, given=config.getoption("--llm-budget-usd")).usd


def report_costs(config: pytest.Config, folder: Path, totals: Totals, *, note: str = "") -> None:
    """Report what a gateway of a suite has counted.

    At its end the run prints one table of all that was reported and, offline, keeps what the tests
    that passed would have cost, for whoever runs them for money.

    Args:
        config: of the run, or of a worker of it.
        folder: of the suite.
        totals: of the gateway; a test that is not there asked no model.
        note: a line below the table.
    """
    own = folder.relative_to(config.rootpath).as_posix()
    rows_for_the_end(config, "costs").append((own, msgspec.to_builtins(totals), note))


def costs_by_test(config: pytest.Config) -> dict[str, dict[str, Any]]:
    """Test → ``calls``, tokens and ``usd`` of its model calls, of all gateways of the run, as plain data."""
    found: dict[str, dict[str, Any]] = {}
    for _, totals, _ in rows_for_the_end(config, "costs"):
        for test, each in totals["by_test"].items():
            known = found.get(test, {})
            found[test] = {key: value + known.get(key, 0) for key, value in each.items()}
    return found


class CostHooks:
    """A pytest plugin: what models may and probably will cost, and in the end what they did.

    Attributes:
        passed: ids of the tests that have passed.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.passed: set[str] = set()
        self._config = config
        self._shown = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One phase of one test is over; the controller of an xdist run sees all."""
        if report.passed and report.when == "call":
            self.passed.add(report.nodeid)

    def pytest_report_collectionfinish(self, items: Sequence[pytest.Item]) -> list[str]:
        """What is chosen is known, and nothing has begun."""
        paid = self._config.getoption("--llm") in _PAID_MODES
        return self._plan([item.nodeid for item in items if paid or _asks_a_provider(item)])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """The same under xdist, whose controller collects nothing itself: shown once."""
        if self._shown or self._config.getoption("--llm") not in _PAID_MODES:
            return
        self._shown = True
        reporter: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        for line in self._plan(ids):
            reporter.ensure_newline()
            reporter.write_line(line)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """One table for each suite, whatever number of gateways it had."""
        reports: dict[str, list[tuple[dict[str, Any], str]]] = {}
        for folder, totals, note in rows_for_the_end(self._config, "costs"):
            reports.setdefault(folder, []).append((totals, note))
        for folder, rows in reports.items():
            self._sum_up(terminalreporter, folder, rows)

    def _sum_up(self, reporter: Any, folder: str, rows: Sequence[tuple[Any, str]]) -> None:
        from harness_core.doubles.model import Totals, cost_summary

        totals = Totals.sum(msgspec.convert(each, Totals) for each, _ in rows)
        reporter.ensure_newline()
        reporter.section("cost of the model")
        for line in (cost_summary(totals), *(note for _, note in rows if note)):
            reporter.write_line(line)
        cache = getattr(self._config, "cache", None)
        if cache is not None and self._config.getoption("--llm") == "rehearsed":
            own = [test for test in self.passed if test.startswith(f"{folder}/")]
            found = {
                test: totals.by_test[test].usd if test in totals.by_test else 0.0 for test in own
            }
            cache.set(_COSTS, {**cache.get(_COSTS, {}), **found})

    def _plan(self, tests: Sequence[str]) -> list[str]:
        suites: dict[Path | None, list[str]] = {}
        for test in tests:
            folder = suite_folder(self._config.rootpath / test.partition("::")[0])
            suites.setdefault(folder, []).append(test)
        given = self._config.getoption("--llm-budget-usd")
        try:
            chosen = [
                (folder.name if folder else "no suite", model_budget(folder, given=given), ids)
                for folder, ids in suites.items()
            ]
        except BadInput as error:
            raise pytest.UsageError(str(error)) from error
        cache = getattr(self._config, "cache", None)
        mode = self._config.getoption("--llm")
        known = cache.get(_COSTS, {}) if cache is not None else {}
        return cost_plan(chosen, mode=mode if mode in _PAID_MODES else "live", known=known)


def _asks_a_provider(item: pytest.Item) -> bool:
    """Whether it does so in every mode of the gateway, where there is a key."""
    named = any(_PAID_GATE in marker.args for marker in item.iter_markers("requires"))
    return named and not gates.closed_reason(_PAID_GATE)
