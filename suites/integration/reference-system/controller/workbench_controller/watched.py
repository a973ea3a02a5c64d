"""What a watch looks at: episodes, flows and backups, each with how one of them ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import asyncpg
from temporalio.client import WorkflowExecutionStatus

from workbench_contract.episodes import EpisodeStatus
from workbench_contract.flows import Cause
from workbench_controller.backups import end_backup
from workbench_controller.flows import take
from workbench_controller.lifecycle import TransitionRefused, transition
from workbench_controller.storage import Store
from workbench_controller.temporal import Workflows
from workbench_foundation import log


class Episodes:
    """Episodes; one that is a flow's turn, or a batch's, may have yet to be started by it."""

    table = "episodes"
    key = "episode_id"
    names = ("episode_id", "trace_id", "session_id")

    def __init__(self, pool: asyncpg.Pool, workflows: Workflows) -> None:
        self._pool = pool
        self._workflows = workflows

    async def end(self, row: Mapping[str, Any], status: EpisodeStatus, reason: str) -> None:
        """End one, unless it has ended otherwise meanwhile."""
        try:
            await transition(self._pool, row["episode_id"], status, reason=reason)
        except TransitionRefused as refused:
            log.info("ended_meanwhile", reason=str(refused))

    async def is_due(self, row: Mapping[str, Any]) -> bool:
        """Whether a flow or a batch that runs has yet to start its workflow."""
        for kind in ("flow", "batch"):
            if (identity := row[f"{kind}_id"]) is not None:
                found = await self._workflows.status(f"{kind}-{identity}")
                return found is WorkflowExecutionStatus.RUNNING
        return False


class Flows:
    """Flows."""

    table = "flows"
    key = "flow_id"
    names = ("flow_id",)

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def end(self, row: Mapping[str, Any], status: EpisodeStatus, reason: str) -> None:
        """End one, unless it has ended otherwise meanwhile."""
        cause = Cause.FAILED if status is EpisodeStatus.FAILED else Cause.INTERRUPTED
        await take(self._pool, row["flow_id"], status, cause, reason=reason)

    async def is_due(self, _row: Mapping[str, Any]) -> bool:
        """Its workflow is started when it is submitted, or not at all."""
        return False


class Backups:
    """Backups; what there is of one that ends here is removed."""

    table = "backups"
    key = "backup_id"
    names = ("backup_id",)

    def __init__(self, pool: asyncpg.Pool, store: Store) -> None:
        self._pool = pool
        self._store = store

    async def end(self, row: Mapping[str, Any], _status: EpisodeStatus, reason: str) -> None:
        """End one, unless it has ended otherwise meanwhile.

        Raises:
            StoreTroubled: the store does not answer; it has not ended then.
        """
        await self._store.remove(row["prefix"])
        await end_backup(self._pool, row["backup_id"], failed=reason)

    async def is_due(self, _row: Mapping[str, Any]) -> bool:
        """Its workflow is started when it is asked for, or not at all."""
        return False
