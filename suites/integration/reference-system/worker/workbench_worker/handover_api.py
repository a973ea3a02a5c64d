"""The endpoints for what a session is for, and for what it hands over."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from workbench_contract.episodes import AgentRole
from workbench_contract.events import Event, EventKind
from workbench_contract.findings import Finding
from workbench_contract.handover import (
    MOST_BYTES,
    MOST_FILES,
    HandedOver,
    Opened,
    OpenRequest,
    SubmissionRefused,
    Submitted,
    SubmitRequest,
)
from workbench_contract.problem import Malformed
from workbench_foundation import faults
from workbench_planning import review_md
from workbench_planning.handover import Verdict
from workbench_worker import finals, gate
from workbench_worker.asked import CurrentSession, Parts, Worker, refusals
from workbench_worker.jobs import Job
from workbench_worker.opening import open_session, opened
from workbench_worker.refusal import Refused
from workbench_worker.sessions import Session
from workbench_worker.skills import give
from workbench_worker.surveys import Surveyed, surveyed
from workbench_worker.toolcalls import tool_call

router = APIRouter()


@router.post("/session/open", responses=refusals(403, 404, 409))
def post_open(request: OpenRequest, session: CurrentSession, worker: Worker) -> Opened:
    """Say what a session is for, and with which files it begins."""
    given = give(session, worker.skills)
    files = open_session(session, request)
    # An episode that leaves no other event leaves its ids here.
    session.ids()
    return Opened(session_id=session.id, role=request.role, files=files, skills=given)


@router.post(
    "/benchmark/submit",
    response_model=Submitted,
    responses=refusals(409, 503) | {422: {"model": SubmissionRefused | Malformed}},
)
async def submit(
    request: SubmitRequest, session: CurrentSession, worker: Worker, caller: Request
) -> Any:
    """Hand over what the role of the session has to leave; with 422 all that one stage found."""
    with tool_call(session, "submit", request) as details:
        async with worker.jobs.job(session, request.job_id, gone=caller.is_disconnected) as job:
            details["job_id"] = job.id
            payload = await asyncio.to_thread(_earlier, session, request.job_id)
            if payload is None:
                payload = await _judged(session, worker, job)
        details["accepted"] = payload["accepted"]
        if payload["accepted"]:
            return Submitted.model_validate(
                {key: payload[key] for key in Submitted.model_fields}
            )
        body = _refusal(payload)
        details |= {"ok": False, "status": 422, "reason": body.detail}
        return JSONResponse(body.model_dump(mode="json"), status_code=422)


@router.get("/handovers/{handover_id}", responses=refusals(404))
def get_handover(handover_id: str, session: CurrentSession) -> HandedOver:
    """The bytes of a hand-over of the session that was accepted."""
    accepted = [each for each in _submissions(session) if each.payload["accepted"]]
    if handover_id not in {each.payload["handover_id"] for each in accepted}:
        detail = f"cannot give hand-over {handover_id}: the session has none such. Check the id"
        raise Refused(404, detail)
    return HandedOver(handover_id=handover_id, files=gate.kept(session, handover_id))


async def _judged(session: Session, worker: Parts, job: Job) -> dict[str, Any]:
    """Judge what is there, and write the verdict down; the payload of its event."""
    purpose = opened(session)
    left = await asyncio.to_thread(gate.left_by, session, purpose)
    named: list[str] = []
    if purpose.role is AgentRole.PLANNER:
        named = await asyncio.to_thread(gate.bought_in, left)
    looked = await worker.prices.of(named)
    found = await surveyed(worker, job, purpose, left.files)
    verdict = await asyncio.to_thread(gate.judged, session, purpose, left, looked, found)
    if verdict.accepted and not verdict.refuses_plan:
        try:
            more = await finals.added(worker, job, purpose, left.files, found)
        except OSError as error:
            detail = f"cannot make what is handed over besides: {error.strerror}. Submit it again"
            raise Refused(503, detail) from error
        left = gate.Left(files={**left.files, **more}, findings=left.findings)
        _bounded(left)
    return await asyncio.to_thread(_decide, session, purpose, left, verdict, found, job.id)


def _decide(
    session: Session,
    purpose: OpenRequest,
    left: gate.Left,
    verdict: Verdict,
    found: Surveyed,
    job_id: str,
) -> dict[str, Any]:
    payload = {
        "job_id": job_id,
        "role": purpose.role.value,
        "purpose": purpose.purpose.value,
        "accepted": verdict.accepted,
        "refuses_plan": verdict.refuses_plan,
        "stage": None if verdict.accepted else verdict.findings[0].stage.value,
        "findings": _listed(verdict.findings),
        "warnings": _listed(verdict.warnings),
        "files": [each.model_dump(mode="json") for each in left.listed()],
        "geometry": list(found.geometry) if verdict.accepted else [],
        "handover_id": _kept(session, left) if verdict.accepted else None,
    }
    kind = EventKind.PLAN_SUBMISSION
    if purpose.role is AgentRole.REVIEWER:
        kind = EventKind.REVIEW_DECISION
        payload |= _review(left)
    if faults.on("refusal-without-event") and not verdict.accepted:
        return payload
    session.record(kind, payload)
    return payload


def _bounded(left: gate.Left) -> None:
    """Raises Refused for more than is handed over, with what was added."""
    size = sum(map(len, left.files.values()))
    if len(left.files) > MOST_FILES or size > MOST_BYTES:
        detail = f"cannot hand over {len(left.files)} files of {size} bytes with what is made of them"
        raise Refused(409, f"{detail}: at most {MOST_FILES} of {MOST_BYTES}. Leave less")


def _kept(session: Session, left: gate.Left) -> str:
    """Keep what was accepted.

    Raises:
        Refused: 503 when there is no room for it.
    """
    try:
        return gate.keep(session, left)
    except OSError as error:
        detail = f"cannot keep what is handed over: {error.strerror}. Submit it again"
        raise Refused(503, detail) from error


def _review(left: gate.Left) -> dict[str, Any]:
    """The typed content of a review, as far as it has one."""
    review, _ = review_md.read_review(left.files.get(review_md.FILE, b""))
    if review is None:
        return {"decision": None}
    return review.model_dump(mode="json")


def _listed(findings: tuple[Finding, ...]) -> list[dict[str, Any]]:
    return [each.model_dump(mode="json") for each in findings]


def _submissions(session: Session) -> list[Event]:
    return session.events.all(EventKind.PLAN_SUBMISSION, EventKind.REVIEW_DECISION)


def _earlier(session: Session, job_id: str | None) -> dict[str, Any] | None:
    """The verdict that this very call was given before: its first answer may have been lost."""
    if job_id is None or faults.on("submission-judged-again"):
        return None
    found = [each.payload for each in _submissions(session) if each.payload["job_id"] == job_id]
    return found[0] if found else None


def _refusal(payload: dict[str, Any]) -> SubmissionRefused:
    count, stage = len(payload["findings"]), payload["stage"]
    counted = f"{count} finding" + ("s" if count > 1 else "")
    first = payload["findings"][0]
    place = f"{first['file']}, {first['where']}" if first["where"] else first["file"]
    detail = (
        f"cannot accept the hand-over of a {payload['role']}: {counted} at stage {stage}, the first in "
        f"{place}: {first['found']}. Correct all of them and submit again"
    )
    return SubmissionRefused(
        detail=detail, role=payload["role"], stage=stage, findings=payload["findings"]
    )

