"""The endpoints for pictures and videos: nothing is made before it is asked for."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Request

from workbench_contract.benchmark import ModelRequest
from workbench_contract.events import EventKind
from workbench_contract.renders import (
    RENDERS,
    Filmed,
    PreviewRequest,
    Rendered,
    RenderRequest,
    VideoRequest,
)
from workbench_foundation import faults
from workbench_worker import renders
from workbench_worker.asked import CurrentSession, Parts, Worker, refusals
from workbench_worker.benchmark_api import is_there
from workbench_worker.refusal import Refused
from workbench_worker.sessions import Session
from workbench_worker.toolcalls import tool_call

router = APIRouter(prefix="/benchmark", responses=refusals(403, 404, 409, 503))


@router.post("/preview")
async def preview(
    request: PreviewRequest, session: CurrentSession, worker: Worker, caller: Request
) -> Rendered:
    """One picture of the design, from anywhere."""
    shots = [(request.yaw_deg, request.pitch_deg)]
    return await _shown(request, session, worker, caller, shots, kind="preview")


@router.post("/render")
async def render(
    request: RenderRequest, session: CurrentSession, worker: Worker, caller: Request
) -> Rendered:
    """The 24 views of the design, all around it."""
    return await _shown(request, session, worker, caller, renders.all_views(), kind="render")


@router.post("/video")
async def video(
    request: VideoRequest, session: CurrentSession, worker: Worker, caller: Request
) -> Filmed:
    """A video of a run that left its trajectory."""
    with tool_call(session, "video", request) as details:
        async with worker.jobs.job(session, request.job_id, gone=caller.is_disconnected) as job:
            details["job_id"] = job.id
            made = await renders.video_of(
                worker,
                job,
                request.simulation,
                request.run,
                yaw_deg=request.yaw_deg,
                pitch_deg=request.pitch_deg,
            )
            data = made.files["0.mp4"]
            path = f"{RENDERS}/{request.simulation}/run-{request.run}.mp4"
            await asyncio.to_thread(renders.put, session, {path: data})
            told = {
                "job_id": job.id,
                "from_store": made.from_store,
                "path": path,
                "sha256": hashlib.sha256(data).hexdigest(),
                "size_bytes": len(data),
                "simulation": request.simulation,
                "run": request.run,
            }
            answer = Filmed.model_validate(told | dict(made.about))
            _recorded(session, "video", answer.from_store, [told], {"simulation": request.simulation})
            return answer


async def _shown(
    request: ModelRequest,
    session: Session,
    worker: Parts,
    caller: Request,
    shots: Sequence[tuple[float, float]],
    *,
    kind: str,
) -> Rendered:
    with tool_call(session, kind, request) as details:
        is_there(session, request.model)
        if not request.model.endswith(".py"):
            detail = f"cannot show {request.model!r}: it holds no solid. Name a build123d script"
            raise Refused(409, detail)
        async with worker.jobs.job(session, request.job_id, gone=caller.is_disconnected) as job:
            details["job_id"] = job.id
            design = await renders.design_of(worker, job, request.model)
            made = await renders.pictures_of(worker, job, design, shots)
            about, files = renders.described(made, renders.folder_for(request.model))
            await asyncio.to_thread(renders.put, session, files)
            known = {"job_id": job.id, "model": request.model, "from_store": made.from_store}
            answer = Rendered.model_validate(about | known)
            same = {"model": request.model, "design_sha256": answer.design_sha256}
            _recorded(session, kind, made.from_store, about["views"], same)
            return answer


def _recorded(
    session: Session,
    kind: str,
    from_store: bool,
    files: Sequence[dict[str, Any]],
    about: dict[str, Any],
) -> None:
    """One event for all that was made, or served."""
    listed = [{key: each[key] for key in ("path", "sha256", "size_bytes")} for each in files]
    if faults.on("render-without-event"):
        return
    payload = {"kind": kind, "from_store": from_store, "files": listed}
    session.record(EventKind.RENDERED, payload | about)
