"""Event streams that are cut in the middle of a call, by the network or by the caller itself.

Between the switchboard and a butler stands a relay of ours, which stands for a network that loses
connections. To act in the middle of a session, its model call is held by the gateway: a stand-in
for the model provider, whose calls cannot be held.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio

from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.ecosystem.knobs import turned
from suites.e2e.observe.expect_broken_journey import (
    expect_carried_out,
    expect_no_open_session,
    expect_one_session,
    expect_outcome,
)
from suites.e2e.observe.journey import follow
from suites.e2e.worlds.canned import TOOL_OF, Message, to_general, to_health
from suites.e2e.worlds.chaos import Chaos, expect_soon, processes_of
from suites.e2e.worlds.relay import Relay, open_relay

pytestmark = [
    pytest.mark.covers("E2E-CHAOS"),
    pytest.mark.capability("ingest.v1", "own-process"),
    pytest.mark.disturbs,
]

#: A butler that registers once and then not again while a test goes on.
SELDOM_S = 3600.0

#: From a cut stream to the end of what was done for it: a client tool may take some seconds to stop.
ENDS_S = 30.0

#: Outcomes of a hop that was cut; a product that resumes it has a success to show.
CUT = frozenset({"target_unavailable", "internal_error", "timeout", "success"})


@pytest.mark.capability("registry-table")
@pytest.mark.knob("heartbeat_s")
async def test_a_hop_that_is_cut_in_mid_call(fragile: Ecosystem, chaos: Chaos) -> None:
    """Cut before the call, in it and in the middle of its answer: resumed, or failed and on record.

    Never done twice, never a success that was none; the message after each cut arrives.
    """
    health = fragile["health"]
    await chaos.start("health", **turned(fragile.subject, "health", heartbeat_s=SELDOM_S))
    await chaos.expect_back("health")
    async with open_relay(health.port) as relay:
        await chaos.redirect("health", url=relay.url)
        await expect_through(fragile, relay)
        for _ in range(2):
            message = to_health()
            held = await chaos.hold(TOOL_OF["health"])
            sent = await fragile.send(message.text)
            await chaos.until_met(held)
            cut = relay.cut()
            await chaos.release(held)

            assert cut, "the switchboard has no connection to the target whose answer it awaits"
            await expect_truth_of_cut(fragile, sent, message)
            await expect_through(fragile, relay)
        message = to_health()
        held = await chaos.hold(TOOL_OF["health"])
        sent = await fragile.send(message.text)
        await chaos.until_met(held)
        relay.cut_in_answer()
        await chaos.release(held)
        await expect_truth_of_cut(fragile, sent, message)
        await expect_through(fragile, relay)
        message = to_health()
        classified = await chaos.hold(message.token)
        sent = await fragile.send(message.text)
        await chaos.until_met(classified)
        relay.cut()
        relay.refuse()
        await chaos.release(classified)
        journey = await follow(fragile, sent)
        expect_outcome(journey, "health", {"target_unavailable", "internal_error"})

        assert not journey.of_message("health"), (
            f"no connection to health was let through, and it ran a session\n{journey.text()}"
        )
        relay.accept()
        await expect_through(fragile, relay)
    await expect_no_open_session(health)


async def test_a_caller_that_hangs_up(fragile: Ecosystem, chaos: Chaos) -> None:
    """Whose caller is gone ends and is on record, as whatever it became; its place is free at once."""
    general = fragile["general"]
    before = processes_of(general)
    for _ in range(3):
        message, behind = to_general(), to_general()
        held = await chaos.hold(message.token)
        async with trio.open_nursery() as nursery:
            for each in (message, behind):
                nursery.start_soon(call, general, each)
            await chaos.until_met(held)
            nursery.cancel_scope.cancel()
        await chaos.release(held)
        again = to_general()
        answer = await general.call("trigger", prompt=again.text)

        assert answer.get("success") is not False, (
            f"the trigger after one whose caller had gone failed: {answer}"
        )
        await again.expect_row(fragile, "general")
        for each in (message, behind):
            await expect_soon(
                "the sessions of callers that have gone are closed on record",
                lambda message=each: is_closed(general, message),
                seconds=ENDS_S,
            )
        for each in (message, behind):
            rows = await sessions_of(general, each)
            done = await each.left_its_row(fragile, "general")

            assert len(rows) <= 1, f"one trigger ran more than one session: {rows}"
            assert done or not any(row["success"] for row in rows), (
                f"recorded as a success, and nothing was done: {rows}"
            )
    await expect_no_open_session(general)

    async def gone() -> bool:
        return not processes_of(general).keys() - before.keys()

    await expect_soon("the processes of those sessions are gone", gone, seconds=ENDS_S)


async def call(butler: Any, message: Message) -> None:
    """Trigger, and wait for an answer that may never come."""
    await butler.try_call("trigger", {"prompt": message.text}, seconds=600)


async def sessions_of(butler: Any, message: Message) -> Any:
    """The sessions that were triggered with a message."""
    return await butler.database.rows(
        "SELECT success, error, completed_at FROM sessions WHERE prompt LIKE %s",
        (f"%{message.token}%",),
    )


async def is_closed(butler: Any, message: Message) -> bool:
    """Whether no session of a message is open on record."""
    return all(row["completed_at"] is not None for row in await sessions_of(butler, message))


async def expect_through(ecosystem: Ecosystem, relay: Relay) -> None:
    """A message to health is carried out, by way of the relay."""
    before = relay.opened
    message = to_health()
    journey = await expect_carried_out(ecosystem, await ecosystem.send(message.text), "health")
    await message.expect_row(ecosystem, "health")

    assert relay.opened, (
        f"the switchboard went past the address of the registry ({before} connections before)\n"
        f"{journey.text()}"
    )


async def expect_truth_of_cut(ecosystem: Ecosystem, sent: Any, message: Message) -> None:
    """One session at most, closed; hop and inbox row as the contract has them; a success was done."""
    health = ecosystem["health"]
    journey = await follow(ecosystem, sent)
    outcome = expect_outcome(journey, "health", CUT)
    closed: Callable[[], Any] = lambda: is_closed(health, message)  # noqa: E731 - of this message
    await expect_soon("the session of a hop that was cut is closed", closed, seconds=ENDS_S)
    journey = await follow(ecosystem, sent)
    story = journey.text()
    session = expect_one_session(journey, "health")
    done = await message.left_its_row(ecosystem, "health")

    if outcome == "success":
        assert session["success"] is True, f"the hop is a success and its session is none\n{story}"
    assert done or not session["success"], (
        f"the session is a success on record, and its work was not done\n{story}"
    )
    rows = await health.database.rows(
        "SELECT 1 FROM symptoms WHERE notes LIKE %s", (f"%{message.token}%",)
    )

    assert len(rows) <= 1, f"a call that was cut was carried out {len(rows)} times\n{story}"
