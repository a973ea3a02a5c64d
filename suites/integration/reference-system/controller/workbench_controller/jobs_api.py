"""The endpoints for jobs, and for what workers report of them."""

from __future__ import annotations

import hmac
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query, Request
from fastapi.responses import JSONResponse

from workbench_contract.jobs import (
    JOB_ID,
    SIGNATURE,
    Callback,
    CallbackTaken,
    Job,
    JobList,
    JobRefused,
    JobRequest,
    signature_of,
)
from workbench_contract.problem import Problem
from workbench_controller import jobs
from workbench_controller.episodes_api import EpisodeId
from workbench_controller.parts import Controller, Refused, refusals
from workbench_foundation import faults

router = APIRouter()

JobId = Annotated[str, Path(pattern=JOB_ID)]


@router.post(
    "/episodes/{episode_id}/jobs",
    status_code=202,
    response_model=Job,
    responses=refusals(404) | {503: {"model": JobRefused | Problem}},
)
async def post_job(episode_id: EpisodeId, wanted: JobRequest, controller: Controller) -> Any:
    """Begin long work in the session of an episode. With 503 the job is on record, and has failed."""
    job, problem = await jobs.submit(controller, episode_id, wanted)
    if problem is None:
        return job
    detail = f"cannot begin the job: {problem}. Ask for another when the worker serves"
    refused = JobRefused(detail=detail, job_id=job.job_id, status=job.status)
    return JSONResponse(refused.model_dump(mode="json"), status_code=503)


@router.get("/episodes/{episode_id}/jobs", responses=refusals(404))
async def get_jobs(
    episode_id: EpisodeId,
    controller: Controller,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
) -> JobList:
    """The jobs of an episode, latest first."""
    return await jobs.jobs_of(controller.pool, episode_id, limit=limit, offset=offset)


@router.get("/jobs/{job_id}", responses=refusals(404))
async def get_job(job_id: JobId, controller: Controller) -> Job:
    """A job as it is now."""
    return await jobs.job_of(controller.pool, job_id)


@router.post("/callbacks/{job_id}", responses=refusals(403, 404, 409))
async def post_callback(
    job_id: JobId,
    said: Callback,
    request: Request,
    controller: Controller,
    signature: Annotated[str, Header(alias=SIGNATURE, max_length=200)] = "",
) -> CallbackTaken:
    """Report of a job. What was taken before is taken again, and changes nothing."""
    body = await request.body()
    expected = signature_of(controller.settings.callback_key, job_id, body)
    genuine = hmac.compare_digest(signature.encode(), expected.encode())
    if faults.on("callback-of-any-job"):
        genuine = signature.startswith("sha256=")
    if not genuine and not (faults.on("callback-unsigned-taken") and not signature):
        raise Refused(403, f"cannot take the callback: {SIGNATURE} is not that of this body for this job")
    return await jobs.take(controller.pool, job_id, body, said)
