"""The endpoints for geometry and physics."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from workbench_contract.benchmark import Analyzed, AnalyzeRequest
from workbench_contract.events import EventKind
from workbench_contract.objectives import Objectives
from workbench_contract.problem import Problem
from workbench_contract.simulation import Ending, Simulated, SimulateRequest, SimulationRefused
from workbench_foundation import faults
from workbench_planning import objectives as objectives_file
from workbench_worker import filmed, planted, validity
from workbench_worker.asked import CurrentSession, Worker, refusals
from workbench_worker.builds import built_in
from workbench_worker.designs import scene_of
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
        densities = await asyncio.to_thread(valid, session, request.model)
        objectives = await asyncio.to_thread(
            objectives_of, session, request.model, request.objectives
        )
        async with worker.jobs.job(session, request.job_id, gone=caller.is_disconnected) as job:
            details["job_id"] = job.id
            known = {"job_id": job.id, "variant": request.variant, "seed": request.seed}
            session.record(EventKind.SIMULATION_REQUEST, known | {"model": request.model})
            session.record(EventKind.SEED_VARIANT, known)
            turn: Turn | None = None
            try:
                async with worker.simulations.turn(job) as turn:
                    arguments: dict[str, Any] = {
                        "variant": request.variant,
                        "seed": request.seed,
                        "runs": request.runs,
                        "duration_s": request.duration_s,
                        "controls": request.model_dump(mode="json")["controls"],
                        "objectives": objectives.model_dump_json() if objectives else None,
                        "kept_in": f"{_KEPT_RUNS}/{job.id}" if request.trajectories else None,
                    }
                    if request.model.endswith(".py"):
                        async with _as_it_passed(session, request.model, densities) as now:
                            design = await scene_of(
                                job,
                                worker,
                                request.model,
                                densities=now,
                                objectives=objectives,
                                controls=request.controls,
                            )
                        arguments["design"] = design.text
                    arguments = planted.asked(session.id, arguments)
                    film = filmed.new_place() if request.trajectories else None
                    async with filmed.own_tmp(job, wanted=film is not None):
                        found = await worker.pool.ask(
                            job,
                            "simulate",
                            model=placed(request.model),
                            filmed_in=film,
                            **arguments,
                        )
                        if film is not None:
                            await asyncio.to_thread(filmed.keep, session, job, film)
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
            if faults.on("runs-on-record-to-twenty"):
                del shown_result["outcomes"][20:]
            if faults.on("seed-of-request-for-each-run"):
                for run in shown_result["outcomes"]:
                    run["seed"] = request.seed
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
        found = planted.checked(request.model, found)
        kept = ("manufacturable", "reasons", "volume_mm3", "size_mm")
        session.record(
            EventKind.MANUFACTURABILITY_CHECK,
            {"model": request.model, "method": request.method} | {key: found[key] for key in kept},
        )
        return Analyzed.model_validate(found)


#: For the planted fault `density-of-last-design` alone.
_last: list[float] = []


def valid(session: Session, model: str) -> dict[str, float] | None:
    """The densities of a design that has passed, by its parts; none where none had to.

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
    densities = last.densities_kg_m3 if last else {}
    if faults.on("density-fixed"):
        return dict.fromkeys(densities, 2700.0)
    if faults.on("density-of-last-design"):
        _last[:] = _last or list(densities.values())
        return dict.fromkeys(densities, _last[0])
    return densities


def objectives_of(session: Session, model: str, path: str | None) -> Objectives | None:
    """The objectives that judge a scene or a design.

    Raises:
        Refused: 409 for those of a file that are none, or that are not those that were handed over.
    """
    if path is None:
        return None
    data = read_bytes(session, path)
    purpose = purpose_of(session)
    if validity.is_due(purpose) and data != validity.handed(purpose)[1]:
        detail = f"cannot judge {model!r} by {path!r}: it is not as it was handed over"
        raise Refused(409, f"{detail}. Put {objectives_file.FILE} back")
    found, findings = objectives_file.read_objectives(data)
    if found is None or findings:
        wrong = findings[0]
        where = f"{wrong.where}: " if wrong.where else ""
        detail = f"{where}found {wrong.found}, expected {wrong.expected}"
        raise Refused(409, f"cannot judge by {path!r}: {detail}. Correct it")
    return found


def is_there(session: Session, model: str) -> None:
    with session.opened(model, os.O_RDONLY | os.O_NONBLOCK):
        pass
    if not model.endswith((".py", ".xml")):
        detail = f"cannot use {model!r}: it is no model. Name a .py or .xml file"
        raise Refused(409, detail)


@contextlib.asynccontextmanager
async def _as_it_passed(
    session: Session, model: str, asked_for: dict[str, float] | None
) -> AsyncIterator[dict[str, float] | None]:
    """The densities of a design while it is built at its turn: it may have changed since it was asked for.

    Args:
        asked_for: its densities then.

    Raises:
        Refused: 409 for a design that has to pass and has not, as it was built; at the end of the block too.
    """
    if faults.on("validity-before-its-turn"):
        yield asked_for
        return
    densities = await asyncio.to_thread(valid, session, model)
    last = validity.kept(session) if validity.is_due(purpose_of(session)) else None
    before = await asyncio.to_thread(validity.marks, session, last.record) if last else {}
    yield densities
    await asyncio.to_thread(valid, session, model)
    after = await asyncio.to_thread(validity.marks, session, last.record) if last else {}
    if after != before:
        detail = f"cannot simulate {model!r}: what it is made of changed while it was built"
        raise Refused(409, f"{detail}. Try again")


@contextlib.asynccontextmanager
async def _built(
    job: Job, worker: Worker, model: str, *, as_file: str = STL
) -> AsyncIterator[str]:
    """Where the job finds the model: an MJCF file as it is, a script's solid as a file.

    The file is in a folder of this job alone, which is removed at the end of the block: a session
    may have several jobs at once.
    """
    if model.endswith(".xml"):
        yield placed(model)
        return
    async with built_in(job, worker, model) as (folder, _):
        yield f"{folder}/{as_file}"


def placed(model: str) -> str:
    """Where the processes of a job see a model."""
    return os.path.normpath(os.path.join(WORKSPACE, model))


def _times(turn: Turn | None) -> dict[str, Any]:
    if turn is None:
        return {}
    times = {"queued_at": turn.queued_at, "started_at": turn.started_at}
    finished = turn.finished_at
    return {
        name: at.isoformat()
        for name, at in (times | ({"finished_at": finished} if finished else {})).items()
    }
