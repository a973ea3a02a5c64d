"""The endpoints for geometry and physics."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from workbench_contract.benchmark import Analyzed, AnalyzeRequest
from workbench_contract.events import EventKind
from workbench_contract.problem import Problem
from workbench_contract.simulation import Ending, Simulated, SimulateRequest, SimulationRefused
from workbench_foundation import faults
from workbench_planning import objectives as objectives_file
from workbench_worker import planted, validity
from workbench_worker.asked import CurrentSession, Worker, refusals
from workbench_worker.files_api import read_bytes
from workbench_worker.geometry import BREP, STL
from workbench_worker.jobs import Job
from workbench_worker.opening import purpose_of
from workbench_worker.refusal import Refused
from workbench_worker.sessions import Session
from workbench_worker.simulations import Turn
from workbench_worker.toolcalls import tool_call
from workbench_worker.walls import WORKSPACE

router = APIRouter(prefix="/benchmark")

#: Where a script's solids are, as the processes of the job see it.
_BUILT = "/tmp/built"
#: Where those files are that a script is built with, when they are not the session's.
_MADE_OF = "/tmp/made-of"

#: Where runs leave their files.
_KEPT_RUNS = "simulations"
#: What an answer says of its first run, beside all runs.
_OF_FIRST = tuple(Ending.model_fields)

#: Findings that a refused simulation tells.
_SHOWN = 10


@router.post(
    "/simulate",
    response_model=Simulated,
    responses=refusals(403, 404)
    | {409: {"model": SimulationRefused | Problem}, 503: {"model": SimulationRefused}},
)
async def simulate(
    request: SimulateRequest, session: CurrentSession, worker: Worker, caller: Request
) -> Any:
    """Simulate the session's model when its turn comes; one at a time over all sessions."""
    with tool_call(session, "simulate", request) as details:
        is_there(session, request.model)
        density = await asyncio.to_thread(_valid, session, request.model)
        objectives = await asyncio.to_thread(_objectives, session, request)
        async with worker.jobs.job(session, request.job_id, gone=caller.is_disconnected) as job:
            details["job_id"] = job.id
            known = {"job_id": job.id, "variant": request.variant, "seed": request.seed}
            session.record(EventKind.SIMULATION_REQUEST, known | {"model": request.model})
            turn: Turn | None = None
            try:
                async with (
                    worker.simulations.turn(job) as turn,
                    _built(job, worker, request.model) as model,
                ):
                    arguments: dict[str, Any] = {
                        "variant": request.variant,
                        "seed": request.seed,
                        "runs": request.runs,
                        "duration_s": request.duration_s,
                        "controls": request.model_dump(mode="json")["controls"],
                        "objectives": objectives,
                        "kept_in": f"{_KEPT_RUNS}/{job.id}" if request.trajectories else None,
                    }
                    if density is not None:
                        arguments["density_kg_m3"] = density
                    arguments = planted.asked(session.id, arguments)
                    found = await worker.pool.ask(job, "simulate", model=model, **arguments)
                    turn.finish()
            except Refused as refused:
                result = known | _times(turn) | {"ok": False, "reason": refused.detail}
                if faults.on("seed-untracked-on-failure"):
                    result = {key: result[key] for key in result if key not in ("seed", "variant")}
                session.record(EventKind.SIMULATION_RESULT, result)
                details |= {"ok": False, "status": refused.status, "reason": refused.detail}
                body = SimulationRefused(detail=refused.detail, **known)
                return JSONResponse(body.model_dump(mode="json"), status_code=refused.status)
            if faults.on("seed-from-clock"):
                known["seed"] = int(turn.started_at.timestamp()) % 2**31
            times = _times(turn)
            first = {key: found["runs"][0][key] for key in _OF_FIRST}
            shown_result = {key: first[key] for key in ("outcome", "reason", "steps", "simulated_s")}
            shown_result["outcomes"] = [
                {key: run[key] for key in ("seed", "outcome", "reason", "steps", "simulated_s")}
                for run in found["runs"]
            ]
            shown_result["aggregate"] = found["aggregate"]
            if faults.on("variant-untracked"):
                known = known | {"variant": "default"}
            session.record(EventKind.SIMULATION_RESULT, known | times | shown_result | {"ok": True})
            return Simulated.model_validate(known | times | first | found)


@router.post("/analyze", responses=refusals(403, 404, 409, 503))
async def analyze(
    request: AnalyzeRequest, session: CurrentSession, worker: Worker, caller: Request
) -> Analyzed:
    """Whether the part can be made, by its geometry."""
    with tool_call(session, "analyze", request):
        is_there(session, request.model)
        if not request.model.endswith(".py"):
            detail = f"cannot analyze {request.model!r}: it holds no solid. Name a build123d script"
            raise Refused(409, detail)
        async with (
            worker.jobs.job(session, request.job_id, gone=caller.is_disconnected) as job,
            _built(job, worker, request.model, as_file=BREP) as part,
        ):
            found = await worker.pool.ask(
                job,
                "measure",
                brep=part,
                method=request.method,
                max_size_mm=request.max_size_mm,
            )
        if faults.on("check-invented"):
            found |= {"volume_mm3": 1000.0, "size_mm": [10.0, 10.0, 10.0]}
        kept = ("manufacturable", "reasons", "volume_mm3", "size_mm")
        session.record(
            EventKind.MANUFACTURABILITY_CHECK,
            {"model": request.model, "method": request.method} | {key: found[key] for key in kept},
        )
        return Analyzed.model_validate(found)


#: For the planted fault `density-of-last-design` alone.
_last: list[float | None] = []


def _valid(session: Session, model: str) -> float | None:
    """The density of a design that has passed; none where none had to.

    Raises:
        Refused: 409 for a design that has to pass and has not, as it is now.
    """
    if faults.on("simulate-unvalidated") or not validity.is_due(purpose_of(session)):
        return None
    findings = validity.findings_against(session, model)
    if findings:
        told = "; ".join(
            f"{each.file}{', ' + each.where if each.where else ''}: {each.found}, expected "
            f"{each.expected}"
            for each in findings[:_SHOWN]
        )
        raise Refused(409, f"cannot simulate {model!r}: {told}. Run validate_and_price")
    last = validity.kept(session)
    density = last.density_kg_m3 if last else None
    if faults.on("density-fixed"):
        return None
    if faults.on("density-of-last-design"):
        _last[:] = _last or [density]
        return _last[0]
    return density


def _objectives(session: Session, request: SimulateRequest) -> str | None:
    """The objectives that judge a scene, as JSON.

    Raises:
        Refused: 409 for those of a file that are none, or that judge no scene.
    """
    if request.objectives is None:
        return None
    if not request.model.endswith(".xml"):
        detail = f"cannot hold {request.model!r} against {request.objectives!r}: it is no scene"
        raise Refused(409, f"{detail}. Name an MJCF file (.xml)")
    found, findings = objectives_file.read_objectives(read_bytes(session, request.objectives))
    if found is None or findings:
        wrong = findings[0]
        where = f"{wrong.where}: " if wrong.where else ""
        detail = f"{where}found {wrong.found}, expected {wrong.expected}"
        raise Refused(409, f"cannot judge by {request.objectives!r}: {detail}. Correct it")
    return found.model_dump_json()


def is_there(session: Session, model: str) -> None:
    with session.opened(model, os.O_RDONLY | os.O_NONBLOCK):
        pass
    if not model.endswith((".py", ".xml")):
        detail = f"cannot use {model!r}: it is no model. Name a .py or .xml file"
        raise Refused(409, detail)


@contextlib.asynccontextmanager
async def _built(
    job: Job, worker: Worker, model: str, *, as_file: str = STL
) -> AsyncIterator[str]:
    """Where the job finds the model: an MJCF file as it is, a script's solid as a file.

    The file is in a folder of this job alone, which is removed at the end of the block: a session
    may have several jobs at once.
    """
    if model.endswith(".xml"):
        yield os.path.normpath(os.path.join(WORKSPACE, model))
        return
    async with built_in(job, worker, model) as (folder, _):
        yield f"{folder}/{as_file}"


@contextlib.asynccontextmanager
async def built_in(
    job: Job, worker: Worker, model: str, *, files: Mapping[str, bytes] | None = None
) -> AsyncIterator[tuple[str, list[str]]]:
    """A folder with what a script leaves, and the names of its parts; gone at the end of the block.

    The job has a ``/tmp`` of its own meanwhile: a design is made of nothing that lies in the session's.

    Args:
        job: that builds.
        worker: that it runs on.
        model: path of the script.
        files: what the script is one of, path to bytes; as they are in the session when left out.
    """
    where = os.path.normpath(os.path.join(WORKSPACE if files is None else _MADE_OF, model))
    private = job.session.home / "builds" / secrets.token_hex(8)
    await asyncio.to_thread(_make_private, job.session, private, files or {})
    job.temporary = private
    try:
        found = await worker.pool.ask(job, "build", model=where, target=_BUILT)
        yield _BUILT, found["names"]
    finally:
        job.temporary = None
        await asyncio.to_thread(shutil.rmtree, private, ignore_errors=True)


def _make_private(session: Session, folder: Path, files: Mapping[str, bytes]) -> None:
    folder.mkdir(parents=True)
    for path, data in files.items():
        file = folder / os.path.basename(_MADE_OF) / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    if session.uid is not None:
        os.chown(folder, session.uid, session.uid)
    folder.chmod(0o700)


def _times(turn: Turn | None) -> dict[str, Any]:
    if turn is None:
        return {}
    times = {"queued_at": turn.queued_at, "started_at": turn.started_at}
    finished = turn.finished_at
    return {
        name: at.isoformat()
        for name, at in (times | ({"finished_at": finished} if finished else {})).items()
    }
