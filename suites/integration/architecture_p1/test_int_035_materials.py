"""INT-035: a part is of a material that the shop has, and is priced, weighed and simulated as that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest
from workbench_contract.findings import Stage

from suites.integration.bundles import ESTIMATE, Bundle, changed, milled, printed, sound
from suites.integration.comparing import expect_same
from suites.integration.episodes import Episodes
from suites.integration.planners import (
    Coder,
    Planner,
    coder_at_work,
    expect_found,
    planner_at_work,
)
from suites.integration.refusals import expect_refused

pytestmark = [pytest.mark.covers("INT-035"), pytest.mark.integration_p1]

#: Material → g/cm³ of a block of it; a print at half has half.
_DENSITIES: Final = {
    "aluminium_6061": 2.70,
    "steel_1018": 7.87,
    "pom_stock": 1.41,
    "petg_filament": 0.635,
}


def _plan(number: int, material: str) -> Callable[[Planner], Bundle]:
    """One block of 40 by 30 by 10 mm."""
    name = f"block-{number}"
    part = (
        printed(name, 12_000, units=100, material=material, infill="0.5")
        if material.endswith("filament")
        else milled(name, 12_000, (40, 30, 10), units=100, material=material)
    )
    return lambda planner: sound(planner.issued, number=number, made=[part], units=100)


async def _falls(coder: Coder) -> float:
    """The energy of the block after a moment of falling freely, in J."""
    answer = await coder.session.post("/benchmark/simulate", duration_s=0.04, seed=35)

    assert 200 == answer.status, f"expected the block to be simulated, found {answer}"
    energy: float = answer.json()["energy_j"]
    return energy


async def test_int_035_each_material_has_its_own_mass(episodes: Episodes) -> None:
    """The same block of several materials weighs, by verdict and in simulation, what each material weighs.

    What is not validated of its material is not simulated. The model provider is a stand-in: the gateway
    holds the models.
    """
    energies, weights = {}, {}
    for place, (material, density) in enumerate(_DENSITIES.items()):
        number = 351 + place
        async with coder_at_work(episodes, number=number, plan=_plan(number, material)) as coder:
            script = (
                "from build123d import Box, Pos\n\n"
                f'parts = {{"block-{number}": Pos(30, 0, 5) * Box(40, 30, 10)}}\n'
            )
            await coder.session.write("model.py", script)
            expect_refused(await coder.simulate(), 409, 422)
            judged = await coder.judged(script)
            assert judged.passed, f"expected a block of {material} to pass, found {judged.findings}"
            assert judged.totals is not None, f"a design that passed weighs nothing: {judged}"
            weights[material] = judged.totals.weight_g
            expect_same(round(12 * density, 2), weights[material], what=f"grams of {material}")
            energies[material] = await _falls(coder)
    whole = energies["aluminium_6061"] / 2.70
    for material, density in _DENSITIES.items():
        near = energies[material] == pytest.approx(whole * density, rel=1e-3)
        assert near, f"expected the energy of {density} g/cm³ for {material}, found {energies}"


async def test_int_035_what_the_shop_has_not(episodes: Episodes) -> None:
    """A material that there is not, or not for the method, is refused, and the choices are named.

    A coder who names another one in its copy of the plan gains nothing by it. The model provider is a
    stand-in: the gateway holds the models.
    """
    async with planner_at_work(episodes, number=358) as planner:
        bundle = planner.sound()
        for place, material, says in (
            (0, "unobtainium", ["unobtainium", "aluminium_6061", "steel_1018"]),
            (0, "aluminium", ["aluminium_6061"]),
            (0, "Steel_1018", ["steel_1018"]),
            (0, "steel_1018s", ["steel_1018"]),
            (0, "pla_filament", ["brass_c360"]),
            (1, "abs_filament", ["polypropylene"]),
            (2, "abs", ["abs_filament"]),
            (2, "\u30dd\u30ea\u4e73\u9178", ["pla_filament"]),
        ):
            path = f"manufactured_parts.{place}.material"
            for _ in range(2):
                bad = bundle.replaced(estimate=changed(bundle.estimate, path, material))
                answer = await planner.judged(bad)
                what = f"a part of {material}"
                expect_found(answer, Stage.PRICE, {ESTIMATE}, what=what, says=says)
    plan = _plan(359, "brass_c360")
    async with coder_at_work(episodes, number=359, plan=plan) as coder:
        text = coder.bundle.files()[ESTIMATE].replace("brass_c360", "unobtainium")
        await coder.session.write(ESTIMATE, text)
        judged = await coder.judged(
            "from build123d import Box, Pos\n\npart = Pos(30, 0, 5) * Box(40, 30, 10)\n"
        )
        assert judged.totals is not None, f"a block of brass is not priced: {judged}"
        expect_same(102.0, judged.totals.weight_g, what="grams of brass, as it was planned")
        answer = await coder.submit()
        expect_found(answer, Stage.AGREE, {ESTIMATE}, what="a plan whose material was changed")
