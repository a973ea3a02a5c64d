"""One story over the whole house: a message for two butlers, three tables, a beat, the session log.

Telegram, the calendar and the mail server are stand-ins, recorders on loopback: nothing leaves the
machine, and what arrived can be read.
"""

from __future__ import annotations

import pytest

from harness_core.doubles.turns import route, use
from harness_core.infrastructure.databases import Contains
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.observe.expect_journey import expect_inbox, expect_journey
from suites.e2e.observe.journey import follow, tool_calls
from suites.e2e.test_ecosystem_health import table_names
from suites.e2e.test_heartbeat_flow import ran
from suites.e2e.worlds.credentialed import Connected
from suites.e2e.worlds.schedules import fall_due, schedule, sessions_of

pytestmark = pytest.mark.main


@pytest.mark.covers("E2E-ROUTING", "E2E-PERSISTENCE", "E2E-SESSIONS")
@pytest.mark.disturbs
@pytest.mark.capability("heartbeat", "schedules")
async def test_from_ingest_to_the_session_log(beating: Connected, token: str) -> None:
    """Ingest, classify, route, rows in three tables of two butlers, then a tick and its session.

    One message with a symptom, a measurement and a reminder.
    """
    butlers = beating.butlers
    sent = await butlers.send(
        f"I have a headache, severity 8 ({token}). My weight is 69.5 kg ({token}). "
        f"Remind me to call Ruth about {token}",
        model=[
            route(
                "health",
                f"I have a headache, severity 8 ({token}). My weight is 69.5 kg ({token}).",
            ),
            (
                use("symptom_log", name="headache", severity=8, notes=token),
                use("measurement_log", kind="weight", value=69.5, unit="kg", notes=token),
            ),
            route("relationship", f"Remind me to call Ruth about {token}"),
            use("reminder_create", message=f"call Ruth about {token}", contact_name="Ruth"),
        ],
    )
    journey = await follow(butlers, sent)

    expect_journey(journey, ["health", "relationship"])
    health, relationship = butlers["health"], butlers["relationship"]
    await health.database.expect_row(
        "symptoms", where={"notes": Contains(token)}, columns={"name": "headache", "severity": 8}
    )
    await health.database.expect_row(
        "measurements", where={"notes": Contains(token)}, columns={"kind": "weight", "value": 69.5}
    )
    await relationship.database.expect_row("reminders", where={"message": Contains(token)})
    await health.database.expect_count("symptoms", where={"notes": Contains(token)}, count=1)

    name = f"cross-{token}"
    await schedule(health, name, f"Log that I have a backache, severity 4 ({token})")
    await fall_due(health, name)
    await ran(health, name)
    sessions = await sessions_of(health, name)

    assert [True] == [session["success"] for session in sessions], (
        f"a due task is one session that succeeds\n{sessions}"
    )
    assert "symptom_log" in str(sessions[0]["tool_calls"]), (
        f"its row has the tool it called; found {sessions[0]['tool_calls']}"
    )
    listed = (await health.call("sessions_list", limit=50))["sessions"]

    assert str(sessions[0]["id"]) in [session["id"] for session in listed], (
        f"sessions_list lists the session of the task, {sessions[0]['id']}"
    )
    await health.database.expect_count("symptoms", where={"notes": Contains(token)}, count=2)


@pytest.mark.covers("E2E-ROUTING", "E2E-DELIVERY")
@pytest.mark.capability("notify")
async def test_two_butlers_and_a_message_to_the_world(connected: Connected, token: str) -> None:
    """A record for one butler and a telegram by another, from one sentence each of one message."""
    butlers = connected.butlers
    mark = connected.telegram.mark()
    sent = await butlers.send(
        f"I took 200 mg of ibuprofen ({token}). "
        f'Send a telegram message to 5150 that says "I took my pill {token}"',
        model=[
            route("health", f"I took 200 mg of ibuprofen ({token})."),
            use("medication_log_dose", name="ibuprofen", dosage="200 mg", notes=token),
            route(
                "messenger",
                f'Send a telegram message to 5150 that says "I took my pill {token}"',
            ),
            use(
                "message_send",
                channel="telegram",
                recipient="5150",
                message=f"I took my pill {token}",
            ),
        ],
    )
    journey = await follow(butlers, sent)

    expect_inbox(journey, ["health", "messenger"])
    await butlers["health"].database.expect_row(
        "medication_doses", where={"notes": Contains(token)}
    )

    assert [{"chat_id": "5150", "text": f"I took my pill {token}"}] == connected.telegrams(
        since=mark
    ), f"one telegram goes to the one who was named, with exactly the words\n{journey.text()}"


@pytest.mark.covers("E2E-PERSISTENCE")
@pytest.mark.capability("domain")
async def test_what_one_butler_wrote_another_has_not(ecosystem: Ecosystem, token: str) -> None:
    """A message for one butler leaves its token in no domain row of any other."""
    sent = await ecosystem.send(f"Note about Hugo: he plays chess ({token})")
    journey = await follow(ecosystem, sent)

    expect_journey(journey, ["relationship"])
    assert ["note_create"] == [
        call["name"] for call in tool_calls(journey, ["relationship"])["relationship"]
    ], "one note is made, by its tool"
    for butler in ecosystem.butlers.values():
        if butler.name in {"relationship", "switchboard"}:
            continue
        tables = await table_names(butler)

        assert tables, f"{butler.name} has no tables"
        for table in tables:
            row = await butler.database.one(
                f'SELECT count(*) AS n FROM "{table}" AS t WHERE t::text LIKE %s', (f"%{token}%",)
            )

            assert 0 == row["n"], f"{butler.name}.{table} holds what was meant for relationship"
