"""What the switchboard lets in: once per event, whole, and nothing else (contract, ``ingest.v1``)."""

from __future__ import annotations

import copy
import secrets
from collections.abc import Callable
from typing import Any

import pytest
import trio

from suites.e2e.chain import expect_inbox, expect_routing, expect_sessions
from suites.e2e.ecosystem import Ecosystem, envelope
from suites.e2e.journey import follow

pytestmark = pytest.mark.capability("ingest.v1")


#: Enough callers at once to lose a race in any check-then-insert.
CALLERS = 50


async def test_the_same_event_twice_is_one_message(ecosystem: Ecosystem, token: str) -> None:
    """A repeated event id is answered with the first request id and dispatched once."""
    event_id = f"event-{secrets.token_hex(8)}"
    sent = await ecosystem.send(f"I have a headache, severity 4 ({token})", event_id=event_id)
    first = await follow(ecosystem, sent)
    again = await ecosystem.send(f"I have a headache, severity 4 ({token})", event_id=event_id)

    assert sent.request_id == again.request_id
    assert sent.answer["duplicate"] is False
    assert again.answer["duplicate"] is True
    await expect_one_dispatch(ecosystem, sent, first)


async def test_the_same_idempotency_key_is_one_message(ecosystem: Ecosystem, token: str) -> None:
    """A repeated idempotency key counts as the same message, even when the event id differs."""
    control = {"idempotency_key": f"key-{secrets.token_hex(8)}"}
    text = f"My weight is 80 kg today ({token})"
    first = await ecosystem.send(text, control=control)
    again = await ecosystem.send(text, control=control)

    assert first.request_id == again.request_id
    assert [False, True] == [first.answer["duplicate"], again.answer["duplicate"]]
    journey = await follow(ecosystem, first)
    expect_routing(journey, ["health"])
    await ecosystem.switchboard.database.expect_count(
        "message_inbox", where={"request_id": first.request_id}, count=1
    )


async def test_fifty_callers_at_once_are_one_message(ecosystem: Ecosystem, token: str) -> None:
    """Concurrent deliveries of one event make one row, one dispatch and one honest first answer."""
    text = f"I have a headache, severity 5 ({token})"
    event_id = f"event-{secrets.token_hex(8)}"
    trace_id = secrets.token_hex(16)
    sent = []

    async def deliver() -> None:
        sent.append(await ecosystem.send(text, event_id=event_id, trace_id=trace_id))

    async with trio.open_nursery() as nursery:
        for _ in range(CALLERS):
            nursery.start_soon(deliver)

    assert CALLERS == len(sent)
    assert 1 == len({message.request_id for message in sent})
    assert 1 == sum(message.answer["duplicate"] is False for message in sent)
    earliest = min(sent, key=lambda message: message.since)
    journey = await follow(ecosystem, earliest)
    await expect_one_dispatch(ecosystem, earliest, journey)


def _with(*path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(message: dict[str, Any]) -> None:
        *parents, last = path
        inner = message
        for key in parents:
            inner = inner[key]
        inner[last] = value

    return change


def _without(*path: str) -> Callable[[dict[str, Any]], None]:
    def change(message: dict[str, Any]) -> None:
        *parents, last = path
        inner = message
        for key in parents:
            inner = inner[key]
        del inner[last]

    return change


@pytest.mark.parametrize(
    ("change", "named"),
    [
        pytest.param(_with("surprise", value=1), "surprise", id="unknown-section"),
        pytest.param(_with("source", "surprise", value=1), "surprise", id="unknown-field"),
        pytest.param(_without("sender"), "sender", id="section-missing"),
        pytest.param(_without("source", "channel"), "channel", id="field-missing"),
        pytest.param(_with("event", value="yesterday"), "event", id="section-of-wrong-type"),
        pytest.param(
            _with("payload", "normalized_text", value=7), "normalized_text", id="text-is-a-number"
        ),
    ],
)
async def test_a_malformed_envelope_is_refused(
    ecosystem: Ecosystem, token: str, change: Callable[[dict[str, Any]], None], named: str
) -> None:
    """A malformed envelope is refused by name of its fault, and nothing is stored or run."""
    message = copy.deepcopy(
        envelope(f"I have a headache, severity 3 ({token})", trace_id=secrets.token_hex(16))
    )
    change(message)
    inbox = ecosystem.switchboard.database
    before = (await inbox.one("SELECT count(*) AS n FROM message_inbox"))["n"]
    answer = await ecosystem.switchboard.try_call("ingest", message)

    assert answer.is_error, f"accepted: {answer.value}"
    assert named in answer.text
    assert before == (await inbox.one("SELECT count(*) AS n FROM message_inbox"))["n"]
    assert "switchboard" == (await ecosystem.switchboard.status())["name"]


async def expect_one_dispatch(ecosystem: Ecosystem, sent: Any, settled: Any) -> None:
    """After it settled, and after a second message went all the way, there is still one of all."""
    expect_inbox(settled, ["health"])
    expect_routing(settled, ["health"])
    # A later message that has gone all the way proves that a second dispatch had time to happen:
    # the switchboard and the butler both work in order.
    after = await ecosystem.send("I have a cough, severity 2")
    await follow(ecosystem, after)
    rows = await ecosystem.switchboard.database.rows(
        "SELECT target_butler FROM routing_log WHERE trace_id = %s", (sent.trace_id,)
    )

    assert 1 == len(rows), f"one message was dispatched {len(rows)} times: {rows}"
    expect_sessions(settled, ["health"])
    sessions = await ecosystem["health"].database.rows(
        "SELECT id FROM sessions WHERE trace_id = %s", (sent.trace_id,)
    )

    assert 1 == len(sessions), f"one message ran {len(sessions)} sessions on health"
