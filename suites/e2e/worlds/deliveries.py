"""What the messenger was asked to deliver, what it wrote down of it, and what left the house."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from suites.e2e.ecosystem.handle import Butler
from suites.e2e.observe.sentences import expect_columns, expect_same
from suites.e2e.worlds.credentialed import Connected

__all__ = [
    "DELIVERY_S",
    "LATER_S",
    "ask",
    "booked",
    "expect_attempts",
    "expect_booked",
    "expect_failed",
    "sent_telegrams",
]


#: A delivery with two pauses for a service in trouble; the longest seen took 1.5 s.
DELIVERY_S = 20.0


#: What a busy service asks for: longer than anybody's first pause.
LATER_S = 2.0


async def ask(messenger: Butler, message: str) -> None:
    """Have something delivered by a service that does not answer: neither may the messenger."""
    answer = await messenger.try_call("notify", {"channel": "telegram", "message": message})
    raise AssertionError(f"the service has not answered, and the messenger has: {answer.text}")


async def booked(connected: Connected, token: str, table: str) -> list[Mapping[str, Any]]:
    """The rows of one of the messenger's tables for the one message with this token."""
    database = connected.butlers["messenger"].database
    requests = await database.rows(
        "SELECT * FROM delivery_requests WHERE message LIKE %s", (f"%{token}%",)
    )

    assert 1 == len(requests), f"{len(requests)} delivery requests hold {token!r}, expected one"
    if table == "delivery_requests":
        return list(requests)
    return list(
        await database.rows(
            f"SELECT * FROM {table} WHERE delivery_id = %s ORDER BY 1", (requests[0]["id"],)
        )
    )


async def expect_booked(
    connected: Connected, token: str, *, channel: str, recipient: str, failed: int = 0
) -> Mapping[str, Any]:
    """One request, delivered; its attempts, the last one successful; one receipt of the recipient.

    Args:
        connected: where it was sent.
        token: of the message.
        channel: the way it went.
        recipient: who it is for.
        failed: attempts before the one that succeeded.
    """
    (request,) = await booked(connected, token, "delivery_requests")
    receipts = await booked(connected, token, "delivery_receipts")

    expect_columns(
        "a message that went out is booked as delivered, without an error", request,
        channel=channel, status="delivered", recipient=recipient,
    )  # fmt: skip
    assert not request.get("error"), f"what was delivered has an error: {dict(request)}"
    await expect_attempts(connected, token, [False] * failed + [True])
    expect_same(
        "one receipt names the recipient",
        expected=[recipient],
        found=[receipt["recipient"] for receipt in receipts],
    )
    return request


async def expect_failed(connected: Connected, token: str, *, attempts: int) -> Mapping[str, Any]:
    """One request, failed with its reason; its attempts, each failed; no receipt."""
    (request,) = await booked(connected, token, "delivery_requests")
    receipts = await booked(connected, token, "delivery_receipts")

    expect_columns("a message that did not go out has failed", request, status="failed")
    assert request["error"], f"a failed delivery has no reason: {dict(request)}"
    await expect_attempts(connected, token, [False] * attempts)
    expect_same("what did not go out has no receipt", expected=[], found=receipts)
    return request


async def expect_attempts(connected: Connected, token: str, ends: Sequence[bool]) -> None:
    """Each attempt is on record as it ended, in order, over, and with a reason when it failed."""
    found = await booked(connected, token, "delivery_attempts")
    if found and "attempt_number" in found[0]:
        found = sorted(found, key=lambda attempt: attempt["attempt_number"])
        numbers = [attempt["attempt_number"] for attempt in found]

        expect_same(
            "attempts are counted from one", expected=[*range(1, len(ends) + 1)], found=numbers
        )
    elif found:
        found = sorted(found, key=lambda attempt: attempt["success"])

    expect_same(
        "each attempt is on record as it ended",
        expected=list(ends),
        found=[attempt["success"] for attempt in found],
        story=str(found),
    )
    for attempt in found:
        assert bool(attempt["error"]) != attempt["success"], (
            f"an attempt that ended with success={attempt['success']} has the error "
            f"{attempt['error']!r}"
        )
        if attempt.get("completed_at", ...) is not ...:
            assert attempt["completed_at"] is not None, f"an attempt is left open: {dict(attempt)}"


def sent_telegrams(connected: Connected, mark: int) -> list[tuple[str, str]]:
    """Chat and text of each message that was asked to be sent since a mark."""
    return [(str(each["chat_id"]), each["text"]) for each in connected.telegrams(since=mark)]
