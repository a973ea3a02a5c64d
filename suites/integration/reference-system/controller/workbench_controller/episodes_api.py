"""The endpoints for episodes."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from workbench_contract.episodes import (
    AssetList,
    AssetStatus,
    Episode,
    EpisodeAccepted,
    EpisodeEvents,
    EpisodeList,
    EpisodeRefused,
    EpisodeRequest,
    EpisodeStatus,
    InterruptAccepted,
)
from workbench_contract.problem import Problem
from workbench_controller import lost_assets, records
from workbench_controller.eventstore import events_of
from workbench_controller.interruption import interrupt
from workbench_controller.parts import Controller, Refused, refusals
from workbench_controller.storage import StoreTroubled
from workbench_controller.submission import submit
from workbench_foundation import faults

router = APIRouter(prefix="/episodes")

EpisodeId = Annotated[str, Path(pattern=r"^[A-Za-z0-9-]{1,64}$")]


@router.post(
    "",
    status_code=202,
    response_model=EpisodeAccepted,
    responses=refusals(404) | {503: {"model": EpisodeRefused | Problem}},
)
async def post_episode(request: EpisodeRequest, controller: Controller) -> Any:
    """Submit an episode; with 503 it exists, and has failed; with 404 there is no such hand-over."""
    accepted, problem = await submit(controller, request)
    if problem is None:
        if faults.on("answer-undeclared-field"):
            return _answer(202, accepted, queue="default")
        return accepted
    detail = f"{problem}. Submit it again when Temporal serves"
    refused = EpisodeRefused(detail=detail, episode_id=accepted.episode_id, status=accepted.status)
    return _answer(503, refused)


@router.get("")
async def get_episodes(
    controller: Controller,
    status: EpisodeStatus | None = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
) -> EpisodeList:
    """Episodes, latest first."""
    if faults.on("fuzz-far-page-breaks") and offset > 65_535:
        raise IndexError(offset)
    wanted = None if status is None else status.value
    rows = await controller.pool.fetch(
        "SELECT * FROM episodes WHERE $1::text IS NULL OR status = $1"
        " ORDER BY created_at DESC, episode_id LIMIT $2 OFFSET $3",
        *(wanted, limit, offset),
    )
    total = await controller.pool.fetchval(
        "SELECT count(*) FROM episodes WHERE $1::text IS NULL OR status = $1", wanted
    )
    return EpisodeList(episodes=[records.summary(row) for row in rows], total=total)


@router.get("/{episode_id}", response_model=Episode, responses=refusals(404))
async def get_episode(episode_id: EpisodeId, controller: Controller) -> Any:
    """An episode with its transitions, traces and assets."""
    episode = await _found(controller, episode_id)
    if faults.on("answer-of-wrong-type"):
        body = episode.model_dump(mode="json")
        return JSONResponse(body | {"seed": str(episode.seed)})
    return episode


@router.post("/{episode_id}/interrupt", status_code=202, responses=refusals(404, 409, 503))
async def post_interrupt(episode_id: EpisodeId, controller: Controller) -> InterruptAccepted:
    """End an episode early; its status shows when it has ended."""
    return await interrupt(controller, episode_id)


@router.get("/{episode_id}/events", responses=refusals(404))
async def get_events(episode_id: EpisodeId, controller: Controller) -> EpisodeEvents:
    """All events of an episode that are stored so far."""
    episode = await _found(controller, episode_id)
    events = await events_of(controller.pool, episode.session_id)
    return EpisodeEvents(episode_id=episode_id, session_id=episode.session_id, events=events)


@router.get("/{episode_id}/assets", responses=refusals(404))
async def get_assets(episode_id: EpisodeId, controller: Controller) -> AssetList:
    """The assets of an episode; one whose object is gone is said to be missing."""
    episode = await _found(controller, episode_id)
    found = await lost_assets.told(controller.store, episode.assets)
    return AssetList(episode_id=episode_id, assets=found)


@router.get(
    "/{episode_id}/assets/{path:path}",
    response_class=Response,
    responses=refusals(404, 410, 503) | {200: {"content": {"application/octet-stream": {}}}},
)
async def get_asset(episode_id: EpisodeId, path: str, controller: Controller) -> Response:
    """The bytes of an asset, from the object store."""
    for asset in await records.assets(controller.pool, episode_id):
        if asset.path == path and asset.status is AssetStatus.UPLOADED:
            try:
                data = await lost_assets.content(controller.store, asset)
            except lost_assets.Lost as lost:
                raise Refused(410, str(lost)) from lost
            except StoreTroubled as error:
                raise Refused(503, f"{error}. Ask again when the object store serves") from error
            return Response(data, media_type="application/octet-stream")
    raise Refused(404, f"cannot get {path}: the episode has no such asset. List its assets")


async def _found(controller: Controller, episode_id: str) -> Episode:
    episode = await records.episode(controller.pool, episode_id)
    if episode is None:
        raise Refused(404, f"cannot find episode {episode_id}: there is none. Check the id")
    return episode


def _answer(status: int, body: BaseModel, **more: Any) -> JSONResponse:
    return JSONResponse(body.model_dump(mode="json") | more, status_code=status)
