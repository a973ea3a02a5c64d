"""The endpoint for the skills that there are."""

from __future__ import annotations

from fastapi import APIRouter

from workbench_contract.skills import SkillsGiven
from workbench_worker.asked import Worker

router = APIRouter()


@router.get("/skills")
def get_skills(worker: Worker) -> SkillsGiven:
    """What a session that is opened now is given."""
    return worker.skills.current()
