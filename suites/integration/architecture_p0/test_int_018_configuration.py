"""INT-018: a verdict is about the configuration too by which it was found."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

import pytest
from workbench_contract.design import DesignJudged
from workbench_contract.findings import Stage
from workbench_contract.handover import SubmissionRefused

from harness_core.system.subject import Subject
from suites.integration.bundles import ESTIMATE, Bundle, milled, sound
from suites.integration.comparing import expect_same
from suites.integration.episodes import Episodes
from suites.integration.planners import (
    Coder,
    Planner,
    coder_at_work,
    expect_accepted,
    expect_found,
    planner_at_work,
)
from suites.integration.refusals import expect_refused
from suites.integration.shop import MILL_MM, dollars_times, tighter_limits

pytestmark = [
    pytest.mark.covers("INT-018"),
    pytest.mark.integration_p0,
    pytest.mark.not_in_containers("edits the configuration of the worker, which is in a volume"),
]

_NUMBER: Final = 1801
_SCRIPT: Final = f"""\
from build123d import Box, Pos

parts = {{"block-{_NUMBER}": Pos(30, 0, 5) * Box(40, 30, 10)}}
"""


def _plan(planner: Planner) -> Bundle:
    made = [milled(f"block-{_NUMBER}", 12_000, (42, 32, 12), units=100)]
    return sound(planner.issued, number=_NUMBER, made=made, units=100)


async def _priced(coder: Coder, what: str) -> tuple[Decimal, str]:
    """USD of a design that must pass, and the record of that."""
    answer = await coder.validated()
    assert 200 == answer.status, f"expected a verdict {what}, found {answer}"
    judged = DesignJudged.model_validate_json(answer.body)
    assert judged.passed, f"expected the block to pass {what}, found {judged.findings}"
    assert judged.totals is not None, f"a design that passed {what} has no price: {judged}"
    return judged.totals.unit_cost_usd, judged.record_sha256


async def _refused(coder: Coder, what: str) -> None:
    """Simulation and hand-over are refused and say what is due."""
    due = "validat|manufacturing_config"
    expect_refused(await coder.simulate(), 409, 422, says=due)
    answer = await coder.submit()
    assert 422 == answer.status, f"expected a design {what} not to be handed over, found {answer}"
    told = [
        f"{each.file} {each.found} {each.expected}"
        for each in SubmissionRefused.model_validate_json(answer.body).findings
    ]
    assert re.search(due, " ".join(told)), f"expected what is due for a design {what}: {told}"


async def test_int_018_another_configuration_asks_for_another_verdict(
    breakable: Episodes, subject: Subject
) -> None:
    """What passed while making cost so much has not passed when it costs half; validated again, it costs half.

    So it is when the old amounts come back. The model provider is a stand-in: the gateway holds the models.
    """
    async with coder_at_work(breakable, number=_NUMBER, plan=_plan) as coder:
        await coder.session.write("model.py", _SCRIPT)
        before, record = await _priced(coder, "as it was planned")
        planned = Decimal(str(coder.bundle.estimate["totals"]["unit_cost_usd"]))
        expect_same(planned, before, what="USD of a block as it was planned")
        async with dollars_times(breakable.stack, subject, 0.5):
            await _refused(coder, "of another configuration")
            after, other = await _priced(coder, "when making costs half")
            assert record != other, f"one record by two configurations: {record}"
            off = abs(2 * after - before)
            assert off <= Decimal("0.02"), f"expected half of {before} USD, found {after}"
            simulated = await coder.simulate()
            assert 200 == simulated.status, f"expected what passed to be simulated: {simulated}"
        await _refused(coder, "that passed while making cost half")
        now = await _priced(coder, "as before")
        expect_same((before, record), now, what="USD and record by the first amounts")
        submitted = await coder.submit()
        assert 200 == submitted.status, f"expected the design to be handed over: {submitted}"


async def test_int_018_limits_are_those_of_the_configuration(
    breakable: Episodes, subject: Subject
) -> None:
    """What passed is too long for a smaller mill, and a method that has no limits is none that may be chosen.

    As soon as the limits are back both pass. The model provider is a stand-in: the gateway holds the models.
    """
    async with (
        planner_at_work(breakable, number=182) as planner,
        coder_at_work(breakable, number=_NUMBER, plan=_plan) as coder,
    ):
        await coder.session.write("model.py", _SCRIPT)
        before = await _priced(coder, "on the mill that there is")
        async with tighter_limits(breakable.stack, subject):
            answer = await coder.validated()
            assert 200 == answer.status, f"expected a verdict by other limits, found {answer}"
            judged = DesignJudged.model_validate_json(answer.body)
            assert not judged.passed, f"40 mm fit into a mill of {MILL_MM}: found {judged}"
            told = " ".join(f"{each.found} {each.expected}" for each in judged.findings)
            assert re.search(rf"\b{MILL_MM}\b", told), (
                f"expected the mill's {MILL_MM}, found {told}"
            )
            answer = await planner.judged(planner.sound())
            what = "a print where printing has no limits"
            expect_found(answer, Stage.PRICE, {ESTIMATE}, what=what, says=["print", "cnc"])
        now = await _priced(coder, "on the mill of before")
        expect_same(before, now, what="USD and record by the limits of before")
        expect_accepted(await planner.judged(planner.sound()), "a print, by the limits of before")
