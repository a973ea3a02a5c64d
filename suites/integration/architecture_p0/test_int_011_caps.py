"""INT-011: what a planner aims at stays under the benchmark's caps, whoever writes them down."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

import pytest
import trio
from hypothesis import strategies as st
from workbench_contract.findings import Stage
from workbench_contract.pricing import Priced

from harness_core.base.errors import HarnessError
from harness_core.doubles.http import Response
from harness_core.doubles.turns import use
from suites.integration.bundles import (
    ESTIMATE,
    OBJECTIVES,
    PLAN,
    TODO,
    Bundle,
    aiming,
    capped,
    caps_of,
    changed,
)
from suites.integration.cataloguing import Catalogue
from suites.integration.comparing import expect_same
from suites.integration.episodes import Episodes
from suites.integration.planners import (
    Planner,
    expect_accepted,
    expect_found,
    handover,
    planner_at_work,
)
from suites.integration.sampling import for_all

pytestmark = [pytest.mark.covers("INT-011"), pytest.mark.integration_p0]

_COST: Final = "planner_target_max_unit_cost_usd"
_WEIGHT: Final = "planner_target_max_weight_g"
_CENT: Final = Decimal("0.01")


async def _is_refused(planner: Planner, bundle: Bundle, key: str, *numbers: object) -> None:
    """A target above its cap is refused, for both numbers."""
    answer = await planner.judged(bundle)
    says = [key, *(f"{number:g}" for number in map(float, map(str, numbers)))]
    what = f"a {key} of {numbers[0]} under a cap of {numbers[-1]}"
    expect_found(answer, Stage.VALID, {ESTIMATE}, what=what, says=says)


async def test_int_011_targets_up_to_the_cap(episodes: Episodes) -> None:
    """Exactly at its cap a target passes; a cent or a tenth of a gram above is refused, with both numbers.

    So it is in each round. The model provider is a stand-in: the gateway holds the planner's model.
    """
    async with planner_at_work(episodes, number=151) as planner:
        bundle = planner.sound()
        cost, weight = caps_of(bundle)
        for round_ in (1, 2):
            answer = await planner.judged(aiming(bundle, cost=cost, weight=weight))
            expect_accepted(answer, f"targets at their caps, round {round_}")
            for above in (cost + _CENT, cost + 1, cost * 100):
                await _is_refused(planner, aiming(bundle, cost=above), _COST, above, cost)
            for above in (weight + Decimal("0.1"), weight + 1, weight * 100):
                await _is_refused(planner, aiming(bundle, weight=above), _WEIGHT, above, weight)
            both = aiming(bundle, cost=cost + 1, weight=weight + 1)
            answer = await planner.judged(both)
            what = "both targets above their caps"
            found = expect_found(answer, Stage.VALID, {ESTIMATE}, what=what, says=[_COST, _WEIGHT])
            assert 2 == len(found), f"expected a finding for each target, found {found}"
            below = aiming(bundle, cost=Decimal("0.01"), weight=Decimal("0.1"))
            accepted = await planner.judged(below)
            assert accepted.status in {200, 422}, f"expected a verdict on low targets: {accepted}"
            valid = accepted.status == 200 or accepted.json()["stage"] == "price"
            assert valid, f"low targets are no mistake of the estimate by itself: {accepted}"


async def test_int_011_caps_are_those_of_the_objectives(episodes: Episodes) -> None:
    """The estimate names the caps as the objectives have them, neither more nor less.

    The model provider is a stand-in: the gateway holds the planner's model.
    """
    async with planner_at_work(episodes, number=152) as planner:
        bundle = planner.sound()
        cost, weight = caps_of(bundle)
        for key, value in (
            ("benchmark_max_unit_cost_usd", cost + _CENT),
            ("benchmark_max_unit_cost_usd", cost - _CENT),
            ("benchmark_max_weight_g", weight + 1),
            ("benchmark_max_weight_g", weight - 1),
        ):
            estimate = changed(bundle.estimate, f"constraints.{key}", float(value))
            answer = await planner.judged(bundle.replaced(estimate=estimate))
            what = f"an estimate with {key} {value}"
            expect_found(answer, Stage.AGREE, {ESTIMATE}, what=what, says=[key])
        raised = changed(bundle.estimate, "constraints.benchmark_max_unit_cost_usd", 500)
        dear = changed(raised, f"constraints.{_COST}", 400)
        answer = await planner.judged(bundle.replaced(estimate=dear))
        what = "a target under a cap that the estimate made up"
        expect_found(answer, Stage.AGREE, {ESTIMATE, PLAN}, what=what, says=["400", _COST])

        async def check(drawn: tuple[int, int, int, int]) -> None:
            cents, grams, above_cents, above_grams = drawn
            most, heaviest = Decimal(cents) / 100, Decimal(grams) / 10
            aims = Decimal(cents + above_cents) / 100, Decimal(grams + above_grams) / 10
            given = aiming(bundle, cost=aims[0], weight=aims[1])
            answer = await planner.judged(capped(given, most, heaviest))
            what = f"targets of {aims} under caps of {(most, heaviest)}"
            if above_cents <= 0 and above_grams <= 0:
                expect_accepted(answer, what)
                return
            expected = [_COST] * (above_cents > 0) + [_WEIGHT] * (above_grams > 0)
            expect_found(answer, Stage.VALID, {ESTIMATE}, what=what, says=expected)

        numbers = st.integers(1_500, 90_000)
        around = st.integers(-3, 3)
        await for_all(st.tuples(numbers, numbers, around, around), check, most=50)


async def test_int_011_who_was_given_caps_cannot_raise_them(episodes: Episodes) -> None:
    """Caps that were handed over bind whoever goes on, in files that agree with each other as well.

    Lower ones may be chosen. Two engineers of two benchmarks, at once, are held to their own. The model
    provider is a stand-in: the gateway holds the models.
    """
    [part] = (await Catalogue(episodes.controller).search(category="motor", limit=1))["candidates"]
    given: list[tuple[dict[str, Any], str]] = []
    for number in (153, 163):
        async with planner_at_work(episodes, number=number) as planner:
            bundle = planner.sound()
            accepted = expect_accepted(await planner.judged(bundle), f"benchmark {number}")
            await handover(episodes.controller, accepted.handover_id)
            given.append((bundle.objectives, accepted.handover_id))
    (first, one), (second, other) = given
    async with (
        planner_at_work(episodes, number=154, given=first, handover_id=one) as engineer,
        planner_at_work(episodes, number=164, given=second, handover_id=other) as rival,
    ):
        answers: dict[int, Response] = {}

        async def submit(planner: Planner) -> None:
            bundle = planner.sound()
            cost, weight = caps_of(bundle)
            targeting = aiming(bundle, cost=cost, weight=weight)
            answers[planner.number] = await planner.judged(targeting)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(submit, engineer)
            nursery.start_soon(submit, rival)
        for number, answer in answers.items():
            expect_accepted(answer, f"targets at the caps that {number} was given")
        for planner in (engineer, rival):
            bundle = planner.sound()
            cost, weight = caps_of(bundle)
            raised = capped(aiming(bundle, cost=cost + 5), cost + 10, weight)
            answer = await planner.judged(raised)
            what = "a cap raised in objectives and estimate alike"
            says = ["constraints.max_unit_cost_usd", "constraints.benchmark_max_unit_cost_usd"]
            expect_found(answer, Stage.AGREE, {OBJECTIVES, ESTIMATE}, what=what, says=says)
            heavier = capped(aiming(bundle, weight=weight + 5), cost, weight + 10)
            says = ["constraints.max_weight_g", "constraints.benchmark_max_weight_g"]
            answer = await planner.judged(heavier)
            what = "a weight cap raised in objectives and estimate alike"
            expect_found(answer, Stage.AGREE, {OBJECTIVES, ESTIMATE}, what=what, says=says)
            await _priced_by_what_was_given(planner, part)
            for cap, key, less in (
                ("max_unit_cost_usd", _COST, {"cost": cost - 2}),
                ("max_weight_g", _WEIGHT, {"weight": weight - 2}),
            ):
                (number,) = less.values()
                lower = changed(bundle.objectives, f"constraints.{cap}", float(number))
                answer = await planner.judged(bundle.replaced(objectives=lower))
                what = f"a target above a {cap} that the engineer lowered"
                expect_found(answer, Stage.AGREE, {ESTIMATE}, what=what, says=[key])
                targeting = aiming(bundle, **less).replaced(objectives=lower)
                expect_accepted(await planner.judged(targeting), f"a lower {cap}, a target at it")


async def _priced_by_what_was_given(planner: Planner, part: dict[str, Any]) -> None:
    """A design over both caps that were given is told so by the script, whatever its files say they are."""
    bundle = planner.sound(bought=[(part, 100)])
    cost, weight = (
        Decimal(str(bundle.estimate["totals"][key])) for key in ("unit_cost_usd", "weight_g")
    )
    most, heaviest = caps_of(bundle)
    if cost <= most or weight <= heaviest:
        raise HarnessError(
            "price a design over both caps",
            observed=f"{cost} USD and {weight} g, under caps of {most} and {heaviest}",
            next_step="Take a dearer or heavier part of the catalogue",
        )
    raised = capped(aiming(bundle, cost=cost + 1, weight=weight + 1), cost + 2, weight + 2)
    await planner.leave(raised.files())
    answer = await planner.price()
    assert 200 == answer.status, f"expected the estimate to be priced, found {answer}"
    places = sorted(each.where for each in Priced.model_validate_json(answer.body).findings)
    over = ["totals.unit_cost_usd", "totals.weight_g"]
    expect_same(
        over, places, what="what exceeds the caps that were given, under those of the files"
    )


async def test_int_011_an_agent_is_told_both_numbers(episodes: Episodes) -> None:
    """By the agent's own tool: above the cap it is refused and told why, at the cap accepted.

    The model provider is a stand-in: the gateway does the turns.
    """
    async with planner_at_work(episodes, number=155) as draft:
        bundle = draft.sound()
    cost, _ = caps_of(bundle)
    over, at = aiming(bundle, cost=cost + _CENT).files(), aiming(bundle, cost=cost).files()
    turns = [
        use("fs_write", path=OBJECTIVES, content=over[OBJECTIVES]),
        use("fs_write", path=PLAN, content=over[PLAN]),
        use("fs_write", path=ESTIMATE, content=over[ESTIMATE]),
        use("submit"),
        use("fs_write", path=PLAN, content=at[PLAN]),
        use("fs_write", path=ESTIMATE, content=at[ESTIMATE]),
        use("submit"),
    ]
    async with planner_at_work(episodes, *turns, number=155) as planner:
        await planner.leave({TODO: planner.sound().todo})
    episode = await episodes.get(planner.episode_id)
    told = [trace for trace in episode["traces"] if trace["name"] == "submit"]
    expect_same([False, True], [trace["ok"] for trace in told], what="verdicts that an agent got")
    result = told[0]["detail"]["result"]
    lacking = [number for number in (cost, cost + _CENT) if f"{number:g}" not in result]
    assert not lacking, f"expected the agent to be told {lacking}, found {result}"
    assert 1 == len(episode["handovers"]), f"expected one hand-over, found {episode['handovers']}"
