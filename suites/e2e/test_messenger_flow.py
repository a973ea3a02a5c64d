"""The way out of the house: what the messenger is asked to deliver, what left, what it wrote down.

Telegram, the calendar and the mail server are stand-ins, recorders on loopback: nothing leaves the
machine, and what arrived can be read.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Final

import pytest
import trio

from harness_core.base.wait import deadline, until
from harness_core.doubles.mail import Refusal
from harness_core.doubles.model import Fault
from harness_core.doubles.turns import route, use
from harness_core.front.skips import not_run
from suites.e2e.observe.expect_journey import (
    expect_inbox,
    expect_routing,
    expect_sessions,
)
from suites.e2e.observe.journey import follow, parts_of, recorded_calls
from suites.e2e.observe.sentences import expect_columns, expect_same
from suites.e2e.worlds.credentialed import Connected
from suites.e2e.worlds.deliveries import DELIVERY_S, expect_booked, sent_telegrams

pytestmark = [
    pytest.mark.main,
    pytest.mark.covers("E2E-DELIVERY"),
    pytest.mark.capability("notify"),
]

#: A mail is dated within this time of its arrival; zones are further apart.
MOMENTS: Final = dt.timedelta(minutes=10)


async def test_what_is_sent_beside_a_session_is_not_of_its_message(
    connected: Connected, token: str
) -> None:
    """Somebody else's notification while a session runs is booked on no message, least of all on that of the session.

    The session is held at its model call: the gateway is a stand-in for the model provider, which holds none.
    """
    butlers, client = connected.butlers, connected.butlers.gateway.client
    hold = Fault(kind="hold", contains=token, offers=("symptom_log",), times=20)
    async with client.fault(hold) as number:
        sent = await butlers.send(f"I have a headache, severity 3 ({token})")

        async def is_held() -> bool:
            return await client.fault_met(number) > 0

        with deadline("see the session ask its model", seconds=DELIVERY_S):
            await until(is_held)
        await butlers["health"].call(
            "notify", channel="telegram", recipient="4711", message=f"beside {token}"
        )
    await follow(butlers, sent)
    request = await expect_booked(
        connected, f"beside {token}", channel="telegram", recipient="4711"
    )

    assert not request.get("request_id"), (
        f"no message asked for it; it is booked on {request['request_id']}"
    )


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
    expect_same(
        "one telegram goes to the one who was named, with exactly the words",
        expected=[("4711", f"dinner is ready {token}")],
        found=sent_telegrams(connected, mark),
        story=journey.text(),
    )
    request = await expect_booked(connected, token, channel="telegram", recipient="4711")

    expect_columns(
        "a delivery that a message asked for is booked on that message", request,
        **{
            name: value
            for name, value in (("request_id", sent.request_id), ("trace_id", sent.trace_id))
            if name in request and value
        },
    )  # fmt: skip


async def test_what_went_out_is_shown(connected: Connected, token: str) -> None:
    """Sent by two channels, one of them refused: the messenger's tools show each as it ended."""
    messenger = connected.butlers["messenger"]
    lacking = {"message_send", "delivery_list", "delivery_get"} - (await messenger.tools()).keys()
    if lacking:
        not_run("subject", f"messenger has no tool {', '.join(sorted(lacking))}")
    mark, mails = connected.telegram.mark(), connected.mail.mark()
    said = await messenger.call(
        "message_send", channel="telegram", recipient="4713", message=f"first {token}"
    )
    said_of_mail = await messenger.call(
        "message_send",
        channel="email",
        recipient=f"kept-{token}@example.org",
        message=f"second {token}",
    )
    refusal = Refusal(recipient=f"lost-{token}@example.org")
    connected.mail.refuse(refusal)
    try:
        refused = await messenger.try_call(
            "message_send",
            {"channel": "email", "recipient": f"lost-{token}@example.org", "message": f"3 {token}"},
        )
    finally:
        connected.mail.accept(refusal)
    listed = await messenger.call("delivery_list", limit=200)
    rows = by_recipient(listed, token)
    shown = {
        recipient: await messenger.call("delivery_get", delivery_id=str(row["id"]))
        for recipient, row in rows.items()
    }
    failed = await messenger.call("delivery_list", status="failed", limit=200)
    nobodys = str(uuid.uuid4())
    unknown = await messenger.try_call("delivery_get", {"delivery_id": nobodys})

    arrived = [mail.recipients for mail in connected.mail.mails if mail.sequence > mails]
    expect_same(
        "one telegram and one mail arrive",
        expected=([("4713", f"first {token}")], [(f"kept-{token}@example.org",)]),
        found=(sent_telegrams(connected, mark), arrived),
    )
    assert said, f"sending says what it did; found {said!r}"
    assert said_of_mail, f"sending says what it did; found {said_of_mail!r}"
    assert refused.is_error, f"a mail that was refused is no success; found {refused.text}"
    ends = {
        "4713": "delivered",
        f"kept-{token}@example.org": "delivered",
        f"lost-{token}@example.org": "failed",
    }
    expect_same(
        "each delivery is listed as it ended",
        expected=ends,
        found={recipient: row["status"] for recipient, row in rows.items()},
    )
    for recipient, status in ends.items():
        story = f"{recipient}: {shown[recipient]}"
        assert token in str(shown[recipient]), f"a delivery is shown whole; found {story}"
        assert status in str(shown[recipient]), f"expected {status}; found {story}"
    expect_same(
        "the list of those that failed has them alone",
        expected=[recipient for recipient, status in ends.items() if status == "failed"],
        found=sorted(by_recipient(failed, token)),
    )
    assert unknown.is_error, f"an unknown delivery is refused; found {unknown.text}"
    assert nobodys in unknown.text, f"what is refused is named; found {unknown.text}"


def by_recipient(answer: Any, token: str) -> dict[str, Mapping[str, Any]]:
    """The deliveries of a message in an answer, whatever its shape."""
    return {
        part["recipient"]: part
        for part in parts_of(answer)
        if isinstance(part, Mapping) and token in str(part.get("message"))
    }


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

    expect_same(
        "one mail goes to the one who was named",
        expected=[(f"{token}@example.org",)],
        found=[mail.recipients for mail in mails],
        story=journey.text(),
    )
    expect_same(
        "it leaves by a login with the account, from the account, with exactly the words",
        expected=(
            connected.mail.account,
            connected.mail.account,
            f"the keys are under the mat {token}",
        ),
        found=(mails[0].login, mails[0].sender, mails[0].text.strip()),
    )
    dated = parsedate_to_datetime(str(mails[0].message["Date"]))
    assert abs(dt.datetime.now(dt.UTC) - dated.astimezone(dt.UTC)) < MOMENTS, (
        f"a mail is of the moment in which it was sent, in any zone: it says "
        f"{mails[0].message['Date']}, and it is {dt.datetime.now(dt.UTC)}"
    )
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
    arrived = [mail for mail in connected.mail.mails if mail.sequence > mails]

    expect_same(
        "a telegram arrives as it was written",
        expected=[(connected.owner_chat, words)],
        found=sent_telegrams(connected, telegrams),
    )
    expect_same(
        "the service is not told to read these words as markup, in which some of them would vanish",
        expected=[None],
        found=[each.get("parse_mode") for each in connected.telegrams(since=telegrams)],
    )
    expect_same(
        "a mail arrives as it was written",
        expected=[((connected.owner_address,), words)],
        found=[(mail.recipients, mail.text.replace("\r\n", "\n").strip("\n")) for mail in arrived],
    )


@pytest.mark.parametrize("chars", [4096, 4097, 65_537])
async def test_long_words_go_out_whole_or_not_at_all(
    connected: Connected, token: str, chars: int
) -> None:
    """However long a message is: it arrives to its last letter, or is refused in words, unsent."""
    words = f"{token} " + "é" * (chars - 2 * len(token) - 2) + f" {token}"
    mark = connected.telegram.mark()
    answer = await connected.butlers["relationship"].try_call(
        "notify", {"channel": "telegram", "message": words}, seconds=DELIVERY_S
    )
    arrived = "".join(text for _, text in sent_telegrams(connected, mark))

    if answer.is_error:
        assert answer.text.strip(), f"a message of {chars} characters was refused without a word"
        expect_same("what was refused is not sent", expected="", found=arrived)
    else:
        expect_same(f"a message of {chars} characters arrives whole", expected=words, found=arrived)


async def test_the_same_words_again_are_another_message(connected: Connected, token: str) -> None:
    """Whoever says the same twice is heard twice: each notification goes out and is booked once."""
    mark = connected.telegram.mark()
    words = f"the tea is ready {token}"
    answers = [
        await connected.butlers[origin].call(
            "notify", channel="telegram", message=words, recipient=recipient
        )
        for origin, recipient in (
            ("health", "4711"),
            ("health", "4711"),
            ("relationship", "4711"),
            ("health", "4712"),
        )
    ]

    expect_same(
        "each notification goes out once, to its own recipient",
        expected=[("4711", words)] * 3 + [("4712", words)],
        found=sent_telegrams(connected, mark),
    )
    requests = await connected.butlers["messenger"].database.rows(
        "SELECT * FROM delivery_requests WHERE message LIKE %s ORDER BY created_at", (f"%{token}%",)
    )

    expect_same(
        "each is booked, by whom and for whom",
        expected=[
            ("health", "4711", "delivered"), ("health", "4711", "delivered"),
            ("relationship", "4711", "delivered"), ("health", "4712", "delivered"),
        ],
        found=[(row["origin_butler"], row["recipient"], row["status"]) for row in requests],
        story=str(answers),
    )  # fmt: skip


async def test_messages_at_once_are_not_mixed_up(connected: Connected, token: str) -> None:
    """Two ways, several butlers and recipients at the same moment: to each what was meant for them."""
    telegrams, mails = connected.telegram.mark(), connected.mail.mark()
    wanted = [
        ("health", "telegram", "5001"),
        ("relationship", "telegram", "5002"),
        ("switchboard", "email", f"a-{token}@example.org"),
        ("health", "email", f"b-{token}@example.org"),
        ("messenger", "telegram", "5003"),
    ]

    async def notify(origin: str, channel: str, recipient: str) -> None:
        await connected.butlers[origin].call(
            "notify",
            channel=channel,
            recipient=recipient,
            message=f"for {recipient} {token}",
            seconds=DELIVERY_S,
        )

    async with trio.open_nursery() as nursery:
        for one in wanted:
            nursery.start_soon(notify, *one)
    arrived = [mail for mail in connected.mail.mails if mail.sequence > mails]

    expect_same(
        "each gets the words that were meant for them, by the way that was named",
        expected=sorted((to, f"for {to} {token}") for _, _, to in wanted),
        found=sorted(
            [
                *sent_telegrams(connected, telegrams),
                *((mail.recipients[0], mail.text.strip()) for mail in arrived),
            ]
        ),
    )
    requests = await connected.butlers["messenger"].database.rows(
        "SELECT * FROM delivery_requests WHERE message LIKE %s", (f"%{token}%",)
    )

    expect_same(
        "each is booked on whom it came from, with its channel",
        expected=sorted(wanted),
        found=sorted((row["origin_butler"], row["channel"], row["recipient"]) for row in requests),
    )


@pytest.mark.parametrize("origin", ["health", "switchboard", "messenger"])
async def test_any_butler_notifies_through_the_messenger(
    connected: Connected, token: str, origin: str
) -> None:
    """`notify` of any butler reaches the owner, and the messenger knows whose message it was."""
    mark = connected.telegram.mark()
    answer = await connected.butlers[origin].call(
        "notify", channel="telegram", message=f"the lamp is on {token}"
    )

    expect_same(
        "without a recipient it goes to the owner",
        expected=[(connected.owner_chat, f"the lamp is on {token}")],
        found=sent_telegrams(connected, mark),
        story=str(answer),
    )
    request = await expect_booked(
        connected, token, channel="telegram", recipient=connected.owner_chat
    )

    expect_same(
        "the messenger knows whose message it was", expected=origin, found=request["origin_butler"]
    )


async def test_a_session_notifies(connected: Connected, token: str) -> None:
    """A session that is asked to notify does so by its tool; every hop belongs to the message."""
    mark = connected.telegram.mark()
    butlers = connected.butlers
    reminds = use("notify", channel="telegram", message=f"time for your pills {token}")
    sent = await butlers.send(
        f'Notify the owner by telegram: "time for your pills {token}"',
        model=[route("health"), reminds],
    )
    journey = await follow(butlers, sent)
    story = journey.text()

    assert journey.inbox[0]["lifecycle_state"] == "completed", (
        f"a message that was carried out is completed\n{story}"
    )
    expect_same(
        "one telegram goes out, with exactly the words",
        expected=[(connected.owner_chat, f"time for your pills {token}")],
        found=sent_telegrams(connected, mark),
        story=story,
    )
    sessions = journey.of_message("health")

    assert [["notify"]] == [[call["name"] for call in recorded_calls(row)] for row in sessions], (
        f"one session of health called notify once, and its row says so\n{story}"
    )
    request = await expect_booked(
        connected, token, channel="telegram", recipient=connected.owner_chat
    )
    # From the message over two butlers and back through the switchboard: the same names.
    expect_columns(
        "a notification belongs to the message whose session sent it", request,
        origin_butler="health",
        **{
            name: value
            for name, value in (("request_id", sent.request_id), ("trace_id", sent.trace_id))
            if name in request and value
        },
    )  # fmt: skip
    hops = [(row["source_butler"], row["target_butler"], row["success"]) for row in journey.routing]

    assert ("switchboard", "health", True) in hops, f"no hop to health on record\n{story}"
    for row in journey.routing:
        assert row["success"] is True, f"the hop to {row['target_butler']} failed\n{story}"
        assert not sent.trace_id or row.get("trace_id") == sent.trace_id, (
            f"the hop from {row['source_butler']} to {row['target_butler']} lost the trace\n{story}"
        )
    if len(hops) > 1:
        expect_same(
            "a hop says from whom it is, and to whom",
            expected=[("health", "messenger", True), ("switchboard", "health", True)],
            found=sorted(hops),
            story=story,
        )


async def test_a_session_notifies_twice(connected: Connected, token: str) -> None:
    """Two notifications of one message by one channel are two: each arrives, each is booked."""
    mark = connected.telegram.mark()
    tokens = (f"{token}one", f"{token}two")
    words = [f"take your pills {each}" for each in tokens]
    sent = await connected.butlers.send(
        f"Notify the owner by telegram, twice, about {token}",
        model=[route("health"), *(use("notify", channel="telegram", message=w) for w in words)],
    )
    journey = await follow(connected.butlers, sent)

    assert journey.inbox[0]["lifecycle_state"] == "completed", (
        f"a message that was carried out is completed\n{journey.text()}"
    )
    expect_same(
        "each of two notifications of one message goes out, once",
        expected=[(connected.owner_chat, each) for each in words],
        found=sent_telegrams(connected, mark),
        story=journey.text(),
    )
    for each in tokens:
        await expect_booked(connected, each, channel="telegram", recipient=connected.owner_chat)
