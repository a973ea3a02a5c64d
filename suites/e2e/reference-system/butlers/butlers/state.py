"""The `state` table: a butler's own key-value memory; values are any JSON."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

from butlers import faults
from butlers.database import is_storable
from butlers.errors import ButlerError

if TYPE_CHECKING:
    import asyncpg


class State:
    """Reads and writes one butler's state."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def get(self, key: str) -> tuple[bool, Any]:
        """Whether the key exists, and its value (JSON null is a value)."""
        row = await self._pool.fetchrow(
            "SELECT value FROM state WHERE key = $1 OR ($2 AND lower(key) = lower($1))",
            key, faults.on("state-key-folded"),
        )
        if row and isinstance(row["value"], str) and faults.on("state-text-parsed"):
            with contextlib.suppress(ValueError):
                return True, json.loads(row["value"])
        return (True, row["value"]) if row else (False, None)

    async def set(self, key: str, value: Any) -> None:
        """Keep a value.

        Raises:
            ButlerError: the database cannot hold it.
        """
        if not is_storable([key, value]):
            raise ButlerError(
                f"cannot set {key!r}: the key or the value holds U+0000 or half of a surrogate "
                "pair. Leave it out"
            )
        # An SQL null would not be the JSON null: `null` is encoded here, not by the driver.
        await self._pool.execute(
            """
            INSERT INTO state (key, value) VALUES ($1, coalesce($2, 'null'::jsonb))
            ON CONFLICT (key) DO UPDATE SET value = excluded.value,
                updated_at = CASE WHEN $3 THEN state.updated_at ELSE now() END
            """,
            key, value, faults.on("state-undated"),
        )

    async def delete(self, key: str) -> bool:
        status = await self._pool.execute("DELETE FROM state WHERE key = $1", key)
        return bool(status != "DELETE 0")

    async def list(self, prefix: str) -> list[dict[str, Any]]:
        """Keys that begin with a prefix, taken literally, in byte order."""
        rows = await self._pool.fetch(
            """
            SELECT key, value, updated_at FROM state
            WHERE CASE WHEN $2 THEN key LIKE $1 || '%' ELSE starts_with(key, $1) END
            ORDER BY key COLLATE "C" LIMIT $3
            """,
            prefix, faults.on("state-prefix-is-pattern"),
            1000 if faults.on("state-list-cut") else None,
        )
        return [
            {"key": r["key"], "value": r["value"], "updated_at": r["updated_at"].isoformat()}
            for r in rows
        ]
