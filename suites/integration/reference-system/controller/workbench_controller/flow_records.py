"""Rows of flows as what is answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import asyncpg

from workbench_contract.episodes import EpisodeStatus, Purpose
from workbench_contract.flows import Flow, FlowList, FlowSummary, FlowTransition
from workbench_controller import decisions
from workbench_foundation import faults

_SUMMARY = tuple(FlowSummary.model_fields)
_TRANSITION = tuple(FlowTransition.model_fields)
#: More of them a flow has not: its rounds are bounded.
_DECISIONS = 500


async def flow(pool: asyncpg.Pool, flow_id: str) -> Flow | None:
    """A flow with all that belongs to it, as of one moment; none when there is none."""
    async with pool.acquire() as connection, connection.transaction(
        isolation="repeatable_read", readonly=True
    ):
        row = await connection.fetchrow("SELECT * FROM flows WHERE flow_id = $1", flow_id)
        if row is None:
            return None
        steps = await connection.fetch(
            "SELECT * FROM flow_transitions WHERE flow_id = $1 ORDER BY ordinal", flow_id
        )
        decided, _ = await decisions.page(connection, flow_id=flow_id, limit=_DECISIONS)
    return Flow(
        **_picked(row, _SUMMARY),
        interrupt_requested_at=row["interrupt_requested_at"],
        transitions=[FlowTransition(**_picked(step, _TRANSITION)) for step in steps],
        decisions=decided,
    )


async def page(
    pool: asyncpg.Pool,
    *,
    purpose: Purpose | None,
    status: EpisodeStatus | None,
    limit: int,
    offset: int,
) -> FlowList:
    """Flows, latest first."""
    condition = "($1::text IS NULL OR purpose = $1) AND ($2::text IS NULL OR status = $2)"
    if faults.on("flows-of-any-status"):
        status = None
    wanted = (purpose and purpose.value, status and status.value)
    rows = await pool.fetch(
        f"SELECT * FROM flows WHERE {condition} ORDER BY created_at DESC, flow_id"
        " LIMIT $3 OFFSET $4",
        *(*wanted, limit, offset),
    )
    total = await pool.fetchval(f"SELECT count(*) FROM flows WHERE {condition}", *wanted)
    if faults.on("flows-total-of-a-page"):
        total = len(rows)
    return FlowList(flows=[FlowSummary(**_picked(row, _SUMMARY)) for row in rows], total=total)


def _picked(row: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: row[name] for name in names}
