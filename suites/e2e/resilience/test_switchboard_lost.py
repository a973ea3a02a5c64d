"""The switchboard killed in the middle of a message, and butlers that find none at boot.

To act in the middle of a session, its model call is held by the gateway: a stand-in for the model
provider, whose calls cannot be held.
"""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
import trio

from harness_core.assertions import new_token
from harness_core.base.slowness import patience
from harness_core.base.wait import until
from harness_core.doubles.model import Fault
from harness_core.front.skips import not_run
from suites.e2e.ecosystem.handle import Ecosystem, Sent, envelope
from suites.e2e.ecosystem.knobs import has_knob, turned
from suites.e2e.ecosystem.mcp import CannotReach
from suites.e2e.observe.expect_broken_journey import expect_carried_out, expect_no_open_session
from suites.e2e.observe.expect_journey import fallback_reason
from suites.e2e.observe.journey import Journey, follow
from suites.e2e.observe.sentences import expect_same
from suites.e2e.worlds.canned import TOOL_OF, Message, to_general, to_health, to_relationship
from suites.e2e.worlds.chaos import Chaos, expect_soon, refuses_messages
from suites.e2e.worlds.relay import Relay, open_relay

pytestmark = [
    pytest.mark.covers("E2E-CHAOS"),
    pytest.mark.capability("ingest.v1", "own-process"),
    pytest.mark.disturbs,
]

#: What a subject lists that begins one sender's messages in the order in which they came.
SENDERS_IN_ORDER = "senders-in-order"

#: A butler that registers once and then not again while a test goes on.
SELDOM_S = 3600.0

#: For connections that are held while other messages go all the way.
SLOW_S = 300.0

#: From a message that is classified to the connection by which it is handed over.
OPENS_S = 10.0

#: From SIGTERM to the first refusal.
REFUSES_S = 10.0

#: A session that classifies, beside others.
CLASSIFIED_S = 40.0

#: Messages that wait: more than a page of them.
MANY = 55

#: Answers on other connections, after which a server has noticed that a caller hung up.
ANSWERS = 5

#: Connections of one butler that looks for its switchboard, in each of four rounds: a pause that doubles
#: without a bound takes longer than a round may last from the third on, also where a look is three of them.
LOOKS = 8

#: From a switchboard that serves to a registry with every butler in it: a few heartbeats.
REGISTER_S = 20.0


async def test_killed_while_it_classifies(fragile: Ecosystem, chaos: Chaos, lease_s: float) -> None:
    """An accepted message is carried on after the restart: once, and not by way of a fallback.

    Even when the switchboard was down for so long that no butler could renew its lease.
    """
    message = to_health()
    held = await chaos.hold(message.token)
    event_id = f"event-{secrets.token_hex(8)}"
    sent = await fragile.send(message.text, event_id=event_id)
    await chaos.until_met(held)
    await chaos.kill("switchboard")
    await chaos.release(held)
    if has_knob(fragile.subject, "lease_s"):
        await expect_soon(
            "a lease has passed",
            lambda: lease_passed(fragile, lease_s),
            seconds=REFUSES_S,
            after_s=lease_s,
        )
    # Recovered, and killed once more at the same point: a recovery is recovered from as well.
    held = await chaos.hold(message.token)
    await chaos.start("switchboard")
    await chaos.until_met(held)
    await chaos.kill("switchboard")
    await chaos.release(held)
    await chaos.start("switchboard")
    again = await fragile.send(message.text, event_id=event_id)

    assert again.request_id == sent.request_id, (
        f"one event is one message: it was {sent.request_id}, and is {again.request_id} now"
    )
    assert again.answer["duplicate"] is True, (
        f"a message from before the restart counts as new: {again.answer}"
    )
    journey = await expect_carried_out(fragile, sent, "health")

    assert fallback_reason(journey.inbox[0]["decomposition"]) is None, (
        f"a message that could be classified fell back\n{journey.text()}"
    )
    await message.expect_row(fragile, "health")
    await expect_carried_out(fragile, await fragile.send(to_relationship().text), "relationship")
    await expect_no_open_session(fragile.switchboard)


@pytest.mark.capability("senders-in-order")
async def test_what_one_says_is_begun_in_order(fragile: Ecosystem, chaos: Chaos) -> None:
    """Of one sender's messages none overtakes another, also one that comes when the first is done.

    Another sender's waits for none of them. So it is in the second round as in the first.
    """
    for _ in range(2):
        mark = await fragile.gateway.client.mark()
        messages = [to_general() for _ in range(3)]
        held = [await chaos.hold(message.token) for message in messages[:2]]
        sent = [await fragile.send(messages[0].text)]
        same = {name: sent[0].arguments[name] for name in ("source", "sender")}
        await chaos.until_met(held[0])
        sent.append(await fragile.send(messages[1].text, **same))
        await chaos.release(held[0])
        await expect_carried_out(fragile, sent[0], "general")
        await chaos.until_met(held[1])
        sent.append(await fragile.send(messages[2].text, **same))
        await expect_classified(fragile, messages[2].token, mark=mark)
        await expect_bystander(fragile, sent[0])
        await chaos.release(held[1])
        for each in sent[1:]:
            await expect_carried_out(fragile, each, "general")
        await expect_in_order(fragile, messages)


@pytest.mark.capability("senders-in-order", "registry-table")
@pytest.mark.knob("heartbeat_s", "connect_deadline_s")
async def test_what_one_says_is_begun_in_order_on_a_slow_way(
    fragile: Ecosystem, chaos: Chaos
) -> None:
    """A message whose connection to its butler takes long is not overtaken by the sender's next one.

    Between the switchboard and general stands a relay of ours, a network that is slow for one
    connection. Another sender's message waits for neither.
    """
    general = fragile["general"]
    await chaos.start("general", **turned(fragile.subject, "general", heartbeat_s=SELDOM_S))
    await chaos.expect_back("general")
    await chaos.start(
        "switchboard", **turned(fragile.subject, "switchboard", connect_deadline_s=SLOW_S)
    )
    async with open_relay(general.port) as relay:
        await chaos.redirect("general", url=relay.url)
        for _ in range(2):
            mark = await fragile.gateway.client.mark()
            messages = [to_general() for _ in range(3)]
            held = relay.held
            relay.hold_next()
            sent = [await fragile.send(messages[0].text)]
            same = {name: sent[0].arguments[name] for name in ("source", "sender")}
            await expect_classified(fragile, messages[0].token, mark=mark)
            with trio.move_on_after(patience(OPENS_S)):  # none, where one is kept open
                await until(partial(has_held, relay, more_than=held))
            for message in messages[1:]:
                sent.append(await fragile.send(message.text, **same))
                await expect_classified(fragile, message.token, mark=mark)
            await expect_bystander(fragile, sent[0])
            relay.release()
            for each in sent:
                await expect_carried_out(fragile, each, "general")
            await expect_in_order(fragile, messages)


@pytest.mark.knob("shutdown_s")
async def test_killed_while_messages_wait_for_another(fragile: Ecosystem, chaos: Chaos) -> None:
    """Classified, and waiting for the message before it of the same sender: nothing of it is begun.

    So it is carried on by the next start, whether the last one was killed or had to be cut off when
    it was asked to stop; and of several in the order in which they came. A switchboard that classifies
    one message at a time has none that waits so.
    """
    mark = await fragile.gateway.client.mark()
    for stopped in (False, True):
        if stopped:
            await chaos.stop("switchboard")
            await chaos.start("switchboard", **turned(fragile.subject, "switchboard", shutdown_s=1))
        messages = [to_general() for _ in range(3)]
        held = await chaos.hold(messages[0].token)
        sent = [await fragile.send(messages[0].text)]
        await chaos.until_met(held)
        same = {name: sent[0].arguments[name] for name in ("source", "sender")}
        for message in messages[1:]:
            sent.append(await fragile.send(message.text, **same))
            await expect_classified(fragile, message.token, mark=mark)
        await expect_bystander(fragile, sent[0])
        await (chaos.stop if stopped else chaos.kill)("switchboard")
        await chaos.release(held)
        await chaos.start("switchboard")
        for each, message in zip(sent, messages, strict=True):
            await expect_carried_out(fragile, each, "general")
            await message.expect_row(fragile, "general")
        if SENDERS_IN_ORDER in fragile.subject.capabilities:
            await expect_in_order(fragile, messages)
        await expect_no_open_session(fragile.switchboard)


@pytest.mark.corpus
async def test_however_many_wait_none_is_forgotten(fragile: Ecosystem, chaos: Chaos) -> None:
    """Many messages wait when the switchboard is killed: the next start carries on each of them.

    General, which they are for, is dead, so that each ends as soon as it is classified.
    """
    await chaos.kill("general")
    held = await chaos.provider(Fault(kind="hold", times=2 * MANY, contains="say zx"))
    sent = [await fragile.send(f"say {new_token()}") for _ in range(MANY)]
    await chaos.until_met(held)
    await chaos.kill("switchboard")
    await chaos.release(held)
    await chaos.start("switchboard")
    left = MANY
    for _ in range(MANY):
        before = left

        async def fewer(before: int = before) -> int | None:
            rows = await fragile.switchboard.database.rows(
                "SELECT 1 FROM message_inbox WHERE request_id::text = ANY(%s)"
                " AND lifecycle_state NOT IN ('completed', 'errored')",
                ([one.request_id for one in sent],),
            )
            return before - len(rows) or None

        with trio.move_on_after(patience(CLASSIFIED_S)):  # however long all of them take
            left = before - (await until(fewer) or 0)
        if left in {0, before}:
            break

    assert left == 0, (
        f"acknowledged means kept: of {MANY} messages that waited for a restart {left} have no final "
        "state, and no more come to one"
    )


async def test_kept_and_not_answered(fragile: Ecosystem, chaos: Chaos) -> None:
    """A message that is kept, and whose sender never heard of it, is carried out when it comes again.

    Once; whether the switchboard lost the database's answer, or the sender did not wait for its own.
    """
    for leaves in (False, True):
        message = to_relationship() if leaves else to_health()
        event_id = f"event-{secrets.token_hex(8)}"
        await fragile.rehearse(message.text)
        mark = await fragile.gateway.client.mark()
        since = await database_now(fragile)
        await chaos.hold_commits()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, fragile, message.text, event_id)
            connection = await chaos.until_committing(fragile.switchboard, "message_inbox")
            if leaves:
                nursery.cancel_scope.cancel()
            else:
                await chaos.cut_connection(connection)
                await chaos.release_commits()
        if leaves:
            for _ in range(ANSWERS):
                await fragile.switchboard.status()
            await chaos.release_commits()
        again = await fragile.send(message.text, event_id=event_id)
        (butler,) = message.butlers
        await expect_carried_out(
            fragile, dataclasses.replace(again, since=since, mark=mark), butler
        )
        await message.expect_row(fragile, butler)


async def test_killed_while_it_dispatches(fragile: Ecosystem, chaos: Chaos) -> None:
    """A message that was under way is recorded truthfully after the restart, and not done twice."""
    message = to_health()
    held = await chaos.hold(TOOL_OF["health"])
    sent = await fragile.send(message.text)
    await chaos.until_met(held)
    await chaos.kill("switchboard")
    await chaos.release(held)
    await chaos.start("switchboard")
    await expect_carried_out(fragile, await fragile.send(to_health().text), "health")
    expect_true_records(await follow(fragile, sent))
    await expect_no_open_session(fragile["health"])


async def test_stopped_while_it_dispatches(fragile: Ecosystem, chaos: Chaos) -> None:
    """Asked to stop, it ends by itself, and the message under way is done once and on record."""
    message = to_health()
    held = await chaos.hold(TOOL_OF["health"])
    sent = await fragile.send(message.text)
    await chaos.until_met(held)
    reports: list[Any] = []

    async def stop() -> None:
        reports.append(await chaos.stop_well("switchboard"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(stop)
        await expect_soon(
            "a switchboard that shuts down refuses work",
            lambda: refuses_messages(fragile, sent),
            seconds=REFUSES_S,
        )
        assert not reports, f"a shutdown waits for its dispatches, and had ended: {reports}"
        await chaos.release(held)
    await chaos.start("switchboard")
    expect_true_records(await follow(fragile, sent))
    await expect_no_open_session(fragile["health"])


@pytest.mark.covers("E2E-CHAOS", "E2E-REGISTRY")
async def test_butlers_that_start_without_a_switchboard(fragile: Ecosystem, chaos: Chaos) -> None:
    """They serve, and are registered soon after the switchboard is up, as is every other butler."""
    await chaos.stop("switchboard")
    await chaos.stop("health")
    await chaos.start("health")

    status = await fragile["health"].status()

    assert status["name"] == "health", f"health calls itself {status['name']!r}"
    await expect_all_registered(fragile, chaos)
    await expect_carried_out(fragile, await fragile.send(to_health().text), "health")


@pytest.mark.covers("E2E-CHAOS", "E2E-REGISTRY")
@pytest.mark.knob("heartbeat_s")
async def test_butlers_go_on_looking_for_a_switchboard_that_is_away_for_long(
    fragile: Ecosystem, chaos: Chaos
) -> None:
    """However often they have looked in vain: the pause until the next look grows to a bound."""
    await chaos.kill("switchboard")
    async with chaos.knocks_at_switchboard() as knocks:
        for _ in range(4):
            await knocks.more(LOOKS * (len(fragile.butlers) - 1))
    await expect_all_registered(fragile, chaos)


async def expect_all_registered(fragile: Ecosystem, chaos: Chaos) -> None:
    """The switchboard is started, and every other butler registers with it soon."""
    began = await database_now(fragile)
    await chaos.start("switchboard")

    async def all_there() -> bool:
        rows = await fragile.switchboard.database.rows(
            "SELECT name FROM butler_registry"
            " WHERE eligibility_state = 'active' AND last_seen_at > %s",
            (began,),
        )
        return fragile.butlers.keys() - {"switchboard"} <= {row["name"] for row in rows}

    await expect_soon(
        "every butler is registered with the new switchboard", all_there, seconds=REGISTER_S
    )


def expect_true_records(journey: Journey) -> None:
    """One session at most, and an inbox row that is true about it."""
    story = journey.text()

    assert not journey.unfinished, f"an accepted message has no final state\n{story}"
    row = journey.inbox[0]
    done = [session for session in journey.of_message("health") if session["success"]]

    assert len(journey.of_message("health")) == 1, f"the message was dispatched again\n{story}"
    if row["lifecycle_state"] == "completed":
        assert [hop["success"] for hop in journey.routing] == [True], (
            f"recorded as completed, and its one hop is no success\n{story}"
        )
        assert done, f"recorded as completed, and no session of it succeeded\n{story}"
    else:
        assert row["response_summary"] or row["dispatch_outcomes"], f"no reason is given\n{story}"


async def expect_bystander(ecosystem: Ecosystem, sent: Sent) -> None:
    """Another sender's message goes all the way; what is done at once when one is classified, is done.

    Also when small and capital letters are all that tells the two senders apart.
    """
    other = {"identity": sent.arguments["sender"]["identity"].swapcase()}
    await expect_carried_out(
        ecosystem, await ecosystem.send(to_health().text, sender=other), "health"
    )


async def has_held(relay: Relay, *, more_than: int) -> bool:
    """Whether a relay holds one event stream more than before."""
    return relay.held > more_than


async def expect_in_order(ecosystem: Ecosystem, messages: Sequence[Message]) -> None:
    """The sessions of general for these messages began in the order of the messages."""
    rows = await ecosystem["general"].database.rows(
        "SELECT prompt FROM sessions WHERE prompt LIKE ANY(%s) ORDER BY started_at",
        ([f"%{message.token}%" for message in messages],),
    )
    expect_same(
        "what one sender says first is begun first",
        expected=[message.token for message in messages],
        found=[m.token for row in rows for m in messages if m.token in row["prompt"]],
        story=str(rows),
    )


async def expect_classified(ecosystem: Ecosystem, token: str, *, mark: int) -> None:
    """A message is classified while another one is held; not run where it waits its turn for that."""

    async def is_classified() -> bool:
        rows = await ecosystem.switchboard.database.rows(
            "SELECT 1 FROM sessions WHERE prompt LIKE %s AND completed_at IS NOT NULL",
            (f"%{token}%",),
        )
        return bool(rows)

    with trio.move_on_after(patience(CLASSIFIED_S)):
        await until(is_classified)
        return
    asked = [
        call for call in await ecosystem.gateway.client.ledger(since=mark) if token in call.prompt
    ]
    if not asked:
        not_run("subject", "its switchboard classifies one message at a time")
    raise AssertionError(
        f"within {CLASSIFIED_S:g} s a message is classified while another one is; the model was asked, "
        f"and no session of it is completed: {asked}"
    )


async def ask(ecosystem: Ecosystem, text: str, event_id: str) -> None:
    """Send a message, however that is answered."""
    arguments = envelope(text, event_id=event_id, trace_id=secrets.token_hex(16))
    with suppress(CannotReach):
        await ecosystem.switchboard.try_call("ingest", arguments)


async def lease_passed(ecosystem: Ecosystem, lease_s: float) -> bool:
    """Whether no butler has renewed its lease for as long as one lasts."""
    rows = await ecosystem.switchboard.database.rows(
        "SELECT 1 FROM butler_registry WHERE last_seen_at > clock_timestamp() - %s * interval '1 s'",
        (lease_s,),
    )
    return not rows


async def database_now(ecosystem: Ecosystem) -> Any:
    """The database server's clock."""
    row = await ecosystem.switchboard.database.one("SELECT clock_timestamp() AS now")
    return row["now"]
