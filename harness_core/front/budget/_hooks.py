"""What pytest does about money: the limit of a suite, and what its tests cost when nothing did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from harness_core.assurance import gates
from harness_core.base.errors import BadInput
from harness_core.front.budget._plan import cost_plan, model_budget
from harness_core.system.suites import suite_folder

__all__ = ["CostHooks", "keep_costs", "llm_budget_usd"]

#: What a test would have cost, by its id, when it last passed offline; in pytest's cache.
_COSTS: Final = "harness/offline_costs_usd"

#: Modes of the gateway, and a gate, with which a test asks a provider that wants money.
_PAID_MODES: Final = frozenset({"live", "record"})
_PAID_GATE: Final = "live-llm"


def llm_budget_usd(config: pytest.Config, folder: Path) -> float:
    """The hard limit of what the models of the suite in ``folder`` may cost in this run."""
    return model_budget(folder, given=config.getoption("--llm-budget-usd")).usd


def keep_costs(config: pytest.Config, folder: Path, costs: Mapping[str, float]) -> None:
    """Keep what the tests of a suite that passed would have cost, for whoever runs them for money.

    Args:
        config: of the run; that of the controller under xdist.
        folder: of the suite.
        costs: USD by id of test, counted offline; a test that is not there asked no model.
    """
    cache = getattr(config, "cache", None)
    hooks: CostHooks | None = config.pluginmanager.get_plugin(CostHooks.NAME)
    if cache is None or hooks is None or config.getoption("--llm") != "rehearsed":
        return
    own = f"{folder.relative_to(config.rootpath).as_posix()}/"
    found = {test: costs.get(test, 0.0) for test in hooks.passed if test.startswith(own)}
    cache.set(_COSTS, {**cache.get(_COSTS, {}), **found})


class CostHooks:
    """A pytest plugin: before money is spent, how much it may be and how much it probably is.

    Attributes:
        passed: ids of the tests that have passed.
    """

    NAME: Final = "harness_costs"

    def __init__(self, config: pytest.Config) -> None:
        self.passed: set[str] = set()
        self._config = config
        self._told = False

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
        """The same under xdist, whose controller collects nothing itself: told once."""
        if self._told or self._config.getoption("--llm") not in _PAID_MODES:
            return
        self._told = True
        reporter: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        for line in self._plan(ids):
            reporter.ensure_newline()
            reporter.write_line(line)

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
