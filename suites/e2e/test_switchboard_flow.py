"""What the switchboard owes to a message that it has accepted, also when it is restarted."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import trio

from harness_core.base.groups import lone_error
from harness_core.base.wait import deadline, until
from harness_core.doubles.model import Fault
from harness_core.infrastructure.databases import Contains
from suites.e2e.ecosystem.handle import Ecosystem, Sent
from suites.e2e.observe.expect_journey import (
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

        assert ("general",) == journey.targets(), f"it goes to general\n{journey.text()}"
        assert "completed" == journey.inbox[0]["lifecycle_state"], (
            f"a message that waited for a restart is completed\n{journey.text()}"
        )
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

    assert first.request_id == second.request_id, (
        "an event that was handled before a restart is the same message after it"
        f"; found {second.answer}"
    )
    assert second.answer["duplicate"] is True, f"it is a duplicate\n{second.answer}"
    await ecosystem["health"].database.expect_count(
        "measurements", where={"notes": Contains(token)}, count=1
    )


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
