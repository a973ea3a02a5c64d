"""The verdicts of the scenario runner, against a model that is made to misbehave.

The product is right in each of these: what fails is what the model did, and the runner must say
which kind of failure it was.
"""

from __future__ import annotations

import dataclasses

import pytest

from harness_core.assertions import ClaimedNotDone, DidForbidden, E2EScenario
from harness_core.doubles.model import Fault
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.observe.expect_scenario import expect_scenario
from suites.e2e.observe.journey import follow
from suites.e2e.scenarios import SCENARIOS

pytestmark = pytest.mark.aside("the runner's own verdicts, on a model that is made to misbehave")

#: Only calls that offer health's tools, so that the classification is left alone.
OFFERED = ("symptom_log",)


@pytest.fixture
def scenario() -> E2EScenario:
    """A symptom with a severity."""
    return next(row for row in SCENARIOS if row.id == "health-symptom-log")


async def test_a_claim_without_a_deed_has_a_verdict_of_its_own(
    ecosystem: Ecosystem, scenario: E2EScenario, token: str
) -> None:
    """A model that claims to have logged what it has not is judged otherwise than one that failed."""
    claim = f"I have logged your headache with severity 7 ({token})."
    lie = Fault(kind="answer", text=claim, contains=token, offers=OFFERED, times=5)
    failure = await _judged(ecosystem, scenario, token, lie, expecting=ClaimedNotDone)

    assert isinstance(failure, ClaimedNotDone)
    assert claim in failure.claim
    assert "symptom_log was called 0 time(s)" in failure.missing


async def test_a_forbidden_deed_is_reported_whatever_the_answer_says(
    ecosystem: Ecosystem, scenario: E2EScenario, token: str
) -> None:
    """A session that also tries what it must not fails by that, although it did its work."""
    forbidding = dataclasses.replace(scenario, forbidden_tool_calls=("symptom_search",))
    stray = Fault(kind="answer", tool="symptom_search", contains=token, offers=OFFERED)
    failure = await _judged(ecosystem, forbidding, token, stray, expecting=DidForbidden)

    assert isinstance(failure, DidForbidden)
    assert ("symptom_search",) == failure.done


async def _judged(
    ecosystem: Ecosystem,
    scenario: E2EScenario,
    token: str,
    fault: Fault,
    *,
    expecting: type[AssertionError],
) -> AssertionError:
    client = ecosystem.gateway.client
    async with client.fault(fault):
        sent = await ecosystem.send(scenario.input_prompt.replace("{token}", token))
        journey = await follow(ecosystem, sent)
    with pytest.raises(expecting) as failed:
        await expect_scenario(ecosystem, scenario, journey, token)
    return failed.value
