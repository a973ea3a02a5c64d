"""Feedback: stored with the trace it is about, then forwarded to Langfuse, in the order it was given."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import asyncpg

from workbench_contract.feedback import Feedback, FeedbackRequest
from workbench_controller.langfuse_client import LangfuseClient, LangfuseTroubled
from workbench_controller.parts import Refused
from workbench_foundation import faults, log
from workbench_foundation.errors import describe

#: One score at a time: of two for one trace the later is sent later.
_forwarding = asyncio.Lock()

_FORWARD = "SELECT * FROM traces WHERE id = $1 AND NOT feedback_forwarded"


async def give(
    pool: asyncpg.Pool,
    client: LangfuseClient,
    *,
    episode_id: str,
    trace_id: str,
    said: FeedbackRequest,
) -> Feedback:
    """Store feedback and forward it, or as much of that as Langfuse lets.

    Raises:
        Refused: there is no such trace, or Langfuse does not know it.
    """
    async with pool.acquire() as connection, connection.transaction():
        row = await connection.fetchrow(
            "SELECT * FROM traces WHERE episode_id = $1 AND id = $2 FOR UPDATE",
            episode_id,
            trace_id,
        )
        if row is None and faults.on("feedback-of-any-episode"):
            row = await connection.fetchrow("SELECT * FROM traces WHERE id = $1", trace_id)
        if row is None:
            raise Refused(
                404,
                f"cannot take feedback: episode {episode_id} has no trace {trace_id}. Check the ids",
            )
        if row["langfuse_trace_id"] is None and not faults.on("feedback-on-unknown"):
            raise Refused(
                400, f"cannot take feedback: trace {trace_id} has no langfuse_trace_id."
                " Give it when Langfuse has been told of the trace",
            )  # fmt: skip
        await connection.execute(
            "UPDATE traces SET feedback_score = $2, feedback_comment = $3,"
            " feedback_at = coalesce(feedback_at, $4), feedback_forwarded = false WHERE id = $1"
            + (" AND feedback_at IS NULL" if faults.on("feedback-once") else ""),
            *(trace_id, said.score, said.comment, datetime.now(UTC)),
        )
    try:
        await _forward(pool, client, trace_id)
    except LangfuseTroubled as troubled:
        log.warning("feedback_waits", episode_id=episode_id, reason=describe(troubled))
        if faults.on("feedback-lost-when-away"):
            await pool.execute("UPDATE traces SET feedback_forwarded = true WHERE id = $1", trace_id)
    kept = await pool.fetchrow("SELECT * FROM traces WHERE id = $1", trace_id)
    return Feedback(
        episode_id=episode_id,
        trace_id=trace_id,
        langfuse_trace_id=kept["langfuse_trace_id"] or "",
        score=kept["feedback_score"],
        comment=kept["feedback_comment"],
        forwarded=kept["feedback_forwarded"],
    )


async def forward_waiting(pool: asyncpg.Pool, client: LangfuseClient) -> None:
    """Forward all that waits, oldest first.

    Raises:
        LangfuseTroubled: some of it still waits.
    """
    rows = await pool.fetch(
        "SELECT id FROM traces WHERE NOT feedback_forwarded ORDER BY feedback_at"
    )
    refused: LangfuseTroubled | None = None
    for row in rows:
        try:
            await _forward(pool, client, row["id"])
        except LangfuseTroubled as troubled:
            if not troubled.refused or faults.on("feedback-held-up"):
                raise
            # What is behind it may be taken.
            refused = troubled
    if refused is not None:
        raise refused


async def _forward(pool: asyncpg.Pool, client: LangfuseClient, trace_id: str) -> None:
    async with _forwarding:
        row = await pool.fetchrow(_FORWARD, trace_id)
        if row is None:
            return
        if faults.on("feedback-kept-from-langfuse"):
            await pool.execute("UPDATE traces SET feedback_forwarded = true WHERE id = $1", trace_id)
            return
        await client.score(
            f"trace {trace_id}",
            trace_id=row["langfuse_trace_id"],
            value=row["feedback_score"],
            comment=row["feedback_comment"],
            at=row["feedback_at"],
        )
        if faults.on("feedback-correction-untold"):
            await pool.execute("UPDATE traces SET feedback_forwarded = true WHERE id = $1", trace_id)
        await pool.execute(
            "UPDATE traces SET feedback_forwarded = true WHERE id = $1 AND feedback_score = $2"
            " AND feedback_comment IS NOT DISTINCT FROM $3",
            *(trace_id, row["feedback_score"], row["feedback_comment"]),
        )
