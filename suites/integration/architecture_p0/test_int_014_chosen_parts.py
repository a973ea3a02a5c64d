"""INT-014: catalogue parts that were chosen arrive in plan and estimate as the catalogue has them."""

from __future__ import annotations

from typing import Any, Final

import pytest
import trio
import yaml
from workbench_contract.findings import Stage

from harness_core.doubles.http import Response
from harness_core.doubles.turns import use
from harness_core.system.subject import Subject
from suites.integration.bundles import ESTIMATE, OBJECTIVES, PLAN, TODO, Bundle, changed, sound
from suites.integration.cataloguing import Catalogue, decimals, later_version
from suites.integration.comparing import expect_same
from suites.integration.episodes import Episodes, calls
from suites.integration.planners import Planner, expect_accepted, expect_found, planner_at_work

pytestmark = [pytest.mark.covers("INT-014"), pytest.mark.integration_p0]

_CENT: Final = 0.01


async def _part(episodes: Episodes, **query: Any) -> dict[str, Any]:
    """A part that is cheaper when many are bought."""
    found = await Catalogue(episodes.controller).search(**query, limit=25)
    tiered = [
        each
        for each in found["candidates"]
        if len({decimals(tier["unit_cost_usd"]) for tier in each["quantity_tiers"]}) > 1
    ]

    assert tiered, f"expected a part of {query} with tiers, found {found['candidates'][:1]}"
    return tiered[-1]


def _renamed(bundle: Bundle, part_id: str, other: str) -> Bundle:
    """The bundle with another id of its first bought part, in both files."""
    estimate = changed(bundle.estimate, "cots_parts.0.part_id", other)
    return bundle.planned(f"`{part_id}`", f"`{other}`").replaced(estimate=estimate)


def _costing(bundle: Bundle, cost: float) -> Bundle:
    """The bundle with another price of its first bought part, in both files."""
    row = bundle.estimate["cots_parts"][0]
    line = f"| `{row['part_id']}` | bought | {row['quantity']} | {row['unit_cost_usd']:.2f} |"
    other = line.replace(f"{row['unit_cost_usd']:.2f}", f"{cost:.2f}")
    estimate = changed(bundle.estimate, "cots_parts.0.unit_cost_usd", round(cost, 2))
    return bundle.planned(line.rstrip(" |"), other.rstrip(" |")).replaced(estimate=estimate)


async def test_int_014_what_an_agent_found_is_what_it_hands_over(episodes: Episodes) -> None:
    """Ids, prices and versions of a search stand in plan and estimate, and in the bytes that are kept.

    With another price the same agent is refused first. The model provider is a stand-in: the gateway does
    the turns.
    """
    query = {"category": "screw", "q": "m4"}
    part = await _part(episodes, **query)
    bundle = sound("", number=141, bought=[(part, 6)])
    wrong = _costing(bundle, bundle.estimate["cots_parts"][0]["unit_cost_usd"] + _CENT).files()
    files = bundle.files()
    turns = [
        use("search_catalogue", **query, limit=25),
        use("fs_write", path=OBJECTIVES, content=files[OBJECTIVES]),
        *(use("fs_write", path=path, content=wrong[path]) for path in (PLAN, ESTIMATE)),
        use("submit"),
        *(use("fs_write", path=path, content=files[path]) for path in (PLAN, ESTIMATE)),
        use("submit"),
    ]
    async with planner_at_work(episodes, *turns, number=141) as planner:
        await planner.leave({TODO: planner.sound().todo})
    episode = await episodes.get(planner.episode_id)
    events = await episodes.events(planner.episode_id)
    [search] = calls(events, "cots_search")
    assert part["part_id"] in search["payload"]["part_ids"], (
        f"the agent found other parts: {search}"
    )
    verdicts = [each["payload"]["accepted"] for each in calls(events, "plan_submission")]
    expect_same(
        [False, True], verdicts, what="verdicts on a price a cent too high, and on the right one"
    )
    assert 1 == len(episode["handovers"]), f"expected one hand-over, found {episode['handovers']}"
    kept = {
        path: (
            await episodes.controller.get(f"/handovers/{episode['handovers'][0]}/files/{path}")
        ).text
        for path in (PLAN, ESTIMATE)
    }
    prices = await Catalogue(episodes.controller).prices([part["part_id"]])
    [row] = yaml.safe_load(kept[ESTIMATE])["cots_parts"]
    reached = [
        decimals(tier["unit_cost_usd"])
        for tier in prices["prices"][0]["quantity_tiers"]
        if tier["from_quantity"] <= 6 * 1000
    ]
    told = (row["part_id"], decimals(row["unit_cost_usd"]), row["catalogue_version"])
    due = (part["part_id"], reached[-1], prices["catalogue_version"])
    expect_same(due, told, what="id, price and version in the estimate that was handed over")
    [line] = [line for line in kept[PLAN].split("\n") if f"`{part['part_id']}`" in line]
    lacking = [text for text in (f"{reached[-1]:.2f}", str(due[2])) if f"| {text} " not in line]
    assert not lacking, f"expected {lacking} in the plan's row of {part['part_id']}, found {line}"


async def test_int_014_what_the_catalogue_does_not_say_is_refused(episodes: Episodes) -> None:
    """Another id, price, tier or version, a row without them, or a part that the plan leaves out.

    Each is refused and named. The model provider is a stand-in: the gateway holds the planner's model.
    """
    part = await _part(episodes, category="screw", q="m5")
    other = await _part(episodes, category="washer")
    async with planner_at_work(episodes, number=142) as planner:
        bundle = planner.sound(bought=[(part, 3), (other, 2)])
        name = part["part_id"]
        row = bundle.estimate["cots_parts"][0]
        expect_accepted(await planner.judged(bundle), "two parts as the catalogue has them")
        for unknown in ("NO-SUCH-PART", name.swapcase(), f"{name}x", "日本-1"):
            answer = await planner.judged(_renamed(bundle, name, unknown))
            what = f"a part named {unknown}"
            expect_found(answer, Stage.AGREE, {ESTIMATE}, what=what, says=[unknown, "part_id"])
        alone = float(part["unit_cost_usd"])
        price = row["unit_cost_usd"]
        for cost in (price + _CENT, price - _CENT, alone, price * 2):
            answer = await planner.judged(_costing(bundle, cost))
            says = ["cots_parts[0].unit_cost_usd", f"{price:.2f}"]
            what = f"{cost:.2f} USD for what costs {price:.2f}"
            expect_found(answer, Stage.AGREE, {ESTIMATE}, what=what, says=says)
        version = row["catalogue_version"]
        for wrong in (version + 1, version + 1000):
            later = changed(bundle.estimate, "cots_parts.0.catalogue_version", wrong)
            line = f"{price:.2f} | {version} |"
            first = bundle.plan.index(f"`{name}`")
            at = bundle.plan.index(line, first)
            plan = bundle.plan[:at] + f"{price:.2f} | {wrong} |" + bundle.plan[at + len(line) :]
            answer = await planner.judged(bundle.replaced(estimate=later, plan=plan))
            what = f"version {wrong} of a catalogue of version {version}"
            says = ["cots_parts[0].catalogue_version", str(version)]
            expect_found(answer, Stage.AGREE, {ESTIMATE}, what=what, says=says)
        whole = f"| `{name}` | bought | 3 | {price:.2f} | {version} |"
        for instead, says in (
            ("", [name]),
            (f"| `{name}` | bought | 3 | | {version} |", ["unit_cost_usd"]),
            (f"| `{name}` | bought | 3 | {price:.2f} | |", ["catalogue_version"]),
            (f"| `{name}` | bought | 4 | {price:.2f} | {version} |", ["quantity"]),
            (f"| `{name}` | bought | 3 | {price + 1:.2f} | {version} |", ["unit_cost_usd"]),
            (whole.replace(f"| {version} |", f"| {version + 1} |"), ["catalogue_version"]),
            (f"{whole}\n{whole}", [name]),
        ):
            answer = await planner.judged(bundle.planned(whole, instead))
            what = f"a plan with {instead!r} for {whole!r}"
            expect_found(answer, Stage.AGREE, {PLAN}, what=what, says=says)
        answer = await planner.judged(_disagreeing(bundle))
        made = bundle.estimate["manufactured_parts"][1]["id"]
        says = ["cots_parts[0].part_id", "cots_parts[1].unit_cost_usd", made, other["part_id"]]
        says += ["cots_parts[1].catalogue_version", "benchmark_max_weight_g", "nobody", "7777"]
        what = "files that disagree in everything"
        expect_found(answer, Stage.AGREE, {ESTIMATE, PLAN}, what=what, says=says)


def _disagreeing(bundle: Bundle) -> Bundle:
    """A bundle of two bought parts whose files disagree with each other and with the catalogue, part by part."""
    estimate = bundle.estimate
    second, made = estimate["cots_parts"][1], estimate["manufactured_parts"][1]["id"]
    weight = estimate["constraints"]["benchmark_max_weight_g"]
    for path, value in (
        ("cots_parts.0.part_id", "NO-SUCH-PART"),
        ("cots_parts.1.unit_cost_usd", round(second["unit_cost_usd"] + 1, 2)),
        ("cots_parts.1.catalogue_version", second["catalogue_version"] + 1),
        ("constraints.benchmark_max_weight_g", weight + 1),
    ):
        estimate = changed(estimate, path, value)
    budget = "- planner_target_max_weight_g: "
    plan = bundle.planned(f"| `{made}` |", "| `nobody` |").planned(budget, f"{budget}7777")
    return plan.replaced(estimate=estimate)


async def test_int_014_tiers_are_those_of_all_that_is_ordered(episodes: Episodes) -> None:
    """The price is of the tier that quantity times units reach, at its edge and one below.

    The model provider is a stand-in: the gateway holds the planner's model.
    """
    part = await _part(episodes, category="nut")
    edges = [tier["from_quantity"] for tier in part["quantity_tiers"] if tier["from_quantity"] > 1]
    async with planner_at_work(episodes, number=143) as planner:
        for edge in edges:
            for pieces in (edge, edge - 1):
                bundle = planner.sound(bought=[(part, pieces)], units=1)
                answer = await planner.judged(bundle)
                # What costs too much is no matter of the catalogue.
                price = answer.status == 422 and answer.json()["stage"] == "price"
                assert answer.status == 200 or price, f"{pieces} pieces at their tier: {answer}"
            by_units = planner.sound(bought=[(part, 1)], units=edge)
            answer = await planner.judged(by_units)
            price = answer.status == 422 and answer.json()["stage"] == "price"
            assert answer.status == 200 or price, f"{edge} units at their tier: {answer}"
            dear = _costing(by_units, float(part["unit_cost_usd"]))
            answer = await planner.judged(dear)
            what = f"the price of one where {edge} are ordered"
            expect_found(answer, Stage.AGREE, {ESTIMATE}, what=what, says=["unit_cost_usd"])


async def test_int_014_two_planners_and_two_rounds(episodes: Episodes) -> None:
    """Each planner's parts are its own, at the same time and in the next round.

    A part that the plan still names from the first round is refused. The model provider is a stand-in: the
    gateway holds the models.
    """
    screw = await _part(episodes, category="screw", q="m6")
    bearing = await _part(episodes, category="bearing")
    async with (
        planner_at_work(episodes, number=144) as one,
        planner_at_work(episodes, number=145) as other,
    ):
        answers: dict[int, Response] = {}

        async def submit(planner: Planner, part: dict[str, Any]) -> None:
            answers[planner.number] = await planner.judged(planner.sound(bought=[(part, 4)]))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(submit, one, screw)
            nursery.start_soon(submit, other, bearing)
        for number, answer in answers.items():
            expect_accepted(answer, f"the parts of planner {number}")
        first, second = (one.sound(bought=[(part, 4)]) for part in (screw, bearing))
        mixed = second.replaced(plan=first.plan)
        answer = await one.judged(mixed)
        what = "an estimate of the second round beside the plan of the first"
        says = [screw["part_id"], bearing["part_id"]]
        expect_found(answer, Stage.AGREE, {PLAN}, what=what, says=says)
        expect_accepted(await one.judged(second), "another part in the second round")


async def test_int_014_a_part_that_has_left_since_is_found(
    breakable: Episodes, subject: Subject
) -> None:
    """What was accepted is refused once the part has left the catalogue, or a later version of it is there.

    With the part and the version that it has now it is accepted again. The model provider is a stand-in: the
    gateway holds the planner's model.
    """
    part = await _part(breakable, category="screw", q="m5")
    stays = await _part(breakable, category="washer")
    async with planner_at_work(breakable, number=146) as planner:
        bundle = planner.sound(bought=[(part, 3)])
        other = planner.sound(bought=[(stays, 3)])
        expect_accepted(await planner.judged(bundle), "a part that the catalogue has")
        async with later_version(breakable.stack, subject, without=[part["part_id"]]) as version:
            answer = await planner.judged(bundle)
            what = "a part that has left the catalogue"
            says = [part["part_id"], "part_id"]
            expect_found(answer, Stage.AGREE, {ESTIMATE}, what=what, says=says)
            answer = await planner.judged(other)
            what = "a part with the version before"
            says = ["cots_parts[0].catalogue_version", str(version)]
            expect_found(answer, Stage.AGREE, {ESTIMATE}, what=what, says=says)
            now = planner.sound(bought=[({**stays, "catalogue_version": version}, 3)])
            expect_accepted(await planner.judged(now), "a part with its version of now")
