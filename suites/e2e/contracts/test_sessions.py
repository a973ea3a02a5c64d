"""Every cause of a session is on its row, and every tool shows the row that stands there.

The gateway is a stand-in for the model provider, which refuses on request; what it was asked and what
that cost is its ledger's word, not the product's.
"""

from __future__ import annotations

import secrets
from typing import Any

import pytest

from harness_core.doubles.model import Fault
from harness_core.doubles.turns import say, use
from suites.e2e.contracts.session_rows import (
    REFUSED,
    SESSION_S,
    SHOWN,
    expect_cost_counted,
    expect_shown,
    id_argument,
    listed_of,
    session_of,
    summary_of,
)
from suites.e2e.ecosystem.butler import Butler
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.observe.expect_journey import cost_usd, expect_finished
from suites.e2e.observe.journey import Row, recorded_calls
from suites.e2e.observe.sentences import expect_not_cut, expect_same, texts_of
from suites.e2e.worlds.schedules import fall_due, schedule

pytestmark = pytest.mark.covers("E2E-SESSIONS")


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
    found = [(await session_of(general, f"{token}{number}"))["trace_id"] for number in range(3)]

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
    rows = {kind: await session_of(general, word) for kind, word in words.items()}

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
    before = await summary_of(general)
    # Two pages of its own: refused is one, the others end well.
    refusal = Fault(kind="status", status=REFUSED, times=20, contains=f"{token}1")
    async with ecosystem.gateway.client.fault(refusal):
        for number in range(4):
            await general.try_call("trigger", {"prompt": f"say {token}{number}"}, seconds=SESSION_S)
    rows = [await session_of(general, f"{token}{number}") for number in range(4)]
    after = await summary_of(general)

    # Who does not sum tokens need not say so of sessions.
    summed = "token-sums" in ecosystem.subject.capabilities
    for column in ("input_tokens", "output_tokens"):
        if column not in after and not summed:
            continue
        assert column in after, f"expected the summary to have {column}, found {after}"
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
    expect_cost_counted(
        before, after, sum(cost_usd(row["cost"]) for row in rows), sessions=len(rows)
    )
    properties = schemas["sessions_list"].get("properties", {})
    newest = [str(row["id"]) for row in reversed(rows)]
    if {"limit", "offset"} <= properties.keys():
        pages = [
            [str(entry["id"]) for entry in await listed_of(general, limit=2, offset=offset)]
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
    row = await session_of(general, token)

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


@pytest.mark.disturbs
@pytest.mark.capability("own-process")
async def test_a_session_of_long_ago_is_kept(ecosystem: Ecosystem, token: str) -> None:
    """Acknowledged means kept: a session of some years ago is there after a restart, as it was."""
    general = ecosystem["general"]
    await general.call("trigger", prompt=f"say {token}", seconds=SESSION_S)
    row = await session_of(general, token)
    await general.database.execute(  # lint: allow writes-rows: a session of long ago takes long
        "UPDATE sessions SET started_at = started_at - interval '1000 days',"
        " completed_at = completed_at - interval '1000 days' WHERE id = %s",
        (row["id"],),
    )
    aged = await session_of(general, token)
    await general.restart()
    found = await general.database.rows("SELECT * FROM sessions WHERE id = %s", (row["id"],))

    expect_same(
        "acknowledged means kept: a session of long ago is there after a restart, as it was",
        expected=[dict(aged)],
        found=[dict(each) for each in found],
    )
    shown = await general.call("sessions_get", **{await id_argument(general): str(row["id"])})

    assert token in str(shown.get("prompt")), (
        f"a session of long ago is shown like any other: {shown}"
    )


@pytest.mark.slow
async def test_a_session_that_is_not_there_is_refused(ecosystem: Ecosystem, token: str) -> None:
    """An id of no session, or of another butler's, is refused and shows nobody's session."""
    health, general = ecosystem["health"], ecosystem["general"]
    await general.call("trigger", prompt=f"say {token}", seconds=SESSION_S)
    row = await session_of(general, token)
    argument = await id_argument(health)
    for number in (str(row["id"]), "00000000-0000-4000-8000-000000000000", "x"):
        answer = await health.try_call("sessions_get", {argument: number})

        assert token not in answer.text, f"health shows a session of general: {answer.text}"
        assert answer.is_error or not (answer.value or {}).get("prompt"), (
            f"sessions_get of {number!r}, which is no session of health: {answer.text}"
        )


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
    near, far = await summary_of(butler, hours=39), await summary_of(butler, hours=41)
    await butler.database.execute(  # lint: allow writes-rows: a session of yesterday takes a day
        "UPDATE sessions SET started_at = now() - interval '40 hours' WHERE id = %s",
        (row["id"],),
    )
    for column in ("input_tokens", "output_tokens"):
        expect_same(
            f"a session of 40 hours ago is not in a summary of 39 ({column})",
            expected=near[column] - row[column],
            found=(await summary_of(butler, hours=39))[column],
        )
        expect_same(
            f"a session of 40 hours ago is in a summary of 41 ({column})",
            expected=far[column],
            found=(await summary_of(butler, hours=41))[column],
        )
