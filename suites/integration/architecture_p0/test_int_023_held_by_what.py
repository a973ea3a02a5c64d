"""INT-023: what a script holds together is held by fasteners, and what has none is not held."""

from __future__ import annotations

import json
from typing import Any, Final

import mujoco
import pytest
from workbench_contract.design import CONNECTIONS, DesignJudged

from suites.integration.assemblies import exported
from suites.integration.bundles import Bundle, milled, printed, sound
from suites.integration.cataloguing import Catalogue
from suites.integration.comparing import expect_same
from suites.integration.episodes import Episodes
from suites.integration.planners import Coder, Planner, coder_at_work
from suites.integration.refusals import expect_refused

pytestmark = [pytest.mark.covers("INT-023"), pytest.mark.integration_p0]

_NUMBER: Final = 233
_LID, _BOX = f"lid-{_NUMBER}", f"box-{_NUMBER}"
_HOLES_X_MM: Final = (15.0, 55.0)

_APART: Final = f"""\
from build123d import Box, Cylinder, Pos, RigidJoint

lid = Pos(35, 0, 22.5) * Box(60, 38, 5)
box = Pos(35, 0, 10) * Box(60, 38, 20)
for x in {_HOLES_X_MM}:
    lid -= Pos(x, 0, 22.5) * Cylinder(2, 30)
    box -= Pos(x, 0, 16) * Cylinder(2, 8)
parts = {{"{_LID}": lid, "{_BOX}": box}}
"""
_JOINED: Final = (
    _APART
    + 'RigidJoint("rim", box, Pos(35, 0, 20)).connect_to(RigidJoint("sole", lid, Pos(35, 0, 20)))\n'
)


def _held(part_id: str) -> dict[str, Any]:
    """Two screws through the lid into the box."""
    fasteners = []
    for number, x in enumerate(_HOLES_X_MM):
        hole = {"axis": (0.0, 0.0, 1.0), "diameter_mm": 4.0}
        holes = [
            {**hole, "part": _LID, "at_mm": (x, 0.0, 22.5), "holds": False},
            {**hole, "part": _BOX, "at_mm": (x, 0.0, 18.0), "holds": True},
        ]
        screw = {"part_id": part_id, "diameter_mm": 4.0, "length_mm": 12.0, "holes": holes}
        fasteners.append({"name": f"screw-{number}", **screw})
    return {"pairs": [{"parts": [_LID, _BOX], "fasteners": fasteners}]}


async def _judged(coder: Coder, script: str, connections: dict[str, Any] | None) -> DesignJudged:
    if connections is None:
        await coder.session.post("/fs/delete", path=CONNECTIONS)
    else:
        await coder.session.write(CONNECTIONS, json.dumps(connections))
    return await coder.judged(script)


async def _pieces(coder: Coder) -> int:
    """How many pieces of the design move by themselves, by the model that it is simulated as."""
    _, moved = await exported(coder.session)
    kinds = [moved.model.jnt_type[number] for number in range(moved.model.njnt)]
    return kinds.count(mujoco.mjtJoint.mjJNT_FREE)


async def test_int_023_who_leaves_the_fasteners_out_holds_nothing(episodes: Episodes) -> None:
    """A rigid joint of the script without fasteners is refused, with no connections.json as with one that lacks the pair.

    Without the joint both parts fall apart; with two screws they are one. The model provider is a stand-in:
    the gateway holds the models.
    """
    query = {"category": "screw", "spec": ["thread=M4", "length_mm=12"], "limit": 1}
    [screw] = (await Catalogue(episodes.controller).search(**query))["candidates"]

    def plan(planner: Planner) -> Bundle:
        made = [
            printed(_LID, 11_274.3, units=100, infill="0.5"),
            milled(_BOX, 45_398.9, (60, 38, 20), units=100),
        ]
        return sound(planner.issued, number=_NUMBER, made=made, bought=[(screw, 2)], units=100)

    held = _held(screw["part_id"])
    async with coder_at_work(episodes, number=_NUMBER, plan=plan) as coder:
        for what, connections in (("no connections.json", None), ("no pair", {"pairs": []})):
            judged = await _judged(coder, _JOINED, connections)
            assert not judged.passed, (
                f"expected a rigid joint with {what} to need two fasteners, found {judged}"
            )
            files = {each.file for each in judged.findings}
            expect_same({CONNECTIONS}, files, what=f"files with findings for {what}")
            told = " ".join(f"{each.found} {each.expected}" for each in judged.findings)
            lacking = [name for name in (_LID, _BOX) if name not in told]
            assert not lacking, f"expected both parts named for {what}, {lacking} are not: {told}"
            expect_refused(await coder.simulate(), 409, 422)
        judged = await _judged(coder, _JOINED, held)
        assert judged.passed, f"expected two screws to hold a rigid joint, found {judged.findings}"
        expect_same(1, await _pieces(coder), what="pieces of two parts that two screws hold")
        await coder.session.post("/fs/delete", path=CONNECTIONS)
        expect_refused(await coder.simulate(), 409, 422, says=r"connections\.json")
        judged = await _judged(coder, _APART, None)
        if judged.passed:
            expect_same(2, await _pieces(coder), what="pieces of two parts that nothing holds")
        judged = await _judged(coder, _APART, held)
        assert judged.passed, f"expected two screws to hold two parts, found {judged.findings}"
        expect_same(1, await _pieces(coder), what="pieces of two parts that two screws hold again")
