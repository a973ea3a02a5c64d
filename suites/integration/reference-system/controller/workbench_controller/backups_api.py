"""The endpoints for backups."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from fastapi.responses import JSONResponse

from workbench_contract.backups import Backup, BackupList, BackupRefused
from workbench_contract.problem import Problem
from workbench_controller.backups import backup_of, begin_backup, list_backups
from workbench_controller.parts import Controller, refusals

router = APIRouter(prefix="/ops")

BackupId = Annotated[str, Path(pattern=r"^[A-Za-z0-9-]{1,64}$")]


@router.post(
    "/backup",
    status_code=202,
    response_model=Backup,
    responses=refusals(409) | {503: {"model": BackupRefused | Problem}},
)
async def post_backup(controller: Controller) -> Any:
    """Begin a backup; its record shows when it has ended. With 503 it is on record, and has failed."""
    backup, problem = await begin_backup(controller)
    if problem is None:
        return backup
    detail = f"{problem}. Ask for another when Temporal serves"
    refused = BackupRefused(detail=detail, backup_id=backup.backup_id, status=backup.status)
    return JSONResponse(refused.model_dump(mode="json"), status_code=503)


@router.get("/backups")
async def get_backups(
    controller: Controller,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
) -> BackupList:
    """Backups on record, latest first."""
    return await list_backups(controller, limit=limit, offset=offset)


@router.get("/backups/{backup_id}", responses=refusals(404))
async def get_backup(backup_id: BackupId, controller: Controller) -> Backup:
    """A backup on record."""
    return await backup_of(controller, backup_id)
