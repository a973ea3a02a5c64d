"""Ending an episode or a flow early: its workflow is cancelled, and ends its job at the worker itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import asyncpg

from workbench_contract.episodes import EpisodeStatus, InterruptAccepted
from workbench_contract.flows import FlowInterruptAccepted
from workbench_controller.lifecycle import take, transition
from workbench_controller.parts import Parts, Refused
from workbench_controller.temporal import TemporalAway
from workbench_foundation import faults, log


#: Of an episode whose batch has not come to it.
_UNBEGUN = "it was interrupted before its turn came"


async def interrupt(parts: Parts, episode_id: str) -> InterruptAccepted:
    """Ask for the end of an episode.

    Raises:
        Refused: 404 for an unknown one, 409 when it has ended, 503 when Temporal does not answer;
            nothing has changed then.
    """
    async with parts.pool.acquire() as connection, connection.transaction():
        row, asked_at = await _asked(connection, "episode", episode_id)
        if not faults.on("interrupt-changes-row-only"):
            workflows = [row["workflow_id"]]
            if faults.on("interrupt-ends-others"):
                running = "SELECT workflow_id FROM episodes WHERE status = 'running'"
                workflows = [each["workflow_id"] for each in await connection.fetch(running)]
            begun = await _cancel(parts, workflows, episode_id=episode_id)
            unbegun = not begun and row["batch_id"] is not None
            if unbegun and row["status"] == EpisodeStatus.QUEUED.value:
                # As long as its row is locked its batch cannot begin it.
                await take(
                    connection, episode_id, EpisodeStatus.INTERRUPTED, reason=_UNBEGUN
                )
    if faults.on("interrupt-changes-row-only"):
        await transition(
            parts.pool, episode_id, EpisodeStatus.INTERRUPTED, reason="it was interrupted"
        )
    log.info("interrupt_requested", episode_id=episode_id, trace_id=row["trace_id"])
    status = EpisodeStatus(row["status"])
    return InterruptAccepted(
        episode_id=episode_id, status=status, interrupt_requested_at=asked_at
    )


async def interrupt_flow(parts: Parts, flow_id: str) -> FlowInterruptAccepted:
    """Have a flow ended, with the turn that is under way.

    Raises:
        Refused: as for an episode.
    """
    async with parts.pool.acquire() as connection, connection.transaction():
        row, asked_at = await _asked(connection, "flow", flow_id)
        await connection.execute(
            "UPDATE episodes SET interrupt_requested_at ="
            " coalesce(interrupt_requested_at, clock_timestamp())"
            " WHERE flow_id = $1 AND status IN ('queued', 'running')",
            flow_id,
        )
        await _cancel(parts, [row["workflow_id"]], flow_id=flow_id)
    log.info("interrupt_requested", flow_id=flow_id)
    status = EpisodeStatus(row["status"])
    return FlowInterruptAccepted(flow_id=flow_id, status=status, interrupt_requested_at=asked_at)


async def _asked(
    connection: asyncpg.Connection, kind: str, identity: str
) -> tuple[Mapping[str, Any], datetime]:
    """Write down that an ``episode`` or a ``flow`` is to end: its row as it was, and since when."""
    row = await connection.fetchrow(
        f"SELECT * FROM {kind}s WHERE {kind}_id = $1 FOR UPDATE", identity
    )
    if row is None:
        raise Refused(404, f"cannot interrupt {kind} {identity}: there is none. Check the id")
    status = EpisodeStatus(row["status"])
    if status.final:
        detail = f"cannot interrupt {kind} {identity}: it is {status}. Start another one"
        raise Refused(409, detail)
    asked_at: datetime = await connection.fetchval(
        f"UPDATE {kind}s SET interrupt_requested_at ="
        " coalesce(interrupt_requested_at, clock_timestamp())"
        f" WHERE {kind}_id = $1 RETURNING interrupt_requested_at",
        identity,
    )
    return row, asked_at


async def _cancel(parts: Parts, workflows: Sequence[str], **whose: str) -> bool:
    """Have workflows cancelled; whether they are there.

    Leaving the caller's transaction by an error takes the request back.
    """
    try:
        for workflow_id in workflows:
            await parts.workflows.cancel(workflow_id)
    except TemporalAway as away:
        raise Refused(503, f"{away}. Ask again when Temporal serves") from away
    except LookupError:
        log.warning("interrupted_without_workflow", **whose)
        return False
    return True
