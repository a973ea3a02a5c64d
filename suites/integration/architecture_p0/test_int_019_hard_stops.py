"""INT-019: too dear, too heavy or out of its zone, a design goes no further, and is told by how much."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

import pytest
from workbench_contract.design import DesignJudged
from workbench_contract.findings import Stage

from suites.integration.bundles import Bundle, aiming, capped, milled, sound
from suites.integration.cataloguing import Catalogue
from suites.integration.comparing import expect_same
from suites.integration.episodes import Episodes, calls
from suites.integration.planners import Coder, Planner, coder_at_work, expect_found
from suites.integration.refusals import expect_refused

pytestmark = [pytest.mark.covers("INT-019"), pytest.mark.integration_p0]

_NUMBER: Final = 191
_STOCK: Final = (44, 34, 14)


def _script(size: str = "40, 30, 10", at: str = "30, 0, 5", less: str = "") -> str:
    """A block at a place, in a build zone of x 0 to 70, y -20 to 20, z 0 to 60."""
    shape = f"Pos({at}) * Box({size}){less}"
    return f'from build123d import Box, Cylinder, Pos\n\nparts = {{"block-{_NUMBER}": {shape}}}\n'


def _at_its_caps(planner: Planner) -> Bundle:
    """A plan whose caps are what it costs and weighs."""
    made = [milled(f"block-{_NUMBER}", 12_000, _STOCK, units=100)]
    bundle = sound(planner.issued, number=_NUMBER, made=made, units=100)
    cost, weight = (
        Decimal(str(bundle.estimate["totals"][key])) for key in ("unit_cost_usd", "weight_g")
    )
    return capped(aiming(bundle, cost=cost, weight=weight), cost, weight)


async def _stopped(coder: Coder, judged: DesignJudged, wheres: Mapping[str, str]) -> None:
    """A verdict with these findings, each with its number; simulation and hand-over say the same."""
    found = {each.where: f"{each.found}; {each.expected}" for each in judged.findings}
    expect_same(sorted(wheres), sorted(found), what="places of what is exceeded")
    for where, number in wheres.items():
        assert number in found[where], f"expected {number} for {where}, found {found[where]}"
    assert not judged.passed, f"a design that exceeds {list(wheres)} has passed"
    refused = expect_refused(await coder.simulate(), 409, 422)
    answer = await coder.submit()
    told = expect_found(answer, Stage.PRICE, {"model.py"}, what=f"a design over {list(wheres)}")
    shown = " ".join(f"{each.where} {each.found}" for each in told)
    for where, number in wheres.items():
        assert where in shown, f"expected {where} told at the hand-over, found {shown}"
        assert number in refused, f"expected {number} told at the simulation, found {refused}"


async def _goes_on(coder: Coder, judged: DesignJudged, what: str) -> None:
    assert judged.passed, f"expected {what} to pass, found {judged.findings}"
    simulated = await coder.simulate()
    assert 200 == simulated.status, f"expected {what} to be simulated, found {simulated}"
    submitted = await coder.submit()
    assert 200 == submitted.status, f"expected {what} to be handed over, found {submitted}"


async def test_int_019_each_excess_is_a_hard_stop(episodes: Episodes) -> None:
    """Exactly at caps and border a design goes on; each excess blocks it, alone and with the others.

    By hand, of 40 by 30 by 10 mm from 44 by 34 by 14 mm of aluminium, 100 ordered: set-up 0.60; stock
    20 944 mm³, 56.5488 g at 6.50 USD/kg: 0.3676; 8 944 mm³ removed at 12 000 a minute and 75 USD/h: 0.9317;
    1.90 USD, and 32.40 g. Mended it goes on, spoilt again it does not. The model provider is a stand-in: the
    gateway holds the models.
    """
    async with coder_at_work(episodes, number=_NUMBER, plan=_at_its_caps) as coder:
        cost, weight = (
            coder.bundle.estimate["totals"][key] for key in ("unit_cost_usd", "weight_g")
        )
        expect_same((1.90, 32.40), (cost, weight), what="USD and grams that were computed by hand")
        await _goes_on(coder, await coder.judged(_script()), "a design exactly at both caps")
        border = _script(at="50, 5, 5")
        await _goes_on(coder, await coder.judged(border), "a design that touches its zone's border")
        hole = " - Pos(30, 0, 5) * Cylinder(4, 20)"
        dear = await coder.judged(_script(less=hole))
        await _stopped(coder, dear, {"totals.unit_cost_usd": "1.95"})
        heavy = await coder.judged(_script(size="40.5, 30, 10"))
        await _stopped(coder, heavy, {"totals.weight_g": "32.81"})
        outside = await coder.judged(_script(at="50.001, 0, 5"))
        await _stopped(coder, outside, {f"block-{_NUMBER}.max_mm.x": "70.001"})
        name = f"block-{_NUMBER}"
        below = await coder.judged(_script(at="19.5, -5.5, 4.9"))
        sides = {"min_mm.x": "-0.5", "min_mm.y": "-20.5", "min_mm.z": "-0.1"}
        await _stopped(coder, below, {f"{name}.{side}": said for side, said in sides.items()})
        all_four = _script(size="41, 31, 11", at="60, 5, 55")
        judged = await coder.judged(all_four)
        sides = {"max_mm.x": "80.5", "max_mm.y": "20.5", "max_mm.z": "60.5"}
        over = {f"{name}.{side}": said for side, said in sides.items()}
        await _stopped(coder, judged, {"totals.weight_g": "37.75", **over})
        await _goes_on(coder, await coder.judged(_script()), "the design, mended")
        again = await coder.judged(_script(less=hole))
        await _stopped(coder, again, {"totals.unit_cost_usd": "1.95"})
        priced = calls(await coder.session.events(), "pricing")
        passed = [event["payload"]["passed"] for event in priced]
        wanted = [True, True, False, False, False, False, False, True, False]
        expect_same(wanted, passed, what="verdicts on record")


async def test_int_019_caps_and_zone_are_those_that_were_handed_over(episodes: Episodes) -> None:
    """A coder who raises caps, widens the zone or changes the plan in its session gains nothing by it.

    The model provider is a stand-in: the gateway holds the models.
    """
    async with coder_at_work(episodes, number=_NUMBER, plan=_at_its_caps) as coder:
        wide = {
            name: text.replace("32.4", "999.0").replace("1.9\n", "99.0\n").replace("- 70", "- 140")
            for name, text in coder.bundle.files().items()
            if name.endswith(".yaml")
        }
        for path, text in wide.items():
            assert text != coder.bundle.files()[path], f"expected another {path}, found the same"
            await coder.session.write(path, text)
        heavy = await coder.judged(_script(size="40.5, 30, 10", at="60, 0, 5"))
        over = {"totals.weight_g": "32.81", f"block-{_NUMBER}.max_mm.x": "80.25"}
        found = sorted(each.where for each in heavy.findings)
        expect_same(sorted(over), found, what="what is exceeded of the plan that was handed over")
        expect_refused(await coder.simulate(), 409, 422, says="32.81")
        sound_again = await coder.judged(_script())
        assert sound_again.passed, f"expected the design within the plan to pass: {sound_again}"
        answer = await coder.submit()
        what = "a design beside a plan that was changed"
        expect_found(answer, Stage.AGREE, set(wide), what=what)


_LARGE: Final = 193


async def test_int_019_both_sides_of_each_axis_are_told(episodes: Episodes) -> None:
    """A part that is larger than its zone leaves it at six sides, and each is told with its number.

    The model provider is a stand-in: the gateway holds the models.
    """
    name = f"block-{_LARGE}"

    def plan(planner: Planner) -> Bundle:
        made = [milled(name, 280_000, (80, 50, 70), units=100)]
        return sound(planner.issued, number=_LARGE, made=made, units=100)

    async with coder_at_work(episodes, number=_LARGE, plan=plan) as coder:
        shape = "Pos(35, 0, 30) * Box(80, 50, 70)"
        script = f'from build123d import Box, Pos\n\nparts = {{"{name}": {shape}}}\n'
        sides = {
            "min_mm.x": "-5",
            "max_mm.x": "75",
            "min_mm.y": "-25",
            "max_mm.y": "25",
            "min_mm.z": "-5",
            "max_mm.z": "65",
        }
        judged = await coder.judged(script)
        await _stopped(coder, judged, {f"{name}.{side}": said for side, said in sides.items()})


_SEVERAL: Final = 192


def _of_several(planner: Planner, screw: Mapping[str, Any]) -> Bundle:
    """A plan of a block, two pins and four screws, whose caps are what they cost and weigh together."""
    made = [
        milled(f"block-{_SEVERAL}", 12_000, _STOCK, units=100),
        milled(f"pin-{_SEVERAL}", 2_000, (12, 12, 22), units=100, quantity=2),
    ]
    bundle = sound(planner.issued, number=_SEVERAL, made=made, bought=[(screw, 4)], units=100)
    cost, weight = (
        Decimal(str(bundle.estimate["totals"][key])) for key in ("unit_cost_usd", "weight_g")
    )
    return capped(aiming(bundle, cost=cost, weight=weight), cost, weight)


async def test_int_019_every_part_counts(episodes: Episodes) -> None:
    """Of several parts, one of them twice, and bought ones: caps are of all together, the zone of each.

    What exceeds is the second part alone. The model provider is a stand-in: the gateway holds the models.
    """
    query = {"category": "screw", "spec": ["thread=M4", "length_mm=12"], "limit": 1}
    [screw] = (await Catalogue(episodes.controller).search(**query))["candidates"]
    pin = f"pin-{_SEVERAL}"

    def script(size: str = "10, 10, 20", at: str = "60, 0, 10", less: str = "") -> str:
        block = f'"block-{_SEVERAL}": Pos(30, 0, 5) * Box(40, 30, 10)'
        shape = f'"{pin}": Pos({at}) * (Box({size}){less})'
        return f"from build123d import Box, Cylinder, Pos\n\nparts = {{{block}, {shape}}}\n"

    def plan(planner: Planner) -> Bundle:
        return _of_several(planner, screw)

    async with coder_at_work(episodes, number=_SEVERAL, plan=plan) as coder:
        cost, weight = (
            Decimal(str(coder.bundle.estimate["totals"][key]))
            for key in ("unit_cost_usd", "weight_g")
        )
        judged = await coder.judged(script())
        await _goes_on(coder, judged, "several parts exactly at both caps")
        assert judged.totals is not None, f"a design that passed has no price: {judged}"
        found = (judged.totals.unit_cost_usd, Decimal(str(judged.totals.weight_g)))
        expect_same((cost, weight), found, what="USD and grams of several parts, as planned")
        beside = await coder.judged(script(at="60, 15.5, 10"))
        await _stopped(coder, beside, {f"{pin}.max_mm.y": "20.5"})
        # Half a millimetre more of two pins: 100 mm3 of aluminium.
        heavy = await coder.judged(script(size="10, 10, 20.5", at="60, 0, 10.25"))
        await _stopped(coder, heavy, {"totals.weight_g": f"{weight + Decimal('0.27'):.2f}"})
        dear = await coder.judged(script(less=" - Cylinder(2, 30)"))
        await _stopped(coder, dear, {"totals.unit_cost_usd": f"{cost:.2f}"})
        await _goes_on(coder, await coder.judged(script()), "several parts, mended")
