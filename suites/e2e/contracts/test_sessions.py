"""What a session spent is booked however it ended, and every tool shows the row that stands there.

The gateway is a stand-in for the model provider, which refuses, hangs or answers with a tool call on
request; what it was asked and what that cost is its ledger's word, not the product's.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import pytest
import trio

from harness_core.base.errors import HarnessError
from harness_core.base.slowness import patience
from harness_core.base.wait import deadline, until
from harness_core.doubles.model import Fault, LedgerEntry
from harness_core.doubles.turns import say, use
from suites.e2e.ecosystem.butler import Butler
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.ecosystem.knobs import has_knob, turned
from suites.e2e.ecosystem.mcp import CannotReach, ToolResult
from suites.e2e.observe.expect_journey import bare_tool, cost_usd, expect_finished, within_usd
from suites.e2e.observe.journey import Row, recorded_calls
from suites.e2e.observe.sentences import (
    expect_columns,
    expect_moment,
    expect_not_cut,
    expect_same,
    texts_of,
)
from suites.e2e.worlds.schedules import fall_due, schedule

pytestmark = pytest.mark.covers("E2E-SESSIONS")

#: The Claude Code CLI gives up at once on this status; others it retries for minutes.
REFUSED: Final = 403

#: A session from its call to its answer, on a loaded machine.
SESSION_S: Final = 90.0

#: A session starts, asks once and calls a tool within this time; slowest seen on 2 loaded cores: 3 s.
DEADLINE_S: Final = 6.0

#: Calls of the model that a session of these tests needs, and one more.
TURNS: Final = 3

#: Tokens that a call has read from the cache and written to it: the price of neither is the other's.
CACHED: Final = {"cache_read_tokens": 9_000, "cache_write_tokens": 300}

#: Columns of a session (contract, "Database") that a tool shows as they stand in the row.
SHOWN: Final = (
    *("prompt", "trigger_source", "result", "duration_ms", "trace_id", "success", "error"),
    *("model", "input_tokens", "output_tokens", "request_id"),
)

TIMES: Final = ("started_at", "completed_at")


@asynccontextmanager
async def breaking_off(ecosystem: Ecosystem, token: str, then: Fault) -> AsyncIterator[int]:
    """The model first calls a tool, with the token in it; its next calls meet ``then``.

    The first call has read much from the cache and written little to it, as those of real models do.

    Yields:
        The number of that fault.
    """
    notes = {"name": "headache", "severity": 4, "notes": token}
    first = Fault(
        kind="answer",
        tool="symptom_log",
        input=notes,
        text="Noting.",
        contains=token,
        **CACHED,
    )
    client = ecosystem.gateway.client
    async with client.fault(first), client.fault(then) as number:
        yield number


async def test_a_session_that_failed_late_is_booked(ecosystem: Ecosystem, token: str) -> None:
    """What a session did and spent before its model refused is on record, to the token and cent."""
    refused = Fault(kind="status", status=REFUSED, times=20, contains=token)
    mark = await ecosystem.gateway.client.mark()
    health = ecosystem["health"]
    before = await _summary(health)
    async with breaking_off(ecosystem, token, refused):
        answer = await _trigger(health, token)
    expect_failed(answer)
    await expect_booked(ecosystem, token, mark=mark)
    after = await _summary(health)
    row = await _session(health, token)
    for column in ("input_tokens", "output_tokens"):
        expect_same(
            f"the summary counts what a session spent before it failed ({column})",
            expected=row[column],
            found=after[column] - before[column],
        )
    _expect_cost_counted(before, after, cost_usd(row["cost"]), sessions=1)


@pytest.mark.disturbs
@pytest.mark.knob("session_deadline_s", "shutdown_s")
async def test_a_session_that_was_cut_off_is_booked(ecosystem: Ecosystem, token: str) -> None:
    """So it is when its deadline cut it off, and when its butler was stopped in the middle of it.

    And when the model would have gone on calling tools for ever, where the product bounds its turns.
    """
    health = ecosystem["health"]
    client = ecosystem.gateway.client
    before = dict(health.environment)
    within_s = patience(DEADLINE_S)
    late, stopped = f"{token}late", f"{token}stop"
    health.environment.update(
        turned(ecosystem.subject, "health", session_deadline_s=within_s, shutdown_s=1, turns=TURNS)
    )
    try:
        await health.restart()
        mark = await client.mark()
        hang = Fault(kind="hang", times=20, contains=late)
        async with breaking_off(ecosystem, late, hang) as number:
            answer = await _trigger(health, late)
            met = await client.fault_met(number)
        _expect_time_enough(met, within_s)
        expect_failed(answer)
        await expect_booked(ecosystem, late, mark=mark)
        if has_knob(ecosystem.subject, "turns"):
            await expect_turns_bounded(ecosystem, f"{token}ever")

        mark = await client.mark()
        hold = Fault(kind="hold", times=20, contains=stopped)
        async with breaking_off(ecosystem, stopped, hold) as number:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_ask_in_vain, health, stopped)
                await _until_met(ecosystem, number)
                await health.stop()
                nursery.cancel_scope.cancel()
            # It is down: what stands there was written by the shutdown.
            await expect_booked(ecosystem, stopped, mark=mark, shown=False)
    finally:
        health.environment.clear()
        health.environment.update(before)
        await health.restart()
    row = await _session(health, stopped)
    await expect_shown(health, row)


@pytest.mark.capability("tracing")
@pytest.mark.covers("E2E-TRACING")
async def test_a_trigger_goes_on_in_the_trace_of_its_caller(
    ecosystem: Ecosystem, token: str
) -> None:
    """Who triggers a session with a W3C trace context finds it in its own trace; else it has one of its own."""
    general = ecosystem["general"]
    traces = [secrets.token_hex(16), secrets.token_hex(16), ""]
    for number, trace_id in enumerate(traces):
        parent = {"traceparent": f"00-{trace_id}-{secrets.token_hex(8)}-01"} if trace_id else None
        prompt = {"prompt": f"say {token}{number}"}
        await general.try_call("trigger", prompt, seconds=SESSION_S, headers=parent)
    found = [(await _session(general, f"{token}{number}"))["trace_id"] for number in range(3)]

    expect_same(
        "a session goes on in the trace that its caller sent",
        expected=traces[:2],
        found=found[:2],
    )
    assert found[2] not in {None, "", *traces[:2]}, (
        f"a session of a caller without a trace has one of its own; found {found}"
    )


@pytest.mark.capability("schedules", "route.v1")
@pytest.mark.slow
async def test_each_cause_is_on_record(ecosystem: Ecosystem, token: str) -> None:
    """A trigger, a route and a due task each leave a session with its own source, request and trace."""
    general = ecosystem["general"]
    words = {kind: f"{token}{kind}" for kind in ("trigger", "route", "due")}
    trace_id, request_id = secrets.token_hex(16), f"request-{token}"
    answer = await general.call("trigger", prompt=f"say {words['trigger']}", seconds=SESSION_S)
    routed = {
        "schema_version": "route.v1",
        "request_id": request_id,
        "source_butler": "switchboard",
        "target_butler": "general",
        "input": {"prompt": f"say {words['route']}", "segment": words["route"]},
        "trace_context": {"traceparent": f"00-{trace_id}-{secrets.token_hex(8)}-01"},
    }
    await general.call("route.execute", seconds=SESSION_S, **routed)
    name = f"due {token}"
    await schedule(general, name, f"say {words['due']}")
    await fall_due(general, name)
    await general.call("tick", seconds=SESSION_S)
    task = await general.database.one("SELECT id FROM scheduled_tasks WHERE name = %s", (name,))
    await general.call("schedule_delete", schedule_id=str(task["id"]))
    rows = {kind: await _session(general, word) for kind, word in words.items()}

    _expect_answered(answer, rows["trigger"])
    expect_same(
        "a session says what caused it",
        expected={"trigger": "trigger", "route": "external", "due": f"schedule:{name}"},
        found={kind: row["trigger_source"] for kind, row in rows.items()},
    )
    expect_same(
        "a session belongs to the request that it was routed for, others to none",
        expected={"trigger": None, "route": request_id, "due": None},
        found={kind: row["request_id"] and str(row["request_id"]) for kind, row in rows.items()},
    )
    expect_same(
        "a routed session continues the trace it was given", expected=trace_id,
        found=rows["route"]["trace_id"],
    )  # fmt: skip
    traces = {row["trace_id"] for row in rows.values()}

    assert 3 == len(traces), f"three causes are three traces; found {sorted(map(str, traces))}"
    for kind, row in rows.items():
        assert f"say {words[kind]}" in row["prompt"], (
            f"a {kind} session is asked 'say {words[kind]}'; found {row['prompt']!r}"
        )
        expect_finished(row, butler="general", story=str(dict(row)))
        await expect_shown(general, row)


@pytest.mark.slow
async def test_the_list_and_the_sums_are_those_of_the_rows(
    ecosystem: Ecosystem, token: str
) -> None:
    """The newest session is listed first, pages meet without a gap, and sums count what is in time."""
    general = ecosystem["general"]
    schemas = await general.tools()
    before = await _summary(general)
    # Two pages of its own: refused is one, the others end well.
    refusal = Fault(kind="status", status=REFUSED, times=20, contains=f"{token}1")
    async with ecosystem.gateway.client.fault(refusal):
        for number in range(4):
            await general.try_call("trigger", {"prompt": f"say {token}{number}"}, seconds=SESSION_S)
    rows = [await _session(general, f"{token}{number}") for number in range(4)]
    after = await _summary(general)

    for column in ("input_tokens", "output_tokens"):
        expect_same(
            f"the summary counts each session once ({column})",
            expected=sum(row[column] or 0 for row in rows),
            found=after[column] - before[column],
        )
    counts = {"sessions": 4, "succeeded": 3, "failed": 1, "running": 0}
    shown = {key: after[key] - before[key] for key in counts if key in after}

    expect_same(
        "the summary counts sessions as they ended",
        expected={key: counts[key] for key in shown},
        found=shown,
    )
    _expect_cost_counted(
        before, after, sum(cost_usd(row["cost"]) for row in rows), sessions=len(rows)
    )
    properties = schemas["sessions_list"].get("properties", {})
    newest = [str(row["id"]) for row in reversed(rows)]
    if {"limit", "offset"} <= properties.keys():
        pages = [
            [str(entry["id"]) for entry in await _list(general, limit=2, offset=offset)]
            for offset in (0, 2)
        ]

        expect_same("pages are as long as was asked", expected=[2, 2], found=[*map(len, pages)])
        expect_same(
            "the newest session comes first, and pages meet", expected=newest,
            found=[*pages[0], *pages[1]],
        )  # fmt: skip
    if "hours" in schemas["sessions_summary"].get("properties", {}):
        await _expect_windows(general, rows[0])


@pytest.mark.slow
async def test_a_long_answer_is_on_record_whole(ecosystem: Ecosystem, token: str) -> None:
    """However much a model says: to its last word it stands in the row and in the trigger's answer.

    So does what a tool answered to it, unless the row says that it is cut.
    """
    general = ecosystem["general"]
    things = " ".join(f"thing-{number}" for number in range(3_000)) + " end"
    await general.call(
        "entity_create", collection=f"things {token}", name=token, data={"things": things}
    )
    words = f"begin {token} " + " ".join(f"Ünï-{number}" for number in range(600)) + f" {token} end"
    prompt = f"say {token}"
    await ecosystem.rehearse(prompt, [use("entity_search", query=token), say(words)])
    answer = await general.call("trigger", prompt=prompt, seconds=SESSION_S)
    row = await _session(general, token)

    assert row["result"] == words, (
        f"the model said {len(words)} characters; on record are {len(row['result'] or '')}, "
        f"which end with {str(row['result'])[-60:]!r}"
    )
    _expect_answered(answer, row)
    calls = recorded_calls(row)

    assert ["entity_search"] == [call["name"] for call in calls], (
        f"the model called one tool, on record are {[call['name'] for call in calls]}"
    )
    for call in calls:
        for text in texts_of(call):
            expect_not_cut("a session's row has what its tools answered", things, found=text)
    await expect_shown(general, row)


@pytest.mark.slow
async def test_a_session_that_is_not_there_is_refused(ecosystem: Ecosystem, token: str) -> None:
    """An id of no session, or of another butler's, is refused and shows nobody's session."""
    health, general = ecosystem["health"], ecosystem["general"]
    await general.call("trigger", prompt=f"say {token}", seconds=SESSION_S)
    row = await _session(general, token)
    argument = await _id_argument(health)
    for number in (str(row["id"]), "00000000-0000-4000-8000-000000000000", "x"):
        answer = await health.try_call("sessions_get", {argument: number})

        assert token not in answer.text, f"health shows a session of general: {answer.text}"
        assert answer.is_error or not (answer.value or {}).get("prompt"), (
            f"sessions_get of {number!r}, which is no session of health: {answer.text}"
        )


def _expect_cost_counted(
    before: Mapping[str, Any], after: Mapping[str, Any], spent: float, *, sessions: int
) -> None:
    """A summary that says what sessions cost adds up these."""
    for key in [key for key in after if "cost" in key or "usd" in key][:1]:
        assert abs(after[key] - before[key] - spent) <= within_usd(sessions), (
            f"the summary adds up what sessions cost: they cost {spent}, {key} went from "
            f"{before[key]} to {after[key]}"
        )


async def expect_turns_bounded(ecosystem: Ecosystem, token: str) -> None:
    """A session whose model calls a tool at every turn ends at its last one, failed and paid."""
    health, client = ecosystem["health"], ecosystem.gateway.client
    mark = await client.mark()
    notes = {"name": "headache", "severity": 4, "notes": token}
    again = Fault(
        kind="answer", tool="symptom_log", input=notes, contains=token, times=4 * TURNS, **CACHED
    )
    await ecosystem.rehearse(_prompt(token), [say("At last.")])
    async with client.fault(again):
        answer = await _trigger(health, token)
    calls = [call for call in await client.ledger(since=mark) if call.kind == "messages"]
    row = await _session(health, token)
    story = f"row {dict(row)}, answer {answer.text}"

    assert 1 <= len(calls) <= TURNS + 1, (
        f"a session has {TURNS} turns: expected no more calls of the model, found {len(calls)}\n{story}"
    )
    expect_failed(answer)
    expect_finished(row, butler="health", story=story)
    assert row["success"] is False, f"a session that came to no end has failed\n{story}"
    assert row["error"], f"the failed session has no reason\n{story}"
    _expect_paid(row, calls, story)


async def expect_booked(ecosystem: Ecosystem, token: str, *, mark: int, shown: bool = True) -> None:
    """The failed session of health that holds the token is on record with all that it did."""
    health = ecosystem["health"]
    calls = await ecosystem.gateway.client.ledger(since=mark)
    own = {call.session for call in calls if token in call.prompt or token in call.answer}
    paid = [
        call
        for call in calls
        if call.session in own and call.kind == "messages" and call.status == 200
    ]
    row = await _session(health, token)
    story = f"row {dict(row)}, paid calls {paid}"

    assert paid, f"the session was to be answered once before it broke off\n{story}"
    expect_finished(row, butler="health", story=story)
    expect_columns(
        "a session that broke off is a failure of this cause and model", row,
        success=False, trigger_source="trigger", model=paid[0].model,
    )  # fmt: skip
    assert row["error"], f"the failed session has no reason\n{story}"
    asked = [bare_tool(tool) for call in paid for tool in call.called]

    expect_same(
        "the tool calls of a session that broke off are on record",
        expected=asked,
        found=[call["name"] for call in recorded_calls(row)],
        story=story,
    )
    assert token in str(row["tool_calls"]), f"the arguments of its call are not on record\n{story}"
    _expect_paid(row, paid, story)
    made = await health.database.rows("SELECT severity FROM symptoms WHERE notes = %s", (token,))

    expect_same(
        "the tool did its work once before the session broke off",
        expected=[4],
        found=[one["severity"] for one in made],
        story=story,
    )
    if shown:
        await expect_shown(health, row)


def _expect_paid(row: Row, paid: list[LedgerEntry], story: str) -> None:
    cached = sum(call.cache_read_tokens + call.cache_write_tokens for call in paid)
    for column, beside in (("input_tokens", {0, cached}), ("output_tokens", {0})):
        spent = sum(getattr(call, column) for call in paid)

        # Whether what was cached counts as input is the product's choice.
        assert row[column] - spent in beside, (
            f"a session that broke off has spent what was answered to it ({column}): expected {spent}, "
            f"found {row[column]}\n{story}"
        )
    owed = sum(call.usd or 0 for call in paid)

    assert abs(owed - cost_usd(row["cost"])) <= within_usd(1), (
        f"a session that broke off has cost {owed:.6f} USD, its row says {row['cost']}\n{story}"
    )


async def expect_shown(butler: Butler, row: Row) -> None:
    """``sessions_get`` shows the row, and ``sessions_list`` lists it, column by column."""
    shown = await butler.call("sessions_get", **{await _id_argument(butler): str(row["id"])})
    listed = {str(entry["id"]): entry for entry in await _list(butler)}

    assert str(row["id"]) in listed, f"{butler.name} does not list its latest session {row['id']}"
    for where, entry in (("get", shown), ("list", listed[str(row["id"])])):
        for column in (*SHOWN, *TIMES):
            if where == "list" and column not in entry:
                continue  # what a list leaves out is the product's choice

            assert column in entry, f"sessions_{where} shows no {column}: {sorted(entry)}"
            found = entry[column]
            if column in TIMES and found is not None:
                found = expect_moment(f"{column} of a session", found)
            expect_same(
                f"sessions_{where} of {butler.name} agrees with the row ({column})",
                expected=row[column],
                found=found,
            )
    expect_same(
        "sessions_get shows the tool calls of the row",
        expected=[dict(call) for call in recorded_calls(row)],
        found=[dict(call) for call in recorded_calls(shown)],
    )
    assert cost_usd(shown["cost"]) == cost_usd(row["cost"]), (
        f"sessions_get shows the cost {shown['cost']}, the row has {row['cost']}"
    )


def expect_failed(answer: ToolResult) -> None:
    """A trigger whose session failed is answered as that, with a reason."""
    value = answer.value if isinstance(answer.value, dict) else {}

    assert answer.is_error or value.get("success") is False, (
        f"a session that failed is answered as a failure; found {answer.text}"
    )
    assert answer.is_error or value.get("error"), f"the answer has no reason: {answer.text}"


def _expect_answered(answer: Any, row: Row) -> None:
    """What the answer of a trigger says of its session is what the row says."""
    found = dict(answer) if isinstance(answer, dict) else {}
    columns = [column for column in SHOWN if column in found and column != "prompt"]

    assert "success" in columns or "status" in found, (
        f"a trigger is answered with what came of it; found {answer}"
    )
    for column in columns:
        expect_same(
            f"the answer of a trigger agrees with the row ({column})",
            expected=row[column],
            found=found[column],
        )
    expect_same(
        "the answer names its session",
        expected=str(row["id"]),
        found=str(found.get("session_id", row["id"])),
    )


async def _expect_windows(butler: Butler, row: Row) -> None:
    """A summary of some hours counts what began within them, and nothing older, in any zone.

    The hour on each side is less than the butler's zone is away from the world's.
    """
    near, far = await _summary(butler, hours=39), await _summary(butler, hours=41)
    await butler.database.execute(  # lint: allow writes-rows: a session of yesterday takes a day
        "UPDATE sessions SET started_at = now() - interval '40 hours' WHERE id = %s",
        (row["id"],),
    )
    for column in ("input_tokens", "output_tokens"):
        expect_same(
            f"a session of 40 hours ago is not in a summary of 39 ({column})",
            expected=near[column] - row[column],
            found=(await _summary(butler, hours=39))[column],
        )
        expect_same(
            f"a session of 40 hours ago is in a summary of 41 ({column})",
            expected=far[column],
            found=(await _summary(butler, hours=41))[column],
        )


def _expect_time_enough(met: int, within_s: float) -> None:
    if not met:
        raise HarnessError(
            "cut a session off in the middle of its work",
            observed=f"within {within_s:.0f} s it did not come to its second call of the model",
            next_step="Run the test again with less beside it",
        )


async def _ask_in_vain(butler: Butler, token: str) -> None:
    """Trigger a session of a butler that is stopped meanwhile: however that is answered."""
    with suppress(CannotReach):
        await butler.try_call("trigger", {"prompt": _prompt(token)}, seconds=SESSION_S)


async def _until_met(ecosystem: Ecosystem, number: int) -> None:
    async def met() -> bool:
        return await ecosystem.gateway.client.fault_met(number) > 0

    with deadline("see a session come to its second call of the model", seconds=SESSION_S):
        await until(met)


def _prompt(token: str) -> str:
    return f"I have a headache, severity 4 ({token})"


async def _trigger(butler: Butler, token: str) -> ToolResult:
    return await butler.try_call("trigger", {"prompt": _prompt(token)}, seconds=SESSION_S)


async def _session(butler: Butler, token: str) -> Row:
    """The one session whose prompt holds the token."""
    rows = await butler.database.rows(
        "SELECT * FROM sessions WHERE prompt LIKE %s", (f"%{token}%",)
    )

    assert 1 == len(rows), f"{len(rows)} sessions on {butler.name} hold {token!r}, expected one"
    return rows[0]


async def _list(butler: Butler, **arguments: Any) -> list[Mapping[str, Any]]:
    answer = await butler.call("sessions_list", **arguments)
    return list(answer.get("sessions", answer) if isinstance(answer, dict) else answer)


async def _summary(butler: Butler, **arguments: Any) -> Mapping[str, Any]:
    answer: Mapping[str, Any] = await butler.call("sessions_summary", **arguments)
    return answer


async def _id_argument(butler: Butler) -> str:
    """What this product calls the argument that names a session."""
    properties = (await butler.tools())["sessions_get"]["properties"]
    return next(name for name in properties if name == "id" or name.endswith("_id"))
