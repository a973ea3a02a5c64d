"""What a session did and spent is booked also when it broke off: refused, out of time, or stopped.

The gateway is a stand-in for the model provider, which refuses, hangs or answers with a tool call on
request; what it was asked and what that cost is its ledger's word, not the product's.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

import pytest
import trio

from harness_core.base.errors import HarnessError
from harness_core.base.slowness import patience
from harness_core.base.wait import deadline, until
from harness_core.doubles.model import Fault
from harness_core.doubles.turns import say
from suites.e2e.contracts.session_rows import (
    REFUSED,
    SESSION_S,
    expect_cost_counted,
    expect_failed,
    expect_paid,
    expect_shown,
    prompt_of,
    session_of,
    summary_of,
    triggered,
)
from suites.e2e.ecosystem.butler import Butler
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.ecosystem.knobs import has_knob, turned
from suites.e2e.ecosystem.mcp import CannotReach
from suites.e2e.observe.expect_journey import bare_tool, cost_usd, expect_finished
from suites.e2e.observe.journey import recorded_calls
from suites.e2e.observe.sentences import expect_columns, expect_same

pytestmark = pytest.mark.covers("E2E-SESSIONS")

#: A session starts, asks twice and calls a tool each time within this time.
DEADLINE_S: Final = 6.0

#: Calls of the model that a session of these tests needs, and one more.
TURNS: Final = 4

#: Of them, those that are answered before the session breaks off.
ANSWERED: Final = 2

#: Tokens that a call has read from the cache and written to it: the price of neither is the other's.
CACHED: Final = {"cache_read_tokens": 9_000, "cache_write_tokens": 300}


@asynccontextmanager
async def breaking_off(ecosystem: Ecosystem, token: str, then: Fault) -> AsyncIterator[int]:
    """The model calls a tool, with the token in it, and once more; its next calls meet ``then``.

    The first calls have read much from the cache and written little to it, as those of real models do.
    They are two: what a session has spent is a sum.

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
        times=ANSWERED,
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
    before = await summary_of(health)
    async with breaking_off(ecosystem, token, refused):
        answer = await triggered(health, token)
    expect_failed(answer)
    await expect_booked(ecosystem, token, mark=mark)
    after = await summary_of(health)
    row = await session_of(health, token)
    for column in ("input_tokens", "output_tokens"):
        expect_same(
            f"the summary counts what a session spent before it failed ({column})",
            expected=row[column],
            found=after[column] - before[column],
        )
    expect_cost_counted(before, after, cost_usd(row["cost"]), sessions=1)


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
            answer = await triggered(health, late)
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
    row = await session_of(health, stopped)
    await expect_shown(health, row)


async def expect_turns_bounded(ecosystem: Ecosystem, token: str) -> None:
    """A session whose model calls a tool at every turn ends at its last one, failed and paid."""
    health, client = ecosystem["health"], ecosystem.gateway.client
    mark = await client.mark()
    notes = {"name": "headache", "severity": 4, "notes": token}
    again = Fault(
        kind="answer", tool="symptom_log", input=notes, contains=token, times=4 * TURNS, **CACHED
    )
    await ecosystem.rehearse(prompt_of(token), [say("At last.")])
    async with client.fault(again):
        answer = await triggered(health, token)
    calls = [call for call in await client.ledger(since=mark) if call.kind != "count_tokens"]
    row = await session_of(health, token)
    story = f"row {dict(row)}, answer {answer.text}"

    assert 1 <= len(calls) <= TURNS + 1, (
        f"a session has {TURNS} turns: expected no more calls of the model, found {len(calls)}\n{story}"
    )
    expect_failed(answer)
    expect_finished(row, butler="health", story=story)
    assert row["success"] is False, f"a session that came to no end has failed\n{story}"
    assert row["error"], f"the failed session has no reason\n{story}"
    expect_paid(row, calls, story)


async def expect_booked(ecosystem: Ecosystem, token: str, *, mark: int, shown: bool = True) -> None:
    """The failed session of health that holds the token is on record with all that it did."""
    health = ecosystem["health"]
    calls = await ecosystem.gateway.client.ledger(since=mark)
    own = {call.session for call in calls if token in call.prompt or token in call.answer}
    paid = [
        call
        for call in calls
        if call.session in own and call.kind != "count_tokens" and call.status == 200
    ]
    row = await session_of(health, token)
    story = f"row {dict(row)}, paid calls {paid}"

    assert len(paid) == ANSWERED, (
        f"the session was to be answered {ANSWERED} times before it broke off\n{story}"
    )
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
    expect_paid(row, paid, story)
    made = await health.database.rows("SELECT severity FROM symptoms WHERE notes = %s", (token,))

    expect_same(
        "the tool did its work at each of its calls before the session broke off",
        expected=[4] * len(asked),
        found=[one["severity"] for one in made],
        story=story,
    )
    if shown:
        await expect_shown(health, row)


def _expect_time_enough(met: int, within_s: float) -> None:
    if not met:
        raise HarnessError(
            "cut a session off in the middle of its work",
            observed=f"within {within_s:.0f} s it did not come to the call that meets the trouble",
            next_step="Run the test again with less beside it",
        )


async def _ask_in_vain(butler: Butler, token: str) -> None:
    """Trigger a session of a butler that is stopped meanwhile: however that is answered."""
    with suppress(CannotReach):
        await butler.try_call("trigger", {"prompt": prompt_of(token)}, seconds=SESSION_S)


async def _until_met(ecosystem: Ecosystem, number: int) -> None:
    async def met() -> bool:
        return await ecosystem.gateway.client.fault_met(number) > 0

    with deadline("see a session come to the call that meets the trouble", seconds=SESSION_S):
        await until(met)
