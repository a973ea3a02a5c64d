"""The `butler_registry` table: who is there, and whose lease ran out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from butlers import faults

if TYPE_CHECKING:
    import asyncpg


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A butler as the classification sees it."""

    name: str
    endpoint_url: str
    description: str
    capabilities: tuple[str, ...]


class Registry:
    """The switchboard's list of butlers.

    Args:
        lease_s: seconds after which a silent butler is stale.
        itself: the switchboard's own name, which is never a target.
    """

    def __init__(self, pool: asyncpg.Pool, *, lease_s: float, itself: str) -> None:
        self._pool = pool
        self._lease_s = lease_s
        self._itself = itself
        self._open_since: datetime | None = None

    async def open(self) -> None:
        """From now on leases can be renewed.

        No butler could renew one while the switchboard was down, so what ran out meanwhile counts
        from here: else a message that waited for the restart would find no butler registered.
        """
        self._open_since = await self._pool.fetchval("SELECT now()")
        if faults.on("stale-forgotten"):
            await self._pool.execute(
                "UPDATE butler_registry SET eligibility_state = 'active' "
                "WHERE eligibility_state = 'stale'"
            )

    async def register(
        self, *, name: str, endpoint_url: str, description: str, capabilities: Sequence[str],
        routable: bool,
    ) -> str:
        """Add a butler or renew its lease; one in quarantine stays there.

        Args:
            routable: whether messages may be routed to it at all.

        Returns:
            Its eligibility.
        """
        state: str = await self._pool.fetchval(
            """
            INSERT INTO butler_registry AS known
                   (name, endpoint_url, description, capabilities, routable, eligibility_state,
                    last_seen_at)
            VALUES ($1, $2, $3, $4, $5, 'active', now())
            ON CONFLICT (name) DO UPDATE SET
                endpoint_url = excluded.endpoint_url, description = excluded.description,
                capabilities = excluded.capabilities, routable = excluded.routable,
                last_seen_at = now(),
                eligibility_state = CASE
                    WHEN $6 AND known.endpoint_url <> excluded.endpoint_url THEN 'active'
                    WHEN known.eligibility_state = 'quarantined' THEN 'quarantined'
                    ELSE 'active' END
            RETURNING eligibility_state
            """,
            name, endpoint_url, description,
            [] if faults.on("capabilities-lost") else list(capabilities), routable,
            faults.on("quarantine-left-by-moving"),
        )
        return state

    async def expire(self) -> list[str]:
        """Mark as stale whoever was silent for longer than the lease; returns their names."""
        if faults.on("lease-ignored"):
            return []
        rows = await self._pool.fetch(
            """
            UPDATE butler_registry SET eligibility_state = 'stale'
            WHERE eligibility_state = 'active' AND (routable OR NOT $3)
              AND greatest(last_seen_at, $2) < now() - make_interval(secs => $1)
            RETURNING name
            """,
            self._lease_s, self._open_since, faults.on("lease-of-targets-alone"),
        )
        return sorted(row["name"] for row in rows)

    async def targets(self) -> dict[str, Entry]:
        """Butlers that messages may be routed to, by name."""
        return {
            name: entry for name, entry in (await self._active(routable=True)).items()
            if name != self._itself
        }

    async def active(self, name: str) -> Entry | None:
        """A butler that can be called now, routable or not."""
        return (await self._active(routable=False)).get(name)

    async def _active(self, *, routable: bool) -> dict[str, Entry]:
        as_stale = not routable and faults.on("delivered-to-the-stale")
        rows = await self._pool.fetch(
            """
            SELECT name, endpoint_url, description, capabilities FROM butler_registry
            WHERE eligibility_state IN ('active', $4) AND (routable OR NOT $1)
              AND greatest(last_seen_at, $3) >= now() - make_interval(secs => $2)
            ORDER BY name
            """,
            routable, 1e9 if faults.on("lease-ignored") or as_stale else self._lease_s,
            self._open_since, "stale" if as_stale else "active",
        )
        return {
            row["name"]: Entry(
                name=row["name"], endpoint_url=row["endpoint_url"],
                description=row["description"], capabilities=tuple(row["capabilities"]),
            )
            for row in rows
        }

    async def list(self) -> list[dict[str, Any]]:
        rows = await self._pool.fetch("SELECT * FROM butler_registry ORDER BY name")
        return [{**dict(r), "last_seen_at": r["last_seen_at"].isoformat()} for r in rows]
