"""The skills of episodes: kept in their rows, told to their agents."""

from __future__ import annotations

from typing import Any

import asyncpg
import httpx

from workbench_contract.places import SKILLS
from workbench_contract.skills import MOST_VERSIONS, SkillsGiven, SkillsKnown, SkillVersion
from workbench_controller.parts import Refused
from workbench_controller.worker_client import WorkerClient
from workbench_foundation.errors import describe


async def keep(pool: asyncpg.Pool, episode_id: str, given: SkillsGiven) -> None:
    """Write down what a run was given; once, whatever comes later."""
    await pool.execute(
        "UPDATE episodes SET skills = $2 WHERE episode_id = $1 AND skills IS NULL",
        *(episode_id, given.model_dump(mode="json")),
    )


async def told(pool: asyncpg.Pool, episode_id: str) -> str:
    """The skills of a run, as its agent is told of them; empty where it has none."""
    row: dict[str, Any] | None = await pool.fetchval(
        "SELECT skills FROM episodes WHERE episode_id = $1", episode_id
    )
    given = SkillsGiven.model_validate(row) if row else None
    if given is None or not given.skills:
        return ""
    lines = "\n".join(
        f"- {SKILLS}/{skill.name}/SKILL.md: {skill.description}" for skill in given.skills
    )
    return f"Skills, to be read where they are of use:\n{lines}"


async def known(pool: asyncpg.Pool, worker: WorkerClient) -> SkillsKnown:
    """What a run that begins now is given, and what runs were given before.

    Raises:
        Refused: 503 when the worker does not say.
    """
    rows = await pool.fetch(
        "SELECT skills ->> 'commit' AS commit, count(*) AS runs, min(created_at) AS first_at,"
        " max(created_at) AS last_at FROM episodes WHERE skills ->> 'commit' IS NOT NULL"
        " GROUP BY 1 ORDER BY last_at DESC, commit LIMIT $1",
        MOST_VERSIONS,
    )
    versions = [SkillVersion(**dict(row)) for row in rows]
    try:
        now = await worker.skills()
        return SkillsKnown(**dict(now), versions=versions)
    except httpx.HTTPError as error:
        detail = f"cannot tell the skills: the worker does not answer ({describe(error)})"
        raise Refused(503, f"{detail}. Ask again when it serves") from error
