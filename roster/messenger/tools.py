"""The messenger butler's tools: send a message, see what became of it, try again."""

from typing import Annotated, Any, Literal
from uuid import UUID

from butlers import tracing
from butlers.butler import Butler
from butlers.deliveries import Deliveries
from butlers.envelopes import Name, TraceContext
from butlers.errors import ButlerError
from butlers.sessions import plain
from butlers.tracing import caller
from pydantic import Field

Channel = Annotated[
    Literal["telegram", "email"],
    Field(description="how to send it: telegram or email", examples=["telegram", "email"]),
]
Text = Annotated[
    str,
    Field(
        description="the words to send, exactly as given", min_length=1, max_length=4096,
        examples=["I will be ten minutes late"],
    ),
]
Recipient = Annotated[
    str | None,
    Field(
        description="email address or telegram chat id; leave out for the owner",
        min_length=1, max_length=320, examples=["alice@example.com", "123456789"],
    ),
]
DeliveryId = Annotated[UUID, Field(description="id of the delivery")]
Limit = Annotated[int, Field(description="how many rows at most", ge=1, le=200)]


def register(butler: Butler) -> None:
    """Add the tools to the butler, and make it the one that delivers."""
    deliveries = Deliveries(butler)
    butler.on_start.append(deliveries.start)
    butler.on_stop.append(deliveries.stop)
    _sending(butler, deliveries)
    _looking(butler, deliveries)

    async def deliver(
        origin_butler: Name,
        channel: Channel,
        message: Text,
        idempotency_key: Name,
        recipient: Recipient = None,
        request_id: Name | None = None,
        trace_context: TraceContext | None = None,
    ) -> dict[str, Any]:
        """Deliver what another butler asks for; the answer says whether it went out."""
        trace = tracing.parse(trace_context.traceparent) if trace_context else None
        return await deliveries.send(
            channel=channel, message=message, recipient=recipient, origin=origin_butler,
            idempotency_key=idempotency_key, request_id=request_id,
            trace_id=trace.trace_id if trace else None,
        )

    butler.add_tool(deliver, name="deliver", domain=False)
    butler.deliver = deliver


def _sending(butler: Butler, deliveries: Deliveries) -> None:
    @butler.tool
    async def message_send(
        channel: Channel, message: Text, recipient: Recipient = None
    ) -> dict[str, Any]:
        """Send a message to somebody over telegram or by email, at once."""
        position = caller()
        delivery = await deliveries.send(
            channel=channel, message=message, recipient=recipient, origin=butler.name,
            request_id=butler.spawner.request_of(position.session),
            trace_id=position.trace.trace_id if position.trace else None,
        )
        return _confirmed(delivery)

    @butler.tool
    async def delivery_retry(delivery_id: DeliveryId) -> dict[str, Any]:
        """Try a delivery that failed once more."""
        return _confirmed(await deliveries.retry(delivery_id))


def _confirmed(delivery: dict[str, Any]) -> dict[str, Any]:
    if delivery["status"] == "failed":
        raise ButlerError(f"cannot deliver by {delivery['channel']}: {delivery['error']}")
    return {
        "status": delivery["status"], "delivery_id": delivery["id"],
        "channel": delivery["channel"], "recipient": delivery["recipient"],
    }


def _looking(butler: Butler, deliveries: Deliveries) -> None:
    @butler.tool
    async def delivery_list(
        status: Annotated[
            Literal["pending", "delivered", "failed"] | None,
            Field(description="only deliveries in this state", examples=["failed"]),
        ] = None,
        limit: Limit = 20,
    ) -> dict[str, Any]:
        """List past deliveries, newest first."""
        rows = await butler.pool.fetch(
            """
            SELECT * FROM delivery_requests WHERE $1::text IS NULL OR status = $1
            ORDER BY created_at DESC LIMIT $2
            """,
            status, limit,
        )
        return {"deliveries": [plain(row) for row in rows]}

    @butler.tool
    async def delivery_get(delivery_id: DeliveryId) -> dict[str, Any]:
        """Show one delivery with its attempts and receipts."""
        return await deliveries.get(delivery_id)

    @butler.tool
    async def delivery_receipts(limit: Limit = 20) -> dict[str, Any]:
        """List the receipts of what went out, newest first."""
        rows = await butler.pool.fetch(
            "SELECT * FROM delivery_receipts ORDER BY received_at DESC LIMIT $1", limit
        )
        return {"receipts": [plain(row) for row in rows]}
