"""The endpoint that holds a design against the numbers of a plan."""

from __future__ import annotations

from fastapi import APIRouter, Request
from pydantic import TypeAdapter

from workbench_contract.fidelity import Compared, CompareRequest, PlannedPart
from workbench_worker.asked import CurrentSession, Worker, refusals
from workbench_worker.built_designs import GIVEN, given_to

router = APIRouter(prefix="/benchmark")

_STEP = "design.step"
_PARTS = TypeAdapter(list[PlannedPart])


@router.post("/compare", responses=refusals(409, 503))
async def compare(
    request: CompareRequest, session: CurrentSession, worker: Worker, caller: Request
) -> Compared:
    """How far a design is from the numbers of a plan: of what is given alone.

    Nothing of the session is read or changed, and no event says so.
    """
    async with (
        worker.jobs.job(session, None, gone=caller.is_disconnected) as job,
        given_to(job, {_STEP: request.step}),
    ):
        found = await worker.pool.ask(
            job, "compare", parts=_PARTS.dump_json(request.parts).decode(), step=f"{GIVEN}/{_STEP}"
        )
    return Compared.model_validate(found)
