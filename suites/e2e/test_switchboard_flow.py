"""What the switchboard owes to a message that it has accepted, also when it is restarted."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import trio

from harness_core.base.groups import lone_error
from harness_core.base.wait import deadline, until
from harness_core.doubles.model import Fault
from harness_core.doubles.turns import route, use
from harness_core.infrastructure.databases import Contains
from suites.e2e.ecosystem.handle import Ecosystem, Sent
from suites.e2e.observe.expect_journey import (
    expect_inbox,
    expect_journey,
    expect_routing,
    expect_trace,
)
from suites.e2e.observe.journey import follow

pytestmark = pytest.mark.main

#: A classification, and only that, has the registry in its prompt.
CLASSIFICATION = "<registry>"

#: Until messages under way have reached a state. Slowest seen on a loaded machine: 9 s.
STATE_S = 40.0


@pytest.mark.covers("E2E-CONCURRENCY")
@pytest.mark.corpus
async def test_messages_sent_together_all_arrive(ecosystem: Ecosystem, token: str) -> None:
    """Six messages sent at once for three butlers each reach their own, once, in one trace each."""
    texts = {
        f"I have a headache, severity 2 ({token}-1)": "health",
        f"My weight is 73 kg ({token}-2)": "health",
        f"Note about Paul: he sings ({token}-3)": "relationship",
        f"Remind me to call Paul about {token}-4": "relationship",
        f'Put "flour {token}-5" on the shopping list': "general",
        f'Put "sugar {token}-6" on the shopping list': "general",
    }
    sent: dict[str, Sent] = {}

    async def send(text: str) -> None:
        sent[text] = await ecosystem.send(text)

    async with trio.open_nursery() as nursery:
        for text in texts:
            nursery.start_soon(send, text)

    assert len(texts) == len({one.request_id for one in sent.values()})
    for text, butler in texts.items():
        journey = await follow(ecosystem, sent[text])
        expect_inbox(journey, [butler])
        expect_routing(journey, [butler])
        expect_trace(journey)
        rows = await ecosystem[butler].database.rows(
            "SELECT * FROM sessions WHERE request_id = %s", (sent[text].request_id,)
        )

        assert [True] == [row["success"] for row in rows], journey.text()


@pytest.mark.covers("E2E-LIFECYCLE")
@pytest.mark.disturbs
@pytest.mark.parametrize("way", ["kill", pytest.param("stop", marks=pytest.mark.corpus)])
async def test_accepted_messages_survive_a_restart(
    ecosystem: Ecosystem, token: str, way: str
) -> None:
    """What was accepted before the switchboard went away is carried on by the next one, once.

    Killed while it classifies some and has others waiting; asked to stop, it may also bring to an
    end what it has begun.
    """
    switchboard = ecosystem.switchboard
    client = ecosystem.gateway.client
    texts = [f'Put "{thing} {token}" on the shopping list' for thing in ("salt", "oil", "soap")]
    number = await client.add_fault(Fault(kind="hold", times=100, contains=CLASSIFICATION))
    try:
        sent = [await ecosystem.send(text) for text in texts]
        await in_states(ecosystem, sent, {"planned"}, at_least=1)
        if way == "kill":
            await switchboard.kill()
        else:
            async with lone_error(), trio.open_nursery() as nursery:
                nursery.start_soon(switchboard.stop)
                await client.withdraw_fault(number)
    finally:
        await client.withdraw_fault(number)
        await switchboard.restart()
    for one in sent:
        journey = await follow(ecosystem, one)

        assert ("general",) == journey.targets(), journey.text()
        assert "completed" == journey.inbox[0]["lifecycle_state"], journey.text()
        rows = await ecosystem["general"].database.rows(
            "SELECT * FROM sessions WHERE request_id = %s", (one.request_id,)
        )

        assert 1 == len(rows), f"{len(rows)} sessions for one message\n{journey.text()}"
        expect_routing(journey, ["general"])
        expect_trace(journey)
    for thing in ("salt", "oil", "soap"):
        await ecosystem["general"].database.expect_count(
            "entities", where={"name": f"{thing} {token}"}, count=1
        )


@pytest.mark.covers("E2E-IDEMPOTENCY")
@pytest.mark.slow
@pytest.mark.disturbs
async def test_a_duplicate_after_a_restart_is_the_same_message(
    ecosystem: Ecosystem, token: str
) -> None:
    """The event of a message that was handled before the restart is known after it."""
    event_id = f"event-{token}"
    first = await ecosystem.send(f"My pulse is 61 bpm ({token})", event_id=event_id)
    expect_journey(await follow(ecosystem, first), ["health"])
    await ecosystem.switchboard.restart()
    second = await ecosystem.send(f"My pulse is 61 bpm ({token})", event_id=event_id)

    assert first.request_id == second.request_id
    assert second.answer["duplicate"] is True, second.answer
    await ecosystem["health"].database.expect_count(
        "measurements", where={"notes": Contains(token)}, count=1
    )


@pytest.mark.covers("E2E-TRACING")
@pytest.mark.corpus
async def test_one_trace_joins_a_message_for_two(ecosystem: Ecosystem, token: str) -> None:
    """Inbox, both hops and all sessions of a message for two butlers carry the trace it came with."""
    sent = await ecosystem.send(
        f"I have nausea, severity 3 ({token}). Note about Vera: she paints ({token})",
        model=[
            route("health", f"I have nausea, severity 3 ({token})."),
            use("symptom_log", name="nausea", severity=3, notes=token),
            route("relationship", f"Note about Vera: she paints ({token})"),
            use("note_create", contact_name="Vera", body=f"she paints ({token})"),
        ],
    )
    journey = await follow(ecosystem, sent)

    expect_inbox(journey, ["health", "relationship"])
    expect_trace(journey)
    expect_routing(journey, ["health", "relationship"])


async def in_states(
    ecosystem: Ecosystem, sent: Sequence[Sent], states: set[str], *, at_least: int
) -> None:
    """Wait until so many of the messages are in one of the states."""
    seen: list[str] = []

    async def enough() -> bool:
        rows = await ecosystem.switchboard.database.rows(
            "SELECT lifecycle_state FROM message_inbox WHERE request_id::text = ANY(%s)",
            ([one.request_id for one in sent],),
        )
        seen[:] = [str(row["lifecycle_state"]) for row in rows]
        return sum(state in states for state in seen) >= at_least

    with deadline(f"see messages {states}", seconds=STATE_S, observed=lambda: str(seen)):
        await until(enough)
