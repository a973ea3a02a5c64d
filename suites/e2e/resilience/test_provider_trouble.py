"""The model provider late, refusing, cut short, garbled, silent or endless.

All that trouble is made by the gateway: a stand-in for the model provider, which makes none on request.
"""

from __future__ import annotations

import pytest
import trio

from harness_core.assertions import new_token
from harness_core.doubles.model import Fault
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.ecosystem.knobs import turned
from suites.e2e.observe.expect_broken_journey import (
    expect_carried_out,
    expect_failed_session,
    expect_no_open_session,
    expect_one_session,
    expect_outcome,
)
from suites.e2e.observe.expect_journey import NO_REASON, expect_fallback, fallback_reason
from suites.e2e.observe.journey import follow
from suites.e2e.worlds.canned import TOOL_OF, to_general, to_health, to_relationship
from suites.e2e.worlds.chaos import Chaos, expect_in_time, expect_soon, processes_of
from suites.e2e.worlds.quarantine import quarantined

pytestmark = pytest.mark.covers("E2E-CHAOS")

#: Calls enough that no client's retries outlast the trouble.
ALL = 1000

#: Two sessions in a row on one butler, each with its client's retries.
SESSIONS_S = 90.0

#: From the end of a session to the end of its processes.
GONE_S = 10.0

#: A session deadline, and what a loaded machine adds.
SESSION_S = 4.0
SLACK_S = 10.0

#: Which butler meets which trouble; each session is known by its token.
TROUBLES = [
    ("health", Fault(kind="status", status=401, times=ALL)),
    ("health", Fault(kind="status", status=500, times=ALL)),
    ("relationship", Fault(kind="status", status=429, times=ALL)),
    ("relationship", Fault(kind="cut", after_events=3, times=ALL)),
    ("general", Fault(kind="status", status=529, times=ALL)),
    ("general", Fault(kind="malformed", times=ALL)),
]


async def test_every_refusal_is_a_failed_session(fragile: Ecosystem, chaos: Chaos) -> None:
    """A session whose provider refuses or breaks off is recorded and answered as a failure."""
    wrong: list[str] = []

    async def one(name: str, fault: Fault) -> None:
        token = new_token()
        planted = Fault(
            kind=fault.kind, status=fault.status, after_events=fault.after_events,
            times=fault.times, contains=token,
        )  # fmt: skip
        await chaos.provider(planted)
        butler = fragile[name]
        answer = await butler.try_call("trigger", {"prompt": f"say {token}"}, seconds=SESSIONS_S)
        rows = await butler.database.rows(
            "SELECT * FROM sessions WHERE prompt LIKE %s", (f"%{token}%",)
        )
        what = f"{fault.describe()} on {name}: answered {answer.text}, rows {rows}"
        failed = len(rows) == 1 and rows[0]["success"] is False and bool(rows[0]["error"])
        claimed = not answer.is_error and answer.value.get("success", False)
        if claimed or not failed:
            wrong.append(what)

    async with trio.open_nursery() as nursery:
        for name, fault in TROUBLES:
            nursery.start_soon(one, name, fault)

    assert not wrong, (
        "provider trouble is on record, or answered, as something else:\n" + "\n".join(wrong)
    )
    for name in {name for name, _ in TROUBLES}:
        await expect_no_open_session(fragile[name])


async def test_trouble_that_passes_is_ridden_out(fragile: Ecosystem, chaos: Chaos) -> None:
    """One refusal, one cut stream and a late answer are no reason to fail a message."""
    message = to_health()
    faults = [
        await chaos.provider(fault)
        for fault in (
            Fault(kind="status", status=529, retry_after_s=0, contains=message.token),
            Fault(kind="cut", after_events=2, contains=TOOL_OF["health"]),
            Fault(kind="latency", latency_s=1.0, contains=TOOL_OF["health"]),
        )
    ]
    await expect_carried_out(fragile, await fragile.send(message.text), "health")
    await message.expect_row(fragile, "health")
    met = [await fragile.gateway.client.fault_met(number) for number in faults]

    assert met == [1, 1, 1], f"each of three troubles is met once, found {met}"


async def test_a_provider_that_is_down(fragile: Ecosystem, chaos: Chaos) -> None:
    """A message that could not be classified says that it fell back and why, and is no success."""
    message = to_relationship()
    await chaos.provider(Fault(kind="status", status=401, times=ALL, contains=message.token))
    journey = await follow(fragile, await fragile.send(message.text))
    story = journey.text()

    assert not journey.unfinished, f"an accepted message has no final state\n{story}"
    assert set(journey.targets()) == {"general"}, (
        f"what could not be classified goes to general, found {journey.targets()}\n{story}"
    )
    reason = fallback_reason(journey.inbox[0]["decomposition"])

    assert reason not in {None, "no reason given"}, f"the fallback is silent\n{story}"
    expect_outcome(journey, "general", {"internal_error"})
    assert not await message.left_its_row(fragile, "relationship"), (
        f"a message that could not be classified was carried out\n{story}"
    )


@pytest.mark.slow
@pytest.mark.knob("session_deadline_s")
async def test_an_answer_without_an_end(fragile: Ecosystem, chaos: Chaos) -> None:
    """A session that hears nothing, or hears no end, fails at its deadline and is gone for good."""
    general = fragile["general"]
    await chaos.start("general", **turned(fragile.subject, "general", session_deadline_s=SESSION_S))
    await chaos.expect_back("general")
    before = processes_of(general)
    sent = []
    for kind in ("hang", "endless"):
        message = to_general()
        classified = await chaos.hold(message.token)
        sent.append(await fragile.send(message.text))
        await chaos.until_met(classified)
        # From here on: the calls of the target's session.
        await chaos.provider(Fault(kind=kind, times=ALL, contains=message.token))
        await chaos.release(classified)
    for message in sent:
        journey = await follow(fragile, message)
        story = journey.text()

        expect_outcome(journey, "general", {"timeout"})
        session = expect_one_session(journey, "general")
        expect_failed_session(session, butler="general", story=story)
        took_s = session["duration_ms"] / 1000
        expect_in_time("the session", took_s, deadline_s=SESSION_S, slack_s=SLACK_S, story=story)

    async def gone() -> bool:
        return not processes_of(general).keys() - before.keys()

    await expect_soon("the processes of the sessions are gone", gone, seconds=GONE_S)
    again = to_general()
    await general.try_call("trigger", {"prompt": again.text}, seconds=SESSION_S + SLACK_S)
    rows = await general.database.rows(
        "SELECT completed_at FROM sessions WHERE prompt LIKE %s", (f"%{again.token}%",)
    )

    assert len(rows) == 1, f"the place of a session that ended is free for one more: {rows}"
    assert rows[0]["completed_at"] is not None, f"that one was left open: {rows}"
    await expect_no_open_session(general)


@pytest.mark.capability("own-process")
@pytest.mark.disturbs
@pytest.mark.knob("session_deadline_s")
async def test_a_classification_without_an_end(fragile: Ecosystem, chaos: Chaos) -> None:
    """A message whose classification hears nothing, or hears no end, falls back openly, in time.

    The next one of the same sender, whose classification is of no use either, waits for it no longer.
    """
    await chaos.start(
        "switchboard", **turned(fragile.subject, "switchboard", session_deadline_s=SESSION_S)
    )
    sent = []
    for kind in ("hang", "endless"):
        message = to_health()
        await chaos.provider(
            Fault(kind=kind, times=ALL, contains=message.token, without_tools=True)
        )
        sent.append(await fragile.send(message.text))
    for each in sent:
        journey = await follow(fragile, each)
        expect_fallback(journey, classified=False)
        (asking,) = journey.of_message("switchboard")

        expect_in_time(
            "the classification",
            asking["duration_ms"] / 1000,
            deadline_s=SESSION_S,
            slack_s=SLACK_S,
            story=journey.text(),
        )
    message = to_health()
    await chaos.provider(
        Fault(kind="answer", text="no idea", times=ALL, contains=message.token, without_tools=True)
    )
    same = {name: sent[0].arguments[name] for name in ("source", "sender")}
    # On a loaded machine it may run into the deadline as well.
    after = await follow(fragile, await fragile.send(message.text, **same))
    expect_fallback(after, classified=None)
    await expect_no_open_session(fragile.switchboard)


@pytest.mark.covers("E2E-CHAOS", "E2E-REGISTRY")
@pytest.mark.capability("registry-table")
@pytest.mark.disturbs
async def test_a_fallback_that_reaches_nobody(fragile: Ecosystem, chaos: Chaos) -> None:
    """With general in quarantine the row says why it fell back, and that its target was not there.

    Nobody else gets what is for general.
    """
    message = to_health()
    await chaos.provider(
        Fault(kind="answer", text="no idea", times=ALL, contains=message.token, without_tools=True)
    )
    async with quarantined(fragile, "general"):
        journey = await follow(fragile, await fragile.send(message.text))
    story = journey.text()

    expect_outcome(journey, "general", {"target_unavailable"})
    reason = fallback_reason(journey.inbox[0]["decomposition"])

    assert reason not in {None, NO_REASON}, f"the fallback is silent\n{story}"
    ran = [name for name in fragile.butlers if name != "switchboard" and journey.of_message(name)]

    assert not ran, f"what is for a butler in quarantine is done by nobody, found {ran}\n{story}"
