"""What a batch's workflow does outside of Temporal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import asyncpg
from temporalio import activity

from workbench_contract.episodes import EpisodeStatus, Purpose
from workbench_controller.run import Member, Run
from workbench_foundation import faults


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchActivities:
    """Activities, with what they need."""

    pool: asyncpg.Pool

    def all(self) -> list[Callable[..., Any]]:
        """The activities."""
        return [self.run_of_member]

    @activity.defn(name="run_of_member")
    async def run_of_member(self, member: Member) -> Run | None:
        """The episode whose turn has come; none of one that has ended before it began."""
        row = await self.pool.fetchrow(
            "SELECT * FROM episodes WHERE episode_id = $1", member.episode_id
        )
        if row is None or EpisodeStatus(row["status"]).final:
            return None
        names = ("episode_id", "session_id", "trace_id", "role", "purpose", "task", "seed", "variant", "handover_id")  # fmt: skip
        found = {name: row[name] for name in names}
        if faults.on("batch-seeds-lost"):
            found |= {"seed": 0, "variant": "default"}
        if faults.on("batch-purpose-lost"):
            found["purpose"] = Purpose.ENGINEERING
        return Run(**found, limits=member.batch.limits)
