"""SIGTERM in the middle of a session: drained when it fits, else recorded as what it is.

To act in the middle of a session, its model call is held by the gateway: a stand-in for the model
provider, whose calls cannot be held.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
import trio

from harness_core.base.errors import NotReady
from harness_core.base.slowness import patience
from harness_core.base.wait import until
from suites.e2e.ecosystem.handle import Butler, Ecosystem
from suites.e2e.ecosystem.knobs import turned
from suites.e2e.ecosystem.mcp import CannotReach, ToolResult, open_calls
from suites.e2e.observe.expect_broken_journey import (
    expect_carried_out,
    expect_failed_session,
    expect_no_open_session,
    expect_one_session,
    expect_outcome,
)
from suites.e2e.observe.journey import follow
from suites.e2e.worlds.canned import TOOL_OF, Message, to_general, to_health, to_relationship
from suites.e2e.worlds.chaos import Chaos, expect_in_time, expect_soon, refuses
from suites.e2e.worlds.relay import open_relay

pytestmark = [
    pytest.mark.covers("E2E-LIFECYCLE"),
    pytest.mark.capability("ingest.v1", "own-process"),
    pytest.mark.disturbs,
]

#: What health's sessions get to end (see conftest), and what the rest of a shutdown may take.
SHUTDOWN_S = 1.0

#: What they get where the file does not say (contract, Processes), and the part of it that a lengthy one
#: takes.
DEFAULT_S = 30.0
LENGTHY = 0.25

#: What relationship's get where one of them ends in that time, and another that follows does not.
DRAINS_S = 4.0
SLACK_S = 10.0

#: Words that say no more than that a session has not come to its end.
NO_REASON = (
    r"\b(the|this|an?|it|its|session|task|run|call|runtime|was|were|has|had|been|is|got|with|by|of|error|"
    r"exceptions?|asyncio|trio|cancel\w*|abort\w*|interrupt\w*|fail\w*|kill\w*|unknown|none|null|internal|"
    r"did|not|complete[ds]?|end(ed)?|early)\b"
)

#: From SIGTERM to the first refusal.
REFUSES_S = 10.0

#: What a caller asks for and does not read: more, together, than sockets hold.
BIG_KEY = "shutdown/big"
BIG = 200_000
ASKED = 48
CALL_S = 120.0

#: Beside one SIGTERM: one that runs, and a queue behind it.
TRIGGERS = 5


async def test_a_session_that_ends_in_time_is_drained(fragile: Ecosystem, chaos: Chaos) -> None:
    """New work is refused, the running session ends as a success, and the process after it.

    Whoever waits for that session gets its answer, the first time and the next. In time is what the
    butler's file says, and 30 s where it says nothing.
    """
    for least_s in (0.0, LENGTHY * allowed_s(fragile["relationship"])):
        held = await chaos.hold(TOOL_OF["relationship"])
        message = to_relationship()
        sent = await fragile.send(message.text)
        await chaos.until_met(held)
        reports: list[Any] = []

        async def stop(reports: list[Any] = reports) -> None:
            reports.append(await chaos.stop_well("relationship"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(stop)
            await expect_soon(
                "a butler that shuts down refuses work",
                lambda: refuses(fragile["relationship"]),
                seconds=REFUSES_S,
            )
            with trio.move_on_after(least_s):
                await until(partial(has_stopped, reports))
            assert not reports, (
                f"a shutdown waits for the running session, {allowed_s(fragile['relationship']):g} s by "
                f"the butler's file, and this one had ended: {reports}"
            )
            await chaos.release(held)
        await expect_carried_out(fragile, sent, "relationship")
        await message.expect_row(fragile, "relationship")
        await expect_no_open_session(fragile["relationship"])
        await chaos.start("relationship")
        await chaos.expect_back("relationship")


def allowed_s(butler: Butler) -> float:
    """What running sessions get to end at a shutdown, by the butler's file or by the contract."""
    content = tomllib.loads((butler.config.directory / "butler.toml").read_text(encoding="utf-8"))
    shutdown = content["butler"].get("shutdown", {})
    return float(shutdown.get("timeout_s", DEFAULT_S))


async def has_stopped(reports: Sequence[Any]) -> bool:
    """Whether a stop has been reported."""
    return bool(reports)


@pytest.mark.knob("shutdown_s")
async def test_a_session_that_does_not_end_is_cut_off(fragile: Ecosystem, chaos: Chaos) -> None:
    """When the time is up the session is cancelled and closed as failed, with the reason.

    No time at all is a time, too.
    """
    held = await chaos.hold(TOOL_OF["health"])
    message = to_health()
    sent = await fragile.send(message.text)
    await chaos.until_met(held)
    report = await chaos.stop_well("health")

    expect_in_time("the shutdown", report.waited_s, deadline_s=SHUTDOWN_S, slack_s=SLACK_S)
    journey = await follow(fragile, sent)
    story = journey.text()

    expect_outcome(journey, "health", {"internal_error", "target_unavailable"})
    session = expect_one_session(journey, "health")
    # It is down: only the shutdown itself can have closed the row.
    expect_failed_session(session, butler="health", story=story)
    said = re.sub(NO_REASON, "", session["error"].replace("_", " "), flags=re.IGNORECASE)

    assert re.search(r"\w", said), (
        f"a session that the shutdown cancelled has failed with the reason, not only that it was "
        f"cancelled: {session['error']!r}"
    )
    await expect_no_open_session(fragile["health"])

    await chaos.release(held)
    await chaos.start("health")
    await chaos.expect_back("health")
    await expect_carried_out(fragile, await fragile.send(to_health().text), "health")
    assert not await message.left_its_row(fragile, "health"), (
        f"a session that was cut off did its work after its end\n{story}"
    )

    await chaos.start("health", **turned(fragile.subject, "health", shutdown_s=0))
    message = to_health()
    held = await chaos.hold(message.token)
    async with trio.open_nursery() as nursery:

        async def trigger() -> None:
            with suppress(CannotReach):
                await fragile["health"].try_call(
                    "trigger", {"prompt": message.text}, seconds=CALL_S
                )

        nursery.start_soon(trigger)
        await chaos.until_met(held)
        report = await chaos.stop_well("health")

    expect_in_time("a shutdown without time", report.waited_s, deadline_s=0, slack_s=SLACK_S)
    rows = await fragile["health"].database.rows(
        "SELECT success, error, completed_at FROM sessions WHERE prompt LIKE %s",
        (f"%{message.token}%",),
    )

    assert len(rows) == 1, f"one trigger is one session on record, found {rows}"
    expect_failed_session(rows[0], butler="health", story=str(rows))


@pytest.mark.knob("queue_depth", "shutdown_s")
async def test_what_waits_when_a_shutdown_begins(fragile: Ecosystem, chaos: Chaos) -> None:
    """A trigger that waits in the queue then is new work: it is refused, and leaves nothing.

    The running session is drained. No row stays open, and nothing is paid for that is on no record.
    """
    await chaos.start(
        "relationship", **turned(fragile.subject, "relationship", shutdown_s=patience(DRAINS_S))
    )
    await chaos.expect_back("relationship")
    relationship = fragile["relationship"]
    running, *others = (to_relationship() for _ in range(3))
    answers: dict[str, ToolResult] = {}

    async def trigger(one: Message) -> None:
        with suppress(CannotReach):
            answers[one.token] = await relationship.try_call("trigger", {"prompt": one.text})

    async def is_full() -> bool:
        return bool(answers)

    held = await chaos.hold(running.token)
    for other in others:
        await chaos.hold(other.token)
    mark = await fragile.gateway.client.mark()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trigger, running)
        await chaos.until_met(held)
        for other in others:
            nursery.start_soon(trigger, other)
        # With room for one, the refusal of the other shows that it waits.
        await expect_soon("a full queue refuses", is_full, seconds=REFUSES_S)
        (waiting,) = (other for other in others if other.token not in answers)
        nursery.start_soon(chaos.stop_well, "relationship")
        await expect_soon(
            "a butler that shuts down refuses work",
            lambda: refuses(relationship),
            seconds=REFUSES_S,
        )
        await chaos.release(held)
    await expect_no_open_session(relationship)
    rows = await relationship.database.rows(
        "SELECT started_at, success, error FROM sessions WHERE prompt LIKE %s",
        (f"%{waiting.token}%",),
    )
    calls = await fragile.gateway.client.ledger(since=mark)
    asked = [call for call in calls if waiting.token in call.prompt]
    answer = answers.get(waiting.token)
    what = f"the trigger that waited was answered with {answer.text if answer else None!r}"

    assert not rows, (
        f"a butler that shuts down refuses new work: expected no session of what waited then, found "
        f"{rows}; {what}"
    )
    assert not asked, f"{what}, and the model was asked {len(asked)} times for it"
    assert answer is None or answer.is_error or answer.value.get("success") is False, (
        f"{what}, and its session is not on record"
    )
    assert not await waiting.left_its_row(fragile, "relationship"), (
        f"{what}, and it was done all the same"
    )
    await running.expect_row(fragile, "relationship")


async def test_who_does_not_read_holds_up_no_shutdown(fragile: Ecosystem, chaos: Chaos) -> None:
    """A caller that asks for much and reads none of it does not keep a butler from ending.

    Between the two stands a relay of ours, which stands for a caller that hangs.
    """
    general = fragile["general"]
    await general.call("state_set", key=BIG_KEY, value="x" * BIG)
    async with (
        open_relay(general.port) as relay,
        open_calls(relay.url, seconds=CALL_S) as call,
        trio.open_nursery() as nursery,
    ):

        async def ask() -> None:
            with suppress(CannotReach, NotReady):
                await call("state_get", {"key": BIG_KEY})

        async def all_asked() -> bool:
            return relay.calls > ASKED

        whole = await call("state_get", {"key": BIG_KEY})
        assert not whole.is_error, f"expected the value through the relay, found {whole.text[:99]}"
        relay.hold()
        for _ in range(ASKED):
            nursery.start_soon(ask)
        await expect_soon("calls are on their way", all_asked, seconds=REFUSES_S)
        report = await chaos.stop_well("general")
        relay.release()

    expect_in_time("the shutdown", report.waited_s, deadline_s=0, slack_s=SLACK_S)
    await chaos.start("general")
    await general.call("state_delete", key=BIG_KEY)


async def test_stop_beside_triggers(fragile: Ecosystem, chaos: Chaos) -> None:
    """SIGTERM while many triggers come in: what is answered is true, and nothing is left half done.

    Each is done and says so, or is refused and leaves nothing, or gets no answer and is on record as
    what it was.
    """
    general = fragile["general"]
    messages = [to_general() for _ in range(TRIGGERS)]
    answers: dict[str, ToolResult] = {}

    async def trigger(message: Message) -> None:
        with suppress(CannotReach):
            answers[message.token] = await general.try_call("trigger", {"prompt": message.text})

    held = await chaos.hold(messages[0].token)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trigger, messages[0])
        await chaos.until_met(held)
        for message in messages[1:]:
            nursery.start_soon(trigger, message)
        nursery.start_soon(chaos.stop_well, "general")
        await chaos.release(held)
    await expect_no_open_session(general)
    for message in messages:
        rows = await general.database.rows(
            "SELECT success, error, completed_at FROM sessions WHERE prompt LIKE %s",
            (f"%{message.token}%",),
        )
        answer = answers.get(message.token)
        done = await message.left_its_row(fragile, "general")
        what = f"a trigger answered with {answer.text if answer else None!r} left {rows}"

        assert len(rows) <= 1, f"one trigger ran more than one session: {what}"
        if answer is None:
            continue
        if answer.is_error or answer.value.get("success") is False:
            assert not done, f"what was refused or failed was done all the same: {what}"
        else:
            assert len(rows) == 1, f"a trigger that succeeded has one session on record: {what}"
            assert rows[0]["success"] is True, f"the answer and the record disagree: {what}"
            assert done, f"a trigger that succeeded did nothing: {what}"
    await chaos.start("general")
    again = to_general()
    await general.call("trigger", prompt=again.text)
    await again.expect_row(fragile, "general")
