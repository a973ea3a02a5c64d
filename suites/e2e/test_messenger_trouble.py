"""Deliveries that meet trouble: what is tried again and what never, and what each of them leaves behind.

Telegram and the mail server are stand-ins, recorders on loopback.
"""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest
import trio

from harness_core.doubles.http import Answer, Rule
from harness_core.doubles.mail import Refusal
from harness_core.front.skips import not_run
from suites.e2e.ecosystem.mcp import ToolResult
from suites.e2e.observe.expect_journey import (
    FAILED_OUTCOMES,
)
from suites.e2e.observe.sentences import expect_same
from suites.e2e.worlds.credentialed import Connected
from suites.e2e.worlds.deliveries import (
    DELIVERY_S,
    LATER_S,
    ask,
    expect_booked,
    expect_failed,
    sent_telegrams,
)
from suites.e2e.worlds.vitals import expect_no_growth, read_vitals

#: What a service takes for a message, while another asks for the same.
_SLOW_S = 3.0

pytestmark = [
    pytest.mark.main,
    pytest.mark.covers("E2E-DELIVERY"),
    pytest.mark.capability("notify"),
]


#: Deliveries that fail, of each kind, before anything is counted, and then.
WARM_UP = 3


FAILURES = 12


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
    slow = Rule(
        path="/bot*/sendMessage",
        times=2,
        answer=Answer(json={"ok": True, "result": {"message_id": 1}}, latency_s=_SLOW_S),
    )
    again = partial(messenger.try_call, "delivery_retry", {"delivery_id": str(request["id"])})
    answers: list[ToolResult] = []

    async def retry() -> None:
        answers.append(await again(seconds=DELIVERY_S))

    connected.telegram.add_rule(slow)
    try:
        async with trio.open_nursery() as nursery:
            for _ in range(2):
                nursery.start_soon(retry)
    finally:
        connected.telegram.remove_rule(slow)

    assert any(not each.is_error for each in answers), (
        f"of two who try again at a time one is told that it was delivered, found {answers}"
    )
    expect_same(
        "tried again by hand, by two at a time, it arrives once",
        expected=[("4711", f"in vain {token}")],
        found=sent_telegrams(connected, mark),
    )
    await expect_booked(
        connected, f"in vain {token}", channel="telegram", recipient="4711", failed=tried
    )
    refused = await again()

    assert refused.is_error, f"what was delivered is not delivered again: {refused.text}"
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


async def test_a_mail_that_may_have_arrived_is_not_sent_again(
    connected: Connected, token: str
) -> None:
    """The server has all of a mail and hangs up before it says so: sent once, and told as failed."""
    mark = connected.mail.mark()
    connected.mail.take_in_silence(silent=True)
    try:
        result = await connected.butlers["health"].try_call(
            "notify",
            {
                "channel": "email",
                "message": f"perhaps {token}",
                "recipient": f"{token}@example.org",
            },
            seconds=DELIVERY_S,
        )
    finally:
        connected.mail.take_in_silence(silent=False)
    arrived = [mail.recipients for mail in connected.mail.mails if mail.sequence > mark]

    expect_same(
        "what may have arrived is not sent again",
        expected=[(f"{token}@example.org",)],
        found=arrived,
        story=result.text,
    )
    assert result.is_error, f"nobody said that the mail was taken, and the answer is {result.text}"
    await expect_failed(connected, token, attempts=1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"channel": "pigeon"},
        {"channel": "Telegram"},
        {"message": ""},
        {"message": None},
        {"message": 7},
        {"channel": "email", "recipient": "nobody\r\nBcc: all@example.org"},
        {"recipient": ""},
        {"channel": "email", "recipient": ""},
    ],
    ids=[
        *("unknown-channel", "another-case", "no-words", "null", "number", "two-headers"),
        *("nobody", "nobody-by-mail"),
    ],
)
@pytest.mark.parametrize("origin", ["health", "messenger"])
async def test_what_cannot_be_sent_is_refused(
    connected: Connected, token: str, wrong: Mapping[str, Any], origin: str
) -> None:
    """A notification by no known way, without words or to no address is refused and not sent."""
    telegrams, mails = connected.telegram.mark(), len(connected.mail.mails)
    good = {"channel": "telegram", "message": f"never {token}", "recipient": "4711"}
    if "notify" not in await connected.butlers[origin].tools():
        not_run("subject", f"{origin} has no tool notify")
    answer = await connected.butlers[origin].try_call("notify", good | dict(wrong))

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
