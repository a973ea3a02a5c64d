"""Long work that is answered at once: it is written down, done, and reported by callbacks.

What is done is the worker's own operation, asked for as any caller asks: it takes its turn, leaves its events
and is cancelled like every other.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
from fastapi import APIRouter, Request

from workbench_contract.jobs import JobOffer, JobStatus, JobTaken
from workbench_foundation import log
from workbench_foundation.requests import EPISODE, SESSION, TRACE
from workbench_worker.asked import CurrentSession, Parts, Worker
from workbench_worker.callbacks import Callbacks
from workbench_worker.sessions import Session, Sessions

router = APIRouter()

_FOLDER = "offers"

#: Beyond what any operation takes by its own limits.
_WHOLE_S = 3_600.0

#: Tasks under way; whoever forgets a task loses it.
_under_way: set[asyncio.Task[None]] = set()


@router.post("/jobs", status_code=202)
async def post_job(
    offer: JobOffer, session: CurrentSession, worker: Worker, request: Request
) -> JobTaken:
    """Take up a job; what comes of it is reported to the controller."""
    path = session.home / _FOLDER / f"{offer.job_id}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(offer.model_dump_json(), encoding="utf-8")
    whose = {
        name: request.headers[name] for name in (SESSION, EPISODE, TRACE) if name in request.headers
    }
    task = asyncio.create_task(_done(offer, session, worker, request.app, whose))
    _under_way.add(task)
    task.add_done_callback(_under_way.discard)
    return JobTaken(job_id=offer.job_id)


def recover(sessions: Sessions, callbacks: Callbacks) -> None:
    """Report the jobs that a worker which was killed had under way as failed."""
    for path in sorted(sessions.files_at(f"{_FOLDER}/*.json")):
        last = json.loads(path.read_text(encoding="utf-8")).get("reported", 0)
        reason = "preempted: the worker was killed while it was at it"
        callbacks.report(path.stem, last + 1, JobStatus.FAILED, reason=reason)
        path.unlink()


async def _done(
    offer: JobOffer, session: Session, worker: Parts, app: Any, whose: dict[str, str]
) -> None:
    path = session.home / _FOLDER / f"{offer.job_id}.json"
    # Before it is reported, so that whoever recovers goes on with the number after it.
    path.write_text(offer.model_dump_json()[:-1] + ', "reported": 1}', encoding="utf-8")
    worker.callbacks.report(offer.job_id, 1, JobStatus.RUNNING, reason="taken up")
    log.info("job_begun", job_id=offer.job_id, session_id=session.id)
    status, reason, result = await _outcome(offer, app, whose)
    worker.callbacks.report(offer.job_id, 2, status, reason=reason, result=result)
    path.unlink(missing_ok=True)


async def _outcome(
    offer: JobOffer, app: Any, whose: dict[str, str]
) -> tuple[JobStatus, str, dict[str, Any] | None]:
    """How the operation ends: status, why, and what it answers."""
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=app, raise_app_exceptions=False),
        base_url="http://worker",
        headers=whose,
        timeout=_WHOLE_S,
    ) as http:
        body = {"job_id": offer.job_id, **offer.arguments}
        answer = await http.post(offer.operation.path, json=body)
    try:
        found = answer.json()
    except ValueError:
        found = {"detail": answer.text[:500]}
    if answer.is_success:
        return JobStatus.COMPLETED, "done", found
    detail = found.get("detail") if isinstance(found, dict) else found
    return JobStatus.FAILED, f"{answer.status_code}: {_text(detail)}"[:10_000], found


def _text(detail: Any) -> str:
    return detail if isinstance(detail, str) else json.dumps(detail, ensure_ascii=False)
