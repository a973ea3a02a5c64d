"""Targets that are dead, frozen or hanging: recorded in the contract's words, in time, at no cost to others.

To act in the middle of a session, its model call is held by the gateway: a stand-in for the model
provider, whose calls cannot be held.
"""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from harness_core.doubles.model import Fault
from harness_core.ports import lease_port
from suites.e2e.ecosystem.handle import Ecosystem, Sent
from suites.e2e.ecosystem.knobs import has_knob, turned
from suites.e2e.observe.expect_broken_journey import (
    expect_carried_out,
    expect_failed_session,
    expect_no_open_session,
    expect_one_session,
    expect_outcome,
)
from suites.e2e.observe.journey import follow
from suites.e2e.worlds.beside import open_beside
from suites.e2e.worlds.canned import TOOL_OF, to_health, to_relationship, to_two
from suites.e2e.worlds.chaos import Chaos, expect_ended_well, expect_in_time, expect_soon

pytestmark = [
    pytest.mark.covers("E2E-CHAOS"),
    pytest.mark.capability("ingest.v1", "own-process"),
    pytest.mark.disturbs,
]

#: A hop that is to run into its deadline.
HOP_S = 3.0

#: From a butler that serves at another address to the registry that knows it: some heartbeats.
MOVES_S = 30.0

#: A classification, on a machine with nothing else to do.
DISPATCHED_S = 40.0

#: Messages of which one is under way: as many deadlines, one after the other, are too late for any.
WAITING = 8

#: From a deadline of the product to the row that records it.
SLACK_S = 8.0


async def test_one_dead_target_of_two(fragile: Ecosystem, chaos: Chaos) -> None:
    """The living target does its part, the dead one is recorded as such; back up, it works again.

    So it does for the same sender, and where a target is called once at a time: who failed keeps no place.
    """
    if has_knob(fragile.subject, "in_flight"):
        await chaos.start("switchboard", **turned(fragile.subject, "switchboard", in_flight=1))
    await chaos.kill("health")
    message = to_two()
    sent = await fragile.send(message.text)
    journey = await follow(fragile, sent)

    expect_outcome(journey, "health", {"target_unavailable"})
    expect_outcome(journey, "relationship", {"success"})
    await message.expect_row(fragile, "relationship")

    await chaos.start("health")
    await chaos.expect_back("health")
    again = to_health()
    same = {name: sent.arguments[name] for name in ("source", "sender")}
    await expect_carried_out(fragile, await fragile.send(again.text, **same), "health")
    await again.expect_row(fragile, "health")

    assert not await message.left_its_row(fragile, "health"), (
        "recorded as unavailable, and done all the same"
    )


async def test_a_target_killed_during_its_session(fragile: Ecosystem, chaos: Chaos) -> None:
    """The hop is no success, the session is closed as failed on restart, no other butler is affected."""
    held = await chaos.hold(TOOL_OF["health"])
    message, other = to_health(), to_relationship()
    sent = await fragile.send(message.text)
    await chaos.until_met(held)
    bystander = await fragile.send(other.text)
    await chaos.kill("health")
    await expect_carried_out(fragile, bystander, "relationship")
    journey = await follow(fragile, sent)

    expect_outcome(journey, "health", {"target_unavailable", "internal_error", "timeout"})

    await chaos.release(held)
    await chaos.start("health")
    await chaos.expect_back("health")
    await expect_carried_out(fragile, await fragile.send(to_health().text), "health")
    after = await follow(fragile, sent)
    story = after.text()

    expect_failed_session(expect_one_session(after, "health"), butler="health", story=story)
    await expect_no_open_session(fragile["health"])
    assert not await message.left_its_row(fragile, "health"), (
        f"a session whose butler was killed before its tool was called did its work\n{story}"
    )


async def test_a_target_killed_in_a_later_phase(fragile: Ecosystem, chaos: Chaos) -> None:
    """SIGKILL after the work and before the end: done once, recorded as failed, not done again.

    The second time as the first, and the messages after each arrive.
    """
    health = fragile["health"]
    for _ in range(2):
        message, waiting = to_health(), to_health()
        first = await chaos.hold(TOOL_OF["health"])
        sent = await fragile.send(message.text)
        await chaos.until_met(first)
        # The next call for this message comes when its tool has been called.
        second = await chaos.hold(message.token)
        await chaos.release(first)
        await chaos.until_met(second)
        await message.expect_row(fragile, "health")
        queued = await fragile.send(waiting.text)
        await expect_soon(
            "the next message is classified",
            lambda queued=queued: is_dispatched(fragile, queued),
            seconds=DISPATCHED_S,
        )
        await chaos.kill("health")
        for each in (sent, queued):
            journey = await follow(fragile, each)
            expect_outcome(journey, "health", {"target_unavailable", "internal_error", "timeout"})
        await chaos.release(second)
        await chaos.start("health")
        await chaos.expect_back("health")
        again = to_health()
        await expect_carried_out(fragile, await fragile.send(again.text), "health")
        await again.expect_row(fragile, "health")
        after = await follow(fragile, sent)
        expect_failed_session(
            expect_one_session(after, "health"), butler="health", story=after.text()
        )
        await expect_no_open_session(health)
        rows = await health.database.rows(
            "SELECT 1 FROM symptoms WHERE notes LIKE %s", (f"%{message.token}%",)
        )

        assert len(rows) == 1, (
            f"what was done before the kill was done once, and stands {len(rows)} times\n"
            f"{after.text()}"
        )
        assert not await waiting.left_its_row(fragile, "health"), (
            "a message that waited behind a session whose butler was killed is on record as "
            "failed, and was done all the same"
        )


@pytest.mark.covers("E2E-CHAOS", "E2E-REGISTRY")
async def test_a_target_that_moves_and_comes_back(fragile: Ecosystem, chaos: Chaos) -> None:
    """A butler replaced by another process at another port, and back: each message reaches it.

    Whatever a switchboard keeps of a target (an address, a connection, a session) is from before.
    """
    health = fragile["health"]
    for _ in range(2):
        await expect_reached(fragile)
    await chaos.stop_well("health")
    with lease_port() as lease:
        port = lease.hand_over()
        async with open_beside(health, port=port) as child:
            await expect_soon(
                "the registry knows where health has moved",
                lambda: is_registered_at(fragile, port),
                seconds=MOVES_S,
            )
            for _ in range(2):
                await expect_reached(fragile)
        expect_ended_well("health at its other port", child.stop_report)
    for _ in range(2):
        await chaos.start("health")
        await expect_soon(
            "the registry knows that health is back",
            lambda: is_registered_at(fragile, health.port),
            seconds=MOVES_S,
        )
        await expect_reached(fragile)
        await chaos.kill("health")
    await chaos.start("health")
    await chaos.expect_back("health")
    for _ in range(2):
        await expect_reached(fragile)


async def test_a_target_frozen_before_dispatch(fragile: Ecosystem, chaos: Chaos) -> None:
    """A target that accepts and never answers costs one deadline, and other butlers nothing."""
    message, other = to_health(), to_relationship()
    classified = await chaos.hold(message.token)
    sent = await fragile.send(message.text)
    await chaos.until_met(classified)
    await chaos.pause("health")
    await chaos.release(classified)
    bystander = await fragile.send(other.text)
    await expect_carried_out(fragile, bystander, "relationship")
    journey = await follow(fragile, sent)

    expect_outcome(journey, "health", {"target_unavailable", "timeout"})

    await chaos.resume("health")
    await chaos.expect_back("health")
    await expect_carried_out(fragile, await fragile.send(to_health().text), "health")


async def test_a_target_frozen_for_a_moment(fragile: Ecosystem, chaos: Chaos) -> None:
    """A target that hangs for less than the deadline loses nothing: its session goes on."""
    held = await chaos.hold(TOOL_OF["health"])
    message = to_health()
    sent = await fragile.send(message.text)
    await chaos.until_met(held)
    await chaos.pause("health")
    await chaos.release(held)
    await expect_carried_out(fragile, await fragile.send(to_relationship().text), "relationship")
    await chaos.resume("health")
    await expect_carried_out(fragile, sent, "health")
    await message.expect_row(fragile, "health")


@pytest.mark.knob("hop_deadline_s")
async def test_a_target_that_hangs_beyond_the_deadline(fragile: Ecosystem, chaos: Chaos) -> None:
    """The hop ends as ``timeout`` when the configured deadline has passed, not before or later."""
    await chaos.start("switchboard", **turned(fragile.subject, "switchboard", hop_deadline_s=HOP_S))
    message = to_health()
    classified = await chaos.hold(message.token)
    sent = await fragile.send(message.text)
    await chaos.until_met(classified)
    held = await chaos.hold(TOOL_OF["health"])
    await chaos.release(classified)
    journey = await follow(fragile, sent)
    story = journey.text()

    expect_outcome(journey, "health", {"timeout"})
    hop = journey.routing[0]  # the only one, as expect_outcome has seen

    expect_in_time(
        "the hop", hop["duration_ms"] / 1000, deadline_s=HOP_S, slack_s=SLACK_S, story=story
    )

    await chaos.release(held)
    again = to_health()
    await fragile["health"].call("trigger", prompt=again.text)
    await again.expect_row(fragile, "health")
    await expect_no_open_session(fragile["health"])


@pytest.mark.knob("hop_deadline_s", "in_flight")
async def test_many_hops_to_a_target_that_hangs(fragile: Ecosystem, chaos: Chaos) -> None:
    """A hop that has to wait for others has the same deadline: its wait is a part of it.

    However many messages are before it, it ends in time, and says how. A message for another target
    has nothing to wait for.
    """
    await chaos.start(
        "switchboard",
        **turned(fragile.subject, "switchboard", hop_deadline_s=HOP_S, in_flight=1),
    )
    held = await chaos.provider(Fault(kind="hold", contains=TOOL_OF["health"], times=2 * WAITING))
    waiting = [await fragile.send(to_health().text) for _ in range(WAITING)]
    elsewhere = to_relationship()
    await expect_carried_out(fragile, await fragile.send(elsewhere.text), "relationship")
    await elsewhere.expect_row(fragile, "relationship")
    journeys = [await follow(fragile, sent) for sent in waiting]
    for journey in journeys:
        expect_outcome(journey, "health", {"timeout", "overload_rejected"})
    took = {
        journey.text(): (
            journey.routing[0]["created_at"] - journey.of_message("switchboard")[0]["completed_at"]
        ).total_seconds()
        for journey in journeys
    }
    for journey in journeys:
        within_s = took[journey.text()]
        recorded_s = journey.routing[0]["duration_ms"] / 1000

        assert within_s < HOP_S or recorded_s >= within_s / 2, (
            f"a hop's wait is a part of it: expected some {within_s:.1f} s, from its classification "
            f"to its record, found a duration of {recorded_s:.1f} s\n{journey.text()}"
        )
    longest = max(took, key=lambda story: took[story])
    expect_in_time(
        "the slowest of many hops, from its classification to its record",
        max(took[longest], HOP_S),
        deadline_s=HOP_S,
        slack_s=SLACK_S,
        story=longest,
    )

    await chaos.release(held)
    again = to_health()
    await fragile["health"].call("trigger", prompt=again.text)
    await again.expect_row(fragile, "health")
    await expect_no_open_session(fragile["health"])


async def expect_reached(ecosystem: Ecosystem) -> None:
    """One message to health is carried out, and leaves its row."""
    message = to_health()
    await expect_carried_out(ecosystem, await ecosystem.send(message.text), "health")
    await message.expect_row(ecosystem, "health")


async def is_registered_at(ecosystem: Ecosystem, port: int) -> bool:
    """Whether the registry says that health is active at a port."""
    rows = await ecosystem.switchboard.database.rows(
        "SELECT endpoint_url FROM butler_registry"
        " WHERE name = 'health' AND eligibility_state = 'active'"
    )
    return any(urlsplit(row["endpoint_url"]).port == port for row in rows)


async def is_dispatched(ecosystem: Ecosystem, sent: Sent) -> bool:
    """Whether a message has been classified, so that it is on its way to its target."""
    rows = await ecosystem.switchboard.database.rows(
        "SELECT 1 FROM message_inbox WHERE request_id::text = %s AND decomposition IS NOT NULL",
        (sent.request_id,),
    )
    return bool(rows)
