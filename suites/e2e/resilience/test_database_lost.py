"""The database gone and back, idle and in the middle of a message.

To act in the middle of a session, its model call is held by the gateway: a stand-in for the model
provider, whose calls cannot be held.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest
import trio

from harness_core.assertions import new_token
from harness_core.infrastructure.databases import Database
from harness_core.process import descendants
from suites.e2e.ecosystem.handle import Butler, Ecosystem, envelope
from suites.e2e.ecosystem.mcp import CannotReach
from suites.e2e.observe.expect_broken_journey import (
    expect_carried_out,
    expect_no_open_session,
    expect_one_session,
    expect_outcome,
)
from suites.e2e.observe.journey import follow
from suites.e2e.worlds.canned import TOOL_OF, Message, to_general, to_health, to_relationship
from suites.e2e.worlds.chaos import Chaos, expect_soon

pytestmark = [
    pytest.mark.covers("E2E-CHAOS"),
    pytest.mark.capability("ingest.v1", "own-process"),
    pytest.mark.disturbs,
]

#: How long nothing answers while the database is frozen: less than any deadline of a butler.
WAITS_S = 1.5

#: Looks for a lost database that show that butlers go on without it and have not given up.
KNOCKS = 3

#: A session that has only to end, with or without a database for its tools, and then its row.
ENDS_S = 60.0

#: From a database that is back to butlers that are well again.
WELL_S = 20.0

#: Answers on other connections, after which a server has noticed that a caller hung up.
ANSWERS = 5

#: Triggers for a butler without a database: more than its queue has places (see conftest).
IN_VAIN = 4

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
    event_id = f"event-{secrets.token_hex(8)}"
    accepted = await try_to_send(fragile, refused, event_id=event_id)
    # Without a message or a question of ours: these are leases that butlers want to renew.
    async with chaos.knocks() as knocks:
        await knocks.more(2 * KNOCKS)
    await chaos.start_database()
    await chaos.release(held)
    # Also the switchboard, which keeps its own lease in the database that was gone.
    await chaos.expect_all_back()

    assert not accepted, "a message was accepted without a database to keep it in"
    await expect_truth(fragile, sent, message)
    kept = await fragile.send(refused.text, event_id=event_id)

    assert kept.answer["duplicate"] is False, (
        f"a message that was refused for want of a database counts as known: {kept.answer}"
    )
    await expect_carried_out(fragile, kept, "relationship")
    expect_same_processes(fragile, pids)


async def test_a_caller_that_leaves_while_its_row_is_written(
    fragile: Ecosystem, chaos: Chaos
) -> None:
    """A session is closed on record, also when nobody waits for its answer any more.

    The caller hangs up while its begin is written down, and another while its end is.
    """
    general = fragile["general"]
    begun, ended = new_token(), new_token()
    for token in (begun, ended):
        await fragile.rehearse(f"say {token}")
    await chaos.hold_commits()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask_in_vain, general, f"say {begun}")
        await chaos.until_committing(general, "sessions")
        nursery.cancel_scope.cancel()
    await expect_noticed(general)
    await chaos.release_commits()
    held = await chaos.hold(ended)
    async with Database(general.database.url) as other:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask_in_vain, general, f"say {ended}")
            await chaos.until_met(held)
            await other.execute("BEGIN")
            await other.execute(  # lint: allow writes-rows: a lock, no row
                "LOCK TABLE sessions IN SHARE MODE"
            )
            await chaos.release(held)

            async def is_being_written() -> bool:
                rows = await general.database.rows(
                    "SELECT 1 FROM pg_locks JOIN pg_database ON pg_database.oid = database"
                    " WHERE datname = current_database() AND NOT granted"
                    " AND relation = 'sessions'::regclass"
                )
                return bool(rows)

            await expect_soon(
                "the end of a session is written down", is_being_written, seconds=ENDS_S
            )
            nursery.cancel_scope.cancel()
        await expect_noticed(general)
        await other.execute("COMMIT")
    for token in (begun, ended):

        async def is_closed(token: str = token) -> bool:
            rows = await general.database.rows(
                "SELECT completed_at FROM sessions WHERE prompt LIKE %s", (f"%{token}%",)
            )
            return all(row["completed_at"] is not None for row in rows)

        await expect_soon(
            "a session whose caller left is closed on record", is_closed, seconds=WELL_S
        )
    await expect_no_open_session(general)
    again = to_general()
    await general.call("trigger", prompt=again.text)
    await again.expect_row(fragile, "general")


@pytest.mark.capability("session-process")
@pytest.mark.parametrize("way", ["killed", "turned-away"])
async def test_a_session_that_ends_without_a_database(
    fragile: Ecosystem, chaos: Chaos, way: str
) -> None:
    """What ends while the database is away is written down when it is back: session, hop, message.

    Whether nothing answers in its place, or a server that refuses everybody.
    """
    health = fragile["health"]
    before = set(descendants(health.pid))
    message = to_health()
    held = await chaos.hold(TOOL_OF["health"])
    sent = await fragile.send(message.text)
    await chaos.until_met(held)
    await (chaos.kill_database() if way == "killed" else chaos.turn_away("health"))
    await chaos.release(held)

    async def has_ended() -> bool:
        return not set(descendants(health.pid)) - before

    await expect_soon("a session without a database ends", has_ended, seconds=ENDS_S)
    for _ in range(KNOCKS):
        await expect_unwell(health)
    await (chaos.start_database() if way == "killed" else chaos.let_in("health"))

    async def is_closed() -> bool:
        rows = await health.database.rows("SELECT 1 FROM sessions WHERE completed_at IS NULL")
        return not rows

    await expect_soon("the session that ended meanwhile is closed", is_closed, seconds=ENDS_S)
    journey = await follow(fragile, sent)
    story = journey.text()
    session = expect_one_session(journey, "health")
    outcome = expect_outcome(journey, "health", {"success", "internal_error"})

    assert (outcome == "success") == bool(session["success"]), (
        f"the hop and its session disagree\n{story}"
    )
    await chaos.expect_all_back()
    again = to_health()
    await expect_carried_out(fragile, await fragile.send(again.text), "health")
    await again.expect_row(fragile, "health")


async def test_gone_twice(fragile: Ecosystem, chaos: Chaos) -> None:
    """Without its database no butler is ok, acknowledges a change, or ends; the second time neither.

    What was refused meanwhile never happened, and what was acknowledged before is there, once. Of
    sessions that could not begin, more than a queue holds, none keeps a place in it.
    """
    pids = {name: butler.pid for name, butler in fragile.butlers.items()}
    for number in range(2):
        key, lost = f"kept-{secrets.token_hex(4)}", f"lost-{secrets.token_hex(4)}"
        value = {
            "outage": number,
            "text": "ä\u2603 " + "x" * 70_000,
            "at": "2026-02-29T00:00+05:45",
        }
        for butler in fragile.butlers.values():
            await butler.call("state_set", key=key, value=value)
        await chaos.kill_database()
        for butler in fragile.butlers.values():
            await expect_unwell(butler)
            await expect_refused(butler, "state_set", key=lost, value=value)
            await expect_refused(
                butler, "schedule_create", name=lost, cron="0 0 29 2 *", prompt="say never"
            )
            await expect_refused(butler, "state_delete", key=key)
        assert not await try_to_send(fragile, to_health(), event_id=lost), (
            "a message was accepted without a database to keep it in"
        )
        in_vain = [to_relationship() for _ in range(IN_VAIN)]
        for each in in_vain:
            await expect_not_run(fragile["relationship"], each)
        await chaos.start_database()
        for butler in fragile.butlers.values():
            await expect_soon(
                f"{butler.name} says that it is as well as before",
                lambda butler=butler: is_well(butler),
                seconds=WELL_S,
            )
            found = await butler.call("state_get", key=key)

            assert found.get("value") == value, (
                f"{butler.name} acknowledged {key} before its database was killed, and has another "
                f"value now: {str(found)[:300]}"
            )
            for table, column in (("state", "key"), ("scheduled_tasks", "name")):
                rows = await butler.database.rows(
                    f"SELECT {column} FROM {table} WHERE {column} = %s", (lost,)
                )

                assert not rows, f"{butler.name} refused {lost}, and it stands in {table}: {rows}"
        await chaos.expect_all_back()
        message = to_relationship()
        await expect_carried_out(fragile, await fragile.send(message.text), "relationship")
        await message.expect_row(fragile, "relationship")
        for each in in_vain:
            assert not await each.left_its_row(fragile, "relationship"), (
                "a trigger that was refused for want of a database was done all the same"
            )
    expect_same_processes(fragile, pids)


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

    assert waiting.cancelled_caught, "health answered what it cannot know while its database hangs"
    await chaos.resume_database()
    await expect_carried_out(fragile, sent, "health")
    await message.expect_row(fragile, "health")


async def test_a_butler_whose_database_is_silent_is_not_well(
    fragile: Ecosystem, chaos: Chaos
) -> None:
    """A database that takes questions and answers none is no database, until it answers again."""
    general = fragile["general"]

    assert await is_well(general), "general is not well before its database falls silent"
    await chaos.pause_database()
    await expect_unwell(general)
    await chaos.resume_database()
    await expect_soon(
        "general says that it is as well as before", lambda: is_well(general), seconds=WELL_S
    )


async def ask_in_vain(butler: Butler, prompt: str) -> None:
    """Trigger a session and do not wait for its answer."""
    with suppress(CannotReach):
        await butler.try_call("trigger", {"prompt": prompt})


async def expect_noticed(butler: Butler) -> None:
    """A caller has hung up: once the butler has answered others, it knows that."""
    for _ in range(ANSWERS):
        await butler.status()


async def try_to_send(ecosystem: Ecosystem, message: Message, *, event_id: str) -> bool:
    """Whether the switchboard says that it accepted a message."""
    arguments = envelope(message.text, event_id=event_id, trace_id=secrets.token_hex(16))
    try:
        answer = await ecosystem.switchboard.try_call("ingest", arguments, seconds=REFUSAL_S)
    except CannotReach:
        return False
    return not answer.is_error and "accepted" in str(answer.value)


async def expect_unwell(butler: Butler) -> None:
    """A butler that has no database does not say that it is ok; how it says so is its own affair."""
    try:
        answer = await butler.try_call("status", seconds=REFUSAL_S)
    except CannotReach:
        return  # nor is it ok not to answer at all
    health = None if answer.is_error else answer.value.get("health")

    assert health != "ok", (
        f"health tells the truth now: {butler.name} has no database and says {answer.text}"
    )


async def is_well(butler: Butler) -> bool:
    """Whether a butler says that it is ok, or no worse than its modules without credentials."""
    answer = await butler.try_call("status")
    read = await butler.try_call("state_get", {"key": "none"})
    if answer.is_error or read.is_error:
        return False
    failed = [
        name for name, module in answer.value["modules"].items() if module["status"] != "active"
    ]
    return bool(answer.value["health"] == ("degraded" if failed else "ok"))


async def expect_refused(butler: Butler, tool: str, **arguments: Any) -> None:
    """A change that cannot be kept is not acknowledged."""
    try:
        answer = await butler.try_call(tool, arguments, seconds=REFUSAL_S)
    except CannotReach:
        return

    assert answer.is_error, (
        f"acknowledged means kept: {butler.name} has no database and answered {tool} with "
        f"{answer.text[:300]}"
    )


async def expect_not_run(butler: Butler, message: Message) -> None:
    """A session that cannot be put on record is not said to have succeeded."""
    try:
        answer = await butler.try_call("trigger", {"prompt": message.text}, seconds=REFUSAL_S)
    except CannotReach:
        return

    assert answer.is_error or answer.value.get("success") is False, (
        f"acknowledged means kept: {butler.name} has no database and answered trigger with "
        f"{answer.text[:300]}"
    )


def expect_same_processes(ecosystem: Ecosystem, pids: Mapping[str, int]) -> None:
    """No butler ended, and none was started in its place."""
    for name, butler in ecosystem.butlers.items():
        assert butler.child.returncode is None, (
            f"{name} ended with status {butler.child.returncode}, expected it to go on"
        )
        assert butler.pid == pids[name], (
            f"{name} is process {butler.pid} now, expected {pids[name]} to go on"
        )


async def expect_truth(ecosystem: Ecosystem, sent, message: Message) -> None:
    """The message has a final state, and inbox, hop, session and effect agree on what happened."""
    await expect_carried_out(ecosystem, await ecosystem.send(to_health().text), "health")
    journey = await follow(ecosystem, sent)
    story = journey.text()

    assert not journey.unfinished, f"the message has no final state\n{story}"
    succeeded = [row for row in journey.of_message("health") if row["success"]]
    hops = [row for row in journey.routing if row["success"]]
    done = await message.left_its_row(ecosystem, "health")

    expect_one_session(journey, "health")
    assert bool(hops) == bool(succeeded), f"the hop and its session disagree\n{story}"
    assert done or not succeeded, f"recorded as a success, and the row is not there\n{story}"
    assert (journey.inbox[0]["lifecycle_state"] == "completed") == bool(hops), (
        f"the inbox row and the hop disagree\n{story}"
    )
    await expect_no_open_session(ecosystem["health"])
