"""The endpoints for a session's own code."""

from __future__ import annotations

from fastapi import APIRouter, Request

from workbench_contract.execution import Executed, ExecutedBy, ExecuteRequest, JobCancelled
from workbench_foundation import faults
from workbench_worker.asked import CurrentSession, Worker, refusals
from workbench_worker.execution import run_command
from workbench_worker.toolcalls import tool_call

router = APIRouter()


@router.post("/runtime/execute", responses=refusals(409, 503))
async def execute(
    request: ExecuteRequest, session: CurrentSession, worker: Worker, caller: Request
) -> Executed:
    """Run a shell command behind the session's walls."""
    with tool_call(session, "execute", request) as details:
        async with worker.jobs.job(session, request.job_id, gone=caller.is_disconnected) as job:
            argv = ["sh", "-c", request.command]
            ended = await run_command(
                job, argv, timeout_s=request.timeout_s, settings=worker.settings
            )
            by = ExecutedBy(service="worker", instance=worker.instance, pid=ended.pid)
            cancelled = job.cancelled.is_set()
            details |= {"job_id": job.id, "exit_code": ended.exit_code, "executed_by": by.model_dump()}
            details |= {"timed_out": ended.timed_out, "cancelled": cancelled}
            return Executed(
                job_id=job.id,
                exit_code=ended.exit_code,
                stdout=ended.stdout,
                stderr=ended.stderr,
                truncated=ended.truncated,
                timed_out=ended.timed_out,
                cancelled=cancelled,
                duration_s=ended.duration_s,
                executed_by=by,
            )


@router.post("/jobs/{job_id}/cancel", responses=refusals(404))
async def cancel(job_id: str, session: CurrentSession, worker: Worker) -> JobCancelled:
    """End a job of the session, and wait until its process is gone."""
    if faults.on("cancel-claimed"):
        return JobCancelled(job_id=job_id, was_running=True)
    return JobCancelled(job_id=job_id, was_running=await worker.jobs.cancel(session, job_id))
