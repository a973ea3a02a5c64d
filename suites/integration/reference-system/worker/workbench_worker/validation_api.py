"""The endpoint for authors of benchmarks: is a model one, are an environment and its objectives sound?"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request

from workbench_contract.benchmark import Sampling, Validated, ValidateRequest, ValidationFinding
from workbench_contract.findings import Finding, Stage
from workbench_contract.objectives import Objectives
from workbench_foundation import faults
from workbench_planning import objectives as objectives_file
from workbench_planning.handover import absent_file
from workbench_planning.text import bounded, finding, is_absent
from workbench_worker import planted
from workbench_worker.asked import CurrentSession, Parts, Worker, refusals
from workbench_worker.benchmark_api import is_there
from workbench_worker.builds import built_in
from workbench_worker.files_api import read_bytes
from workbench_worker.geometry import STL
from workbench_worker.jobs import Job
from workbench_worker.refusal import Refused
from workbench_worker.sessions import Session
from workbench_worker.toolcalls import tool_call
from workbench_worker.walls import WORKSPACE

router = APIRouter(prefix="/benchmark")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """Objectives as they were read.

    Attributes:
        file: that they stand in.
        findings: against them; there are some where there is no value.
    """

    file: str
    value: Objectives | None
    findings: list[Finding]
    warnings: list[Finding]


@router.post("/validate", responses=refusals(403, 404, 409, 503))
async def validate(
    request: ValidateRequest, session: CurrentSession, worker: Worker, caller: Request
) -> Validated:
    """Whether the model can be simulated at all, or is a sound benchmark with its objectives."""
    with tool_call(session, "validate", request) as details:
        is_there(session, request.model)
        read = await asyncio.to_thread(_read, session, request)
        async with worker.jobs.job(session, request.job_id, gone=caller.is_disconnected) as job:
            if read is None:
                found = await _model(worker, job, request.model)
            else:
                found = await _benchmark(worker, job, request, read)
        details["valid"] = found.valid
        if read is not None:
            seed = found.sampling.seed if found.sampling else None
            details |= {"seed": seed, "findings": len(found.findings)}
        return found


async def _model(worker: Parts, job: Job, model: str) -> Validated:
    """Whether MuJoCo takes a model."""
    try:
        if model.endswith(".xml"):
            path = os.path.normpath(os.path.join(WORKSPACE, model))
            found = await worker.pool.ask(job, "validate", model=path)
        else:
            async with built_in(job, worker, model) as (folder, _):
                found = await worker.pool.ask(job, "validate", model=f"{folder}/{STL}")
    except Refused as refused:
        _raise_unless_found(refused, job)
        return Validated(valid=False, reasons=[refused.detail], bodies=0)
    return Validated(valid=True, reasons=[], bodies=found["bodies"])


async def _benchmark(
    worker: Parts, job: Job, request: ValidateRequest, read: _Read
) -> Validated:
    """Whether an environment and its objectives are a benchmark."""
    if read.value is None:
        return _judged(read, read.findings)
    seed = secrets.randbelow(2**31) if request.seed is None else request.seed
    if not seed and faults.on("seed-zero-unheard"):
        seed = secrets.randbelow(2**31)
    asked = planted.validated(job.session.id, read.value, samples=request.samples, seed=seed)
    try:
        async with built_in(job, worker, request.model) as (folder, names):
            found = await worker.pool.ask(
                job,
                "validate_environment",
                folder=folder,
                names=[name or "part" for name in names],
                script=request.model,
                file=read.file,
                **asked,
            )
    except Refused as refused:
        _raise_unless_found(refused, job)
        wrong = finding(
            request.model, "", refused.detail, "a script that leaves solids", stage=Stage.PRICE
        )
        return _judged(read, [wrong])
    sampling = Sampling(seed=seed, samples=request.samples, corners=found["corners"])
    # As the hand-over of an environment has it: geometry is judged in one stage.
    findings = [
        ValidationFinding.model_validate(each | {"stage": Stage.PRICE}) for each in found["findings"]
    ]
    findings = planted.overlooked_in_environment(job.session.id, findings)
    return _judged(read, findings, bodies=found["bodies"], sampling=sampling)


def _judged(
    read: _Read,
    findings: Sequence[Finding],
    *,
    bodies: int = 0,
    sampling: Sampling | None = None,
) -> Validated:
    told = [
        each if isinstance(each, ValidationFinding) else ValidationFinding(**each.model_dump())
        for each in bounded(findings)
    ]
    reasons = [
        f"{each.file}{', ' + each.where if each.where else ''}: {each.found}, expected {each.expected}"
        for each in told
    ]
    return Validated(
        valid=not told,
        reasons=reasons,
        bodies=bodies,
        findings=told,
        warnings=read.warnings,
        sampling=sampling,
    )


def _read(session: Session, request: ValidateRequest) -> _Read | None:
    """The objectives as a planner's gate reads them; none where none are named.

    Raises:
        Refused: 403 and 404 for a file that there is not; 409 for a model that has no solid.
    """
    if request.objectives is None:
        return None
    path = os.path.normpath(request.objectives)
    if not request.model.endswith(".py"):
        detail = f"cannot hold {request.model!r} against {path!r}: it holds no solid"
        raise Refused(409, f"{detail}. Name the environment's build123d script")
    data = read_bytes(session, path)
    if is_absent(data):
        return _Read(file=path, value=None, findings=[absent_file(path, {path: data})], warnings=[])
    value, findings = objectives_file.read_objectives(data)
    if value is None:
        # Its reader knows the file by the one name that it has in a hand-over.
        named = [each.model_copy(update={"file": path}) for each in findings]
        if faults.on("validation-one-finding-at-a-time"):
            named = named[:1]
        return _Read(file=path, value=None, findings=named, warnings=[])
    return _Read(file=path, value=value, findings=[], warnings=objectives_file.warnings_of(value))


def _raise_unless_found(refused: Refused, job: Job) -> None:
    """A refusal that is about the model is the answer."""
    if refused.status != 409 or job.cancelled.is_set():
        raise refused
