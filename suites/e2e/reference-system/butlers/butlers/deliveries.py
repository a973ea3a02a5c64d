"""What a messenger is asked to deliver, every attempt at it, and the receipt of what went out.

Written before and after each attempt, so that a messenger that is killed knows afterwards which
messages it has not touched (they are carried on) and which may have gone out (they are not sent
again, and say so).
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from butlers import database, faults
from butlers.database import storable
from butlers.errors import ButlerError
from butlers.log import describe
from butlers.modules.base import NotSent
from butlers.sessions import plain

if TYPE_CHECKING:
    from butlers.butler import Butler

CHANNELS = ("telegram", "email")

#: Of one message, the first included; pauses grow from the first one.
_ATTEMPTS = 3
_FIRST_PAUSE_S = 0.2


class Deliveries:
    """Sends for one messenger, and keeps its books."""

    def __init__(self, butler: Butler) -> None:
        self._butler = butler
        self._tasks: set[asyncio.Task[dict[str, Any]]] = set()

    async def start(self) -> None:
        """Take up what a stopped predecessor left."""
        pool = self._butler.pool
        if faults.on("delivery-resent"):
            await pool.execute("UPDATE delivery_attempts SET completed_at = now(), success = false "
                               "WHERE completed_at IS NULL")
        await pool.execute(
            """
            WITH cut AS (
                UPDATE delivery_attempts SET completed_at = now(), success = false,
                       error_class = 'timeout',
                       error = 'the messenger stopped while sending; it may have been delivered'
                WHERE completed_at IS NULL RETURNING delivery_id, error
            )
            UPDATE delivery_requests r SET status = 'failed', error = cut.error,
                   error_class = 'timeout', completed_at = now()
            FROM cut WHERE r.id = cut.delivery_id AND r.status = 'pending'
            """
        )
        for row in await pool.fetch(
            "SELECT * FROM delivery_requests WHERE status = 'pending' ORDER BY created_at"
        ):
            if faults.on("delivery-forgotten"):
                break
            self._butler.log.info("delivery.recovered", delivery_id=row["id"])
            self._begin(plain(row))

    async def stop(self) -> None:
        """What is being sent may end within the shutdown deadline."""
        if self._tasks:
            _, late = await asyncio.wait(
                self._tasks, timeout=self._butler.config.shutdown_timeout_s
            )
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def send(
        self, *, channel: str, message: str, recipient: str | None, origin: str,
        idempotency_key: str | None = None, request_id: str | None = None,
        trace_id: str | None = None,
    ) -> dict[str, Any]:
        """Deliver one message; the same key is the same message.

        Returns:
            The request with its attempts and receipts; `status` is `delivered`, `failed` or, for a
            repeated key whose first is under way, `pending`.
        """
        row = await self._butler.pool.fetchrow(
            """
            INSERT INTO delivery_requests (id, origin_butler, channel, recipient, message,
                   idempotency_key, request_id, trace_id)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
            ON CONFLICT (idempotency_key) DO NOTHING RETURNING *
            """,
            uuid4(), origin, channel, recipient, storable(message),
            idempotency_key or str(uuid4()), request_id, trace_id,
        )
        if row is None:
            known = await self._butler.pool.fetchval(
                "SELECT id FROM delivery_requests WHERE idempotency_key = $1", idempotency_key
            )
            return {**await self.get(known), "duplicate": True}
        # A task of its own: a caller that goes away does not stop what may be half sent.
        return {**await asyncio.shield(self._begin(plain(row))), "duplicate": False}

    async def retry(self, delivery_id: UUID) -> dict[str, Any]:
        """Try a failed delivery again.

        Raises:
            ButlerError: there is no such delivery, or it has not failed.
        """
        row = await self._butler.pool.fetchrow(
            """
            UPDATE delivery_requests SET error = NULL, error_class = NULL, completed_at = NULL,
                   status = CASE WHEN $2 THEN status ELSE 'pending' END
            WHERE id = $1 AND status = 'failed' RETURNING *
            """,
            delivery_id, faults.on("retry-unclaimed"),
        )
        if row is None:
            raise ButlerError(f"cannot retry delivery {delivery_id}: it is no failed delivery")
        return await asyncio.shield(self._begin(plain(row)))

    async def get(self, delivery_id: UUID) -> dict[str, Any]:
        """One delivery with its attempts and receipts.

        Raises:
            ButlerError: there is no such delivery.
        """
        pool = self._butler.pool
        row = await pool.fetchrow("SELECT * FROM delivery_requests WHERE id = $1", delivery_id)
        if row is None:
            raise ButlerError(f"cannot show delivery {delivery_id}: it does not exist")
        attempts = await pool.fetch(
            "SELECT * FROM delivery_attempts WHERE delivery_id = $1 ORDER BY attempt_number",
            delivery_id,
        )
        receipts = await pool.fetch(
            "SELECT * FROM delivery_receipts WHERE delivery_id = $1 ORDER BY received_at",
            delivery_id,
        )
        return {
            **plain(row), "attempts": [plain(attempt) for attempt in attempts],
            "receipts": [plain(receipt) for receipt in receipts],
        }

    def _begin(self, request: dict[str, Any]) -> asyncio.Task[dict[str, Any]]:
        task = asyncio.create_task(self._deliver(request))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _deliver(self, request: dict[str, Any]) -> dict[str, Any]:
        delivery_id = UUID(request["id"])
        pause_s = _FIRST_PAUSE_S
        for last in (*(False,) * (_ATTEMPTS - 1), True):
            problem = await self._attempt(delivery_id, request)
            if problem is None or last or not problem.again or faults.on("delivery-gives-up"):
                break
            await asyncio.sleep(problem.retry_after_s or pause_s)
            pause_s *= 2
        if problem is not None:
            await self._close(
                """
                UPDATE delivery_requests SET status = 'failed', completed_at = now(), error = $2,
                       error_class = $3 WHERE id = $1
                """,
                delivery_id, str(problem), problem.error_class,
            )
        self._butler.log.info(
            "delivery.failed" if problem else "delivered", delivery_id=delivery_id,
            channel=request["channel"], origin=request["origin_butler"],
            **({"error": problem} if problem else {}),
        )
        return await self.get(delivery_id)

    async def _attempt(self, delivery_id: UUID, request: dict[str, Any]) -> NotSent | None:
        """One try; None when it was delivered."""
        attempt_id = uuid4()
        started = time.monotonic()
        if not faults.on("attempt-unrecorded"):
            await self._butler.pool.execute(
                """
                INSERT INTO delivery_attempts (id, delivery_id, attempt_number)
                SELECT $1, $2, count(*) + 1 FROM delivery_attempts WHERE delivery_id = $2
                """,
                attempt_id, delivery_id,
            )
        problem: NotSent | None = None
        try:
            sent = await self._send(request)
        except NotSent as refused:
            problem = refused
        except Exception as error:
            self._butler.log.error("delivery.broken", delivery_id=delivery_id,
                                   error=describe(error))
            problem = NotSent(describe(error), error_class="internal_error")
        duration_ms = int((time.monotonic() - started) * 1000)
        if problem is None:
            await self._close(
                _DELIVERED, delivery_id, attempt_id, duration_ms, request["channel"],
                sent["recipient"], sent["message_id"], {"answer": sent["answer"]},
            )
        else:
            await self._close(
                """
                UPDATE delivery_attempts SET completed_at = now(), success = false, error = $2,
                       error_class = $3, duration_ms = $4 WHERE id = $1
                """,
                attempt_id, str(problem), problem.error_class, duration_ms,
            )
        return problem

    async def _send(self, request: dict[str, Any]) -> dict[str, Any]:
        channel = request["channel"]
        module = self._butler.modules.active(channel)
        if module is None:
            raise NotSent(
                self._butler.modules.why_not(channel),
                error_class="validation_error",  # trying again within seconds changes nothing
            )
        if faults.on("receipt-without-send"):
            return {"recipient": request["recipient"] or "", "message_id": "1", "answer": {}}
        sent = await module.send(request["recipient"], request["message"])
        if faults.on("delivered-twice"):
            await module.send(request["recipient"], request["message"])
        return sent

    async def _close(self, query: str, *values: Any) -> None:
        """Write down what has happened already, also when the database is away for a while."""
        await database.insist(
            lambda: self._butler.pool.execute(query, *values), what=f"conclude delivery {values[0]}"
        )


_DELIVERED = """
    WITH attempt AS (
        UPDATE delivery_attempts SET completed_at = now(), success = true, duration_ms = $3
        WHERE id = $2
    ), receipt AS (
        INSERT INTO delivery_receipts (delivery_id, attempt_id, channel, recipient,
               external_message_id, answer)
        SELECT $1, id, $4, $5, $6, $7 FROM delivery_attempts WHERE id = $2
    )
    UPDATE delivery_requests SET status = 'delivered', completed_at = now(), recipient = $5
    WHERE id = $1
"""
