"""The endpoints for hand-overs that were accepted."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Response

from workbench_contract.fidelity import Fidelity
from workbench_contract.handover import Handover
from workbench_controller import handovers
from workbench_controller.fidelity import fidelity_of
from workbench_controller.parts import Controller, Refused, refusals

router = APIRouter(prefix="/handovers")

HandoverId = Annotated[str, Path(pattern=r"^[A-Za-z0-9-]{1,64}$")]


@router.get("/{handover_id}", responses=refusals(404))
async def get_handover(handover_id: HandoverId, controller: Controller) -> Handover:
    """A hand-over: whose, and the digest of each of its files."""
    found = await handovers.find(controller.pool, handover_id)
    if found is None:
        raise Refused(404, f"cannot find hand-over {handover_id}: there is none. Check the id")
    return found


@router.get(
    "/{handover_id}/files/{path:path}",
    response_class=Response,
    responses=refusals(404) | {200: {"content": {"application/octet-stream": {}}}},
)
async def get_file(handover_id: HandoverId, path: str, controller: Controller) -> Response:
    """The bytes of a file of a hand-over, as they were accepted."""
    # A path with a NUL is nobody's; the database would refuse it as text.
    data = None if "\0" in path else await handovers.content_of(controller.pool, handover_id, path)
    if data is None:
        raise Refused(404, f"cannot get {path!r}: the hand-over has no such file. List its files")
    return Response(data, media_type="application/octet-stream")


@router.get("/{handover_id}/fidelity", responses=refusals(404, 409))
async def get_fidelity(handover_id: HandoverId, controller: Controller) -> Fidelity:
    """A design beside the geometry that the numbers of its plan give, part by part."""
    return await fidelity_of(controller, handover_id)
