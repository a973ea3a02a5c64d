"""Days in the life of the health butler: what builds on what, and what is asked back."""

from __future__ import annotations

import pytest

from harness_core.doubles.turns import ask, route, use
from harness_core.infrastructure.databases import Contains
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.observe.expect_journey import expect_journey
from suites.e2e.observe.journey import follow, tool_calls

pytestmark = [pytest.mark.main, pytest.mark.covers("E2E-TOOLS", "E2E-PERSISTENCE")]


@pytest.mark.slow
@pytest.mark.capability("domain")
async def test_doses_add_up_below_one_medicine(ecosystem: Ecosystem, token: str) -> None:
    """Two doses in two messages: two rows of doses, one medicine, and both are of it."""
    for dosage in ("250 mg", "500 mg"):
        journey = await follow(
            ecosystem, await ecosystem.send(f"I took {dosage} of amoxicillin ({token})")
        )
        expect_journey(journey, ["health"])
    database = ecosystem["health"].database
    doses = await database.rows(
        "SELECT medication_id, dosage FROM medication_doses WHERE notes LIKE %s ORDER BY dosage",
        (f"%{token}%",),
    )

    assert ["250 mg", "500 mg"] == [str(dose["dosage"]) for dose in doses], (
        f"each dose has its row; found {doses}"
    )
    assert 1 == len({dose["medication_id"] for dose in doses}), (
        f"both doses are of one medicine\n{doses}"
    )
    await database.expect_count("medications", where={"name": "amoxicillin"}, count=1)


@pytest.mark.slow
@pytest.mark.capability("domain")
async def test_what_was_logged_is_found_again(ecosystem: Ecosystem, token: str) -> None:
    """A question is answered from the record by a reading tool, and writes nothing."""
    logged = await follow(
        ecosystem, await ecosystem.send(f"I have a migraine, severity 9 ({token})")
    )
    expect_journey(logged, ["health"])
    asked = await follow(
        ecosystem,
        await ecosystem.send(
            "Which symptoms did I have in the last 7 days?",
            model=[route("health"), use("symptom_search", days=7)],
        ),
    )
    expect_journey(asked, ["health"])
    calls = tool_calls(asked, ["health"])["health"]

    assert calls, f"answered without reading the record\n{asked.text()}"
    assert token in str(calls), f"the record was not found again\n{asked.text()}"
    assert "symptom_log" not in [call["name"] for call in calls], (
        f"a question writes nothing\n{asked.text()}"
    )


async def test_what_was_not_said_is_not_invented(ecosystem: Ecosystem, token: str) -> None:
    """A measurement without its number leaves no row, and no answer claims one."""
    journey = await follow(
        ecosystem,
        await ecosystem.send(
            f"I stepped on the scale for my weight ({token})",
            model=[route("health"), ask("What did it say?")],
        ),
    )

    assert not journey.unfinished, f"the message has no final state\n{journey.text()}"
    await ecosystem["health"].database.expect_no_row(
        "measurements", where={"notes": Contains(token)}
    )
    assert "What did it say?" in str(journey.inbox[0]["response_summary"]), (
        f"the person is asked back\n{journey.text()}"
    )
