"""One event is one message, however often and by whichever name it is delivered (``ingest.v1``)."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

import pytest
import trio

from harness_core.doubles.turns import route, use
from suites.e2e.ecosystem.handle import Ecosystem, Sent, envelope
from suites.e2e.observe.expect_journey import expect_inbox, expect_routing, expect_sessions
from suites.e2e.observe.journey import Journey, follow

pytestmark = [pytest.mark.covers("E2E-IDEMPOTENCY"), pytest.mark.capability("ingest.v1")]

#: Enough callers at once to lose a race in any check-then-insert.
CALLERS = 50


@pytest.mark.covers("E2E-IDEMPOTENCY", "E2E-ROUTING")
@pytest.mark.slow
async def test_the_same_event_twice_is_one_message(ecosystem: Ecosystem, token: str) -> None:
    """A repeated event id is answered with the first request id and dispatched once."""
    event_id = _fresh("event")
    sent = await ecosystem.send(f"I have a headache, severity 4 ({token})", event_id=event_id)
    first = await follow(ecosystem, sent)
    again = await ecosystem.send(f"I have a headache, severity 4 ({token})", event_id=event_id)

    assert sent.request_id == again.request_id
    assert sent.answer["duplicate"] is False
    assert again.answer["duplicate"] is True
    await expect_one_dispatch(ecosystem, first)


async def test_the_same_idempotency_key_is_one_message(ecosystem: Ecosystem, token: str) -> None:
    """A repeated idempotency key counts as the same message, even when the event id differs."""
    control = {"idempotency_key": _fresh("key")}
    text = f"My weight is 80 kg today ({token})"
    first = await ecosystem.send(text, control=control)
    again = await ecosystem.send(text, control=control)

    assert first.request_id == again.request_id, "one key names two messages"
    assert [False, True] == [first.answer["duplicate"], again.answer["duplicate"]]
    journey = await follow(ecosystem, first)
    expect_routing(journey, ["health"])
    await ecosystem.switchboard.database.expect_count(
        "message_inbox", where={"request_id": first.request_id}, count=1
    )


async def test_event_and_key_name_the_same_message(ecosystem: Ecosystem, token: str) -> None:
    """A message is known again by either of its two names, alone or beside a name that is new."""
    event_id, key = _fresh("event"), _fresh("key")
    text = f'Put "tea {token}" on the shopping list'
    deliveries: list[Mapping[str, Any]] = [
        {"event_id": event_id, "control": {"idempotency_key": key}},
        {"event_id": event_id},
        {"event_id": event_id, "control": {"idempotency_key": _fresh("key")}},
        {"event_id": _fresh("event"), "control": {"idempotency_key": key}},
    ]
    sent = [await ecosystem.send(text, **delivery) for delivery in deliveries]

    assert 1 == len({message.request_id for message in sent}), [m.answer for m in sent]
    assert [False, True, True, True] == [message.answer["duplicate"] for message in sent]
    journey = await follow(ecosystem, sent[0])
    expect_routing(journey, ["general"])


@pytest.mark.slow
@pytest.mark.parametrize("by", ["event", pytest.param("key", marks=pytest.mark.corpus)])
async def test_fifty_callers_at_once_are_one_message(
    ecosystem: Ecosystem, token: str, by: str
) -> None:
    """Concurrent deliveries of one event make one row, one dispatch and one honest first answer."""
    text = f"I have a headache, severity 5 ({token})"
    trace_id = secrets.token_hex(16)
    name = _fresh(by)
    sent: list[Sent] = []

    async def deliver() -> None:
        if by == "event":
            sent.append(await ecosystem.send(text, event_id=name, trace_id=trace_id))
            return
        control = envelope(text, trace_id=trace_id)["control"] | {"idempotency_key": name}
        sent.append(await ecosystem.send(text, trace_id=trace_id, control=control))

    async with trio.open_nursery() as nursery:
        for _ in range(CALLERS):
            nursery.start_soon(deliver)

    assert CALLERS == len(sent)
    assert 1 == len({message.request_id for message in sent}), "deliveries at once became several"
    assert 1 == sum(message.answer["duplicate"] is False for message in sent)
    earliest = min(sent, key=lambda message: message.since)
    await expect_one_dispatch(ecosystem, await follow(ecosystem, earliest))


@pytest.mark.slow
async def test_different_channels_do_not_collide(ecosystem: Ecosystem, token: str) -> None:
    """The same event id on two channels names two messages, and both are handled."""
    event_id = _fresh("event")
    texts = [f"I have a cough, severity {n} ({token}{n})" for n in (2, 3)]
    sent = []
    for text, channel in zip(texts, ["telegram", "email"], strict=True):
        source = {"channel": channel, "provider": "staging-harness", "endpoint_identity": "e2e"}
        sent.append(await ecosystem.send(text, event_id=event_id, source=source))

    assert 2 == len({message.request_id for message in sent}), "the two channels collide"
    assert [False, False] == [message.answer["duplicate"] for message in sent]
    for message in sent:
        journey = await follow(ecosystem, message)
        expect_inbox(journey, ["health"])
        expect_routing(journey, ["health"])


@pytest.mark.corpus
async def test_events_that_resemble_each_other_are_several(
    ecosystem: Ecosystem, token: str
) -> None:
    """Ids that differ in their last letter, or in case alone, name messages of their own."""
    begin = f"{_fresh('event')}-{'x' * 100}-"
    sent = [
        await ecosystem.send(f"I have a rash, severity {n} ({token}{n})", event_id=f"{begin}{end}")
        for n, end in enumerate("abA", start=1)
    ]

    assert 3 == len({message.request_id for message in sent}), "ids that resemble are taken for one"
    assert [False] * 3 == [message.answer["duplicate"] for message in sent]
    for message in sent:
        expect_inbox(await follow(ecosystem, message), ["health"])


async def test_a_duplicate_changes_nothing(ecosystem: Ecosystem, token: str) -> None:
    """What is delivered again with another text is the first message: the text stays as it was."""
    event_id = _fresh("event")
    text = f"I have a fever, severity 3 ({token})"
    first = await ecosystem.send(text, event_id=event_id)
    again = await ecosystem.send(f"Add {token} to my list of books", event_id=event_id)

    assert first.request_id == again.request_id
    journey = await follow(ecosystem, first)
    expect_inbox(journey, ["health"])
    expect_sessions(journey, ["health"])


def _fresh(kind: str) -> str:
    return f"{kind}-{secrets.token_hex(8)}"


async def expect_one_dispatch(ecosystem: Ecosystem, settled: Journey) -> None:
    """After it settled, and after a second message went all the way, there is still one of all."""
    sent = settled.sent
    expect_inbox(settled, ["health"])
    expect_routing(settled, ["health"])
    # A later message that has gone all the way proves that a second dispatch had time to happen:
    # the switchboard and the butler both work in order.
    cough = use("symptom_log", name="cough", severity=2)
    second = await ecosystem.send("I have a cough, severity 2", model=[route("health"), cough])
    later = await follow(ecosystem, second)
    again = await follow(ecosystem, sent)
    # Of both together, so that it makes no difference whether a hop says whose it is.
    hops = {repr(sorted(row.items())) for row in (*again.routing, *later.routing)}

    assert 2 == len(hops), f"one message was dispatched {len(hops) - 1} times\n{again.text()}"
    expect_sessions(again, ["health"])
    sessions = await ecosystem["health"].database.rows(
        "SELECT id FROM sessions WHERE request_id::text = %s", (sent.request_id,)
    )

    assert 1 == len(sessions), f"one message ran {len(sessions)} sessions on health"
