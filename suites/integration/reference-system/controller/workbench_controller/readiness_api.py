"""The endpoint for data sets of runs."""

from __future__ import annotations

import httpx
from fastapi import APIRouter

from workbench_contract.readiness import Readiness
from workbench_controller import records
from workbench_controller.episodes_api import EpisodeId
from workbench_controller.handovers import BytesDiffer
from workbench_controller.ingest import GapError, pull
from workbench_controller.parts import Controller, Refused, refusals
from workbench_controller.readiness import readiness_of
from workbench_controller.storage import StoreTroubled

router = APIRouter(prefix="/episodes")


@router.get("/{episode_id}/readiness", responses=refusals(404))
async def get_readiness(episode_id: EpisodeId, controller: Controller) -> Readiness:
    """Whether an episode has all that a data set needs, mark by mark, as it is now."""
    found = await records.episode(controller.pool, episode_id)
    if found is None:
        raise Refused(404, f"cannot find episode {episode_id}: there is none. Check the id")
    try:
        await controller.store.answers()
        last_seq = await pull(controller.pool, controller.worker, found.session_id)
        return await readiness_of(controller.pool, controller.store, found, last_seq=last_seq)
    except (httpx.HTTPError, GapError, BytesDiffer, StoreTroubled) as error:
        raise Refused(
            503, f"cannot look at all of the episode: {error}. Ask again when all serves"
        ) from error
