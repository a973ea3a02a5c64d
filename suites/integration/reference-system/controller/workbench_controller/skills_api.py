"""The endpoint for the skills that there are."""

from __future__ import annotations

from fastapi import APIRouter

from workbench_contract.skills import SkillsKnown
from workbench_controller.parts import Controller, refusals
from workbench_controller.skills import known

router = APIRouter()


@router.get("/skills", responses=refusals(503))
async def get_skills(controller: Controller) -> SkillsKnown:
    """The skills that an episode is given which begins now, or why there are none; versions of earlier ones."""
    return await known(controller.pool, controller.worker)
