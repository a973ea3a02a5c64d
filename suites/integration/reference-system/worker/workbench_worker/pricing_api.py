"""The endpoint that prices an estimate: a script of the system, run for an agent."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from workbench_contract.estimate import EstimateTotals
from workbench_contract.events import EventKind
from workbench_contract.findings import Finding, Stage
from workbench_contract.pricing import Priced, PriceRefused, PriceRequest
from workbench_contract.problem import Malformed
from workbench_foundation import faults
from workbench_planning import estimate as estimate_file
from workbench_planning import objectives as objectives_file
from workbench_planning.text import finding, is_absent
from workbench_worker import costs, planted
from workbench_worker.asked import CurrentSession, Parts, Worker, refusals
from workbench_worker.files_api import put_bytes, read_bytes
from workbench_worker.opening import benchmark_of, purpose_of
from workbench_worker.refusal import Refused
from workbench_worker.sessions import Session
from workbench_worker.toolcalls import tool_call

router = APIRouter(prefix="/benchmark")


@router.post(
    "/validate_costing_and_price",
    response_model=Priced,
    responses=refusals(403, 409, 503) | {422: {"model": PriceRefused | Malformed}},
)
async def validate_costing_and_price(
    request: PriceRequest, session: CurrentSession, worker: Worker, caller: Request
) -> Any:
    """Compute what the session's estimate costs and weighs, and write those numbers into it.

    With 422 it cannot be priced: all that is wrong with it.
    """
    with tool_call(session, "validate_costing_and_price", request) as details:
        async with worker.jobs.job(session, request.job_id, gone=caller.is_disconnected) as job:
            details["job_id"] = job.id
            answer = await _priced(session, worker, job.id)
        if isinstance(answer, PriceRefused):
            details |= {"ok": False, "status": 422, "reason": answer.detail}
            return JSONResponse(answer.model_dump(mode="json"), status_code=422)
        return answer


async def _priced(session: Session, worker: Parts, price_id: str) -> Priced | PriceRefused:
    data = await asyncio.to_thread(_read, session, estimate_file.FILE)
    if data is None or is_absent(data):
        found = finding(estimate_file.FILE, "", "no such file", "the estimate", stage=Stage.PRESENT)
        return _refused([found])
    estimate, findings = await asyncio.to_thread(estimate_file.read_estimate, data)
    if estimate is None:
        return _refused(findings)
    looked = await worker.prices.of([part.part_id for part in estimate.cots_parts])
    given = benchmark_of(purpose_of(session)) or _read(session, objectives_file.FILE)
    if faults.on("script-believes-objectives"):
        given = _read(session, objectives_file.FILE) or given
    objectives, _ = objectives_file.read_objectives(given) if given else (None, [])
    found = costs.computed(estimate, looked, benchmark=objectives, session_id=session.id)
    if found.totals is None or found.corrected is None:
        return _refused(costs.at_stage(found.findings, Stage.PRICE))
    changed = found.corrected != estimate
    if changed:
        new = costs.written(found.corrected)
        await asyncio.to_thread(_replace, session, data, new)
    totals = found.totals
    answer = Priced(
        price_id=price_id,
        parts=found.rows(),
        totals=EstimateTotals(
            assembly_cost_usd=totals.assembly_cost_usd,
            unit_cost_usd=totals.unit_cost_usd,
            weight_g=float(totals.weight_g),
        ),
        findings=planted.reported(costs.at_stage(found.findings, Stage.PRICE)),
        configuration_sha256=costs.shop().sha256,
        written=changed,
    )
    told = {"estimate_sha256": hashlib.sha256(data).hexdigest()}
    session.record(EventKind.PRICING, answer.model_dump(mode="json") | told)
    return answer


def _read(session: Session, path: str) -> bytes | None:
    try:
        with session.lock:
            return read_bytes(session, path, most_bytes=None)
    except Refused as refused:
        if refused.status == 404:
            return None
        raise


def _replace(session: Session, priced: bytes, new: bytes) -> None:
    """Write the computed numbers where those stood that were priced.

    Raises:
        Refused: 409 when the estimate was changed meanwhile; it stays as it is.
    """
    with session.lock:
        now = read_bytes(session, estimate_file.FILE, most_bytes=None)
        if now != priced and not faults.on("pricing-over-what-was-written"):
            detail = f"cannot write {estimate_file.FILE}: it was changed while it was priced"
            raise Refused(409, f"{detail}. Price it again")
        put_bytes(session, estimate_file.FILE, new)


def _refused(findings: list[Finding]) -> PriceRefused:
    count = f"{len(findings)} finding" + ("s" if len(findings) > 1 else "")
    first = findings[0]
    detail = (
        f"cannot price the estimate: {count}, the first {first.where or first.file}: {first.found}. "
        "Correct all of them"
    )
    return PriceRefused(detail=detail, stage=first.stage, findings=findings)
