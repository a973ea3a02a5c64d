"""What a plan's numbers give is the geometry of the designs that were made of it, or how far they are is told."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import pytest
import trio
from workbench_contract.fidelity import Fidelity, PartFidelity, PlanFidelity

from harness_core.base.slowness import patience
from harness_core.doubles.http import Response
from suites.integration.bundles import sound
from suites.integration.comparing import expect_same
from suites.integration.episodes import Episodes
from suites.integration.messages import answered
from suites.integration.planners import (
    Coder,
    at_work,
    expect_accepted,
    handover,
    planner_at_work,
)
from suites.integration.rebuilding import Block, Pin, farthest, planned, script_of
from suites.integration.refusals import expect_refused

pytestmark = [pytest.mark.covers("INT-046"), pytest.mark.integration_p2]

_UNKNOWN: Final = "00000000-0000-4000-8000-000000000046"

#: What is sampled is no farther than what is there, and not much nearer.
_NEAREST: Final = 0.8

#: What a plan is of: a plate with a hole, and a block above it.
_PLATE: Final = Block(name="plate", at=(30, 0, 5), size=(40, 30, 10), hole=(24, 3, 4))
_BLOCK: Final = Block(name="block", at=(31, -2, 30), size=(22, 20, 12))
#: And of pins that lie: along x, and along y.
_ALONG_X: Final = Pin(name="pin", at=(29, 3, 48), radius=3.5, length=19, along="x")
_ALONG_Y: Final = Pin(name="pin", at=(33, -4, 47), radius=4, length=17, along="y")


async def test_int_046_designs_of_a_plan_beside_its_numbers(breakable: Episodes) -> None:
    """Four designs of two coders are told as they are: volume, box and surface, each part, where it stands.

    One that has all of its plan is preserved, and one that is off by less than is configured; a hole that was
    moved, one that nobody planned, and a part elsewhere are not. Told twice, at once and after the worker was
    killed, it is the same; while the worker is away nothing is told. The model provider is a stand-in.
    """
    episodes = breakable
    plan_id = await _plan_handed(
        episodes, 461, planned(_PLATE, units=100), planned(_BLOCK, units=100)
    )
    none = await _of_plan(episodes, plan_id)
    expect_same(([], 0, 0, None), _told(none), what="a plan that nobody has made")
    assert none.missing.strip(), f"what is missing is said: found {none}"
    off = 0.75 * min(none.tolerance.box_mm, none.tolerance.surface_mm)
    hole = Block(name="plate", at=_PLATE.at, size=_PLATE.size, hole=(25.5, 3, 4))
    holed = Block(name="block", at=_BLOCK.at, size=_BLOCK.size, hole=(32, -3, 3))
    designs = [
        (_PLATE, _BLOCK),
        (hole, _BLOCK.moved(0, 0, 2)),
        (_PLATE.moved(0, off, 0), _BLOCK),
        (_PLATE, holed),
    ]
    made = [
        *await _made(episodes, plan_id, designs[:2]),
        *await _made(episodes, plan_id, designs[2:]),
    ]
    whole = [True, False, True, False]

    looked_at: list[Fidelity] = []

    async def look(design: str) -> None:
        looked_at.append(await _of_design(episodes, design))

    async with trio.open_nursery() as nursery:
        for design in (*made, made[1]):
            nursery.start_soon(look, design)
    found = [[each for each in looked_at if each.handover_id == design] for design in made]
    expect_same(found[1][0], found[1][1], what="a design that is looked at twice at once")
    for (one, *_), blocks, within in zip(found, designs, whole, strict=True):
        expect_same((plan_id, within, ""), (one.plan_id, one.within, one.missing), what="a design")
        _are(one, [_PLATE, _BLOCK], blocks)
    page = await _of_plan(episodes, plan_id)
    expect_same(4, page.total, what="designs of the plan")
    expect_same([one for one, *_ in found], page.designs, what="the designs of the plan, in order")
    expect_same((4, 0.5), (page.judged, page.preserved), what="how many are preserved")
    second = await _of_plan(episodes, plan_id, limit="1", offset="1")
    expect_same((page.designs[1:2], 4, 1, 0.0), _told(second), what="the second page of one")

    async with episodes.stack.outage("worker", "kill"):
        expect_refused(await _ask(episodes, made[0]), 503)
    expect_same(found[3][0], await _of_design(episodes, made[3]), what="a design after the outage")


async def test_int_046_what_a_plan_says_decides(episodes: Episodes) -> None:
    """With one dimension of the plan changed the same design is outside; without numbers nothing is told.

    A pin that lies along x or y is as planned where it does. The model provider is a stand-in.
    """
    wider = Block(name="plate", at=_PLATE.at, size=(41, 30, 10), hole=_PLATE.hole)
    parts = [planned(each, units=90) for each in (wider, _BLOCK, _ALONG_Y)]
    changed = await _plan_handed(episodes, 462, *parts)
    [design] = await _made(episodes, changed, [(_PLATE, _BLOCK, _ALONG_Y)])
    found = await _of_design(episodes, design)
    expect_same((changed, False), (found.plan_id, found.within), what="a design of another width")
    _are(found, [wider, _BLOCK, _ALONG_Y], (_PLATE, _BLOCK, _ALONG_Y))
    expect_same(
        [False, True, True], [each.within for each in found.parts], what="which parts are within"
    )

    mute = planned(_PLATE, units=80, numbers=False)
    parts = [planned(each, units=80) for each in (_BLOCK, _ALONG_X)]
    silent = await _plan_handed(episodes, 463, mute, *parts)
    shifted = (_PLATE, _BLOCK.moved(1, 0, 0), _ALONG_X)
    bare, wrong = await _made(episodes, silent, [(_PLATE, _BLOCK, _ALONG_X), shifted])
    found = await _of_design(episodes, bare)
    expect_same(None, found.within, what="a design of which a part cannot be told")
    assert "plate" in found.missing, f"what is missing is said: found {found.missing!r}"
    unknown, known, pin = found.parts
    seen = (unknown.deviation, unknown.within, unknown.planned_mm3)
    expect_same((None, None, None), seen, what="a part that the plan has no numbers of")
    _is(known, _BLOCK, _BLOCK)
    _is(pin, _ALONG_X, _ALONG_X)
    page = await _of_plan(episodes, silent)
    expect_same([None, False], [each.within for each in page.designs], what="designs of the plan")
    expect_same((2, 1, 0.0), (page.total, page.judged, page.preserved), what="what can be told")
    expect_same(wrong, page.designs[1].handover_id, what="the design that is outside")

    expect_refused(await _ask(episodes, silent), 409, says=silent)
    expect_refused(await _ask(episodes, _UNKNOWN), 404, says=_UNKNOWN)
    for plan_id in (_UNKNOWN, design):
        answer = await episodes.controller.get("/metrics/fidelity", params={"plan_id": plan_id})
        expect_refused(answer, 404, says=plan_id)


async def _plan_handed(episodes: Episodes, number: int, *made: Any) -> str:
    """A planner's hand-over of these parts; its id."""
    async with planner_at_work(episodes, number=number) as planner:
        units = {461: 100, 462: 90, 463: 80}[number]
        bundle = sound(planner.issued, number=number, made=made, units=units)
        accepted = expect_accepted(await planner.judged(bundle), f"the plan {number}")
        await handover(episodes.controller, accepted.handover_id)
    return accepted.handover_id


async def _made(
    episodes: Episodes, plan_id: str, designs: Sequence[Sequence[Block | Pin]]
) -> list[str]:
    """A coder who hands over one design after another; their ids."""
    made = []
    async with at_work(episodes, role="coder", handover_id=plan_id) as (started, session, _):
        coder = Coder(episode_id=started["episode_id"], session=session, bundle=None)
        for blocks in designs:
            verdict = await coder.judged(script_of(*blocks))
            assert verdict.passed, f"expected the design to pass, found {verdict.findings}"
            answer = await coder.submit()
            assert 200 == answer.status, f"expected the design handed over, found {answer}"
            made.append(answer.json()["handover_id"])
            await handover(episodes.controller, made[-1])
    return made


async def _ask(episodes: Episodes, design: str) -> Response:
    return await episodes.controller.get(f"/handovers/{design}/fidelity", seconds=patience(60))


async def _of_design(episodes: Episodes, design: str) -> Fidelity:
    answer = await _ask(episodes, design)

    assert 200 == answer.status, f"expected a design beside its plan, found {answer}"
    found = answered(answer, Fidelity)
    expect_same(design, found.handover_id, what="the design that is told of")
    return found


async def _of_plan(episodes: Episodes, plan_id: str, **page: str) -> PlanFidelity:
    answer = await episodes.controller.get(
        "/metrics/fidelity", params={"plan_id": plan_id, **page}, seconds=patience(60)
    )

    assert 200 == answer.status, f"expected the designs of a plan, found {answer}"
    found = answered(answer, PlanFidelity)
    expect_same(plan_id, found.plan_id, what="the plan that is told of")
    return found


def _told(found: PlanFidelity) -> tuple[list[Fidelity], int, int, float | None]:
    return found.designs, found.total, found.judged, found.preserved


def _are(found: Fidelity, plan: Sequence[Block | Pin], built: Sequence[Block | Pin]) -> None:
    """All parts of a plan, in its order, as they were planned and built."""
    names = [each.name for each in plan]
    expect_same(names, [each.part for each in found.parts], what="the parts of the plan")
    for part, wanted, made in zip(found.parts, plan, built, strict=True):
        _is(part, wanted, made)
        assert part.deviation is not None, f"a part that can be compared: found {part}"
        within = all(
            getattr(part.deviation, each) <= getattr(found.tolerance, each)
            for each in ("volume_share", "box_mm", "surface_mm")
        )
        expect_same(within, part.within, what=f"whether {part.part} is within the tolerance")


def _is(part: PartFidelity, wanted: Block | Pin, made: Block | Pin) -> None:
    """A part is as far from what was planned as a calculation of our own says."""
    volumes = (part.planned_mm3 or 0.0, part.built_mm3 or 0.0)
    for expected, volume in zip((wanted.volume, made.volume), volumes, strict=True):
        same = math.isclose(expected, volume, rel_tol=1e-6)
        assert same, f"expected {part.part} of {expected} mm³, found {volume}"
    expect_same("", part.missing, what=f"what is missing of {part.part}")
    assert part.deviation is not None, f"a part that can be compared: found {part}"
    share = abs(made.volume - wanted.volume) / wanted.volume
    box = max(abs(a - b) for a, b in zip(wanted.box, made.box, strict=True))
    for name, expected in (("volume_share", share), ("box_mm", box)):
        found = getattr(part.deviation, name)
        same = math.isclose(expected, found, abs_tol=1e-5)
        assert same, f"expected {name} of {part.part} {expected}, found {found}"
    most, found = farthest(wanted, made), part.deviation.surface_mm
    near = _NEAREST * most - 1e-4 <= found <= most + 0.05
    assert near, f"expected surface_mm of {part.part} {most} as it is sampled, found {found}"
