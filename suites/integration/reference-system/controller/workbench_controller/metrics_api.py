"""The endpoints for evaluations."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from workbench_contract.metrics import Metrics, Transfer
from workbench_controller.metrics import metrics_of, transfer_of
from workbench_controller.parts import Controller, refusals

router = APIRouter(prefix="/metrics")

_PATTERN = r"^[A-Za-z0-9-]{1,64}$"
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
