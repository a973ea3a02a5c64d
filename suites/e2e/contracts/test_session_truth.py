"""What is written down about a session is what happened, above all when it failed.

What happened is known from elsewhere: from the gateway's ledger (which calls were asked for, how
many tokens, at what price), from the tables of the tools, and from the test's own clock.

Where a session has to fail, claim or be late, the gateway is a stand-in for the model provider, which
does none of that on request.
"""

from __future__ import annotations

import time
from typing import Final

import pytest

from harness_core.doubles.model import Fault, LedgerEntry
from harness_core.doubles.turns import say, use
from harness_core.infrastructure.databases import Contains
from suites.e2e.ecosystem.butler import Butler
from suites.e2e.ecosystem.handle import COST, TOKEN_SUMS, Ecosystem
from suites.e2e.ecosystem.mcp import ToolResult
from suites.e2e.observe.expect_journey import (
    FAILED_OUTCOMES,
    bare_tool,
    cost_usd,
    expect_finished,
    within_usd,
)
from suites.e2e.observe.journey import Row, follow, recorded_calls
from suites.e2e.observe.sentences import expect_same

pytestmark = pytest.mark.covers("E2E-SESSIONS")

#: The Claude Code CLI gives up at once on this status; others it retries for minutes.
REFUSED: Final = 403

#: What makes a prompt longer than a careless column, and means nothing.
LONG: Final = " la" * 7000

#: A wait that a session cannot hide, far above what its own start takes.
LATE_S: Final = 1.5

#: A session from its call to its answer, on a loaded machine.
SESSION_S: Final = 90.0


async def test_a_failed_session_is_recorded_as_a_failure(ecosystem: Ecosystem, token: str) -> None:
    """When the model refuses the target's session, no row anywhere calls that a success.

    The refusal is made by the gateway, for calls that offer health's tools alone, so that the
    classification before it succeeds.
    """
    fault = Fault(kind="status", status=REFUSED, times=20, contains=token, offers=("symptom_log",))
    async with ecosystem.gateway.client.fault(fault):
        sent = await ecosystem.send(f"I have a headache, severity 6 ({token})")
        journey = await follow(ecosystem, sent)
    story = journey.text()
    sessions = journey.of_message("health")

    assert not journey.unfinished, f"the message has no final state\n{story}"
    assert 1 == len(sessions), f"one segment is one session; found {len(sessions)}\n{story}"
    expect_finished(sessions[0], butler="health", story=story)
    assert sessions[0]["success"] is False, f"a failed session is recorded as success\n{story}"
    assert sessions[0]["error"], f"the failure has no reason\n{story}"
    assert 1 == len(journey.routing), (
        f"one segment is one hop; found {len(journey.routing)}\n{story}"
    )
    assert journey.routing[0]["success"] is False, f"a failed hop is recorded as success\n{story}"
    assert journey.routing[0]["error"], f"the failed hop has no reason\n{story}"
    outcomes = str(journey.inbox[0]["dispatch_outcomes"])

    assert "success" not in outcomes.replace("'success': False", ""), (
        f"dispatch_outcomes call it a success: {outcomes}\n{story}"
    )
    await ecosystem["health"].database.expect_no_row("symptoms", where={"notes": Contains(token)})


async def test_the_next_session_works_after_a_failed_one(ecosystem: Ecosystem, token: str) -> None:
    """A failure leaves nothing behind: the next message to the same butler succeeds."""
    refused = Fault(kind="status", status=REFUSED, times=20, contains=f"{token}-bad")
    async with ecosystem.gateway.client.fault(refused):
        await _trigger(ecosystem["health"], prompt=f"I have a headache, severity 1 ({token}-bad)")
    failed = await _session(ecosystem["health"], f"{token}-bad")
    sent = await ecosystem.send(f"I have a headache, severity 2 ({token})")
    journey = await follow(ecosystem, sent)
    later = [row for row in journey.of_message("health") if row["id"] != failed["id"]]

    expect_finished(failed, butler="health", story=str(dict(failed)))
    assert failed["success"] is False, f"a refused session has failed; found {dict(failed)}"
    assert [True] == [row["success"] for row in later], (
        f"the session after a failed one succeeds\n{journey.text()}"
    )


async def test_a_session_row_is_the_whole_truth(ecosystem: Ecosystem, token: str) -> None:
    """Prompt, source, model, tools, tokens, price and time are what the model and the clock saw."""
    health = ecosystem["health"]
    client = ecosystem.gateway.client
    mark = await client.mark()
    prompt = f"I have a headache, severity 4 ({token})" + LONG
    late = Fault(kind="latency", latency_s=LATE_S, contains=token)
    began = time.monotonic()
    logs = use("symptom_log", name="headache", severity=4, notes=token)
    await ecosystem.rehearse(prompt, [logs])
    async with client.fault(late):
        answer = await _trigger(health, prompt=prompt, context=f"It rains in {token}")
    took_ms = (time.monotonic() - began) * 1000
    calls = _of(await client.ledger(since=mark), token)
    row = await _session(health, token)
    story = f"row {dict(row)}, calls {calls}"

    assert not answer.is_error, (
        f"the session succeeds, and so does its trigger; found {answer.text}\n{answer.text}"
    )
    expect_finished(row, butler="health", story=story)
    assert row["success"] is True, f"the session succeeds\n{story}"
    assert "trigger" == row["trigger_source"], (
        f"it says what caused it: a trigger; found {row['trigger_source']!r}"
    )
    assert prompt in row["prompt"], (
        f"the prompt is on record whole: of {len(prompt)} characters {len(row['prompt'])}; {row['prompt'][-80:]!r}"
    )
    assert f"It rains in {token}" in row["prompt"], "the context never reached the session"
    assert {row["model"]} == {call.model for call in calls}, (
        f"the row names the model that was called\n{story}"
    )
    assert LATE_S * 1000 <= row["duration_ms"] <= took_ms + 100, f"{took_ms:.0f} ms passed: {story}"
    asked = [bare_tool(tool) for call in calls for tool in call.called]

    assert asked == [call["name"] for call in recorded_calls(row)], (
        f"the row has the tools that the model asked for, {asked}\n{story}"
    )
    assert "symptom_log" in asked, "the session did nothing; the rest of this would say little"
    claimed = ecosystem.subject.capabilities
    for column in ("input_tokens", "output_tokens") if TOKEN_SUMS in claimed else ():
        booked = sum(getattr(call, column) for call in calls)

        assert booked == row[column], f"{column}: row {row[column]}, ledger {booked}; {story}"
    paid = sum(call.usd or 0 for call in calls)

    assert COST not in claimed or abs(paid - cost_usd(row["cost"])) <= within_usd(1), (
        f"the row says what the calls cost, {paid}: {row['cost']}\n{story}"
    )
    assert paid > 0, f"the session cost something; the ledger says {paid}"
    assert row["result"], "the session's answer is not on record"


async def test_a_failed_trigger_is_answered_as_one(ecosystem: Ecosystem, token: str) -> None:
    """A trigger whose session fails is answered as failed, and its row is failed, closed and priced."""
    health = ecosystem["health"]
    fault = Fault(kind="status", status=REFUSED, times=20, contains=token)
    async with ecosystem.gateway.client.fault(fault):
        answer = await _trigger(health, prompt=f"I have a headache, severity 3 ({token})")
    row = await _session(health, token)
    reply = answer.value if isinstance(answer.value, dict) else {}

    assert answer.is_error or reply, f"the answer says nothing of what came of it: {answer.text}"
    assert reply.get("success") is not True, f"a failed session is answered as {answer.text}"
    assert reply.get("status") != "success", f"a failed session is answered as {answer.text}"
    named = {reply[key] for key in ("status", "error_class") if key in reply}
    assert named <= {*FAILED_OUTCOMES, "failed", "error"}, (
        f"expected a failure of the contract's kinds, found {named} in {answer.text}"
    )
    expect_finished(row, butler="health", story=str(dict(row)))
    assert row["success"] is False, f"a refused session has failed; found {dict(row)}"
    assert 0 == cost_usd(row["cost"]), "a call that was refused costs nothing"


@pytest.mark.covers("E2E-SESSIONS", "E2E-TOOLS")
async def test_a_tool_that_refuses_is_on_record_as_called(ecosystem: Ecosystem, token: str) -> None:
    """A call with arguments the tool cannot take is recorded, and its refusal wrote nothing."""
    health = ecosystem["health"]
    wrong = {"name": f"headache {token}", "severity": 99, "notes": token}
    fault = Fault(kind="answer", tool="symptom_log", input=wrong, contains=token)
    async with ecosystem.gateway.client.fault(fault):
        await _trigger(health, prompt=f"Please look after {token}")
    row = await _session(health, token)
    called = [call for call in recorded_calls(row) if "99" in str(call)]

    expect_finished(row, butler="health", story=str(dict(row)))
    assert ["symptom_log"] == [call["name"] for call in called], (
        f"a call that was refused is on record as called\n{recorded_calls(row)}"
    )
    # A product that writes down how a call went must not call this one good.
    assert [False] != [call.get("is_error") for call in called], "a refused call counts as good"
    await health.database.expect_no_row("symptoms", where={"severity": 99})
    await health.database.expect_no_row("symptoms", where={"notes": Contains(token)})


@pytest.mark.covers("E2E-SESSIONS", "E2E-TOOLS")
async def test_calls_at_once_are_on_record_each_with_its_own_answer(
    ecosystem: Ecosystem, token: str
) -> None:
    """Of tools that the model calls at the same time, each answer stands with its own call, in their order."""
    general = ecosystem["general"]
    names = [f"{token}{letter}" for letter in "abc"]
    marks = [f"answer-{name}" for name in names]
    for name, mark in zip(names, marks, strict=True):
        await general.call("entity_create", collection=token, name=name, data={"mark": mark})
    prompt = f"say what there is of {token}"
    searches = tuple(use("entity_search", query=name) for name in names)
    await ecosystem.rehearse(prompt, [searches, say("There are three.")])
    answer = await _trigger(general, prompt=prompt)
    row = await _session(general, token)
    calls = [str(call) for call in recorded_calls(row)]

    assert not answer.is_error, f"a session that calls three tools at once succeeds: {answer.text}"
    expect_same(
        "calls at once are on record, each with what it was given",
        expected=[[name] for name in names],
        found=[[name for name in names if f"'{name}'" in call] for call in calls],
        story=str(calls),
    )
    found = [[mark for mark in marks if mark in call] for call in calls]
    if any(found):  # whether answers are recorded is the product's choice
        expect_same(
            "an answer stands with the call that it is of",
            expected=[[mark] for mark in marks],
            found=found,
            story=str(calls),
        )


@pytest.mark.covers("E2E-SESSIONS", "E2E-CONFINEMENT")
@pytest.mark.parametrize(
    "begin", ["/start", "/clear", "/model opus", "!id", "#", "@", "--help", "-p"], ids=str.strip
)
async def test_words_are_no_commands(ecosystem: Ecosystem, token: str, begin: str) -> None:
    """What a person writes is said to the model, however it begins: it commands no program on the way."""
    general, client = ecosystem["general"], ecosystem.gateway.client
    prompt = f"{begin} say {token}"
    words = f"Very well, {token}."
    mark = await client.mark()
    await ecosystem.rehearse(prompt, [say(words)])
    answer = await _trigger(general, prompt=prompt)
    calls = _of(await client.ledger(since=mark), token)
    row = await _session(general, token)
    story = f"row {dict(row)}, calls {calls}"

    assert not answer.is_error, f"a session is run for {prompt!r}: {answer.text}\n{story}"
    expect_finished(row, butler="general", story=story)
    assert row["success"] is True, f"a session that was asked {prompt!r} succeeds\n{story}"
    assert prompt in row["prompt"], f"its prompt is on record as it was, {prompt!r}\n{story}"
    assert any(prompt in call.prompt for call in calls), (
        f"the model is told what was said, {prompt!r}\n{story}"
    )
    assert row["result"] == words, f"its answer is the model's, {words!r}\n{story}"


@pytest.mark.covers("E2E-SESSIONS", "E2E-TOOLS")
async def test_words_are_not_recorded_as_deeds(ecosystem: Ecosystem, token: str) -> None:
    """A model that says it has logged something and has not leaves a row with no tool call."""
    health = ecosystem["health"]
    claim = f"I have logged your headache with severity 5 ({token}) by symptom_log."
    fault = Fault(kind="answer", text=claim, contains=token, times=5)
    async with ecosystem.gateway.client.fault(fault):
        await _trigger(health, prompt=f"I have a headache, severity 5 ({token})")
    row = await _session(health, token)

    assert [] == recorded_calls(row), "the row records calls that were not made"
    assert token in row["result"], "the session's answer is not on record"
    made = await health.database.rows(
        "SELECT to_jsonb(s) FROM symptoms s WHERE to_jsonb(s)::text LIKE %s", (f"%{token}%",)
    )

    assert [] == list(made), f"words are no deeds: no row was to be made; found {made}"


async def test_the_session_tools_agree_with_the_rows(ecosystem: Ecosystem, token: str) -> None:
    """``sessions_list``, ``sessions_get`` and ``sessions_summary`` agree with the table."""
    general = ecosystem["general"]
    summed = (
        ("input_tokens", "output_tokens") if TOKEN_SUMS in ecosystem.subject.capabilities else ()
    )
    before = await general.call("sessions_summary")
    await _trigger(general, prompt=f'Put "tea {token}" on the shopping list')
    row = await _session(general, token)
    listed = await general.call("sessions_list")
    schema = (await general.tools())["sessions_get"]["properties"]
    (argument,) = [name for name in schema if name == "id" or name.endswith("_id")]
    shown = await general.call("sessions_get", **{argument: str(row["id"])})
    entries = listed.get("sessions", listed) if isinstance(listed, dict) else listed
    after = await general.call("sessions_summary")

    assert str(row["id"]) in {str(entry["id"]) for entry in entries}, (
        f"sessions_list lists the session that has just run, {row['id']}"
    )
    for column in ("prompt", "result", "success", "trigger_source", "model", *summed[:1]):
        assert row[column] == shown[column], f"sessions_get agrees with the row\n{column}"
    assert [call["name"] for call in recorded_calls(row)] == [
        call["name"] for call in recorded_calls(shown)
    ], "sessions_get shows the tools of the row"
    for key in summed:
        assert after[key] - before[key] >= row[key], f"{key}: {before} then {after}"


async def _trigger(butler: Butler, **arguments: str) -> ToolResult:
    return await butler.try_call("trigger", arguments, seconds=SESSION_S)


async def _session(butler: Butler, token: str) -> Row:
    """The one session whose prompt holds the token."""
    rows = await butler.database.rows(
        "SELECT * FROM sessions WHERE prompt LIKE %s", (f"%{token}%",)
    )

    assert 1 == len(rows), f"{len(rows)} sessions on {butler.name} instead of one"
    return rows[0]


def _of(calls: tuple[LedgerEntry, ...], token: str) -> list[LedgerEntry]:
    """The calls of the session that was asked with the token, its later turns too."""
    own = {call.session for call in calls if token in call.prompt}

    assert len(own) == 1, f"one session was expected to call the model, {len(own)} did"
    return [call for call in calls if call.session in own and call.kind != "count_tokens"]
