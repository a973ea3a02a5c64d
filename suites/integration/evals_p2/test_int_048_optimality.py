"""A design that was called optimal stands until a materially cheaper one of its benchmark is accepted."""

from __future__ import annotations

from decimal import Decimal
from itertools import product
from typing import Any, Final

import pytest
from workbench_contract.benchmark import ReviewDecision as Decision
from workbench_contract.findings import Stage
from workbench_contract.flows import DecisionList
from workbench_contract.optimality import Case, Optimality, Verdict

from harness_core.doubles.http import Response
from suites.integration.bundles import Bundle, milled, sound
from suites.integration.comparing import expect_same
from suites.integration.episodes import Episodes
from suites.integration.flows import block_of, decisions, flow_at_work
from suites.integration.messages import answered
from suites.integration.planners import (
    Planner,
    coder_at_work,
    expect_found,
    handover,
    reviewer_at_work,
)
from suites.integration.refusals import expect_refused
from suites.integration.reviews import REVIEW, decided, front, judged, looked_at, review
from suites.integration.solving import Approved, Solution, benchmark_approved, solved

pytestmark = [pytest.mark.covers("INT-048"), pytest.mark.integration_p2]

_UNKNOWN: Final = "00000000-0000-4000-8000-000000000048"

_CENT: Final = Decimal("0.01")
_PLAIN: Final = (Decision.APPROVED, {})
_OPTIMAL: Final = (Decision.APPROVED, {"optimal": True})
_REJECTED: Final = (Decision.REJECTED, {})


async def test_int_048_stands_until_something_materially_cheaper_is_accepted(
    breakable: Episodes,
) -> None:
    """Designs called optimal are held against those that were accepted later, for their benchmark, for less.

    What came before, was rejected in the end, solves another benchmark or saves a cent too little changes
    nothing; the first that saves as much as is configured does, for all that it is cheaper than. What is told is
    the same after the controller was killed. The model provider is a stand-in: the gateway holds the models.
    """
    episodes = breakable
    one, other = [await benchmark_approved(episodes, number) for number in (481, 482)]
    nothing = await _optimality(episodes, one)
    share = Decimal(str(nothing.material_share))
    dear, called, almost, enough = _units(share)

    before = await solved(episodes, one, _PLAIN, number=483, units=1000)
    nothing = await _optimality(episodes, one)
    _is_nothing(nothing)
    first = await solved(episodes, one, _OPTIMAL, number=484, units=called)
    assert before.usd < first.usd * (1 - share), "the first design is to be materially cheaper"
    [case] = (await _optimality(episodes, one)).cases
    _is(case, first, one, later=[], share=share)

    rejected = await solved(episodes, one, _PLAIN, _REJECTED, number=485, units=1001)
    elsewhere = await solved(episodes, other, _OPTIMAL, number=486, units=1002)
    assert max(rejected.usd, elsewhere.usd) < first.usd * (1 - share), "both are to be cheaper"
    [case] = (await _optimality(episodes, one)).cases
    _is(case, first, one, later=[], share=share)

    later = [
        await solved(episodes, one, _PLAIN, number=487, units=almost),
        await solved(episodes, one, _OPTIMAL, number=488, units=dear),
    ]
    found = await _optimality(episodes, one)
    _is(found.cases[0], first, one, later=later, share=share)
    _is(found.cases[1], later[1], one, later=[], share=share)
    expect_same((2, 2, 1.0), (found.total, found.judged, found.standing), what="cases that stand")

    later.append(await solved(episodes, one, _OPTIMAL, number=489, units=enough))
    found = await _optimality(episodes, one)
    for case, solution, since in zip(
        found.cases, (first, later[1], later[2]), (later, later[2:], []), strict=True
    ):
        _is(case, solution, one, later=since, share=share)
    verdicts = [case.verdict for case in found.cases]
    expected = [Verdict.OVERTURNED, Verdict.OVERTURNED, Verdict.STANDS]
    expect_same(expected, verdicts, what="what became of the designs that were called optimal")
    told = (found.total, found.judged, round(found.standing or 0, 9))
    expect_same((3, 3, round(1 / 3, 9)), told, what="cases, and the share that stands")

    async with episodes.stack.outage("controller", "kill"):
        pass
    expect_same(found, await _optimality(episodes, one), what="the same after a kill")
    page = await _optimality(episodes, one, limit="1", offset="1")
    expect_same((found.cases[1:2], 3), (page.cases, page.total), what="the second page of one")
    [case] = (await _optimality(episodes, other)).cases
    _is(case, elsewhere, other, later=[], share=share)
    every = (await _optimality(episodes, None, limit="500")).cases
    for one_of in (*found.cases, case):
        same = [each for each in every if each.decision_id == one_of.decision_id]
        expect_same([one_of], same, what="a case among those of all benchmarks")
    expect_refused(await _ask(episodes, benchmark_id=first.flow_id), 404, says=first.flow_id)


async def test_int_048_what_cannot_be_compared_has_no_verdict(episodes: Episodes) -> None:
    """Without a benchmark there is nothing to compare with, and that is said; only an approval says optimal.

    The model provider is a stand-in: the gateway holds the models.
    """
    async with coder_at_work(episodes, number=480, plan=_plan) as coder:
        smaller = block_of(480).replace("Box(40, 30, 10)", "Box(38, 28, 10)")
        earlier, verdict = [await coder.judged(script) for script in (smaller, block_of(480))]
        for each in (earlier, verdict):
            assert each.passed, f"expected the design to pass, found {each.findings}"
            assert each.totals is not None, f"a design that passes has a price: found {each}"
        costs = [each.totals.unit_cost_usd for each in (earlier, verdict) if each.totals]
        assert costs[0] != costs[1], f"expected the two designs to have two prices, found {costs}"
        answer = await coder.submit()
        assert 200 == answer.status, f"expected the design to be handed over, found {answer}"
        design = answer.json()["handover_id"]
        await handover(episodes.controller, design)
        later = await coder.judged(smaller.replace("28, 10", "26, 10"))
        assert later.passed, f"expected the later design to pass, found {later.findings}"
        assert later.totals is not None, f"a design that passes has a price: found {later}"
        after = later.totals.unit_cost_usd
        assert after not in costs, f"expected another price than {costs}, found {after}"
    async with reviewer_at_work(episodes, handover_id=design) as (_, session):
        digests = await looked_at(session, "model.py")
        for wrong in (
            {**review(Decision.REJECTED, digests, comments=["No."]), "optimal": True},
            {**review(Decision.APPROVED, digests, comments=[]), "optimal": "yes"},
            {**review(Decision.APPROVED, digests, comments=[]), "optimal": 1},
        ):
            answer = await judged(session, front(wrong))
            what = f"a review with {wrong['optimal']!r}, {wrong['decision']}"
            expect_found(answer, Stage.VALID, {REVIEW}, what=what, says=["optimal"])
        await decided(session, Decision.APPROVED, paths=["model.py"], optimal=False)
        made = await decided(session, Decision.APPROVED, paths=["model.py"], optimal=True)
        await handover(episodes.controller, made)
    marked = await decisions(episodes.controller, handover_id=design)
    expect_same([False, True], _optimal_of(marked), what="which decisions say optimal")

    found = await _optimality(episodes, None, limit="500")
    [case] = [each for each in found.cases if each.decision_id == made]
    seen = (case.handover_id, case.benchmark_id, case.compared, case.cheapest, case.verdict)
    expect_same((design, None, 0, None, None), seen, what="a case without a benchmark")
    expect_same(costs[1], case.unit_cost_usd, what="what it costs all the same, as handed over")
    assert "benchmark" in case.missing, f"what is missing is said: found {case}"

    expect_refused(await _ask(episodes, benchmark_id=_UNKNOWN), 404, says=_UNKNOWN)
    async with flow_at_work(episodes, "/benchmarks") as flow:
        _is_nothing(await _optimality(episodes, Approved(id=flow.id, objectives={})))


def _plan(planner: Planner) -> Bundle:
    made = [milled(f"block-{planner.number}", 12_000, (42, 32, 12), units=100)]
    return sound(planner.issued, number=planner.number, made=made, units=100)


def _optimal_of(found: DecisionList) -> list[bool]:
    return [each.optimal for each in found.decisions]


def _units(share: Decimal) -> tuple[int, int, int, int]:
    """Orders of a block: the dearest, one to be called optimal, one that saves a cent too little, one enough.

    Where there is one, the last saves exactly the share.
    """
    costs: dict[Decimal, int] = {}
    for units in range(60, 400):
        exact = milled("block", 12_000, (42, 32, 12), units=units).row()["unit_cost_usd"]
        costs.setdefault(Decimal(str(exact)), units)
    pairs = [
        (one - other != share * one, -one, one, other)
        for one, other in product(costs, costs)
        if one - other >= share * one > one - other - _CENT
        and other + _CENT in costs
        and max(costs) > one
    ]
    _, _, one, other = min(pairs)
    return costs[max(costs)], costs[one], costs[other + _CENT], costs[other]


def _is_nothing(found: Optimality) -> None:
    """Nothing was called optimal: nothing stands, and no share is told."""
    expect_same(
        ([], 0, 0, None), (found.cases, found.total, found.judged, found.standing), what="cases"
    )
    assert found.missing.strip(), f"what is missing is said: found {found}"


def _is(
    case: Case, solution: Solution, benchmark: Approved, *, later: list[Solution], share: Decimal
) -> None:
    """A case is what the flows did, by a calculation of our own."""
    about = (case.decision_id, case.flow_id, case.handover_id, case.benchmark_id)
    ids = (solution.decision_id, solution.flow_id, solution.handover_id, benchmark.id)
    expect_same(ids, about, what="the design that was called optimal")
    expect_same(solution.usd, case.unit_cost_usd, what="what it costs")
    cheaper = [each for each in later if each.usd < solution.usd]
    expect_same((len(later), len(cheaper)), (case.compared, case.cheaper), what="compared, cheaper")
    material = False
    expected: Any = None
    if cheaper:
        least = min(cheaper, key=lambda each: each.usd)
        saves = solution.usd - least.usd
        material = saves >= share * solution.usd
        expected = (least.decision_id, least.flow_id, least.handover_id, least.usd, saves, material)
    found = case.cheapest and (
        case.cheapest.decision_id,
        case.cheapest.flow_id,
        case.cheapest.handover_id,
        case.cheapest.unit_cost_usd,
        case.cheapest.saves_usd,
        case.cheapest.material,
    )
    expect_same(expected, found, what="the cheapest that was accepted later")
    verdict = Verdict.OVERTURNED if material else Verdict.STANDS
    expect_same((verdict, ""), (case.verdict, case.missing), what="the verdict, nothing missing")


async def _ask(episodes: Episodes, **params: str) -> Response:
    return await episodes.controller.get("/metrics/optimality", params=params)


async def _optimality(episodes: Episodes, benchmark: Approved | None, **page: str) -> Optimality:
    params = page if benchmark is None else {"benchmark_id": benchmark.id, **page}
    answer = await _ask(episodes, **params)

    assert 200 == answer.status, f"expected the cases of {params}, found {answer}"
    return answered(answer, Optimality)
