"""The endpoints for batches."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path
from fastapi.responses import JSONResponse

from workbench_contract.batches import (
    Batch,
    BatchAccepted,
    BatchInterruptAccepted,
    BatchRefused,
    BatchRequest,
)
from workbench_contract.problem import Problem
from workbench_controller.batches import batch_of, interrupt_batch, submit_batch
from workbench_controller.parts import Controller, refusals

router = APIRouter()

BatchId = Annotated[str, Path(pattern=r"^[A-Za-z0-9-]{1,64}$")]


@router.post(
    "/episodes/batch",
    status_code=202,
    response_model=BatchAccepted,
    responses=refusals(404) | {503: {"model": BatchRefused | Problem}},
)
async def post_batch(request: BatchRequest, controller: Controller) -> Any:
    """Submit several episodes; with 503 each exists, and has failed."""
    accepted, problem = await submit_batch(controller, request)
    if problem is None:
        return accepted
    detail = f"{problem}. Submit it again when Temporal serves"
    refused = BatchRefused(
        detail=detail, batch_id=accepted.batch_id, episodes=accepted.episodes
    )
    return JSONResponse(refused.model_dump(mode="json"), status_code=503)


@router.get("/batches/{batch_id}", responses=refusals(404))
async def get_batch(batch_id: BatchId, controller: Controller) -> Batch:
    """A batch with all its episodes, and how many stand where."""
    return await batch_of(controller, batch_id)


@router.post("/batches/{batch_id}/interrupt", status_code=202, responses=refusals(404, 409, 503))
async def post_interrupt(batch_id: BatchId, controller: Controller) -> BatchInterruptAccepted:
    """End all episodes early that have not ended; their statuses show when they have."""
    return await interrupt_batch(controller, batch_id)
