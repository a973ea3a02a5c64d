"""The `message_inbox` table: every message that was taken in, once, and what became of it."""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from butlers import faults
from butlers.database import storable

if TYPE_CHECKING:
    import asyncpg

    from butlers.envelopes import Control, Event, Payload, Sender, Source


_COLUMNS = """
    request_id, normalized_text, trace_id, traceparent, lifecycle_state = 'accepted' AS unbegun,
    md5((payload->'source')::text || (payload->'sender')::text) AS conversation
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A message as the inbox holds it.

    Attributes:
        conversation: the same for what one sender writes to one of our accounts.
        unbegun: not even its classification has begun.
    """

    request_id: UUID
    text: str
    trace_id: str
    traceparent: str
    conversation: str = ""
    duplicate: bool = False
    unbegun: bool = True


class Inbox:
    """Reads and writes inbox rows."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def accept(
        self, *, source: Source, event: Event, sender: Sender, payload: Payload, control: Control,
        traceparent: str,
    ) -> Accepted:
        """Store a message unless it is known; two at a time store it once.

        The same idempotency key or the same event of the same endpoint is the same message. A new
        name that comes beside a known one is a name of that message from then on.
        """
        event_id = event.external_event_id
        if faults.on("event-id-cut"):
            event_id = event_id[:64]
        event_key = _key(source.channel, source.provider, source.endpoint_identity, event_id)
        if faults.on("channels-collide"):
            event_key = _key(event.external_event_id)
        given_key = None if faults.on("key-ignored") else control.idempotency_key
        if faults.on("ingest-race"):
            event_key, given_key = await self._unguarded(event_key, given_key)
        async with self._pool.acquire() as connection, connection.transaction():
            request_id = uuid7()
            known = await _named(connection, request_id, event_key, given_key)
            if known is not None:
                row = await connection.fetchrow(
                    f"SELECT {_COLUMNS} FROM message_inbox WHERE request_id = $1", known
                )
                return _accepted(row, duplicate=True)
            row = await connection.fetchrow(
                f"""
                INSERT INTO message_inbox (request_id, channel, payload, normalized_text,
                       lifecycle_state, trace_id, traceparent, event_key, idempotency_key)
                VALUES ($1, $2, $3, $4, 'accepted', $5, $6, $7, $8)
                RETURNING {_COLUMNS}
                """,
                request_id, "telegram" if faults.on("channel-forgotten") else source.channel,
                {
                    "source": source.model_dump(mode="json"),
                    "event": event.model_dump(mode="json"),
                    "sender": (
                        {} if faults.on("sender-forgotten") else sender.model_dump(mode="json")
                    ),
                    "payload": payload.model_dump(mode="json"),
                },
                storable(payload.normalized_text), traceparent.split("-")[1], traceparent,
                event_key, given_key,
            )
            return _accepted(row, duplicate=False)

    async def _unguarded(self, event_key: str, given_key: str | None) -> tuple[str, str | None]:
        """Only for the planted fault: keys the table cannot tell from others, unless one is known.
        """
        known = await self._pool.fetchval(
            "SELECT 1 FROM message_inbox WHERE starts_with(event_key, $1) OR idempotency_key = $2",
            event_key, given_key,
        )
        await asyncio.sleep(0.05)
        return (event_key if known else f"{event_key}{uuid7()}"), (given_key if known else None)

    async def planned(self, request_id: UUID) -> bool:
        """Classification begins.

        Returns:
            Whether it may: not of a message whose dispatch has begun before.
        """
        status = await self._pool.execute(
            """
            UPDATE message_inbox SET lifecycle_state = 'planned', updated_at = now()
            WHERE request_id = $1 AND (lifecycle_state IN ('accepted', 'planned') OR $2)
            """,
            request_id, faults.on("duplicate-redispatched") or faults.on("inbox-replayed"),
        )
        return bool(status == "UPDATE 1")

    async def parsed(self, request_id: UUID, decomposition: dict[str, Any]) -> None:
        """Classification ended; dispatch begins."""
        await self._set(request_id, "lifecycle_state = 'parsed', decomposition = $2", decomposition)

    async def finished(
        self, request_id: UUID, *, state: str, outcomes: list[dict[str, Any]], summary: str
    ) -> None:
        """Every segment has its outcome."""
        if faults.on("completed-too-early"):
            await self._set(request_id, "lifecycle_state = $2", state)
        await self._set(
            request_id,
            "lifecycle_state = $2, dispatch_outcomes = $3, response_summary = $4",
            state, outcomes, storable(summary),
        )

    async def errored(self, request_id: UUID, reason: str) -> None:
        """The message cannot be brought to its end."""
        await self._set(
            request_id, "lifecycle_state = 'errored', response_summary = $2", storable(reason)
        )

    async def waiting(self, *, dispatched_too: bool = False) -> list[Accepted]:
        """Messages nothing was dispatched of yet, oldest first."""
        states = ["accepted", "planned", *(["parsed"] if dispatched_too else [])]
        rows = await self._pool.fetch(
            f"""
            SELECT {_COLUMNS} FROM message_inbox
            WHERE lifecycle_state = ANY($1::text[]) ORDER BY created_at, request_id LIMIT $2
            """,
            states, 50 if faults.on("inbox-taken-in-part") else None,
        )
        return [_accepted(row, duplicate=False) for row in rows]

    async def interrupted(self) -> list[UUID]:
        """Messages a stopped switchboard was dispatching: what the targets did is unknown."""
        rows = await self._pool.fetch(
            "SELECT request_id FROM message_inbox WHERE lifecycle_state = 'parsed'"
        )
        return [row["request_id"] for row in rows]

    async def _set(self, request_id: UUID, assignments: str, *values: object) -> None:
        await self._pool.execute(
            f"UPDATE message_inbox SET {assignments}, updated_at = now() "
            "WHERE request_id = $1",
            request_id, *values,
        )


async def _named(
    connection: asyncpg.Connection, request_id: UUID, event_key: str, given_key: str | None
) -> UUID | None:
    """Give a message its names; the message that has one of them already, None when it is new.

    A name that is being given by another transaction is waited for. All take the event first, so
    that no two wait for each other.
    """
    await connection.execute(
        """
        INSERT INTO message_names (kind, name, request_id)
        SELECT 'event', $2::text, $1::uuid
        UNION ALL SELECT 'key', $3::text, $1::uuid WHERE $3::text IS NOT NULL
        ON CONFLICT DO NOTHING
        """,
        request_id, event_key, given_key,
    )
    known: UUID | None = await connection.fetchval(
        """
        SELECT request_id FROM message_names JOIN message_inbox USING (request_id)
        WHERE (kind, name) IN (('event', $1::text), ('key', $2::text))
        ORDER BY created_at, request_id LIMIT 1
        """,
        event_key, given_key,
    )
    if known is not None:
        await connection.execute(
            "UPDATE message_names SET request_id = $2 WHERE request_id = $1", request_id, known
        )
    return known


def _accepted(row: asyncpg.Record, *, duplicate: bool) -> Accepted:
    return Accepted(
        request_id=row["request_id"], text=row["normalized_text"], trace_id=row["trace_id"],
        traceparent=row["traceparent"], conversation=row["conversation"], duplicate=duplicate,
        unbegun=row["unbegun"],
    )


def _key(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def uuid7() -> UUID:
    """A UUID that sorts by time (RFC 9562, version 7)."""
    value = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(os.urandom(10), "big")
    value = value & ~(0xF << 76) | 7 << 76
    value = value & ~(0x3 << 62) | 2 << 62
    return UUID(int=value)
