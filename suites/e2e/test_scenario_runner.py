"""Every scenario of ``scenarios.py``, judged link by link: inbox, hops, sessions, tools, rows, cost."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import pytest

from harness_core.scenario import (
    DbAssertion,
    E2EScenario,
    check_scenarios,
    expect_tool_calls,
    fill,
)
from harness_core.subject import load_subject
from suites.e2e.chain import expect_journey
from suites.e2e.ecosystem import REFERENCE_SUBJECT, Ecosystem, roster_directory
from suites.e2e.journey import Journey, follow, tool_calls
from suites.e2e.roster import read_roster
from suites.e2e.scenarios import SCENARIOS

#: A message in its final state has written its rows; this is for a product that writes behind.
SETTLED_S = 2.0


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test per row; a malformed row is one error of the collection."""
    if "scenario" in metafunc.fixturenames:
        given = metafunc.config.getoption("--subject")
        subject = load_subject(Path(given or REFERENCE_SUBJECT))
        rows = check_scenarios(
            SCENARIOS,
            where="suites/e2e/scenarios.py",
            butlers=read_roster(roster_directory(subject)),
        )
        metafunc.parametrize("scenario", rows, ids=[row.id for row in rows])


async def test_scenario(
    ecosystem: Ecosystem, scenario: E2EScenario, token: str, travel_log: list[str]
) -> None:
    """One message goes exactly where it must, by every link of the chain, and leaves its rows."""
    mark = await ecosystem.gateway.client.mark()
    sent = await ecosystem.send(fill(scenario.input_prompt, token))
    journey = await follow(ecosystem, sent, seconds=scenario.timeout_s, call_mark=mark)

    expect_journey(journey, scenario.expected_butlers)
    expect_tool_calls(tool_calls(journey, scenario.expected_butlers), scenario.expected_tool_calls)
    left = [await expect_rows(ecosystem, assertion, token) for assertion in scenario.db_assertions]
    if isinstance(scenario.expected_output, str):
        summary = str(journey.inbox[0]["response_summary"])

        assert fill(scenario.expected_output, token).casefold() in summary.casefold()
    travel_log.append(travelled(scenario, journey, left))


async def expect_rows(ecosystem: Ecosystem, assertion: DbAssertion, token: str) -> str:
    """Judge one database assertion of a row; says what stands in which database."""
    database = ecosystem[assertion.butler].database
    where = fill(assertion.where, token)
    columns = fill(assertion.column_checks, token)
    place = f"{ecosystem[assertion.butler].config.database}.{assertion.table}"
    if assertion.count is not None:
        await database.expect_count(
            assertion.table, where=where, count=assertion.count, within_s=SETTLED_S
        )
    if assertion.count == 0:
        return f"{place}: nothing, as it must be"
    row = await database.expect_row(
        assertion.table, where=where, columns=columns, within_s=SETTLED_S
    )
    shown = ", ".join(f"{name}={shortest(row[name])}" for name in {**where, **columns})
    return f"{place}: {shown}"


def shortest(value: object) -> str:
    """A column's value for people."""
    return str(value) if isinstance(value, Decimal) else repr(value)


def travelled(scenario: E2EScenario, journey: Journey, left: Sequence[str]) -> str:
    """Where one message went and what it left, in a few lines for the end of the run."""
    lines = [f"{scenario.id}: {journey.sent.text}"]
    for butler, calls in tool_calls(journey, scenario.expected_butlers).items():
        called = ", ".join(str(call["name"]) for call in calls) or "no tool"
        lines.append(f"  -> {butler} ({called})")
    lines.extend(f"     {line}" for line in left)
    return "\n".join(lines)
