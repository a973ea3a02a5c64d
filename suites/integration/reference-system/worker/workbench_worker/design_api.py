"""The endpoint that validates and prices a design that was built."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Request
from pydantic import TypeAdapter, ValidationError

from workbench_contract.catalogue import PartPrice
from workbench_contract.connections import Connections, JointStart, Movement
from workbench_contract.design import CONNECTIONS, DesignJudged, DesignRequest
from workbench_contract.estimate import Estimate
from workbench_contract.events import EventKind
from workbench_contract.findings import Finding, Stage
from workbench_contract.joints import DesignJoint, JointKind
from workbench_contract.objectives import Objectives
from workbench_foundation import faults
from workbench_making import drives
from workbench_planning import estimate as estimate_file
from workbench_planning import objectives as objectives_file
from workbench_planning.text import bounded, finding
from workbench_worker import environment, planted, renders, validity
from workbench_worker.asked import CurrentSession, Parts, Worker, refusals
from workbench_worker.benchmark_api import is_there
from workbench_worker.builds import design_in
from workbench_worker.jobs import Job
from workbench_worker.opening import opened
from workbench_worker.prices import Looked
from workbench_worker.refusal import Refused
from workbench_worker.sessions import Session
from workbench_worker.toolcalls import tool_call
from workbench_worker.validity import Snapshot, Verdict

router = APIRouter(prefix="/benchmark")

_NAME_CHARS = 128

_PRICES = TypeAdapter(dict[str, PartPrice])

#: For the planted fault `design-judged-once` alone.
_first: dict[str, dict[str, Any]] = {}


@router.post("/validate_and_price", responses=refusals(403, 404, 409, 503))
async def validate_and_price(
    request: DesignRequest, session: CurrentSession, worker: Worker, caller: Request
) -> DesignJudged:
    """Whether the design can be made, holds together, and is within price, weight and place.

    One that passes may be simulated and submitted for as long as nothing that it is made of changes.
    """
    with tool_call(session, "validate_and_price", request) as details:
        is_there(session, request.model)
        async with worker.jobs.job(session, request.job_id, gone=caller.is_disconnected) as job:
            details["job_id"] = job.id
            answer = await _judged(session, worker, job, request.model)
        details["passed"] = answer.passed
        session.record(EventKind.PRICING, answer.model_dump(mode="json") | {"model": request.model})
        if faults.on("render-unasked") and answer.passed:
            async with worker.jobs.job(session, None) as job:
                design = await renders.design_of(worker, job, request.model)
                made = await renders.pictures_of(worker, job, design, renders.all_views())
                _, files = renders.described(made, renders.folder_for(request.model))
                await asyncio.to_thread(renders.put, session, files)
        return answer


async def _judged(session: Session, worker: Parts, job: Job, script: str) -> DesignJudged:
    purpose = opened(session)
    if not validity.is_due(purpose):
        detail = f"cannot validate and price {script!r}: no plan was handed over to this session"
        raise Refused(409, f"{detail}. Start from the hand-over of a planner")
    files, problems = await asyncio.to_thread(validity.snapshot, session)
    if problems:
        raise Refused(409, f"cannot validate {script!r}: {problems[0].found}. Leave less")
    record, findings = validity.bind(script, files)
    if record is None:
        raise Refused(409, f"cannot validate {script!r}: {findings[0].found}. Write it")
    marks = await asyncio.to_thread(validity.marks, session, record)
    connections, findings = _connections(files)
    changed, _ = await asyncio.to_thread(environment.disturbed, session, purpose)
    findings += [each.model_dump(mode="json") for each in changed]
    answer: dict[str, Any] = {"findings": findings, "totals": None, "parts": []}
    if not findings:
        answer = await _asked(worker, job, script, validity.handed(purpose), connections)
    again, problems = await asyncio.to_thread(validity.snapshot, session)
    now = await asyncio.to_thread(validity.marks, session, record)
    if faults.on("verdict-of-what-stands-after"):
        now = marks
    if problems or validity.bind(script, again)[0] != record or now != marks:
        detail = f"cannot validate {script!r}: what it is made of changed meanwhile"
        raise Refused(409, f"{detail}. Try again")
    densities = answer.pop("densities_kg_m3", {})
    judged = DesignJudged.model_validate(
        answer
        | {
            "price_id": job.id,
            "findings": bounded([Finding.model_validate(each) for each in answer["findings"]]),
            "passed": not answer["findings"],
            "record_sha256": record.sha256,
        }
    )
    verdict = Verdict(
        record=record,
        connections_sha256=files.connections_sha256(),
        findings=tuple(judged.findings),
        densities_kg_m3=densities,
    )
    await asyncio.to_thread(validity.keep, session, verdict)
    return judged


async def _asked(
    worker: Parts, job: Job, script: str, handed: tuple[bytes, bytes], connections: Connections
) -> dict[str, Any]:
    estimate, _ = estimate_file.read_estimate(handed[0])
    objectives, _ = objectives_file.read_objectives(handed[1])
    if estimate is None or objectives is None:
        raise Refused(409, "cannot validate the design: the plan that was handed over is none")
    wanted = [part.part_id for part in estimate.cots_parts]
    wanted += [each.part_id for each in connections.drives]
    looked = await worker.prices.of(list(dict.fromkeys(wanted)))
    if faults.on("design-judged-once") and job.session.id in _first:
        return dict(_first[job.session.id])
    async with design_in(job, worker, script) as built:
        found = await worker.pool.ask(
            job,
            "judge",
            folder=built.folder,
            script=script,
            names=built.names,
            estimate=planted.solid_prints(estimate).model_dump_json(),
            objectives=objectives.model_dump_json(),
            connections=_with_starts(connections, built.joints).model_dump_json(),
            prices=_PRICES.dump_json(dict(looked.prices)).decode(),
            version=looked.version,
        )
    left = [Finding.model_validate(each) for each in found["findings"]]
    moved = _joined(connections, built.joints, estimate, objectives, looked)
    if moved:
        # As all that is wrong with connections: nothing is priced then.
        left = [*(each for each in left if each.stage is Stage.VALID), *moved]
        found |= {"totals": None, "parts": []}
    found["findings"] = planted.overlooked_in_design(left, built.names)
    _first[job.session.id] = dict(found)
    return found


def _with_starts(connections: Connections, joints: Sequence[DesignJoint]) -> Connections:
    """With the places where the script's joints start, which are looked for on the solids as well."""
    known = {each.name for each in connections.joints}
    starts = [
        JointStart(
            name=each.name[:_NAME_CHARS],
            part=each.part,
            movement=Movement(each.kind.value),
            at_mm=each.anchor_mm,
            axis=each.axis,
        )
        for each in joints
        if each.kind is not JointKind.RIGID and each.axis is not None and each.name not in known
    ]
    return connections.model_copy(update={"joints": [*connections.joints, *starts]})


def _joined(
    connections: Connections,
    joints: Sequence[DesignJoint],
    estimate: Estimate,
    objectives: Objectives,
    looked: Looked,
) -> list[Finding]:
    """All that is wrong with what holds parts together, and with what moves them."""
    bought = Counter[str]()
    for row in estimate.cots_parts:
        bought[row.part_id] += row.quantity
    return [
        *drives.unfastened(connections, joints, file=CONNECTIONS),
        *drives.check(
            connections,
            joints,
            objectives.moving_parts,
            looked.torque_n_m,
            bought=bought,
            file=CONNECTIONS,
        ),
    ]


def _connections(files: Snapshot) -> tuple[Connections, list[dict[str, Any]]]:
    """How the parts hold together, or all that is wrong with the file."""
    none = Connections(pairs=[])
    data = files.files.get(CONNECTIONS)
    if data is None:
        return none, []
    try:
        return Connections.model_validate_json(data), []
    except ValidationError as error:
        found = [
            finding(
                CONNECTIONS,
                ".".join(str(part) for part in each["loc"]),
                each["type"],
                each["msg"],
                stage=Stage.VALID,
            )
            for each in error.errors(include_url=False, include_input=False)
        ]
        return none, [each.model_dump(mode="json") for each in found]
