"""Services that hang, answer nonsense or come back after a crash: each delivery ends, once, and says how.

Telegram and the mail server are stand-ins, recorders on loopback, which answer as a test wants.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import pytest
import trio

from harness_core.doubles.http import Answer, Recorded, Rule
from harness_core.doubles.mail import Refusal
from harness_core.front.skips import not_run
from suites.e2e.ecosystem.knobs import turned
from suites.e2e.ecosystem.mcp import CannotReach, ToolResult
from suites.e2e.observe.journey import Row, parts_of
from suites.e2e.observe.sentences import expect_same
from suites.e2e.worlds.chaos import expect_soon
from suites.e2e.worlds.credentialed import Connected
from suites.e2e.worlds.deliveries import (
    DELIVERY_S,
    booked,
    expect_attempts,
    expect_booked,
    expect_failed,
    sent_telegrams,
)

pytestmark = [
    pytest.mark.main,
    pytest.mark.covers("E2E-DELIVERY"),
    pytest.mark.capability("notify"),
]

#: A service that takes a message and never answers is given up within this time, whatever is configured.
HANGS_S: Final = 60.0

#: A hop that is to run into its deadline, and what a machine adds.
HOP_S: Final = 3.0
SLACK_S: Final = 8.0

#: What a busy service asks for, so that its messenger is killed in between.
PAUSE_S: Final = 15.0

#: Of a messenger that was killed: from its start to the end of what it had left.
RECOVERED_S: Final = 30.0


@pytest.mark.slow
async def test_a_service_that_hangs_is_given_up(connected: Connected, token: str) -> None:
    """Of three messages two are taken and never answered: they fail in time, and the third waits for none.

    Asked of the messenger itself, and by way of the switchboard; neither is sent again, since it may
    have arrived.
    """
    hung = {origin: f"{token}{origin}" for origin in ("messenger", "health")}
    answers: dict[str, ToolResult] = {}

    async def notify(origin: str) -> None:
        answers[origin] = await connected.butlers[origin].try_call(
            "notify",
            {"channel": "telegram", "message": f"hung {hung[origin]}", "recipient": "4711"},
            seconds=4 * HANGS_S,
        )

    def answer(request: Recorded) -> Answer:
        if any(word in request.json()["text"] for word in hung.values()):
            return Answer(drop="silent")
        return Answer(json={"ok": True, "result": {"message_id": request.sequence}})

    rule = Rule(path="/bot*/sendMessage", answer=answer)
    mark = connected.telegram.mark()
    connected.telegram.add_rule(rule)
    try:
        async with trio.open_nursery() as nursery:
            for origin in hung:
                nursery.start_soon(notify, origin)
            await expect_soon(
                "messages for a service that hangs are sent",
                _is_so(lambda: len(sent_telegrams(connected, mark)) == len(hung)),
                seconds=DELIVERY_S,
            )
            await connected.butlers["relationship"].call(
                "notify",
                channel="telegram",
                message=f"by the way {token}next",
                recipient="4712",
                seconds=DELIVERY_S,
            )
            early = dict(answers)
            await expect_soon(
                "a delivery is given up whose service takes it and never answers",
                _is_so(lambda: len(answers) == len(hung)),
                seconds=HANGS_S,
                story=f"answered so far: {answers}",
            )
    finally:
        connected.telegram.remove_rule(rule)

    assert not early, (
        f"a delivery waits for no other that hangs: expected it to go out first, after it ended {early}"
    )
    expect_same(
        "what may have arrived is not sent again",
        expected=sorted([*(("4711", f"hung {word}") for word in hung.values())]),
        found=sorted(each for each in sent_telegrams(connected, mark) if each[0] == "4711"),
    )
    for origin, word in hung.items():
        assert answers[origin].is_error, (
            f"a delivery that nobody confirmed has failed: {answers[origin].text}"
        )
        assert answers[origin].text.strip(), f"a delivery of {origin} failed without a reason"
        await expect_ended(connected, word)
        await expect_failed(connected, word, attempts=1)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(
            Answer(json={"ok": False, "error_code": 400, "description": "chat not found"}),
            id="refused-in-words",
        ),
        pytest.param(Answer(body="<html>please log in</html>"), id="another-page"),
        pytest.param(Answer(json=["ok"]), id="another-shape"),
        pytest.param(
            Answer(json={"ok": True, "result": {"message_id": 1}}, drop="cut"), id="cut-short"
        ),
    ],
)
async def test_what_nobody_confirmed_is_not_delivered(
    connected: Connected, token: str, answer: Answer
) -> None:
    """A status of 200 is no receipt: an answer that does not say so confirms nothing, and is told as that."""
    trouble = Rule(path="/bot*/sendMessage", answer=answer)
    mark = connected.telegram.mark()
    connected.telegram.add_rule(trouble)
    try:
        result = await connected.butlers["health"].try_call(
            "notify",
            {"channel": "telegram", "message": f"unconfirmed {token}", "recipient": "4711"},
            seconds=DELIVERY_S,
        )
    finally:
        connected.telegram.remove_rule(trouble)

    assert result.is_error, (
        f"a message is delivered when its service says so: it answered {answer}, and the caller was "
        f"told {result.text}"
    )
    assert result.text.strip(), "a delivery that failed is answered without a reason"
    expect_same(
        "what may not be repeated is sent once",
        expected=[("4711", f"unconfirmed {token}")],
        found=sent_telegrams(connected, mark),
    )
    await expect_failed(connected, token, attempts=1)


@pytest.mark.slow
@pytest.mark.disturbs
@pytest.mark.capability("own-process")
@pytest.mark.knob("hop_deadline_s")
async def test_a_messenger_that_hangs_is_given_up(connected: Connected, token: str) -> None:
    """Frozen with a message in hand, the messenger costs its caller the deadline of a hop, and no more.

    The hop is on record as one that failed, and what came of the message is true when it has thawed.
    """
    butlers = connected.butlers
    board, messenger = butlers.switchboard, butlers["messenger"]
    before = dict(board.environment)
    board.environment.update(turned(butlers.subject, "switchboard", hop_deadline_s=HOP_S))
    silence = Rule(path="/bot*/sendMessage", answer=Answer(drop="silent"))
    mark = connected.telegram.mark()
    answers: list[ToolResult] = []

    async def notify() -> None:
        answers.append(
            await butlers["health"].try_call(
                "notify",
                {"channel": "telegram", "message": f"frozen {token}", "recipient": "4711"},
                seconds=4 * HANGS_S,
            )
        )

    connected.telegram.add_rule(silence)
    try:
        await board.restart()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(notify)
            await expect_soon(
                "a message for a service that hangs is sent",
                _is_so(lambda: bool(sent_telegrams(connected, mark))),
                seconds=DELIVERY_S,
            )
            await messenger.pause()
            await expect_soon(
                "a hop to a messenger that hangs ends at its deadline",
                _is_so(lambda: bool(answers)),
                seconds=SLACK_S,
                after_s=HOP_S,
            )
    finally:
        await messenger.resume()
        connected.telegram.remove_rule(silence)
        board.environment.clear()
        board.environment.update(before)
        await board.restart()

    assert answers[0].is_error, f"nobody confirmed it, and the caller was told {answers[0].text}"
    hops = await board.database.rows(
        "SELECT success, error_class, duration_ms FROM routing_log WHERE source_butler = 'health'"
        " AND target_butler = 'messenger' ORDER BY created_at DESC LIMIT 1"
    )
    for hop in hops:  # whether a delivery is a hop is the product's choice
        expect_same(
            "a hop that ran into its deadline is on record as that",
            expected=(False, True),
            found=(hop["success"], hop["error_class"] in {"timeout", "target_unavailable"}),
            story=str(hop),
        )
        assert hop["duration_ms"] >= HOP_S * 900, (
            f"a hop of {HOP_S:g} s is on record with its milliseconds, found {dict(hop)}"
        )
    await expect_ended(connected, token)
    await expect_failed(connected, token, attempts=1)
    expect_same(
        "what may have arrived is not sent again",
        expected=[("4711", f"frozen {token}")],
        found=sent_telegrams(connected, mark),
    )


async def test_a_mail_that_is_put_off_goes_out(connected: Connected, token: str) -> None:
    """A mailbox that is busy for a moment gets its mail, once; one that is busy for good is a failure."""
    busy, full = f"busy-{token}@example.org", f"full-{token}@example.org"
    refusals = [
        Refusal(reply="450 4.2.0 try again later", recipient=busy, times=1),
        Refusal(reply="452 4.2.2 mailbox full", recipient=full),
    ]
    mark = connected.mail.mark()
    answers = {}
    for refusal in refusals:
        connected.mail.refuse(refusal)
    try:
        for to in (busy, full):
            answers[to] = await connected.butlers["health"].try_call(
                "notify",
                {"channel": "email", "message": f"for {to}", "recipient": to},
                seconds=DELIVERY_S,
            )
    finally:
        for refusal in refusals:
            connected.mail.accept(refusal)
    arrived = [mail.recipients for mail in connected.mail.mails if mail.sequence > mark]

    expect_same(
        "a mail that was put off arrives, once, and one that was refused to the end does not",
        expected=([(busy,)], {busy: False, full: True}),
        found=(arrived, {to: answer.is_error for to, answer in answers.items()}),
        story=str(answers),
    )
    tried = sum(full in address for address in connected.mail.refused)

    assert tried > 1, "trouble that may pass is tried again; the mail server was asked once"
    await expect_booked(connected, f"for {busy}", channel="email", recipient=busy, failed=1)
    await expect_failed(connected, f"for {full}", attempts=tried)


@pytest.mark.slow
@pytest.mark.disturbs
@pytest.mark.capability("own-process")
async def test_killed_between_two_attempts(connected: Connected, token: str) -> None:
    """What was refused in passing when the messenger was killed comes to an end after its start.

    It goes out once, or is told as failed; it does not wait for ever.
    """
    messenger = connected.butlers["messenger"]
    busy = Answer(status=503, headers={"retry-after": f"{PAUSE_S:g}"}, json={"ok": False})
    trouble = Rule(path="/bot*/sendMessage", answer=busy)
    mark = connected.telegram.mark()
    connected.telegram.add_rule(trouble)

    async def ask() -> None:
        try:
            await messenger.try_call(
                "notify",
                {"channel": "telegram", "message": f"later {token}", "recipient": "4711"},
                seconds=4 * PAUSE_S,
            )
        except CannotReach:
            return

    async def was_refused() -> bool:
        rows = await messenger.database.rows(
            "SELECT a.success FROM delivery_attempts a JOIN delivery_requests r"
            " ON r.id = a.delivery_id WHERE r.message LIKE %s",
            (f"%{token}%",),
        )
        return [row["success"] for row in rows] == [False]

    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await expect_soon(
                "an attempt that was refused is on record", was_refused, seconds=DELIVERY_S
            )
            await messenger.kill()
            nursery.cancel_scope.cancel()
    finally:
        connected.telegram.remove_rule(trouble)
        await messenger.restart()
    request = await expect_ended(connected, token)
    asked = connected.telegram.matching("/bot*/sendMessage", since=mark)
    arrived = [each for each in asked if each.status == 200]

    expect_same(
        "what was acknowledged, or failed, is so once: it arrived as often as it is booked",
        expected={"delivered": 1, "failed": 0}.get(request["status"]),
        found=len(arrived),
        story=str(dict(request)),
    )
    if request["status"] == "delivered":
        await expect_booked(connected, token, channel="telegram", recipient="4711", failed=1)
    else:
        await expect_attempts(connected, token, [False] * len(asked))


async def test_who_is_named_gets_it(connected: Connected, token: str) -> None:
    """A recipient is taken letter by letter; the same words to the same one again are another mail."""
    telegrams, mails = connected.telegram.mark(), connected.mail.mark()
    chat, address = f"@House_{token.upper()}", f"Anna.{token.upper()}+Post"
    named = [("telegram", chat), *[("email", f"{address}@example.org")] * 2]
    for channel, recipient in named:
        await connected.butlers["health"].call(
            "notify",
            channel=channel,
            message=f"for the very same {token}",
            recipient=recipient,
            seconds=DELIVERY_S,
        )
    arrived = [mail for mail in connected.mail.mails if mail.sequence > mails]
    booked_on = await connected.butlers["messenger"].database.rows(
        "SELECT recipient FROM delivery_requests WHERE message LIKE %s ORDER BY created_at",
        (f"%{token}%",),
    )

    expect_same(
        "who is named is compared exactly: it arrives there, and is booked so",
        expected=([chat], [(f"{address}@example.org",)] * 2, [each for _, each in named]),
        found=(
            [each for each, _ in sent_telegrams(connected, telegrams)],
            [mail.recipients for mail in arrived],
            [row["recipient"] for row in booked_on],
        ),
    )
    ids = [mail.message["Message-ID"] for mail in arrived]

    assert None in ids or len(set(ids)) == len(ids), (
        f"two mails are two, also to a program that knows mails by their Message-ID: found {ids}"
    )


async def test_the_latest_deliveries_are_listed(connected: Connected, token: str) -> None:
    """A list that is bounded has the latest deliveries, and no more of them than it was asked for."""
    messenger = connected.butlers["messenger"]
    schema = (await messenger.tools()).get("delivery_list", {}).get("properties", {})
    if "limit" not in schema:
        not_run("subject", "messenger has no list of deliveries that can be bounded")
    for number in range(3):
        await messenger.call(
            "notify", channel="telegram", message=f"number {number} {token}", recipient="4711"
        )
    listed = [
        part["message"]
        for part in parts_of(await messenger.call("delivery_list", limit=2))
        if isinstance(part, dict) and "message" in part
    ]

    expect_same(
        "a list of two deliveries has the two latest",
        expected=sorted(f"number {number} {token}" for number in (1, 2)),
        found=sorted(listed),
    )


async def expect_ended(connected: Connected, token: str) -> Row:
    """The one delivery with this word has an end."""
    found: list[Row] = []

    async def ended() -> bool:
        found[:] = await booked(connected, token, "delivery_requests")
        return found[0]["status"] in {"delivered", "failed"}

    await expect_soon(
        "a delivery comes to its end", ended, seconds=RECOVERED_S, story=f"it was {token}"
    )
    return found[0]


def _is_so(condition: Callable[[], bool]) -> Callable[[], Awaitable[bool]]:
    """A probe for what is known here."""

    async def probe() -> bool:
        return condition()

    return probe
