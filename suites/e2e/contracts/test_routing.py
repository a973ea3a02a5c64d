"""Hops side by side: two for one butler, one that fails beside one that does not, all that fail.

Where a session has to fail, or to be asked twice, the gateway is a stand-in for the model provider, which
does not refuse on request.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, Final

import pytest

from harness_core.doubles.model import Fault
from harness_core.doubles.turns import route, say, use
from harness_core.infrastructure.databases import Contains
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.observe.expect_broken_journey import expect_failed_session
from suites.e2e.observe.expect_journey import (
    FAILED_OUTCOMES,
    expect_finished,
    expect_journey,
    expect_routing,
    expect_trace,
    words_of,
)
from suites.e2e.observe.journey import Journey, as_data, follow, parts_of
from suites.e2e.observe.sentences import expect_not_cut, expect_same, texts_of
from suites.e2e.worlds.canned import TOOL_OF

pytestmark = [
    pytest.mark.covers("E2E-ROUTING", "E2E-SESSIONS"),
    pytest.mark.capability("ingest.v1"),
]

#: The Claude Code CLI gives up at once on this status; others it retries for minutes.
REFUSED: Final = 403

#: Of an answer that tells that health did not log a headache: one of these, however it is put.
FAILURE: Final = (
    *("health", "headache", "symptom", "internal_error", str(REFUSED)),
    *("fail", "error", "trouble", "problem", "unable", "could not", "couldn't", "cannot", " not "),
)

#: Outcomes of a dispatch (contract, "MCP over HTTP/SSE").
OUTCOMES: Final = FAILED_OUTCOMES | {"success"}


@pytest.mark.slow
async def test_two_segments_for_one_butler_are_two_sessions(
    ecosystem: Ecosystem, token: str
) -> None:
    """Each segment has its own hop, session and row, in the order of the message, none merged.

    However much is answered to each, the summary has it whole, or says what is left out.
    """
    answers = [
        f"{begin} {token} " + " ".join(f"{begin}-{number}" for number in range(1200)) + " end"
        for begin in ("Noted", "Weighed")
    ]
    parts = [
        ("health", f"I have a cough, severity 2 ({token})."),
        ("relationship", f"Remind me to call Olga about {token}."),
        ("health", f"My weight is 71.5 kg ({token})."),
    ]
    sent = await ecosystem.send(
        " ".join(text for _, text in parts),
        model=[
            route(*parts[0]),
            use("symptom_log", name="cough", severity=2, notes=token),
            say(answers[0]),
            route(*parts[1]),
            use("reminder_create", message=f"call Olga about {token}", contact_name="Olga"),
            route(*parts[2]),
            use("measurement_log", kind="weight", value=71.5, unit="kg", notes=token),
            say(answers[1]),
        ],
    )
    journey = await follow(ecosystem, sent)
    story = journey.text()
    expect_journey(journey, ["health", "relationship"])

    expect_same(
        "the decomposition names a butler for each segment, in the order of the message",
        expected=[butler for butler, _ in parts],
        found=list(journey.targets()),
        story=story,
    )
    for butler in ("health", "relationship"):
        rows = sorted(journey.of_message(butler), key=lambda row: row["started_at"])

        wanted = [text for name, text in parts if name == butler]
        found = [row["prompt"] for row in rows]

        assert len(found) == len(wanted), f"{butler} runs a session per segment\n{story}"
        for text, prompt in zip(wanted, found, strict=True):
            assert text in prompt, (
                f"{butler} is asked its segments whole and in order: {wanted}, not {found}\n{story}"
            )
        for earlier, later in itertools.pairwise(rows):
            assert earlier["completed_at"] <= later["started_at"], f"two at a time\n{story}"
    for column in ("response_summary", "dispatch_outcomes"):
        for answer, text in itertools.product(answers, texts_of(journey.inbox[0][column])):
            expect_not_cut(f"{column} has the answers of a message", answer, found=text)
    database = ecosystem["health"].database
    await database.expect_count("symptoms", where={"notes": Contains(token)}, count=1)
    await database.expect_count("measurements", where={"notes": Contains(token)}, count=1)


@pytest.mark.slow
async def test_a_long_segment_reaches_its_butler_whole(ecosystem: Ecosystem, token: str) -> None:
    """Of a message of many lines nothing is lost on the way: its butler is asked all of it, as it was."""
    lines = [f"{number}. Ünï 茶 'q' \"d\" \\ <{number}> & {{x}}" for number in range(250)]
    text = "\n".join((f"say {token}:", "", *lines, f"the end of {token}"))
    # Whatever its session is asked, so that what is missing there is seen in its row.
    content = Fault(
        kind="answer", text="Very well.", times=5, contains=token, also=TOOL_OF["general"]
    )
    async with ecosystem.gateway.client.fault(content):
        sent = await ecosystem.send(text, model=[route("general"), say("Very well.")])
        journey = await follow(ecosystem, sent)
    story = journey.text()
    expect_routing(journey, ["general"])
    (row,) = journey.of_message("general")

    assert text in row["prompt"], (
        f"a segment of {len(text)} characters reaches its butler as it was, up to "
        f"{text[-40:]!r}: its prompt has {len(row['prompt'])} and ends with "
        f"{row['prompt'][-200:]!r}\n{story}"
    )


@pytest.mark.capability("domain")
async def test_a_hop_that_fails_leaves_the_other(ecosystem: Ecosystem, token: str) -> None:
    """Of two targets one fails: each record tells which, the other's work is done and summed up."""
    refusal = Fault(kind="status", status=REFUSED, times=20, contains=token, also="symptom_log")
    async with ecosystem.gateway.client.fault(refusal):
        sent = await ecosystem.send(
            f"I have a headache, severity 3 ({token}). Also remind me to call Bob about {token}"
        )
        journey = await follow(ecosystem, sent)
    story = journey.text()

    assert not journey.unfinished, f"the message has no final state\n{story}"
    expect_outcomes(journey, {"health": {"internal_error"}, "relationship": {"success"}})
    (failed,) = journey.of_message("health")
    (good,) = journey.of_message("relationship")
    expect_failed_session(failed, butler="health", story=story)
    expect_finished(failed, butler="health", story=story)
    expect_finished(good, butler="relationship", story=story)
    expect_trace(journey)
    assert good["success"] is True, f"the other session failed too\n{story}"
    summary = str(journey.inbox[0]["response_summary"])

    assert summary.strip(), f"no answer: no response_summary\n{story}"
    assert any(words in summary.lower() for words in FAILURE), (
        f"the answer to a message tells of each of its parts, also of the one that failed: health "
        f"failed, and the response_summary is {summary!r}\n{story}"
    )
    await ecosystem["relationship"].database.expect_count(
        "reminders", where={"message": Contains(token)}, count=1
    )
    await ecosystem["health"].database.expect_no_row("symptoms", where={"notes": Contains(token)})


async def test_a_segment_that_fails_leaves_the_next_of_its_butler(
    ecosystem: Ecosystem, token: str
) -> None:
    """Of three segments for one butler the first and the last fail: the one between is done all the same.

    Each has a hop, a session and an outcome of its own, in the order of the message.
    """
    ends = (False, True, False)
    texts = [f"My weight is 7{number}.5 kg ({token}part{number})." for number in range(len(ends))]
    turns = [
        turn
        for number, text in enumerate(texts)
        for turn in (
            route("health", text),
            use(
                "measurement_log",
                kind="weight",
                value=70.5 + number,
                unit="kg",
                notes=f"{token}part{number}",
            ),
        )
    ]
    first, _, last = (
        Fault(
            kind="status", status=REFUSED, times=20, contains=f"{token}part{n}", also="symptom_log"
        )
        for n in range(len(ends))
    )
    client = ecosystem.gateway.client
    async with client.fault(first), client.fault(last):
        journey = await follow(ecosystem, await ecosystem.send(" ".join(texts), model=turns))
    story = journey.text()
    sessions = sorted(journey.of_message("health"), key=lambda row: row["started_at"])
    hops = sorted(journey.routing, key=lambda row: row["created_at"])
    outcomes = [
        str(part["status"])
        for part in parts_of(as_data(journey.inbox[0]["dispatch_outcomes"]))
        if isinstance(part, Mapping) and part.get("status") in OUTCOMES
    ]

    assert not journey.unfinished, f"the message has no final state\n{story}"
    for what, rows in (("session", sessions), ("hop", hops)):
        expect_same(
            f"each segment has a {what} of its own, which ended as that segment did",
            expected=list(ends),
            found=[row["success"] for row in rows],
            story=story,
        )
    for row, text in zip(sessions, texts, strict=True):
        assert text in row["prompt"], (
            f"segments of one butler are done in their order: expected {text!r}, found "
            f"{row['prompt']!r}\n{story}"
        )
    if outcomes:
        expect_same(
            "the outcome of each segment is recorded, in the order of the message",
            expected=list(ends),
            found=[outcome == "success" for outcome in outcomes],
            story=story,
        )
    measured = await ecosystem["health"].database.rows(
        "SELECT value FROM measurements WHERE notes LIKE %s", (f"{token}part%",)
    )

    expect_same(
        "what the segment between says is done, and nothing of the two that failed",
        expected=[71.5],
        found=[float(row["value"]) for row in measured],
        story=story,
    )


async def test_when_all_hops_fail_nothing_is_claimed(ecosystem: Ecosystem, token: str) -> None:
    """Both targets fail: two failed hops, two failed sessions, and no record of a success."""
    tools = ("symptom_log", "reminder_create")
    refusal = Fault(kind="status", status=REFUSED, times=40, contains=token, offers=tools)
    async with ecosystem.gateway.client.fault(refusal):
        sent = await ecosystem.send(
            f"I have a headache, severity 3 ({token}). Also remind me to call Bob about {token}"
        )
        journey = await follow(ecosystem, sent)
    story = journey.text()

    assert not journey.unfinished, f"the message has no final state\n{story}"
    expect_outcomes(journey, {"health": {"internal_error"}, "relationship": {"internal_error"}})
    expect_trace(journey)
    for butler in ("health", "relationship"):
        (failed,) = journey.of_message(butler)
        expect_failed_session(failed, butler=butler, story=story)
        expect_finished(failed, butler=butler, story=story)
    # What has failed is not new because it comes again.
    again = await ecosystem.switchboard.call("ingest", **sent.arguments)

    assert (sent.request_id, True) == (str(again.get("request_id")), again.get("duplicate")), (
        f"the same event is the same message, also when it failed: it was {sent.request_id}, and "
        f"the answer is {again}"
    )
    after = await follow(ecosystem, sent)

    assert len(after.routing) == len(journey.routing), (
        f"a message is dispatched once, also when that failed and it is delivered again\n"
        f"{after.text()}"
    )


@pytest.mark.capability("tracing")
async def test_a_second_attempt_has_the_same_names(ecosystem: Ecosystem, token: str) -> None:
    """When the model is asked again after trouble, the second call carries the message's trace too."""
    trouble = Fault(
        kind="status", status=529, retry_after_s=0, contains=token, also="symptom_log", times=1
    )
    async with ecosystem.gateway.client.fault(trouble) as number:
        sent = await ecosystem.send(f"I have a headache, severity 3 ({token})")
        journey = await follow(ecosystem, sent)
        met = await ecosystem.gateway.client.fault_met(number)
    story = journey.text()

    expect_same("the model was in trouble once", expected=1, found=met, story=story)
    expect_journey(journey, ["health"])
    calls = await ecosystem.gateway.client.ledger(since=sent.mark)
    own = {call.session for call in journey.calls}
    again = [call for call in calls if call.session in own]
    statuses = [call.status for call in again]

    assert 529 in statuses, f"the refused call is of no session of the message: {statuses}\n{story}"
    traced = [call for call in again if call.traceparent]

    assert all(sent.trace_id in call.traceparent for call in traced), (
        f"each call of the model carries the trace {sent.trace_id}; found "
        f"{[(call.status, call.traceparent) for call in again]}\n{story}"
    )


def expect_outcomes(journey: Journey, expected: Mapping[str, set[str]]) -> None:
    """Each target ended in one of these outcomes, by the routing log and by the inbox row alike."""
    story = journey.text()
    hops = {
        str(row["target_butler"]): "success" if row["success"] else str(row["error_class"])
        for row in journey.routing
    }

    expect_same(
        "each target has its hop", expected=sorted(expected), found=sorted(hops), story=story
    )
    recorded = outcomes_by_target(journey.inbox[0]["dispatch_outcomes"], expected)
    for butler, allowed in expected.items():
        assert hops[butler] in allowed, (
            f"the hop to {butler} ended as {hops[butler]!r}, expected {sorted(allowed)}\n{story}"
        )
        expect_same(
            f"dispatch_outcomes say of {butler} what its hop says",
            expected={hops[butler]},
            found=recorded[butler],
            story=story,
        )
    for row in journey.routing:
        assert bool(row["error"]) != row["success"], (
            f"the hop to {row['target_butler']} has success={row['success']} and the error "
            f"{row['error']!r}\n{story}"
        )


def outcomes_by_target(outcomes: Any, butlers: Mapping[str, Any]) -> dict[str, set[str]]:
    """Target → the outcomes that are recorded of it, whether it is a key or stands beside them."""
    found: dict[str, set[str]] = {butler: set() for butler in butlers}
    for part in parts_of(as_data(outcomes)):
        if not isinstance(part, Mapping):
            continue
        for butler in butlers:
            if butler in part.values():
                found[butler] |= OUTCOMES & set(words_of(list(part.values())))
            if butler in part:
                found[butler] |= OUTCOMES & set(words_of(part[butler]))
    return found
