"""INT-018: what a design reads as a drawing is a part of it, as what it imports."""

from __future__ import annotations

import re
from typing import Final

import pytest
from workbench_contract.design import DesignJudged

from suites.integration.bundles import Bundle, milled, sound
from suites.integration.comparing import expect_same
from suites.integration.episodes import Episodes
from suites.integration.planners import Coder, Planner, coder_at_work
from suites.integration.refusals import expect_refused

pytestmark = [pytest.mark.covers("INT-018"), pytest.mark.integration_p0]

_NUMBER: Final = 1802
_DRAWING: Final = "given/outline.svg"
_SCRIPT: Final = f"""\
from build123d import Pos, extrude, import_svg

[outline] = import_svg("{_DRAWING}")
block = extrude(outline, amount=10, dir=(0, 0, 1))
middle = block.bounding_box().center()
parts = {{"block-{_NUMBER}": Pos(30 - middle.X, -middle.Y, 5 - middle.Z) * block}}
"""


def _outline(side_mm: int) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{side_mm}mm" height="30mm" '
        f'viewBox="0 0 {side_mm} 30"><path fill="black" d="M0,0 H{side_mm} V30 H0 Z"/></svg>\n'
    )


def _plan(planner: Planner) -> Bundle:
    made = [milled(f"block-{_NUMBER}", 12_000, (42, 32, 12), units=100)]
    return sound(planner.issued, number=_NUMBER, made=made, units=100)


async def _passed(coder: Coder, what: str) -> float:
    """Grams of a design that must pass."""
    answer = await coder.validated()
    assert 200 == answer.status, f"expected a verdict on {what}, found {answer}"
    judged = DesignJudged.model_validate_json(answer.body)
    assert judged.passed, f"expected {what} to pass, found {judged.findings}"
    assert judged.totals is not None, f"{what} has passed and weighs nothing: {judged}"
    return judged.totals.weight_g


async def test_int_018_a_drawing_that_is_read_is_a_part_of_the_design(episodes: Episodes) -> None:
    """With another drawing it is another design, which has not passed; with the first one it has again.

    The model provider is a stand-in: the gateway holds the models.
    """
    async with coder_at_work(episodes, number=_NUMBER, plan=_plan) as coder:
        await coder.session.write(_DRAWING, _outline(40))
        await coder.session.write("model.py", _SCRIPT)
        planned = coder.bundle.estimate["totals"]["weight_g"]
        grams = await _passed(coder, "a block of a drawing")
        expect_same(planned, grams, what="grams of a block of a drawing")
        await coder.session.write(_DRAWING, _outline(38))
        expect_refused(await coder.simulate(), 409, 422, says=re.escape(_DRAWING))
        refused = await coder.submit()
        assert 422 == refused.status, f"expected another drawing not to be handed over: {refused}"
        await coder.session.write(_DRAWING, _outline(40))
        simulated = await coder.simulate()
        assert 200 == simulated.status, f"expected the first drawing to have passed: {simulated}"
