"""Bounds that protect the whole: leases, queues, refusals.

To act in the middle of a session, its model call is held by the gateway: a stand-in for the model
provider, whose calls cannot be held.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial

import pytest
import trio

from harness_core.base.wait import until
from harness_core.doubles.turns import route
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.ecosystem.mcp import ToolResult
from suites.e2e.observe.expect_broken_journey import expect_carried_out, expect_outcome
from suites.e2e.observe.journey import follow
from suites.e2e.worlds.canned import Message, to_health, to_relationship
from suites.e2e.worlds.chaos import Chaos, expect_soon
from suites.e2e.worlds.quarantine import quarantined
from suites.e2e.worlds.schedules import fall_due, schedule, schedule_row, sessions_of

pytestmark = [
    pytest.mark.covers("E2E-CHAOS"),
    pytest.mark.capability("ingest.v1", "own-process"),
    pytest.mark.disturbs,
]

#: A refusal waits for nothing.
REFUSED_S = 15.0

#: From the end of a lease to the row that says so.
SLACK_S = 8.0


@pytest.mark.covers("E2E-CHAOS", "E2E-REGISTRY")
@pytest.mark.capability("registry-table")
async def test_quarantine_holds_for_a_message_in_hand(fragile: Ecosystem, chaos: Chaos) -> None:
    """Put into quarantine while a message for it is classified, a butler gets none of it."""
    message = to_health()
    held = await chaos.hold(message.token)
    sent = await fragile.send(message.text)
    await chaos.until_met(held)
    async with quarantined(fragile, "health"):
        await chaos.release(held)
        journey = await follow(fragile, sent)

    assert not journey.of_message("health"), (
        f"it was dispatched to a butler in quarantine\n{journey.text()}"
    )
    hops = [hop for hop in journey.routing if hop["target_butler"] == "health"]
    wrong = [hop for hop in hops if hop["error_class"] != "target_unavailable"]
    assert not wrong, f"a hop into quarantine is unavailable, found {wrong}\n{journey.text()}"


@pytest.mark.covers("E2E-CHAOS", "E2E-REGISTRY")
@pytest.mark.knob("lease_s", "heartbeat_s")
async def test_a_lease_that_runs_out(fragile: Ecosystem, chaos: Chaos, lease_s: float) -> None:
    """A silent butler becomes stale, not before its lease is over, and gets no more work.

    When it registers again, it does; but one in quarantine stays there, however long it was silent.
    """
    async with quarantined(fragile, "relationship"):
        await chaos.pause("relationship")
        # Whoever finds health's lease over finds that of the other over as well.
        await expect_heard(fragile, "health", after=await last_seen(fragile, "relationship"))
        await chaos.pause("health")
        await expect_stale(fragile, "health", lease_s=lease_s)
        silent = await state_of(fragile, "relationship")
        before = await last_seen(fragile, "relationship")
        await chaos.resume("relationship")
        await expect_heard(fragile, "relationship", after=before)
        heard = await state_of(fragile, "relationship")

    assert (silent, heard) == ("quarantined", "quarantined"), (
        f"leaving quarantine needs an operator: expected a butler in quarantine to stay there, found it "
        f"{silent} when its lease was over and {heard} when it had registered again"
    )
    row = await fragile.switchboard.database.one(
        "SELECT extract(epoch FROM clock_timestamp() - last_seen_at)::float AS silent_s"
        " FROM butler_registry WHERE name = 'health'"
    )

    assert row["silent_s"] >= lease_s, f"stale after {row['silent_s']:.1f} s of {lease_s:g} s"
    # The model would choose health: it must not be in the registry that the prompt shows.
    journey = await follow(fragile, await fragile.send(to_health().text))
    story = journey.text()

    assert not journey.unfinished, f"an accepted message has no final state\n{story}"
    reached = [row for row in journey.routing if row["target_butler"] == "health"]

    assert all(row["error_class"] == "target_unavailable" for row in reached), (
        f"a hop to a stale butler is target_unavailable, or there is none\n{story}"
    )
    assert not journey.of_message("health"), f"a stale butler was dispatched to\n{story}"
    # What the registry knew of it is not forgotten with the process that wrote it down.
    await chaos.start("switchboard")
    found = await state_of(fragile, "health")

    assert found == "stale", (
        "a stale butler is active when it has registered again: the switchboard was restarted "
        f"meanwhile, and the silent one is {found}"
    )

    await chaos.resume("health")
    await chaos.expect_back("health")
    await expect_carried_out(fragile, await fragile.send(to_health().text), "health")


@pytest.mark.covers("E2E-CHAOS", "E2E-REGISTRY")
@pytest.mark.knob("lease_s", "heartbeat_s")
async def test_a_lease_runs_out_after_an_outage_too(
    fragile: Ecosystem, chaos: Chaos, lease_s: float
) -> None:
    """The switchboard looks after leases again when its database was away for longer than one."""
    await chaos.kill_database()
    over = trio.current_time() + lease_s
    async with chaos.knocks() as knocks:
        while trio.current_time() < over:
            await knocks.more(1)
    await chaos.start_database()
    await chaos.expect_all_back()
    await chaos.kill("health")
    await expect_stale(fragile, "health", lease_s=lease_s)


async def state_of(ecosystem: Ecosystem, name: str) -> str:
    """What the registry says of a butler."""
    row = await ecosystem.switchboard.database.one(
        "SELECT eligibility_state FROM butler_registry WHERE name = %s", (name,)
    )
    return str(row["eligibility_state"])


async def last_seen(ecosystem: Ecosystem, name: str) -> datetime:
    """When a butler registered last."""
    row = await ecosystem.switchboard.database.one(
        "SELECT last_seen_at FROM butler_registry WHERE name = %s", (name,)
    )
    seen: datetime = row["last_seen_at"]
    return seen


async def expect_heard(ecosystem: Ecosystem, name: str, *, after: datetime) -> None:
    """A butler registers again after a moment."""

    async def is_heard() -> bool:
        return await last_seen(ecosystem, name) > after

    await expect_soon(f"{name} registers again", is_heard, seconds=REFUSED_S)


async def expect_stale(ecosystem: Ecosystem, name: str, *, lease_s: float) -> None:
    """A butler that has fallen silent is stale when its lease is over."""

    async def is_stale() -> bool:
        return await state_of(ecosystem, name) == "stale"

    await expect_soon("a silent butler is stale", is_stale, seconds=SLACK_S, after_s=lease_s)


@pytest.mark.covers("E2E-CHAOS", "E2E-SCHEDULES")
@pytest.mark.capability("schedules")
@pytest.mark.knob("queue_depth")
async def test_what_a_full_queue_refuses_is_due_again(fragile: Ecosystem, chaos: Chaos) -> None:
    """A task that falls due while the queue is full is not swallowed: the next tick runs it, once."""
    relationship = fragile["relationship"]
    running, *others, task = (to_relationship() for _ in range(4))
    name = f"due-{task.token}"
    await schedule(relationship, name, task.text)
    held = await chaos.hold(running.token)
    answered: list[ToolResult] = []
    ticked: list[ToolResult] = []

    async def trigger(one: Message) -> None:
        answered.append(await relationship.try_call("trigger", {"prompt": one.text}))

    async def tick() -> None:
        ticked.append(await relationship.try_call("tick", {}))

    async def is_full() -> bool:
        return bool(answered)

    async def is_answered() -> bool:
        return bool(ticked)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(trigger, running)
        await chaos.until_met(held)
        for other in others:
            nursery.start_soon(trigger, other)
        await expect_soon("a full queue refuses", is_full, seconds=REFUSED_S)
        await fall_due(relationship, name)
        nursery.start_soon(tick)
        # It may wait instead of being refused.
        with trio.move_on_after(REFUSED_S):
            await until(is_answered)
        meanwhile = await sessions_of(relationship, name)
        refused = await schedule_row(relationship, name) if ticked and not meanwhile else None
        await chaos.release(held)

    if refused:
        assert refused["last_run_at"] is None, (
            f"a row says what happened: a task that was refused has not run, and last_run_at is "
            f"{refused['last_run_at']}: {dict(refused)}"
        )
        assert "success" not in str(refused["last_result"]), (
            f"a task that was refused has done nothing, and its row says {refused['last_result']}"
        )
    assert not [row for row in meanwhile if row["success"]], (
        f"a task is not done while another session runs: found {meanwhile}"
    )

    async def has_run() -> bool:
        await tick()
        return any(row["success"] for row in await sessions_of(relationship, name))

    await expect_soon("a task that was refused runs at a later tick", has_run, seconds=REFUSED_S)
    await task.expect_row(fragile, "relationship")
    await tick()
    done = [row for row in await sessions_of(relationship, name) if row["success"]]
    assert len(done) == 1, f"a task that fell due once runs once: found {done}"


@pytest.mark.covers("E2E-CHAOS", "E2E-CONCURRENCY")
@pytest.mark.knob("queue_depth")
async def test_who_goes_away_takes_no_place_with_him(fragile: Ecosystem, chaos: Chaos) -> None:
    """Callers that are gone before their session's end are more than the queue holds; the next runs."""
    relationship = fragile["relationship"]

    async def ended(token: str) -> bool:
        found = await relationship.database.rows(
            "SELECT completed_at FROM sessions WHERE prompt LIKE %s", (f"%{token}%",)
        )
        return bool(found) and all(row["completed_at"] for row in found)

    for _ in range(4):
        gone = to_relationship()
        held = await chaos.hold(gone.token)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(relationship.try_call, "trigger", {"prompt": gone.text})
            await chaos.until_met(held)
            nursery.cancel_scope.cancel()
        await chaos.release(held)
        await expect_soon(
            "the session of a caller that is gone ends",
            partial(ended, gone.token),
            seconds=REFUSED_S,
        )
    last = to_relationship()
    answer = await relationship.try_call("trigger", {"prompt": last.text})

    assert "overload_rejected" not in answer.text, (
        f"nobody waits, so a trigger is taken; it was refused: {answer.text}"
    )
    await last.expect_row(fragile, "relationship")


@pytest.mark.covers("E2E-CHAOS", "E2E-CONCURRENCY")
@pytest.mark.knob("queue_depth")
async def test_a_full_queue_refuses_at_once(fragile: Ecosystem, chaos: Chaos) -> None:
    """One runs, one waits, all others are refused as overload; those two end in their order."""
    relationship = fragile["relationship"]
    first, *others = (to_relationship() for _ in range(4))
    message = to_relationship()
    held = await chaos.hold(first.token)
    answers: dict[str, ToolResult] = {}

    async def trigger(one: Message) -> None:
        answers[one.token] = await relationship.try_call("trigger", {"prompt": one.text})

    async def all_but_one_refused() -> bool:
        return len(answers) == len(others) - 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(trigger, first)
        await chaos.until_met(held)
        for other in others:
            nursery.start_soon(trigger, other)
        await expect_soon("a full queue refuses", all_but_one_refused, seconds=REFUSED_S)
        refused = dict(answers)
        journey = await follow(fragile, await fragile.send(message.text))
        await chaos.release(held)
    for answer in refused.values():
        assert "overload_rejected" in answer.text, (
            f"a full queue refuses with overload_rejected, found {answer.text}"
        )
    expect_outcome(journey, "relationship", {"overload_rejected"})
    assert not journey.of_message("relationship"), (
        f"what a full queue refused ran a session\n{journey.text()}"
    )
    waited = next(other for other in others if other.token not in refused)
    for done in (first, waited):
        await done.expect_row(fragile, "relationship")
    for rejected in (message, *(other for other in others if other is not waited)):
        assert not await rejected.left_its_row(fragile, "relationship"), (
            "what a full queue refused was done all the same"
        )
    rows = await relationship.database.rows(
        "SELECT prompt, started_at, completed_at FROM sessions"
        " WHERE prompt LIKE %s OR prompt LIKE %s ORDER BY started_at",
        (f"%{first.token}%", f"%{waited.token}%"),
    )

    assert len(rows) == 2, f"the one that ran and the one that waited are 2 sessions: {rows}"
    assert first.token in rows[0]["prompt"], (
        f"triggers run in the order in which they came, and the one that waited was first: {rows}"
    )
    assert rows[0]["completed_at"] <= rows[1]["started_at"], f"two sessions ran at once: {rows}"
    # What was full is empty again: one more, and nothing refuses it.
    again = to_relationship()
    answer = await relationship.call("trigger", prompt=again.text)

    assert answer.get("success") is not False, f"the queue is empty, and refuses: {answer}"
    await again.expect_row(fragile, "relationship")


@pytest.mark.capability("registry-table")
async def test_a_target_that_refuses_the_request(fragile: Ecosystem, chaos: Chaos) -> None:
    """A butler that says the request is not for it makes a ``validation_error``, not a success."""
    await chaos.enlist(
        "archive",
        like="general",
        url=fragile["relationship"].url,
        description="Archive of the zebra census: counts zebras, files zebra sightings.",
    )
    message = "File a zebra sighting in the zebra census archive"
    sent = await fragile.send(message, model=[route("archive")])
    journey = await follow(fragile, sent)

    expect_outcome(journey, "archive", {"validation_error"})
    assert not journey.of_message("relationship"), (
        f"relationship was asked for another butler, and ran a session\n{journey.text()}"
    )


@pytest.mark.capability("registry-table")
async def test_a_target_that_speaks_another_protocol(fragile: Ecosystem, chaos: Chaos) -> None:
    """An address where something else answers is recorded within a deadline, as no success."""
    await chaos.enlist(
        "archive",
        like="general",
        url=f"{fragile.gateway.url}/sse",
        description="Archive of the zebra census: counts zebras, files zebra sightings.",
    )
    sent = await fragile.send("File a zebra sighting in the archive", model=[route("archive")])
    journey = await follow(fragile, sent)

    expect_outcome(journey, "archive", {"target_unavailable", "internal_error", "timeout"})
