"""Every scenario of ``scenarios.py``, judged link by link: inbox, hops, sessions, tools, rows, cost.

Offline every row must pass. Live, a row may say which share of its runs must (``pass_rate``): then
it is tried until a sequential test has decided, and what the provider could not answer counts for
nothing.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Final

import pytest

from harness_core.assertions import (
    E2EScenario,
    SequentialPlan,
    SequentialTest,
    check_scenarios,
    fill,
    new_token,
)
from harness_core.base.errors import Unavailable
from harness_core.front.suite_fixtures import suite_subject
from suites.e2e.ecosystem.boot import roster_directory
from suites.e2e.ecosystem.handle import Ecosystem, Sent
from suites.e2e.ecosystem.roster import read_roster
from suites.e2e.ecosystem.trades import need_trades
from suites.e2e.observe.expect_scenario import expect_scenario, trouble_of_the_provider
from suites.e2e.observe.journey import Journey, follow
from suites.e2e.scenarios import SCENARIOS

pytestmark = pytest.mark.main

#: Trials of one scenario that the provider may spoil before it cannot be judged.
SPOILED: Final = 3


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A scenario's message on its way."""

    token: str
    sent: Sent


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test per row; a malformed row is one error of the collection."""
    if "scenario" in metafunc.fixturenames:
        own = {name for row in SCENARIOS for name in row.expected_butlers}
        subject = suite_subject(metafunc.config, Path(__file__).parent)
        roster = {*read_roster(roster_directory(subject))}
        rows = check_scenarios(
            SCENARIOS,
            where="suites/e2e/scenarios.py",
            # Of a product with another roster, rows for butlers that it has not are not run.
            butlers=roster | own if metafunc.config.getoption("--subject") else roster,
        )
        metafunc.parametrize(
            "scenario",
            [
                pytest.param(row, id=row.id, marks=[pytest.mark.corpus] * ("corpus" in row.tags))
                for row in rows
            ],
        )


@pytest.mark.covers(
    "E2E-PROVISIONING",
    "E2E-CLASSIFICATION",
    "E2E-ROUTING",
    "E2E-TOOLS",
    "E2E-PERSISTENCE",
    "E2E-SESSIONS",
    "E2E-COST",
    "E2E-TRACING",
    "E2E-LOGS",
)
async def test_scenario(
    ecosystem: Ecosystem,
    scenario: E2EScenario,
    travel_log: list[str],
) -> None:
    """One message goes exactly where it must, by every link of the chain, and leaves its rows."""
    await need_trades(ecosystem, scenario)
    if ecosystem.gateway.mode == "live":
        travel_log.append(await _judge_live(ecosystem, scenario))
        return
    trial = await _send(ecosystem, scenario)
    journey = await _follow(ecosystem, scenario, trial)
    travel_log.append(await expect_scenario(ecosystem, scenario, journey, trial.token))


async def _judge_live(ecosystem: Ecosystem, scenario: E2EScenario) -> str:
    """Try it until it is decided; a row without a rate is decided by its first fair trial.

    Raises:
        AssertionError: it does not pass, or not often enough.
        Unavailable: the provider spoiled too many trials; this says nothing about the product.
        BudgetExceeded: the money ran out; neither does this.
    """
    plan = SequentialPlan.for_rate(scenario.pass_rate) if scenario.pass_rate else None
    verdicts = SequentialTest(plan) if plan else None
    spoiled: list[str] = []
    failures: list[AssertionError] = []
    travelled = ""
    while verdicts is None or verdicts.decision is None:
        # Each call of the trial is reserved by the gateway before it is made; what would not fit
        # any more is not begun.
        await ecosystem.check_budget()
        trial = await _send(ecosystem, scenario)
        journey = await _follow(ecosystem, scenario, trial)
        try:
            travelled = await expect_scenario(ecosystem, scenario, journey, trial.token)
        except AssertionError as failure:
            if trouble := trouble_of_the_provider(journey):
                spoiled.append(trouble)
                _expect_not_spoiled(scenario, spoiled)
                continue
            if verdicts is None:
                raise
            failures.append(failure)
            verdicts.record(success=False)
        else:
            if verdicts is None:
                return travelled
            verdicts.record(success=True)

    assert verdicts.decision, (
        f"{verdicts.text()}; {len(spoiled)} not counted. The failures:\n"
        + "\n\n".join(str(failure) for failure in failures)
    )
    return f"{travelled}\n     {verdicts.text()}; {len(spoiled)} not counted"


def _expect_not_spoiled(scenario: E2EScenario, spoiled: list[str]) -> None:
    if len(spoiled) >= SPOILED:
        action = f"judge the scenario {scenario.id}"
        raise Unavailable(
            action,
            observed=f"the provider failed in {len(spoiled)} trials: {' | '.join(spoiled)}",
            next_step="See the gateway's ledger among the evidence, and run it again later",
        )


async def _send(ecosystem: Ecosystem, scenario: E2EScenario) -> Trial:
    token = new_token()
    text, turns = fill((scenario.input_prompt, scenario.model), token)
    return Trial(token=token, sent=await ecosystem.send(text, model=turns))


async def _follow(ecosystem: Ecosystem, scenario: E2EScenario, trial: Trial) -> Journey:
    return await follow(ecosystem, trial.sent, seconds=scenario.timeout_s)
