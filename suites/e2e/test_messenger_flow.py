"""The way out of the house: what the messenger is asked to deliver, what left, what it wrote down.

Telegram, the calendar and the mail server are stand-ins, recorders on loopback: nothing leaves the
machine, and what arrived can be read.
"""

from __future__ import annotations

import datetime as dt
import itertools
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import trio

from harness_core.doubles.http import Answer, Rule
from harness_core.doubles.mail import Refusal
from harness_core.doubles.turns import route, use
from harness_core.front.skips import not_run
from suites.e2e.ecosystem.handle import Butler
from suites.e2e.observe.expect_journey import (
    FAILED_OUTCOMES,
    expect_inbox,
    expect_routing,
    expect_sessions,
)
from suites.e2e.observe.journey import follow, parts_of, recorded_calls
from suites.e2e.observe.sentences import expect_columns, expect_same
from suites.e2e.worlds.credentialed import Connected
from suites.e2e.worlds.vitals import expect_no_growth, read_vitals

pytestmark = [
    pytest.mark.main,
    pytest.mark.covers("E2E-DELIVERY"),
    pytest.mark.capability("notify"),
]

#: A delivery with two pauses for a service in trouble; the longest seen took 1.5 s.
DELIVERY_S = 20.0

#: What a busy service asks for: longer than anybody's first pause.
LATER_S = 2.0

#: Deliveries that fail, of each kind, before anything is counted, and then.
WARM_UP = 3
FAILURES = 12


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
    rows = {
        part["recipient"]: part
        for part in parts_of(listed)
        if isinstance(part, Mapping) and token in str(part.get("message"))
    }
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
        assert (recipient in str(failed)) is (status == "failed"), (
            f"the list of those that failed has them alone: {recipient}, which {status}; found {failed}"
        )
    assert unknown.is_error, f"an unknown delivery is refused; found {unknown.text}"
    assert nobodys in unknown.text, f"what is refused is named; found {unknown.text}"


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
    asked = connected.telegram.matching("/bot*/sendMessage", since=mark)

    expect_same(
        "trouble that passes is tried again until it has passed, and no more",
        expected=[503, 503, 200],
        found=[request.status for request in asked],
    )
    bodies = {(request.json()["chat_id"], request.json()["text"]) for request in asked}

    expect_same(
        "each attempt is of the same message",
        expected={(connected.owner_chat, f"after all {token}")},
        found=bodies,
    )
    await expect_booked(
        connected, token, channel="telegram", recipient=connected.owner_chat, failed=2
    )


@pytest.mark.parametrize("status", [429, 503])
async def test_a_service_that_says_when_is_not_asked_before(
    connected: Connected, token: str, status: int
) -> None:
    """Told to come back later, whoever tries again waits for that long; then the message goes out, once."""
    busy = Answer(
        status=status,
        headers={"retry-after": f"{LATER_S:g}"},
        json={
            "ok": False, "error_code": status, "description": f"retry after {LATER_S:g}",
            "parameters": {"retry_after": LATER_S},
        },
    )  # fmt: skip
    trouble = Rule(path="/bot*/sendMessage", answer=busy, times=1)
    mark = connected.telegram.mark()
    connected.telegram.add_rule(trouble)
    try:
        answer = await connected.butlers["health"].try_call(
            "notify", {"channel": "telegram", "message": f"in time {token}"}, seconds=DELIVERY_S
        )
    finally:
        connected.telegram.remove_rule(trouble)
    asked = connected.telegram.matching("/bot*/sendMessage", since=mark)
    times = [dt.datetime.fromisoformat(request.arrived_at) for request in asked]
    waits_s = [(later - earlier).total_seconds() for earlier, later in itertools.pairwise(times)]

    assert all(wait_s >= LATER_S for wait_s in waits_s), (
        f"a service that says when to come back ({LATER_S:g} s) is not asked before: it was asked again "
        f"after {waits_s} s"
    )
    expect_same(
        "a delivery is answered as what became of it",
        expected=answer.is_error,
        found=200 not in [request.status for request in asked],
        story=answer.text,
    )


async def test_trouble_that_lasts_is_a_failure(connected: Connected, token: str) -> None:
    """What no attempt brought out has failed, with each attempt on record; the next message goes out.

    The hop of either is in the routing log, as it ended. Where a failed delivery can be tried again by hand, it arrives then, once.
    """
    messenger = connected.butlers["messenger"]
    board = connected.butlers.switchboard.database
    began = (await board.one("SELECT clock_timestamp() AS now"))["now"]
    trouble = Rule(path="/bot*/sendMessage", answer=Answer(status=502))
    mark = connected.telegram.mark()
    connected.telegram.add_rule(trouble)
    try:
        result = await connected.butlers["relationship"].try_call(
            "notify",
            {"channel": "telegram", "message": f"in vain {token}", "recipient": "4711"},
            seconds=DELIVERY_S,
        )
    finally:
        connected.telegram.remove_rule(trouble)
    tried = len(connected.telegram.matching("/bot*/sendMessage", since=mark))

    assert result.is_error, f"nothing was delivered, and the answer is {result.text}"
    assert tried > 1, "trouble that may pass is tried again; the service was asked once"
    assert "None" not in result.text, f"a service without words is quoted: {result.text}"
    request = await expect_failed(connected, token, attempts=tried)
    mark = connected.telegram.mark()
    other = f"{token}next"
    await connected.butlers["relationship"].call(
        "notify", channel="telegram", message=f"and now {other}", recipient="4711"
    )

    expect_same(
        "after trouble the next message goes out at once, and the failed one does not",
        expected=[("4711", f"and now {other}")],
        found=sent_telegrams(connected, mark),
    )
    hops = await board.rows(
        "SELECT success, error, error_class FROM routing_log WHERE created_at >= %s"
        " AND source_butler = 'relationship' AND target_butler = 'messenger' ORDER BY created_at",
        (began,),
    )
    if hops:  # whether a delivery is a hop is the product's choice
        expect_same(
            "a delivery that failed has a hop like one that went out, each as it ended",
            expected=[(False, True), (True, False)],
            found=[(hop["success"], bool(hop["error"])) for hop in hops],
            story=str(hops),
        )
        assert hops[0]["error_class"] in FAILED_OUTCOMES, (
            f"a hop that failed has an outcome of {sorted(FAILED_OUTCOMES)}, found {dict(hops[0])}"
        )
    if "delivery_retry" not in await messenger.tools():
        return
    mark = connected.telegram.mark()
    await messenger.call("delivery_retry", delivery_id=str(request["id"]), seconds=DELIVERY_S)

    expect_same(
        "tried again by hand it arrives, once",
        expected=[("4711", f"in vain {token}")],
        found=sent_telegrams(connected, mark),
    )
    await expect_booked(
        connected, f"in vain {token}", channel="telegram", recipient="4711", failed=tried
    )
    again = await messenger.try_call("delivery_retry", {"delivery_id": str(request["id"])})

    assert again.is_error, f"what was delivered is not delivered again: {again.text}"
    expect_same(
        "a refused second try sends nothing", expected=1, found=len(sent_telegrams(connected, mark))
    )


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        pytest.param(
            Answer(status=400, json={"ok": False, "description": "chat not found"}),
            "chat not found",
            id="refused",
        ),
        pytest.param(Answer(status=404), "404", id="refused-without-words"),
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
    assert result.text, "a delivery that failed is answered without a reason"
    assert "None" not in result.text, f"a service without words is quoted: {result.text}"
    assert reason in result.text, f"the service said {reason!r}, the caller was told {result.text}"
    expect_same(
        "what may not be repeated is sent once",
        expected=[(connected.owner_chat, f"never {token}")],
        found=sent_telegrams(connected, mark),
    )
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

    assert result.is_error, f"a refused mail is answered as a failure; found {result.text}"
    expect_same(
        "a refused mail is offered once",
        expected=(f"{token}@example.org",),
        found=tuple(address for address in connected.mail.refused if token in address),
    )
    await expect_failed(connected, token, attempts=1)


@pytest.mark.slow
@pytest.mark.capability("own-process")
async def test_failed_deliveries_hold_nothing(connected: Connected, token: str) -> None:
    """Refused, lost and broken off, many of each: the messenger holds no connection or file of them.

    A delivery after them goes out as the first did.
    """
    messenger = connected.butlers["messenger"]
    refused = Rule(path="/bot*/sendMessage", answer=Answer(status=400, json={"ok": False}))
    lost = Rule(path="/bot*/sendMessage", answer=Answer(drop="unanswered"))
    no_mailbox = Refusal(recipient=f"{token}@*")

    async def fail(channel: str, recipient: str) -> None:
        arguments = {"channel": channel, "message": f"in vain {token}", "recipient": recipient}
        answer = await messenger.try_call("notify", arguments, seconds=DELIVERY_S)

        assert answer.is_error, f"a delivery that failed is answered as one; found {answer.text}"

    async def each_kind(times: int) -> None:
        for rule in (refused, lost):
            connected.telegram.add_rule(rule)
            try:
                for _ in range(times):
                    await fail("telegram", "4711")
            finally:
                connected.telegram.remove_rule(rule)
        connected.mail.refuse(no_mailbox)
        try:
            for _ in range(times):
                await fail("email", f"{token}@example.org")
        finally:
            connected.mail.accept(no_mailbox)

    await each_kind(WARM_UP)
    before = await read_vitals(messenger)
    await each_kind(FAILURES)

    await expect_no_growth(
        messenger, before, after=f"{FAILURES} failed deliveries of each kind", spare=WARM_UP
    )
    last = f"{token}last"
    for channel, recipient in (("telegram", "4711"), ("email", f"last-{last}@example.org")):
        words = f"by {channel} {last}"
        await messenger.call("notify", channel=channel, message=words, recipient=recipient)
        await expect_booked(connected, words, channel=channel, recipient=recipient)


async def test_a_mail_that_was_taken_has_arrived(connected: Connected, token: str) -> None:
    """What the server took is delivered, also when it hangs up before it has said goodbye."""
    mark = connected.mail.mark()
    connected.mail.hang_up(at_goodbye=True)
    try:
        result = await connected.butlers["health"].try_call(
            "notify",
            {"channel": "email", "message": f"taken {token}", "recipient": f"{token}@example.org"},
            seconds=DELIVERY_S,
        )
    finally:
        connected.mail.hang_up(at_goodbye=False)
    arrived = [mail.recipients for mail in connected.mail.mails if mail.sequence > mark]

    expect_same("a mail arrives once", expected=[(f"{token}@example.org",)], found=arrived)
    assert not result.is_error, (
        f"books agree with what arrived outside: the server took the mail, and the answer is "
        f"{result.text}"
    )
    await expect_booked(connected, token, channel="email", recipient=f"{token}@example.org")


@pytest.mark.parametrize(
    "wrong",
    [
        {"channel": "pigeon"},
        {"channel": "Telegram"},
        {"message": ""},
        {"message": None},
        {"message": 7},
        {"channel": "email", "recipient": "nobody\r\nBcc: all@example.org"},
    ],
    ids=["unknown-channel", "another-case", "no-words", "null", "number", "two-headers"],
)
async def test_what_cannot_be_sent_is_refused(
    connected: Connected, token: str, wrong: Mapping[str, Any]
) -> None:
    """A notification by no known way, without words or to no address is refused and not sent."""
    telegrams, mails = connected.telegram.mark(), len(connected.mail.mails)
    good = {"channel": "telegram", "message": f"never {token}", "recipient": "4711"}
    answer = await connected.butlers["health"].try_call("notify", good | dict(wrong))

    assert answer.is_error, f"{dict(wrong)} cannot be sent, and the answer is {answer.text}"
    assert answer.text.strip(), f"{dict(wrong)} was refused without a word"
    expect_same("nothing is sent", expected=[], found=sent_telegrams(connected, telegrams))
    expect_same("no mail is sent", expected=mails, found=len(connected.mail.mails))
    delivered = await connected.butlers["messenger"].database.rows(
        "SELECT * FROM delivery_requests WHERE message LIKE %s AND status <> 'failed'",
        (f"%{token}%",),
    )

    expect_same("what was refused is not booked as sent", expected=[], found=delivered)


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
    expect_same(
        "what could not be handed over is not sent",
        expected=[],
        found=sent_telegrams(connected, mark),
    )


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
    before = await expect_failed(connected, token, attempts=1)
    # Nor is it in a life after the next.
    await messenger.restart()
    again = await expect_failed(connected, token, attempts=1)

    expect_same("a second restart changes nothing", expected=dict(before), found=dict(again))
    expect_same(
        "what may have arrived is not sent again",
        expected=[(connected.owner_chat, f"half way {token}")],
        found=sent_telegrams(connected, mark),
    )


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
