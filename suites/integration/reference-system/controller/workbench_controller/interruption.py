"""Ending an episode early: its workflow is cancelled, and ends its job at the worker itself."""

from __future__ import annotations

from workbench_contract.episodes import EpisodeStatus, InterruptAccepted
from workbench_controller.lifecycle import transition
from workbench_controller.parts import Parts, Refused
from workbench_controller.temporal import TemporalAway
from workbench_foundation import faults, log


async def interrupt(parts: Parts, episode_id: str) -> InterruptAccepted:
    """Ask for the end of an episode.

    Raises:
        Refused: 404 for an unknown one, 409 when it has ended, 503 when Temporal does not answer;
            nothing has changed then.
    """
    async with parts.pool.acquire() as connection, connection.transaction():
        row = await connection.fetchrow(
            "SELECT * FROM episodes WHERE episode_id = $1 FOR UPDATE", episode_id
        )
        if row is None:
            raise Refused(404, f"cannot interrupt episode {episode_id}: there is none. Check the id")
        status = EpisodeStatus(row["status"])
        if status.final:
            detail = f"cannot interrupt episode {episode_id}: it is {status}. Start another one"
            raise Refused(409, detail)
        asked_at = await connection.fetchval(
            "UPDATE episodes SET interrupt_requested_at ="
            " coalesce(interrupt_requested_at, clock_timestamp())"
            " WHERE episode_id = $1 RETURNING interrupt_requested_at",
            episode_id,
        )
        if not faults.on("interrupt-changes-row-only"):
            workflows = [row["workflow_id"]]
            if faults.on("interrupt-ends-others"):
                running = "SELECT workflow_id FROM episodes WHERE status = 'running'"
                workflows = [each["workflow_id"] for each in await connection.fetch(running)]
            try:
                for workflow_id in workflows:
                    await parts.workflows.cancel(workflow_id)
            except TemporalAway as away:
                # Leaving the block by an error takes the request back.
                raise Refused(503, f"{away}. Ask again when Temporal serves") from away
            except LookupError:
                log.warning("interrupted_without_workflow", episode_id=episode_id)
    if faults.on("interrupt-changes-row-only"):
        await transition(
            parts.pool, episode_id, EpisodeStatus.INTERRUPTED, reason="it was interrupted"
        )
    log.info("interrupt_requested", episode_id=episode_id, trace_id=row["trace_id"])
    return InterruptAccepted(
        episode_id=episode_id, status=status, interrupt_requested_at=asked_at
    )
