"""The endpoint that writes the model of a design."""

from __future__ import annotations

import asyncio
import hashlib
import os
from pathlib import PurePosixPath

from fastapi import APIRouter, Request

from workbench_contract.joints import Exported, ExportRequest
from workbench_worker.asked import CurrentSession, Worker, refusals
from workbench_worker.benchmark_api import is_there, objectives_of, valid
from workbench_worker.designs import scene_of
from workbench_worker.files_api import put_bytes
from workbench_worker.refusal import Refused
from workbench_worker.sessions import Session
from workbench_worker.toolcalls import tool_call

router = APIRouter(prefix="/benchmark")

_FOLDER = "exports"


@router.post("/export", responses=refusals(403, 404, 409, 503))
async def export(
    request: ExportRequest, session: CurrentSession, worker: Worker, caller: Request
) -> Exported:
    """Write the MJCF model that a design is simulated as, below `exports/`.

    The moved object and the zones of its objectives are put into the scene of each run, and are not in it.
    """
    with tool_call(session, "export", request) as details:
        is_there(session, request.model)
        if not request.model.endswith(".py"):
            detail = f"cannot export {request.model!r}: it is no design. Name a build123d script"
            raise Refused(409, detail)
        densities = await asyncio.to_thread(valid, session, request.model)
        objectives = await asyncio.to_thread(
            objectives_of, session, request.model, request.objectives
        )
        async with worker.jobs.job(session, request.job_id, gone=caller.is_disconnected) as job:
            details["job_id"] = job.id
            design = await scene_of(
                job, worker, request.model, densities=densities, objectives=objectives
            )
        data = design.text.encode()
        path = os.path.join(_FOLDER, f"{PurePosixPath(request.model).stem}.xml")
        await asyncio.to_thread(_put, session, path, data)
        details["sha256"] = hashlib.sha256(data).hexdigest()
        return Exported(
            path=path,
            sha256=details["sha256"],
            size_bytes=len(data),
            parts=design.parts,
            joints=design.joints,
            motors=design.motors,
        )


def _put(session: Session, path: str, data: bytes) -> None:
    with session.lock:
        put_bytes(session, path, data)
