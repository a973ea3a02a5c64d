"""The endpoints for evaluations."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from workbench_contract.fidelity import PlanFidelity
from workbench_contract.metrics import Effectiveness, Metrics, Transfer
from workbench_contract.optimality import Optimality
from workbench_controller.effectiveness import effectiveness_of
from workbench_controller.fidelity import fidelity_of_plan
from workbench_controller.metrics import metrics_of, transfer_of
from workbench_controller.optimality import optimality_of
from workbench_controller.parts import Controller, refusals

router = APIRouter(prefix="/metrics")

_PATTERN = r"^[A-Za-z0-9-]{1,64}$"
Commit = Annotated[
    str, Query(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$", examples=["5" * 40])
]
SkillName = Annotated[str | None, Query(pattern=r"^[a-z0-9-]{1,64}$")]
BatchId = Annotated[str, Query(pattern=_PATTERN)]


@router.get("/evaluations", responses=refusals(404))
async def get_evaluations(
    controller: Controller, batch_id: Annotated[str | None, Query(pattern=_PATTERN)] = None
) -> Metrics:
    """Metrics over the episodes that have ended: of a batch, or of all."""
    return await metrics_of(controller.pool, batch_id)


@router.get("/transfer", responses=refusals(404))
async def get_transfer(controller: Controller, batch_id: BatchId, baseline_id: BatchId) -> Transfer:
    """What a batch succeeds in more often than another, over the seeds that both have."""
    return await transfer_of(controller.pool, batch_id, baseline_id)


@router.get("/optimality", responses=refusals(404))
async def get_optimality(
    controller: Controller,
    benchmark_id: Annotated[str | None, Query(pattern=_PATTERN)] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
) -> Optimality:
    """Designs that reviewers called optimal, beside cheaper ones that were accepted later."""
    return await optimality_of(
        controller.pool,
        benchmark_id,
        share=controller.settings.material_share,
        limit=limit,
        offset=offset,
    )


@router.get("/fidelity", responses=refusals(404))
async def get_fidelity(
    controller: Controller,
    plan_id: Annotated[str, Query(pattern=_PATTERN)],
    limit: Annotated[int, Query(ge=1, le=20)] = 10,
    offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
) -> PlanFidelity:
    """The designs that were made of a plan, each beside the geometry that the plan's numbers give."""
    return await fidelity_of_plan(controller, plan_id, limit=limit, offset=offset)


@router.get("/skills")
async def get_effectiveness(
    controller: Controller, before: Commit, after: Commit, skill: SkillName = None
) -> Effectiveness:
    """What runs with one version of the skills succeed in more often than those with another."""
    return await effectiveness_of(controller.pool, before=before, after=after, skill=skill)
