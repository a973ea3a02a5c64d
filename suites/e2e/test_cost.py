"""What the suite would cost with a provider: counted, reported, and held against its budget."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from harness_core.doubles.model import Gateway
from harness_core.front.budget import model_budget
from harness_core.front.pytest_plugin import add_summary
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.observe.journey import follow
from suites.e2e.worlds.canned import to_two

pytestmark = [pytest.mark.main, pytest.mark.covers("E2E-COST")]

FOLDER: Final = Path(__file__).parent

#: Where the harness keeps what each test would have cost when it last passed offline.
KEPT: Final = "harness/offline_costs_usd"


async def test_a_whole_run_fits_its_budget(
    ecosystem: Ecosystem, cost_tracker: Gateway, pytestconfig: pytest.Config
) -> None:
    """Every call is counted and priced; all tests together, each once, fit what the suite may cost.

    Of a test that has not passed on this machine yet nothing is known, which the report says.
    """
    before = await cost_tracker.client.totals()
    journey = await follow(ecosystem, await ecosystem.send(to_two().text))
    after = await cost_tracker.client.totals()
    calls = after.overall.calls - before.overall.calls
    priced_usd = after.overall.usd - before.overall.usd

    assert calls >= len(journey.calls) >= 3, (
        f"a message for two butlers asks the model 3 times at least; of {len(journey.calls)} calls "
        f"{calls} were counted\n{journey.text()}"
    )
    assert priced_usd > 0, f"a model call has its price, and {calls} of them cost {priced_usd} USD"
    budget = model_budget(FOLDER, given=pytestconfig.getoption("--llm-budget-usd"))
    cache = getattr(pytestconfig, "cache", None)
    kept: dict[str, float] = cache.get(KEPT, {}) if cache is not None else {}
    own = {
        test: usd
        for test, usd in kept.items()
        if test.startswith("suites/e2e/")
        and pytestconfig.rootpath.joinpath(test.partition("::")[0]).is_file()
    }
    whole_usd = sum(own.values()) + priced_usd
    dearest = sorted(own, key=own.__getitem__, reverse=True)[:3]
    head = (
        f"{len(own)} tests of the suite have passed offline on this machine, for {whole_usd:.2f} USD "
        f"at a provider's prices; a run may cost {budget.usd:.2f} USD ({budget.source})"
    )
    lines = [
        head,
        *(f"  {own[test]:.4f} USD  {test}" for test in dearest),
    ]
    text = "\n".join(lines)
    add_summary(pytestconfig, "what a whole run would cost", text)

    assert whole_usd <= budget.usd, f"a whole run does not fit its budget\n{text}"
