"""The endpoint for entries of journals."""

from __future__ import annotations

import uuid

import httpx
from fastapi import APIRouter

from workbench_contract.episodes import JournalLine
from workbench_contract.journal import JournalEntry
from workbench_controller import entries, records
from workbench_controller.episodes_api import EpisodeId
from workbench_controller.handovers import BytesDiffer
from workbench_controller.ingest import GapError, pull_and_store
from workbench_controller.parts import Controller, Refused, refusals
from workbench_foundation import faults

router = APIRouter(prefix="/episodes")


@router.post(
    "/{episode_id}/journal", status_code=201, response_model=JournalLine, responses=refusals(404, 409)
)
async def post_entry(
    episode_id: EpisodeId, entry: JournalEntry, controller: Controller
) -> JournalLine:
    """Write an entry into the journal of an episode. With 409 it rests on events that are not there."""
    found = await records.episode(controller.pool, episode_id)
    if found is None:
        raise Refused(404, f"cannot find episode {episode_id}: there is none. Check the id")
    try:
        if not faults.on("journal-of-what-is-pulled"):
            await pull_and_store(controller.pool, controller.worker, found.session_id)
    except (httpx.HTTPError, GapError, BytesDiffer) as error:
        raise Refused(
            503, f"cannot take the entry: events are still to come ({error}). Ask again"
        ) from error
    try:
        ordinal = await entries.take(controller.pool, episode_id, str(uuid.uuid4()), entry)
    except entries.Unobserved as unobserved:
        raise Refused(409, str(unobserved)) from unobserved
    now = await records.episode(controller.pool, episode_id)
    assert now is not None, "an episode is never removed"
    return now.journal[ordinal - 1]
