"""Targets that are dead, frozen or hanging: recorded in the contract's words, in time, at no cost to others.

To act in the middle of a session, its model call is held by the gateway: a stand-in for the model
provider, whose calls cannot be held.
"""

from __future__ import annotations

import pytest

from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.ecosystem.knobs import turned
from suites.e2e.observe.expect_broken_journey import (
    expect_carried_out,
    expect_failed_session,
    expect_no_open_session,
    expect_outcome,
)
from suites.e2e.observe.journey import follow
from suites.e2e.worlds.canned import TOOL_OF, to_health, to_relationship, to_two
from suites.e2e.worlds.chaos import Chaos, expect_in_time

pytestmark = [
    pytest.mark.covers("E2E-CHAOS"),
    pytest.mark.capability("ingest.v1", "own-process"),
    pytest.mark.disturbs,
]

#: A hop that is to run into its deadline.
HOP_S = 3.0

#: From a deadline of the product to the row that records it.
SLACK_S = 8.0


async def test_one_dead_target_of_two(fragile: Ecosystem, chaos: Chaos) -> None:
    """The living target does its part, the dead one is recorded as such; back up, it works again."""
    await chaos.kill("health")
    message = to_two()
    journey = await follow(fragile, await fragile.send(message.text))

    expect_outcome(journey, "health", {"target_unavailable"})
    expect_outcome(journey, "relationship", {"success"})
    await message.expect_row(fragile, "relationship")

    await chaos.start("health")
    await chaos.expect_back("health")
    again = to_health()
    await expect_carried_out(fragile, await fragile.send(again.text), "health")
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

    assert 1 == len(after.of_message("health")), story
    expect_failed_session(after.of_message("health")[0], butler="health", story=story)
    await expect_no_open_session(fragile["health"])
    assert not await message.left_its_row(fragile, "health"), story


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
    (hop,) = journey.routing

    expect_in_time(
        "the hop", hop["duration_ms"] / 1000, deadline_s=HOP_S, slack_s=SLACK_S, story=story
    )

    await chaos.release(held)
    again = to_health()
    await fragile["health"].call("trigger", prompt=again.text)
    await again.expect_row(fragile, "health")
    await expect_no_open_session(fragile["health"])
