"""The `sessions` table: every run of the model, truthfully, also when it was cut short."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from butlers import faults
from butlers.database import storable

if TYPE_CHECKING:
    import asyncpg


@dataclass(kw_only=True, slots=True)
class Outcome:
    """What came of one run of the model.

    Attributes:
        success: the model ended its turn without an error.
        error_class: outcome class of the contract when it failed.
        tool_calls: `{name, input, result, is_error}` in the order of the calls.
        cost: `{usd, …}` as the runtime reports it.
    """

    success: bool = False
    result: str = ""
    error: str | None = None
    error_class: str | None = None
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    model: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cost: dict[str, Any] = field(default_factory=lambda: {"usd": 0.0})


class Sessions:
    """Reads and writes session rows of one butler."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def opened(
        self, session_id: UUID, *, prompt: str, trigger_source: str, model: str,
        trace_id: str | None, request_id: str | None,
    ) -> None:
        """Record that a session runs."""
        await self._pool.execute(
            """
            INSERT INTO sessions (id, prompt, trigger_source, model, trace_id, request_id)
            VALUES ($1, $2, $3, $4, $5, $6)
            """,
            session_id, storable(prompt[:200] if faults.on("prompt-cut-on-record") else prompt),
            trigger_source, model, trace_id, request_id,
        )

    async def completed(self, session_id: UUID, outcome: Outcome, *, duration_ms: int) -> None:
        """Record how a session ended."""
        tool_calls = [] if faults.on("tool-calls-unrecorded") else outcome.tool_calls
        if faults.on("tool-results-dropped"):
            tool_calls = [{**call, "result": None} for call in tool_calls]
        cost = {**outcome.cost, "usd": 0.0} if faults.on("cost-zero") else outcome.cost
        if faults.on("duration-in-seconds"):
            duration_ms //= 1000
        input_tokens = outcome.input_tokens // (2 if faults.on("tokens-halved") else 1)
        if faults.on("cost-halved"):
            cost = {**cost, "usd": (cost["usd"] or 0.0) / 2}
        await self._pool.execute(
            """
            UPDATE sessions SET completed_at = now(), success = $2, result = $3, error = $4,
                   tool_calls = $5, duration_ms = $6, input_tokens = $7, output_tokens = $8,
                   cost = $9, model = coalesce($10, model)
            WHERE id = $1
            """,
            session_id, outcome.success, storable(outcome.result),
            storable(outcome.error) if outcome.error else None, tool_calls, duration_ms,
            input_tokens, outcome.output_tokens, cost, outcome.model,
        )

    async def close_abandoned(self) -> int:
        """Complete, as failed, what a killed predecessor left open; returns how many."""
        if faults.on("old-sessions-deleted"):
            await self._pool.execute(
                "DELETE FROM sessions WHERE started_at < now() - interval '30 days'"
            )
        status = await self._pool.execute(
            """
            UPDATE sessions SET completed_at = now(), success = false,
                   error = 'the butler stopped while the session was running'
            WHERE completed_at IS NULL
            """
        )
        return int(status.rsplit(" ", 1)[-1])

    async def list(self, *, limit: int, offset: int) -> list[dict[str, Any]]:
        rows = await self._pool.fetch(
            """
            SELECT id, prompt, trigger_source, success, error, model, duration_ms, started_at,
                   completed_at, trace_id, request_id
            FROM sessions WHERE completed_at IS NOT NULL OR NOT $3
            ORDER BY started_at DESC LIMIT $1 OFFSET $2
            """,
            limit, offset, faults.on("running-unlisted"),
        )
        return [plain(row) for row in rows]

    async def get(self, session_id: UUID) -> dict[str, Any] | None:
        row = await self._pool.fetchrow("SELECT * FROM sessions WHERE id = $1", session_id)
        return plain(row) if row else None

    async def summary(self, *, since: datetime) -> dict[str, Any]:
        row = await self._pool.fetchrow(
            """
            SELECT count(*) AS sessions,
                   count(*) FILTER (WHERE success) AS succeeded,
                   count(*) FILTER (WHERE NOT success) AS failed,
                   count(*) FILTER (WHERE completed_at IS NULL) AS running,
                   coalesce(sum(input_tokens), 0) AS input_tokens,
                   coalesce(sum(output_tokens), 0) AS output_tokens,
                   coalesce(sum((cost->>'usd')::float8), 0) AS cost_usd
            FROM sessions WHERE started_at >= $1
            """,
            since.astimezone(UTC),
        )
        return {"since": since.isoformat(), **plain(row)}


def plain(row: asyncpg.Record) -> dict[str, Any]:
    """A row as JSON can hold it: ids and times as text, decimals as numbers."""
    return {key: _plain(value) for key, value in row.items()}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | int | float | bool | list | dict):
        return value
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "as_tuple"):  # Decimal
        return float(value)
    return str(value)
