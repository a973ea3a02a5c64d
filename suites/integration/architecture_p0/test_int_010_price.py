"""INT-010: costs and weights are computed by the system, whatever was typed, and block over the caps."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

import pytest
import trio
import yaml
from hypothesis import strategies as st
from workbench_contract.findings import Stage
from workbench_contract.pricing import Priced, PriceRefused

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
    changed,
    milled,
    moulded,
    sound,
)
from suites.integration.cataloguing import Catalogue
from suites.integration.comparing import expect_same
from suites.integration.episodes import Episodes, calls
from suites.integration.planners import Planner, expect_accepted, expect_found, planner_at_work
from suites.integration.sampling import for_all

pytestmark = [pytest.mark.covers("INT-010"), pytest.mark.integration_p0]

_CENT: Final = Decimal("0.01")
_TOTALS: Final = ("assembly_cost_usd", "unit_cost_usd", "weight_g")

#: The most rows of catalogue parts that an estimate may have.
_MOST_BOUGHT: Final = 200

#: Answers after which a pricing that was asked for before them is under way.
_LOOKS: Final = 5

#: Typed wrong: what stands at a path of the estimate, as a factor of what is right.
_FACTORS: Final = (0.5, 0.985, 1.015, 2, 100)


async def _priced(planner: Planner) -> Priced:
    answer = await planner.price()

    assert 200 == answer.status, f"expected the estimate to be priced, found {answer}"
    return Priced.model_validate_json(answer.body)


def _right(bundle: Bundle, priced: Priced) -> None:
    """The totals and parts of a pricing are those that the bundle was made with."""
    totals = {key: Decimal(str(bundle.estimate["totals"][key])) for key in _TOTALS}
    found = {key: Decimal(str(getattr(priced.totals, key))) for key in _TOTALS}
    expect_same(totals, found, what=f"totals of {bundle.estimate}")
    rows = [
        (part["id"], part["quantity"], part["unit_cost_usd"])
        for part in bundle.estimate["manufactured_parts"]
    ]
    rows += [
        (part["part_id"], part["quantity"], part["unit_cost_usd"])
        for part in bundle.estimate["cots_parts"]
    ]
    listed = [(part.id, part.quantity, float(part.unit_cost_usd)) for part in priced.parts]
    expect_same(rows, listed, what="parts, quantities and USD of one piece")


async def _parts(episodes: Episodes, *queries: dict[str, Any]) -> list[dict[str, Any]]:
    catalogue = Catalogue(episodes.controller)
    return [(await catalogue.search(**each, limit=1))["candidates"][0] for each in queries]


def _at_total(bundle: Bundle, cost: Decimal, weight: Decimal) -> Bundle:
    """The bundle with caps, and targets at them."""
    return capped(aiming(bundle, cost=cost, weight=weight), cost, weight)


async def test_int_010_an_agent_has_its_estimate_priced(episodes: Episodes) -> None:
    """Totals that were made up are refused with those that are computed; the script writes them in.

    Then the hand-over goes on; the numbers in it are the system's. The model provider is a stand-in: the
    gateway does the turns.
    """
    [screw, bearing] = await _parts(episodes, {"category": "screw"}, {"category": "bearing"})
    bundle = sound("", number=171, bought=[(screw, 8), (bearing, 2)])
    claimed = bundle.estimate
    for key, value in (("unit_cost_usd", 1.00), ("weight_g", 5), ("assembly_cost_usd", 0)):
        claimed = changed(claimed, f"totals.{key}", value)
    files = bundle.replaced(estimate=claimed).files()
    turns = [
        *(use("fs_write", path=path, content=files[path]) for path in (OBJECTIVES, PLAN, ESTIMATE)),
        use("submit"),
        use("validate_costing_and_price"),
        use("submit"),
    ]
    async with planner_at_work(episodes, *turns, number=171) as planner:
        await planner.leave({TODO: planner.sound().todo})
    episode = await episodes.get(planner.episode_id)
    told = [trace for trace in episode["traces"] if trace["name"] != "fs_write"]
    tools = [trace["name"] for trace in told if trace["kind"] == "tool"]
    wanted = ["submit", "validate_costing_and_price", "submit"]
    expect_same(wanted, tools, what="tools that the agent used")
    verdicts = [trace["ok"] for trace in told if trace["kind"] == "tool"]
    expect_same([False, True, True], verdicts, what="whether each of the agent's calls succeeded")
    events = await episodes.events(planner.episode_id)
    refused = calls(events, "plan_submission")[0]["payload"]
    expect_same("price", refused["stage"], what="the stage at which made-up totals are refused")
    computed = [f"{bundle.estimate['totals'][key]:.2f}" for key in _TOTALS]
    shown = " ".join(each["expected"] for each in refused["findings"])
    lacking = [number for number in computed if number not in shown]
    assert not lacking, f"expected the computed totals {lacking} in the findings, found {shown}"
    [priced] = calls(events, "pricing")
    found = [Decimal(str(priced["payload"]["totals"][key])) for key in _TOTALS]
    expect_same(
        [Decimal(each) for each in computed], found, what="totals in the event of the pricing"
    )
    kept = await episodes.controller.get(f"/handovers/{episode['handovers'][0]}/files/{ESTIMATE}")
    handed = yaml.safe_load(kept.text)["totals"]
    expect_same(bundle.estimate["totals"], handed, what="totals of what was handed over")


async def test_int_010_what_was_typed_is_held_against_what_is_computed(episodes: Episodes) -> None:
    """Within 1 % a typed number passes, beyond it is refused with the computed one; in each round.

    The model provider is a stand-in: the gateway holds the planner's model.
    """
    [nut] = await _parts(episodes, {"category": "nut"})
    async with planner_at_work(episodes, number=172) as planner:
        bundle = planner.sound(bought=[(nut, 5)])
        for key in _TOTALS:
            right = Decimal(str(bundle.estimate["totals"][key]))
            edge = (right / 100).quantize(_CENT, "ROUND_FLOOR")
            for typed, passes in (
                (right + edge, True),
                (right - edge, True),
                (right + edge + _CENT, False),
                (right - edge - _CENT, False),
            ):
                estimate = changed(bundle.estimate, f"totals.{key}", float(typed))
                answer = await planner.judged(bundle.replaced(estimate=estimate))
                what = f"totals.{key} {typed} where {right} is computed"
                if passes:
                    expect_accepted(answer, what)
                else:
                    says = [f"totals.{key}", f"{right}", f"{typed.normalize():f}"]
                    expect_found(answer, Stage.PRICE, {ESTIMATE}, what=what, says=says)
        for place, factor in enumerate(_FACTORS):
            part = bundle.estimate["manufactured_parts"][place % 3]
            path = f"manufactured_parts.{place % 3}.unit_weight_g"
            wrong = round(part["unit_weight_g"] * factor, 2)
            estimate = changed(bundle.estimate, path, wrong)
            answer = await planner.judged(bundle.replaced(estimate=estimate))
            what = f"{path} {wrong}, typed {factor} times what it is"
            says = ["unit_weight_g", f"{part['unit_weight_g']:.2f}", f"{wrong:g}"]
            expect_found(answer, Stage.PRICE, {ESTIMATE}, what=what, says=says)
        typed, says = bundle, []
        for place, part in enumerate(bundle.estimate["manufactured_parts"]):
            usd, name = part["unit_cost_usd"], f"manufactured_parts[{place}].unit_cost_usd"
            typed = _costing(typed, place, round(usd * 2, 2))
            says += [name, f"{usd:.2f}", f"{usd * 2:.2f}"]
        for path in ("manufactured_parts.0.unit_weight_g", "totals.assembly_cost_usd"):
            typed = typed.replaced(estimate=changed(typed.estimate, path, 77.77))
            says.append(path.replace(".0.", "[0]."))
        answer = await planner.judged(typed)
        what = "the cost of each part, a weight and a total typed otherwise than they are"
        expect_found(answer, Stage.PRICE, {ESTIMATE}, what=what, says=says)


def _costing(bundle: Bundle, place: int, usd: float) -> Bundle:
    """The bundle with another price of a part that is made, in plan and estimate alike."""
    part = bundle.estimate["manufactured_parts"][place]
    line = f"| `{part['id']}` | made | {part['quantity']} | "
    path = f"manufactured_parts.{place}.unit_cost_usd"
    typed = bundle.planned(f"{line}{part['unit_cost_usd']:.2f} |", f"{line}{usd:.2f} |")
    return typed.replaced(estimate=changed(bundle.estimate, path, usd))


async def test_int_010_exactly_at_the_cap(episodes: Episodes) -> None:
    """Exactly at both caps a design passes; a cent or a hundredth of a gram over, it is blocked.

    The finding has the computed total. The model provider is a stand-in: the gateway holds the planner's
    model.
    """
    async with planner_at_work(episodes, number=173) as planner:
        bundle = planner.sound()
        cost, weight = (
            Decimal(str(bundle.estimate["totals"][key])) for key in ("unit_cost_usd", "weight_g")
        )
        for _ in range(2):
            answer = await planner.judged(_at_total(bundle, cost, weight))
            expect_accepted(answer, f"a design of {cost} USD and {weight} g, exactly at its caps")
            for most, heaviest, named in (
                (cost - _CENT, weight, [("totals.unit_cost_usd", cost)]),
                (cost, weight - _CENT, [("totals.weight_g", weight)]),
                (
                    cost / 2,
                    weight / 2,
                    [("totals.unit_cost_usd", cost), ("totals.weight_g", weight)],
                ),
            ):
                caps = most.quantize(_CENT), heaviest.quantize(_CENT)
                answer = await planner.judged(_at_total(bundle, *caps))
                says = [text for place, value in named for text in (place, f"{value}")]
                what = f"a design of {cost} USD and {weight} g under caps of {caps}"
                found = expect_found(answer, Stage.PRICE, {ESTIMATE}, what=what, says=says)
                assert len(named) == len(found), f"expected {named} alone, found {found}"
                by_script = [each.where for each in (await _priced(planner)).findings]
                over = [each.where for each in found]
                expect_same(
                    over, by_script, what=f"what the script says exceeds the caps of {what}"
                )
        await _script_goes_by_the_benchmarks_caps(planner, cost, weight)
        await _each_target_is_judged(planner, cost, weight)


async def _each_target_is_judged(planner: Planner, cost: Decimal, weight: Decimal) -> None:
    """Under caps that are wide, each of the planner's own targets counts by itself, and exactly at it passes."""
    bundle = planner.sound()
    answer = await planner.judged(aiming(bundle, cost=cost, weight=weight))
    expect_accepted(answer, f"a design of {cost} USD and {weight} g, exactly at its targets")
    aimed_cost, aimed_weight = {"totals.unit_cost_usd": cost}, {"totals.weight_g": weight}
    for aims, over in (
        ({"cost": cost - _CENT}, aimed_cost),
        ({"weight": weight - _CENT}, aimed_weight),
        ({"cost": cost - 1, "weight": weight - 1}, aimed_cost | aimed_weight),
        ({"cost": cost - _CENT, "weight": weight}, aimed_cost),
        ({"cost": cost, "weight": weight - _CENT}, aimed_weight),
    ):
        answer = await planner.judged(aiming(bundle, **aims))
        what = f"a design of {cost} USD and {weight} g that misses the planner's own targets {aims}"
        says = ["target", *(f"{number}" for number in over.values())]
        found = expect_found(answer, Stage.PRICE, {ESTIMATE}, what=what, says=says)
        places = sorted(each.where for each in found)
        expect_same(sorted(over), places, what=f"what is over its target in {what}")
        told = sorted(each.where for each in (await _priced(planner)).findings)
        expect_same(sorted(over), told, what=f"what the script says is over its target in {what}")


async def _script_goes_by_the_benchmarks_caps(
    planner: Planner, cost: Decimal, weight: Decimal
) -> None:
    """Whatever caps the estimate claims: what its pricing answers stands in its event as well."""
    bundle = _at_total(planner.sound(), cost - _CENT, weight - _CENT)
    estimate = bundle.estimate
    for key in ("max_unit_cost_usd", "max_weight_g"):
        for whose in ("benchmark", "planner_target"):
            estimate = changed(estimate, f"constraints.{whose}_{key}", 9_999)
    await planner.leave(bundle.replaced(estimate=estimate).files())
    priced = await _priced(planner)
    expect_same(
        ["totals.unit_cost_usd", "totals.weight_g"],
        sorted(each.where for each in priced.findings),
        what="what exceeds the caps of the objectives, under those that an estimate claims",
    )
    event = calls(await planner.session.events(), "pricing")[-1]["payload"]
    answer = priced.model_dump(mode="json")
    expect_same(answer, {key: event[key] for key in answer}, what="a pricing and its event")


async def test_int_010_generated_designs(episodes: Episodes) -> None:
    """Over quantities, units, sizes and catalogue parts: the system computes what a small judge computes.

    Of as many catalogue parts as an estimate may have, too. The model provider is a stand-in: the gateway
    holds the planner's model.
    """
    parts = await _parts(
        episodes,
        {"category": "screw", "q": "m4"},
        {"category": "washer", "q": "m3"},
        {"category": "insert"},
        {"category": "servo"},
    )
    async with planner_at_work(episodes, number=174) as planner:

        async def check(drawn: tuple[int, int, Sequence[int]]) -> None:
            number, units, quantities = drawn
            bought = [(part, count) for part, count in zip(parts, quantities, strict=True) if count]
            bundle = sound(planner.issued, number=number, bought=bought, units=units)
            await planner.leave(
                {ESTIMATE: bundle.files()[ESTIMATE], OBJECTIVES: bundle.files()[OBJECTIVES]}
            )
            priced = await _priced(planner)
            _right(bundle, priced)
            assert not priced.written, f"right numbers were written over: {bundle.estimate}"
            over = [each.where for each in priced.findings if "totals" not in each.where]
            assert not over, f"findings about numbers that are right: {priced.findings}"

        numbers, units = st.integers(0, 999), st.sampled_from([1, 2, 7, 10, 99, 100, 1000, 10_000])
        counts = st.lists(st.sampled_from([0, 1, 2, 9, 10, 24, 25, 100]), min_size=4, max_size=4)
        await for_all(st.tuples(numbers, units, counts), check, most=50)
        halves = [
            milled("half-cent", 400_000, (100, 100, 40), units=12_000),
            moulded("half-gram", 1000, 2, units=12_000, material="polypropylene"),
        ]
        exact = [each * 100 % 1 for each in (halves[0].usd, halves[1].grams)]
        assert [Fraction(1, 2)] * 2 == exact, f"cannot round halves, these are none: {halves}"
        for made in ([halves[0]], [halves[1]], halves):
            bundle = sound(planner.issued, number=174, made=made, units=12_000)
            await planner.leave({ESTIMATE: bundle.files()[ESTIMATE]})
            _right(bundle, await _priced(planner))
        every = (await Catalogue(episodes.controller).walk(limit=25))[:_MOST_BOUGHT]
        bought = [(part, 1 + place % 3) for place, part in enumerate(every)]
        whole = sound(planner.issued, number=174, bought=bought)
        await planner.leave({path: whole.files()[path] for path in (ESTIMATE, OBJECTIVES)})
        _right(whole, await _priced(planner))
        cost, weight = (
            Decimal(str(whole.estimate["totals"][key])) for key in ("unit_cost_usd", "weight_g")
        )
        answer = await planner.judged(_at_total(whole, cost, weight))
        expect_accepted(answer, f"a design of {len(bought)} catalogue parts")


async def test_int_010_what_cannot_be_priced(episodes: Episodes) -> None:
    """Materials, methods and sizes that the shop has not are refused, by script and gate, naming what it has.

    The estimate stays as it was. The model provider is a stand-in: the gateway holds the planner's model.
    """
    cases: list[tuple[str, object, list[str]]] = [
        ("manufactured_parts.0.material", "unobtainium", ["unobtainium", "aluminium_6061"]),
        ("manufactured_parts.0.material", "Aluminium_6061", ["steel_1018"]),
        ("manufactured_parts.0.material", "abs", ["injection_moulding", "brass_c360"]),
        ("manufactured_parts.1.material", "pla_filament", ["polypropylene"]),
        ("manufactured_parts.2.material", "aluminium_6061", ["petg_filament"]),
        ("manufactured_parts.0.stock_mm", [600, 50, 20], ["stock_mm", "500"]),
        ("manufactured_parts.1.wall_mm", 4.1, ["wall_mm", "4.0"]),
        ("manufactured_parts.1.wall_mm", 0.9, ["wall_mm", "1.0"]),
        ("manufactured_parts.1.draft_deg", 0.5, ["draft_deg", "1.0"]),
        ("manufactured_parts.2.layer_mm", 0.31, ["layer_mm", "0.3"]),
        ("manufactured_parts.2.infill", 0.09, ["infill", "0.1"]),
    ]
    async with planner_at_work(episodes, number=175) as planner:
        bundle = planner.sound()
        for path, value, says in cases:
            bad = bundle.replaced(estimate=changed(bundle.estimate, path, value))
            answer = await planner.judged(bad)
            what = f"an estimate with {path} {value}"
            expect_found(answer, Stage.PRICE, {ESTIMATE}, what=what, says=says)
            answer = await planner.price()
            assert 422 == answer.status, f"expected {what} to be no estimate to price: {answer}"
            refused = PriceRefused.model_validate_json(answer.body)
            told = " ".join(
                f"{each.where} {each.found} {each.expected}" for each in refused.findings
            )
            lacking = [text for text in says if text not in told]
            assert not lacking, f"expected findings about {lacking} for {what}, found {told}"
            kept = (await planner.session.read(ESTIMATE)).json()["content"]
            assert bad.files()[ESTIMATE] == kept, f"what could not be priced was changed: {kept}"
        [part] = await _parts(episodes, {"category": "screw"})
        known = planner.sound(bought=[(part, 4)]).estimate
        unknown = changed(known, "cots_parts.0.part_id", "NO-SUCH-PART")
        await planner.leave({ESTIMATE: bundle.replaced(estimate=unknown).files()[ESTIMATE]})
        answer = await planner.price()
        assert 422 == answer.status, f"a part that the catalogue has not is priced: {answer}"
        assert "NO-SUCH-PART" in answer.text, f"expected that part to be named, found {answer}"
        for name, text in (("no estimate", None), ("an empty one", " \n"), ("no YAML", "a: [")):
            await planner.leave({ESTIMATE: text})
            answer = await planner.price()
            assert 422 == answer.status, f"expected {name} to be refused with 422, found {answer}"
        events = calls(await planner.session.events(), "pricing")
        assert not events, f"what could not be priced is priced on record: {events}"


async def _stays(episodes: Episodes, planner: Planner, bundle: Bundle, meanwhile: Bundle) -> None:
    """An estimate that is written while another is priced, whose prices are slow to come, is there afterwards."""
    await planner.leave(bundle.files())
    answers: list[Response] = []

    async def price() -> None:
        answers.append(await planner.price())

    async with trio.open_nursery() as nursery, episodes.stack.outage("controller", "pause"):
        nursery.start_soon(price)
        for _ in range(_LOOKS):
            await planner.session.read(ESTIMATE)
        await planner.leave({ESTIMATE: meanwhile.files()[ESTIMATE]})
    assert answers[0].status != 500, f"an estimate that changes while it is priced: {answers[0]}"
    found = yaml.safe_load((await planner.session.read(ESTIMATE)).json()["content"])
    what = f"parts of an estimate that was written while another was priced: {answers[0]}"
    expect_same(meanwhile.estimate["cots_parts"], found["cots_parts"], what=what)


async def test_int_010_each_round_and_each_session_has_its_own_price(breakable: Episodes) -> None:
    """A design that grew dearer is priced anew; two planners at once get the price of their own.

    What is written while an estimate is priced stays. The model provider is a stand-in: the gateway holds the
    models.
    """
    [one, other] = await _parts(breakable, {"category": "servo"}, {"category": "motor"})
    async with (
        planner_at_work(breakable, number=176) as first,
        planner_at_work(breakable, number=277) as second,
    ):
        bundles = {
            first.number: first.sound(bought=[(one, 1)], units=500),
            second.number: second.sound(bought=[(other, 1)], units=2000),
        }
        found: dict[int, Priced] = {}

        async def price(planner: Planner) -> None:
            await planner.leave(bundles[planner.number].files())
            found[planner.number] = await _priced(planner)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(price, first)
            nursery.start_soon(price, second)
        for number, priced in found.items():
            _right(bundles[number], priced)
        dearer = first.sound(bought=[(one, 2)], units=500)
        await first.leave(dearer.files())
        _right(dearer, await _priced(first))
        claimed = changed(dearer.estimate, "totals", bundles[first.number].estimate["totals"])
        answer = await first.judged(dearer.replaced(estimate=claimed))
        what = "a dearer design with the totals of the first round"
        total = f"{dearer.estimate['totals']['unit_cost_usd']:.2f}"
        expect_found(answer, Stage.PRICE, {ESTIMATE}, what=what, says=[total])
        repriced = await _priced(first)
        assert repriced.written, f"expected wrong totals to be written over, found {repriced}"
        differ = {
            f"totals.{key}"
            for key, typed in claimed["totals"].items()
            if abs(typed - dearer.estimate["totals"][key]) > dearer.estimate["totals"][key] / 100
        }
        told = {each.where for each in repriced.findings if each.where in differ}
        assert "totals.unit_cost_usd" in differ, f"cannot tell {claimed} from what is computed"
        expect_same(differ, told, what="totals that the script says were typed otherwise")
        written = yaml.safe_load((await first.session.read(ESTIMATE)).json()["content"])
        expect_same(dearer.estimate["totals"], written["totals"], what="totals that were written")
        again = await _priced(first)
        expect_same(
            (False, []), (again.written, again.findings), what="a second pricing of the same"
        )
        ids = {repriced.price_id, again.price_id, *(each.price_id for each in found.values())}
        assert 4 == len(ids), f"expected an id for each of 4 pricings, found {ids}"
        meanwhile = first.sound(bought=[(one, 3)], units=500)
        await _stays(breakable, first, dearer.replaced(estimate=claimed), meanwhile)
        alone = first.sound(made=[milled("block-176", 12_000, (42, 32, 12), units=100)], units=100)
        claimed = changed(alone.estimate, "totals.unit_cost_usd", 0.01)
        await first.leave(alone.replaced(estimate=claimed).files())
        _right(alone, await _priced(first))
        written = yaml.safe_load((await first.session.read(ESTIMATE)).json()["content"])
        what = "the estimate of one part, which nothing is put together of, once it is priced"
        expect_same(alone.estimate["totals"], written["totals"], what=what)
        expect_accepted(await first.submit(), what)
