"""Benchmarks that were approved, and flows that solve them at a cost of their own.

What a design costs is computed here (``bundles.py``): of the same block it follows from how many are ordered.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from workbench_contract.benchmark import ReviewDecision as Decision
from workbench_contract.handover import GEOMETRY

from suites.integration.bundles import OBJECTIVES, PLAN, TODO
from suites.integration.environments import (
    environment_of,
    expect_handed,
    hand_over,
    planned,
)
from suites.integration.episodes import Episodes
from suites.integration.flows import (
    block_of,
    design_handed,
    flow_at_work,
    plan_handed,
    planner_of,
)
from suites.integration.planners import handover
from suites.integration.reviews import decided

__all__ = ["Approved", "Solution", "benchmark_approved", "solved"]

_MODEL: Final = "model.py"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Approved:
    """A benchmark that was approved: the id of its flow, and its objectives."""

    id: str
    objectives: dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """A design, and the last decision about it.

    Attributes:
        handover_id: of the design.
        usd: that one unit costs.
    """

    flow_id: str
    handover_id: str
    decision_id: str
    usd: Decimal


async def benchmark_approved(episodes: Episodes, number: int) -> Approved:
    """A benchmark, planned, made and approved in a flow."""
    async with flow_at_work(episodes, "/benchmarks") as flow:
        async with flow.turn("planner", 1) as turn:
            planner = planner_of(turn, number)
            bundle = planner.sound()
            await planner.leave(planned(bundle.files()))
            expect_handed(await planner.submit(), {PLAN, TODO, OBJECTIVES}, what="the objectives")
        async with flow.turn("coder", 1) as turn:
            files = environment_of(number)
            for path, text in files.items():
                await turn.session.write(path, text)
            answer = await hand_over(turn.session)
            expect_handed(answer, {PLAN, TODO, OBJECTIVES, *files}, what="the environment")
        async with flow.turn("reviewer", 1) as turn:
            await decided(turn.session, Decision.APPROVED, paths=[GEOMETRY])
        await flow.until("completed")
    return Approved(id=flow.id, objectives=bundle.objectives)


async def solved(
    episodes: Episodes,
    benchmark: Approved,
    *reviews: tuple[Decision, Mapping[str, Any]],
    number: int,
    units: int,
) -> Solution:
    """A flow that solves a benchmark with a block.

    Args:
        episodes: of the stack.
        benchmark: that it solves.
        reviews: what its reviewer decides in its only turn, with other fields of the review; the last one counts.
        number: of its bundle.
        units: that are ordered together.
    """
    async with flow_at_work(episodes, benchmark_id=benchmark.id) as flow:
        async with flow.turn("planner", 1) as turn:
            bundle = await plan_handed(turn, number, benchmark.objectives, units=units)
        async with flow.turn("coder", 1) as turn:
            design = await design_handed(turn, bundle, block_of(number))
        async with flow.turn("reviewer", 1) as turn:
            made = await _decided(turn.session, reviews)
            await handover(episodes.controller, made)
        if reviews[-1][0] is Decision.APPROVED:
            await flow.until("completed")
    return Solution(
        flow_id=flow.id,
        handover_id=design,
        decision_id=made,
        usd=Decimal(str(bundle.estimate["totals"]["unit_cost_usd"])),
    )


async def _decided(session: Any, reviews: Sequence[tuple[Decision, Mapping[str, Any]]]) -> str:
    """Decide, once or again; the id of the last decision."""
    made = ""
    for decision, more in reviews:
        words = [] if decision is Decision.APPROVED else ["It can be done better."]
        made = await decided(session, decision, *words, paths=[_MODEL], **more)
    return made
