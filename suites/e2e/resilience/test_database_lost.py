"""The database gone and back, idle and in the middle of a message.

To act in the middle of a session, its model call is held by the gateway: a stand-in for the model
provider, whose calls cannot be held.
"""

from __future__ import annotations

import secrets

import pytest
import trio

from suites.e2e.ecosystem.handle import Ecosystem, envelope
from suites.e2e.ecosystem.mcp import CannotReach
from suites.e2e.observe.expect_broken_journey import expect_carried_out, expect_no_open_session
from suites.e2e.observe.journey import follow
from suites.e2e.worlds.canned import TOOL_OF, Message, to_health, to_relationship
from suites.e2e.worlds.chaos import Chaos

pytestmark = [
    pytest.mark.covers("E2E-CHAOS"),
    pytest.mark.capability("ingest.v1", "own-process"),
    pytest.mark.disturbs,
]

#: How long nothing answers while the database is frozen: less than any deadline of a butler.
WAITS_S = 1.5

#: How often a butler renews its lease (see conftest).
HEARTBEAT_S = 1.0

#: How long a switchboard without a database may take to refuse a message.
REFUSAL_S = 45.0


async def test_connections_dropped(fragile: Ecosystem, chaos: Chaos) -> None:
    """Butlers whose connections all died, idle or at work, notice by themselves and go on."""
    message = to_health()
    held = await chaos.hold(TOOL_OF["health"])
    sent = await fragile.send(message.text)
    await chaos.until_met(held)
    dropped = await chaos.drop_connections()
    await chaos.release(held)

    assert dropped >= len(fragile.butlers), f"only {dropped} connections were there to be dropped"
    await expect_carried_out(fragile, sent, "health")
    await message.expect_row(fragile, "health")
    # This one's database has not been used since.
    other = to_relationship()
    await expect_carried_out(fragile, await fragile.send(other.text), "relationship")
    await other.expect_row(fragile, "relationship")


async def test_killed_in_the_middle_of_a_message(fragile: Ecosystem, chaos: Chaos) -> None:
    """No process ends, nothing is accepted that is not kept, and what was under way is on record."""
    pids = {name: butler.pid for name, butler in fragile.butlers.items()}
    message, refused = to_health(), to_relationship()
    held = await chaos.hold(TOOL_OF["health"])
    sent = await fragile.send(message.text)
    await chaos.until_met(held)
    await chaos.kill_database()
    gone_at = trio.current_time()
    event_id = f"event-{secrets.token_hex(8)}"
    accepted = await try_to_send(fragile, refused, event_id=event_id)
    # That every butler has tried to renew its lease meanwhile cannot be observed: time must pass.
    await trio.sleep_until(gone_at + 2 * HEARTBEAT_S)
    await chaos.start_database()
    await chaos.release(held)
    # Also the switchboard, which keeps its own lease in the database that was gone.
    await chaos.expect_all_back()

    assert not accepted, "a message was accepted without a database to keep it in"
    await expect_truth(fragile, sent, message)
    kept = await fragile.send(refused.text, event_id=event_id)

    assert kept.answer["duplicate"] is False
    await expect_carried_out(fragile, kept, "relationship")
    assert pids == {name: butler.pid for name, butler in fragile.butlers.items()}
    assert {None} == {butler.child.returncode for butler in fragile.butlers.values()}


async def test_frozen_in_the_middle_of_a_message(fragile: Ecosystem, chaos: Chaos) -> None:
    """A database that hangs for a moment delays its butlers and breaks nothing."""
    message = to_health()
    held = await chaos.hold(TOOL_OF["health"])
    sent = await fragile.send(message.text)
    await chaos.until_met(held)
    await chaos.pause_database()
    await chaos.release(held)
    with trio.move_on_after(WAITS_S) as waiting:  # the session's work waits: it needs the database
        await fragile["health"].try_call("state_get", {"key": "x"})

    assert waiting.cancelled_caught, "an answer came without the database"
    await chaos.resume_database()
    await expect_carried_out(fragile, sent, "health")
    await message.expect_row(fragile, "health")


async def try_to_send(ecosystem: Ecosystem, message: Message, *, event_id: str) -> bool:
    """Whether the switchboard says that it accepted a message."""
    arguments = envelope(message.text, event_id=event_id, trace_id=secrets.token_hex(16))
    try:
        answer = await ecosystem.switchboard.try_call("ingest", arguments, seconds=REFUSAL_S)
    except CannotReach:
        return False
    return not answer.is_error and "accepted" in str(answer.value)


async def expect_truth(ecosystem: Ecosystem, sent, message: Message) -> None:
    """The message has a final state, and inbox, hop, session and effect agree on what happened."""
    await expect_carried_out(ecosystem, await ecosystem.send(to_health().text), "health")
    journey = await follow(ecosystem, sent)
    story = journey.text()

    assert not journey.unfinished, story
    succeeded = [row for row in journey.of_message("health") if row["success"]]
    hops = [row for row in journey.routing if row["success"]]
    done = await message.left_its_row(ecosystem, "health")

    assert 1 == len(journey.of_message("health")), story
    assert bool(hops) == bool(succeeded), f"the hop and its session disagree\n{story}"
    assert done or not succeeded, f"recorded as a success, and the row is not there\n{story}"
    assert (journey.inbox[0]["lifecycle_state"] == "completed") == bool(hops), story
    await expect_no_open_session(ecosystem["health"])
