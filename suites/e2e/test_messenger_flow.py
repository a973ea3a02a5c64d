"""The way out of the house: what the messenger is asked to deliver, what left, what it wrote down.

Telegram, the calendar and the mail server are stand-ins, recorders on loopback: nothing leaves the
machine, and what arrived can be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import trio

from harness_core.doubles.http import Answer, Rule
from harness_core.doubles.mail import Refusal
from harness_core.doubles.turns import route, use
from suites.e2e.ecosystem.handle import Butler
from suites.e2e.observe.expect_journey import expect_inbox, expect_routing, expect_sessions
from suites.e2e.observe.journey import follow
from suites.e2e.worlds.credentialed import Connected

pytestmark = [
    pytest.mark.main,
    pytest.mark.covers("E2E-DELIVERY"),
    pytest.mark.capability("notify"),
]

#: A delivery with two pauses for a service in trouble; the longest seen took 1.5 s.
DELIVERY_S = 20.0


async def test_a_message_goes_out_by_telegram(connected: Connected, token: str) -> None:
    """Asked by a person, the messenger sends one telegram with exactly the words, and books it."""
    mark = connected.telegram.mark()
    sent = await connected.butlers.send(
        f'Send a telegram message to 4711 that says "dinner is ready {token}"',
        model=[
            route("messenger"),
            use(
                "message_send",
                channel="telegram",
                recipient="4711",
                message=f"dinner is ready {token}",
            ),
        ],
    )
    journey = await follow(connected.butlers, sent)

    expect_inbox(journey, ["messenger"])
    expect_routing(journey, ["messenger"])
    expect_sessions(journey, ["messenger"])
    assert [{"chat_id": "4711", "text": f"dinner is ready {token}"}] == connected.telegrams(
        since=mark
    ), journey.text()
    await expect_booked(connected, token, channel="telegram", recipient="4711")


async def test_a_message_goes_out_by_email(connected: Connected, token: str) -> None:
    """A mail leaves with sender, recipient and text, by a login with the account's password."""
    mark = connected.mail.mark()
    sent = await connected.butlers.send(
        f'Write an email to {token}@example.org that says "the keys are under the mat {token}"',
        model=[
            route("messenger"),
            use(
                "message_send",
                channel="email",
                recipient=f"{token}@example.org",
                message=f"the keys are under the mat {token}",
            ),
        ],
    )
    journey = await follow(connected.butlers, sent)

    expect_inbox(journey, ["messenger"])
    expect_sessions(journey, ["messenger"])
    mails = [mail for mail in connected.mail.mails if mail.sequence > mark]

    assert [(f"{token}@example.org",)] == [mail.recipients for mail in mails], journey.text()
    assert connected.mail.account == mails[0].login == mails[0].sender
    assert f"the keys are under the mat {token}" == mails[0].text.strip()
    await expect_booked(connected, token, channel="email", recipient=f"{token}@example.org")


async def test_words_go_out_as_they_were_written(connected: Connected, token: str) -> None:
    """Several lines, a long one, quotes and letters of other scripts arrive whole, by both ways."""
    words = "\n".join(
        (
            f"Dear Zoë {token},",
            "",
            '"1 < 2 & 3 > 2": so it is. 茶 🫖 *not* _marked_ up',
            "a line that goes on " * 30 + "and ends",
            f"end {token}",
        )
    )
    telegrams, mails = connected.telegram.mark(), connected.mail.mark()
    for channel in ("telegram", "email"):
        await connected.butlers["messenger"].call(
            "notify", channel=channel, message=words, seconds=DELIVERY_S
        )
    (mail,) = [mail for mail in connected.mail.mails if mail.sequence > mails]

    assert [words] == [message["text"] for message in connected.telegrams(since=telegrams)]
    assert words == mail.text.replace("\r\n", "\n").strip("\n")


@pytest.mark.parametrize("origin", ["health", "switchboard", "messenger"])
async def test_any_butler_notifies_through_the_messenger(
    connected: Connected, token: str, origin: str
) -> None:
    """`notify` of any butler reaches the owner, and the messenger knows whose message it was."""
    mark = connected.telegram.mark()
    answer = await connected.butlers[origin].call(
        "notify", channel="telegram", message=f"the lamp is on {token}"
    )

    assert [
        {"chat_id": connected.owner_chat, "text": f"the lamp is on {token}"}
    ] == connected.telegrams(since=mark), answer
    request = await expect_booked(
        connected, token, channel="telegram", recipient=connected.owner_chat
    )

    assert origin == request["origin_butler"]


async def test_a_session_notifies(connected: Connected, token: str) -> None:
    """A session that is asked to notify does so by its tool, and its row says so."""
    mark = connected.telegram.mark()
    health = connected.butlers["health"]
    prompt = f'Notify the owner by telegram: "time for your pills {token}"'
    reminds = use("notify", channel="telegram", message=f"time for your pills {token}")
    await connected.butlers.rehearse(prompt, [reminds])
    answer = await health.call("trigger", prompt=prompt)

    assert answer["success"] is True, answer
    assert [f"time for your pills {token}"] == [
        message["text"] for message in connected.telegrams(since=mark)
    ], answer
    row = await health.database.one(
        "SELECT * FROM sessions WHERE id::text = %s", (answer["session_id"],)
    )

    assert "notify" in str(row["tool_calls"])
    request = await expect_booked(
        connected, token, channel="telegram", recipient=connected.owner_chat
    )

    assert row["trace_id"] == request["trace_id"]


async def test_a_service_in_trouble_is_tried_again(connected: Connected, token: str) -> None:
    """Two refusals in passing, then an answer: three attempts, one message, one receipt."""
    trouble = Rule(path="/bot*/sendMessage", answer=Answer(status=503), times=2)
    mark = connected.telegram.mark()
    connected.telegram.add_rule(trouble)
    try:
        await connected.butlers["messenger"].call(
            "notify", channel="telegram", message=f"after all {token}", seconds=DELIVERY_S
        )
    finally:
        connected.telegram.remove_rule(trouble)
    attempts = await booked(connected, token, "delivery_attempts")
    asked = connected.telegram.matching("/bot*/sendMessage", since=mark)

    assert [503, 503, 200] == [request.status for request in asked]
    assert [False, False, True] == sorted(attempt["success"] for attempt in attempts)
    assert all(attempt["error"] for attempt in attempts if not attempt["success"]), attempts
    assert 1 == len(await booked(connected, token, "delivery_receipts"))


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        pytest.param(
            Answer(status=400, json={"ok": False, "description": "chat not found"}),
            "chat not found",
            id="refused",
        ),
        pytest.param(Answer(drop="unanswered"), "", id="answer-lost"),
    ],
)
async def test_what_may_not_be_repeated_is_tried_once(
    connected: Connected, token: str, answer: Answer, reason: str
) -> None:
    """A message that is refused, or may have arrived, is sent once and reported as failed."""
    trouble = Rule(path="/bot*/sendMessage", answer=answer)
    mark = connected.telegram.mark()
    connected.telegram.add_rule(trouble)
    try:
        result = await connected.butlers["health"].try_call(
            "notify", {"channel": "telegram", "message": f"never {token}"}, seconds=DELIVERY_S
        )
    finally:
        connected.telegram.remove_rule(trouble)

    assert result.is_error, f"a delivery that failed is answered with {result.text}"
    assert result.text
    assert reason in result.text
    assert 1 == len(connected.telegrams(since=mark))
    await expect_failed(connected, token, attempts=1)


async def test_a_refused_mail_is_reported_as_failed(connected: Connected, token: str) -> None:
    """No such mailbox: the caller gets an error, no receipt is written, nothing is tried again."""
    refusal = Refusal(recipient=f"{token}@*")
    connected.mail.refuse(refusal)
    try:
        result = await connected.butlers["health"].try_call(
            "notify",
            {"channel": "email", "message": f"lost {token}", "recipient": f"{token}@example.org"},
            seconds=DELIVERY_S,
        )
    finally:
        connected.mail.accept(refusal)

    assert result.is_error, result.text
    assert (f"{token}@example.org",) == connected.mail.refused[-1:]
    await expect_failed(connected, token, attempts=1)


@pytest.mark.disturbs
async def test_without_the_messenger_nothing_is_claimed(connected: Connected, token: str) -> None:
    """With the messenger dead a notification fails, within its deadline, and says so."""
    messenger = connected.butlers["messenger"]
    mark = connected.telegram.mark()
    await messenger.kill()
    try:
        result = await connected.butlers["health"].try_call(
            "notify", {"channel": "telegram", "message": f"undelivered {token}"}, seconds=DELIVERY_S
        )
    finally:
        await messenger.restart()

    assert result.is_error, f"nothing was delivered, and the answer is {result.text}"
    assert [] == connected.telegrams(since=mark)


@pytest.mark.slow
@pytest.mark.disturbs
async def test_a_message_cut_off_in_sending_is_not_sent_again(
    connected: Connected, token: str
) -> None:
    """Killed between request and answer, the messenger afterwards says that it does not know."""
    messenger = connected.butlers["messenger"]
    silence = Rule(path="/bot*/sendMessage", answer=Answer(drop="silent"))
    mark = connected.telegram.mark()
    connected.telegram.add_rule(silence)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, messenger, f"half way {token}")
            await connected.telegram.wait_for("/bot*/sendMessage", since=mark, seconds=DELIVERY_S)
            nursery.cancel_scope.cancel()
        await messenger.kill()
    finally:
        connected.telegram.remove_rule(silence)
        await messenger.restart()
    request = await expect_failed(connected, token, attempts=1)

    assert request["error"], request
    assert 1 == len(connected.telegrams(since=mark))


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

    assert 1 == len(requests), f"{len(requests)} delivery requests hold {token}"
    if table == "delivery_requests":
        return list(requests)
    return list(
        await database.rows(
            f"SELECT * FROM {table} WHERE delivery_id = %s ORDER BY 1", (requests[0]["id"],)
        )
    )


async def expect_booked(
    connected: Connected, token: str, *, channel: str, recipient: str
) -> Mapping[str, Any]:
    """One request, delivered; one attempt, successful; one receipt that names the recipient."""
    (request,) = await booked(connected, token, "delivery_requests")
    attempts = await booked(connected, token, "delivery_attempts")
    receipts = await booked(connected, token, "delivery_receipts")

    assert (channel, "delivered") == (request["channel"], request["status"]), request
    assert [True] == [attempt["success"] for attempt in attempts], attempts
    assert 1 == len(receipts), receipts
    assert recipient == receipts[0]["recipient"], receipts
    return request


async def expect_failed(connected: Connected, token: str, *, attempts: int) -> Mapping[str, Any]:
    """One request, failed with its reason; its attempts, each failed; no receipt."""
    (request,) = await booked(connected, token, "delivery_requests")
    tried = await booked(connected, token, "delivery_attempts")

    assert "failed" == request["status"], request
    assert request["error"], request
    assert [False] * attempts == [attempt["success"] for attempt in tried], tried
    assert [] == await booked(connected, token, "delivery_receipts")
    return request
