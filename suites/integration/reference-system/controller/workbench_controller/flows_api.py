"""The endpoints for flows, benchmarks, and what was decided in them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from fastapi.responses import JSONResponse

from workbench_contract.episodes import EpisodeStatus, Purpose
from workbench_contract.flows import (
    BenchmarkRequest,
    DecisionList,
    Flow,
    FlowAccepted,
    FlowInterruptAccepted,
    FlowList,
    FlowRefused,
    FlowRequest,
)
from workbench_contract.problem import Problem
from workbench_controller import decisions, flow_records
from workbench_controller.flow_submission import submit_flow
from workbench_controller.interruption import interrupt_flow
from workbench_controller.parts import Controller, Refused, refusals
from workbench_foundation import faults

router = APIRouter()

_PATTERN = r"^[A-Za-z0-9-]{1,64}$"
FlowId = Annotated[str, Path(pattern=_PATTERN)]
Wanted = Annotated[str | None, Query(pattern=_PATTERN)]
Limit = Annotated[int, Query(ge=1, le=500)]
Offset = Annotated[int, Query(ge=0, le=1_000_000)]


@router.post(
    "/benchmarks",
    status_code=202,
    response_model=FlowAccepted,
    responses={503: {"model": FlowRefused | Problem}},
)
async def post_benchmark(request: BenchmarkRequest, controller: Controller) -> Any:
    """Have a benchmark made; with 503 its flow exists, and has failed."""
    return await _submitted(controller, request, Purpose.BENCHMARK)


@router.get("/benchmarks/{flow_id}", responses=refusals(404))
async def get_benchmark(flow_id: FlowId, controller: Controller) -> Flow:
    """A benchmark's flow; its hand-over is the benchmark, once it is approved."""
    found = await flow_records.flow(controller.pool, flow_id)
    if found is None or found.purpose is not Purpose.BENCHMARK:
        raise Refused(404, f"cannot find benchmark {flow_id}: there is none. Check the id")
    return found


@router.post(
    "/flows",
    status_code=202,
    response_model=FlowAccepted,
    responses=refusals(404, 409) | {503: {"model": FlowRefused | Problem}},
)
async def post_flow(request: FlowRequest, controller: Controller) -> Any:
    """Have a design made, for a benchmark or without one; with 503 its flow exists, and has failed."""
    return await _submitted(controller, request, Purpose.ENGINEERING)


@router.get("/flows")
async def get_flows(
    controller: Controller,
    purpose: Purpose | None = None,
    status: EpisodeStatus | None = None,
    limit: Limit = 50,
    offset: Offset = 0,
) -> FlowList:
    """Flows, latest first."""
    return await flow_records.page(
        controller.pool, purpose=purpose, status=status, limit=limit, offset=offset
    )


@router.get("/flows/{flow_id}", responses=refusals(404))
async def get_flow(flow_id: FlowId, controller: Controller) -> Flow:
    """A flow with its steps and decisions."""
    found = await flow_records.flow(controller.pool, flow_id)
    if found is None:
        raise Refused(404, f"cannot find flow {flow_id}: there is none. Check the id")
    return found


@router.post("/flows/{flow_id}/interrupt", status_code=202, responses=refusals(404, 409, 503))
async def post_interrupt(flow_id: FlowId, controller: Controller) -> FlowInterruptAccepted:
    """End a flow early, and whose turn it is; its status shows when it has ended."""
    return await interrupt_flow(controller, flow_id)


@router.get("/decisions")
async def get_decisions(
    controller: Controller,
    flow_id: Wanted = None,
    episode_id: Wanted = None,
    handover_id: Wanted = None,
    limit: Limit = 50,
    offset: Offset = 0,
) -> DecisionList:
    """Decisions of a flow, of an episode, about a hand-over; in the order in which they were made."""
    found, total = await decisions.page(
        controller.pool,
        flow_id=flow_id,
        episode_id=episode_id,
        handover_id=handover_id,
        limit=limit,
        offset=offset,
    )
    if faults.on("fuzz-decisions-drift") and not found:
        return JSONResponse({"decisions": []})
    return DecisionList(decisions=found, total=total)


async def _submitted(
    controller: Controller, request: BenchmarkRequest, purpose: Purpose
) -> FlowAccepted | JSONResponse:
    accepted, problem = await submit_flow(controller, request, purpose)
    if problem is None:
        return accepted
    refused = FlowRefused(
        detail=f"{problem}. Submit it again when Temporal serves",
        flow_id=accepted.flow_id,
        status=accepted.status,
    )
    return JSONResponse(refused.model_dump(mode="json"), status_code=503)
