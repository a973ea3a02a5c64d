"""One trial of a scenario: send it, follow it, judge what it did.

Effects come first: tools seen on the wire by the gateway, rows with the token that only this run
could have written. The answer's words are read only to distinguish a failure that claims success
from one that does not. Trouble of the provider is not the product's behaviour, and is kept apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from harness_core.assertions import (
    ClaimedNotDone,
    DbAssertion,
    E2EScenario,
    expect_not_called,
    expect_tool_calls,
    fill,
)
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.observe.expect_journey import bare_tool, expect_journey
from suites.e2e.observe.journey import Journey, tool_calls

__all__ = ["expect_scenario", "trouble_of_the_provider"]

#: A message in its final state has written its rows; this is for a product that writes behind.
_SETTLED_S: Final = 2.0

_OK: Final = 200


async def expect_scenario(
    ecosystem: Ecosystem, scenario: E2EScenario, journey: Journey, token: str
) -> str:
    """Judge a message that has been followed to its end by everything its row says.

    Returns:
        Where it went and what it left, for people.

    Raises:
        AssertionError: the first thing that is not so. :class:`ClaimedNotDone` when every
            record counts it as done, :class:`DidForbidden` for what must not even be tried.
    """
    on_wire = [bare_tool(tool) for call in journey.calls for tool in call.called]
    expect_not_called(on_wire, scenario.forbidden_tool_calls)
    butlers = _reached(scenario, journey)
    expect_journey(journey, butlers)
    if scenario.alternatives:
        _expect_words_arrived(journey, butlers, token)
    try:
        left = await _expect_effects(ecosystem, scenario, journey, token)
    except AssertionError as missing:
        # The chain held: every session and hop is on record as a success, and there is an answer.
        claim = str(journey.inbox[0]["response_summary"])
        raise ClaimedNotDone(claim=claim, missing=f"{missing}\n{journey.text()}") from missing
    if isinstance(scenario.expected_output, str):
        summary = str(journey.inbox[0]["response_summary"])

        assert fill(scenario.expected_output, token).casefold() in summary.casefold(), (
            f"the answer holds what its row expects; found {summary!r}"
        )
    words = fill(scenario.says, token)
    problems = list(words.problems(str(journey.inbox[0]["response_summary"]))) if words else []

    assert not problems, f"{problems[0]}\n{journey.text()}"
    return _travelled(scenario, journey, butlers, left)


def trouble_of_the_provider(journey: Journey) -> str:
    """What went wrong between the gateway and the provider; empty when nothing did."""
    return "; ".join(
        f"call {call.sequence}: status {call.status} {call.error}".rstrip()
        for call in journey.calls
        if call.status != _OK
    )


def _reached(scenario: E2EScenario, journey: Journey) -> Sequence[str]:
    """The butlers that this message had to reach, or did where its row leaves a choice."""
    if not scenario.alternatives:
        return scenario.expected_butlers
    reached = set(journey.targets())
    allowed = {*scenario.expected_butlers, *scenario.alternatives}

    assert reached, f"it reached no butler\n{journey.text()}"
    assert reached <= allowed, (
        f"it reached {sorted(reached - allowed)}, which its row does not allow\n{journey.text()}"
    )
    return sorted(reached)


def _expect_words_arrived(journey: Journey, butlers: Sequence[str], token: str) -> None:
    prompts = [str(row["prompt"]) for butler in butlers for row in journey.of_message(butler)]

    assert any(token in prompt for prompt in prompts), (
        f"the words got lost on the way: no prompt of {butlers} holds {token}\n{journey.text()}"
    )


async def _expect_effects(
    ecosystem: Ecosystem, scenario: E2EScenario, journey: Journey, token: str
) -> list[str]:
    butlers = scenario.expected_butlers
    expect_tool_calls(tool_calls(journey, butlers), scenario.expected_tool_calls)
    return [await _expect_rows(ecosystem, assertion, token) for assertion in scenario.db_assertions]


async def _expect_rows(ecosystem: Ecosystem, assertion: DbAssertion, token: str) -> str:
    """Judge one database assertion of a row; says what stands in which database."""
    database = ecosystem[assertion.butler].database
    where = fill(assertion.where, token)
    columns = fill(assertion.column_checks, token)
    place = f"{ecosystem[assertion.butler].config.database}.{assertion.table}"
    if assertion.count is not None:
        await database.expect_count(
            assertion.table, where=where, count=assertion.count, within_s=_SETTLED_S
        )
    if assertion.count == 0:
        return f"{place}: nothing, as it must be"
    row = await database.expect_row(
        assertion.table, where=where, columns=columns, within_s=_SETTLED_S
    )
    shown = ", ".join(f"{name}={_shortest(row[name])}" for name in {**where, **columns})
    return f"{place}: {shown}"


def _shortest(value: object) -> str:
    text = str(value) if isinstance(value, Decimal) else repr(value)
    return text if len(text) <= 200 else f"{text[:200]}…"


def _travelled(
    scenario: E2EScenario, journey: Journey, butlers: Sequence[str], left: Sequence[str]
) -> str:
    """Where one message went and what it left, in a few lines for the end of the run."""
    lines = [f"{scenario.id}: {_shortest(journey.sent.text)[1:-1]}"]
    for butler, calls in tool_calls(journey, butlers).items():
        called = ", ".join(str(call["name"]) for call in calls) or "no tool"
        lines.append(f"  -> {butler} ({called})")
    lines.extend(f"     {line}" for line in left)
    return "\n".join(lines)
