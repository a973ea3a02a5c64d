"""Many calls at a time about one new thing: it is made once, and every call's own is there.

Called over MCP, without a model. A roster that lacks a tool skips its rows by name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any, Final

import pytest
import trio

from harness_core.assertions import fill
from harness_core.front.skips import not_run
from suites.e2e.ecosystem.conversation import Conversation, open_conversation
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.ecosystem.mcp import ToolResult
from suites.e2e.observe.sentences import expect_same
from suites.e2e.worlds.held_tables import hold_table
from suites.e2e.worlds.schedules import until_they_meet

pytestmark = pytest.mark.covers("E2E-TOOLS", "E2E-PERSISTENCE")

#: Calls at a time: more than a pool of connections has, so that some meet in the same moment.
AT_ONCE: Final = 16


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """One tool, called many times at once.

    Attributes:
        butler: whose tool it is.
        tool: its name.
        given: its arguments; ``{number}`` is another one in each call.
        rows: table → column that holds the token in every row that the calls leave.
        once: table → the same, of what all calls share.
    """

    butler: str
    tool: str
    given: Mapping[str, Any]
    rows: tuple[str, str]
    once: tuple[str, str] | None = None


CALLS: Final = {
    "things-of-a-new-list": Together(
        butler="general",
        tool="entity_create",
        given={"collection": "shelf {token}", "name": "thing {number} {token}"},
        rows=("entities", "name"),
        once=("collections", "name"),
    ),
    "doses-of-a-new-medicine": Together(
        butler="health",
        tool="medication_log_dose",
        given={"name": "drug {token}", "notes": "{number} {token}"},
        rows=("medication_doses", "notes"),
        once=("medications", "name"),
    ),
    "measurements": Together(
        butler="health",
        tool="measurement_log",
        given={"kind": "heart_rate", "value": 61, "notes": "{token}"},
        rows=("measurements", "notes"),
    ),
    "reminders-of-a-new-person": Together(
        butler="relationship",
        tool="reminder_create",
        given={"message": "call {number} {token}", "contact_name": "Vera {token}"},
        rows=("reminders", "message"),
        once=("contacts", "name"),
    ),
    "days-of-a-new-person": Together(
        butler="relationship",
        tool="important_date_add",
        given={
            "contact_name": "Vera {token}",
            "label": "day {number} {token}",
            "month": 2,
            "day": 29,
        },
        rows=("important_dates", "label"),
        once=("contacts", "name"),
    ),
}


@pytest.mark.parametrize("together", CALLS.values(), ids=CALLS)
async def test_what_is_made_at_once_is_all_there(
    ecosystem: Ecosystem, token: str, together: Together
) -> None:
    """Every call is taken and has its row; what they share is there once."""
    butler = ecosystem[together.butler]
    properties = (await butler.tools()).get(together.tool, {}).get("properties", {})
    if not together.given.keys() <= properties.keys():
        not_run("subject", f"{butler.name} has no tool {together.tool} with these arguments")
    answers = await _at_once(
        ecosystem, together, [fill(together.given, token) for _ in range(AT_ONCE)]
    )
    refused = [answer.text for answer in answers if answer.is_error]
    table, column = together.rows
    rows = await butler.database.rows(
        f"SELECT {column} FROM {table} WHERE {column} LIKE %s", (f"%{token}%",)
    )

    assert not refused, (
        f"{AT_ONCE} calls of {together.tool} at once are taken, each for itself; refused: {refused[:3]}"
    )
    expect_same(
        f"what was acknowledged is there, once ({table})", expected=AT_ONCE, found=len(rows)
    )
    if together.once:
        shared, name = together.once
        parents = await butler.database.rows(
            f"SELECT {name} FROM {shared} WHERE {name} LIKE %s", (f"%{token}%",)
        )

        expect_same(f"what all name is there once ({shared})", expected=1, found=len(parents))


#: A tool that is told of one thing by several calls at once: what is known of it before, what each tells.
TOLD: Final[Mapping[str, tuple[Together, Mapping[str, str], Mapping[str, str]]]] = {
    "person": (
        Together(butler="relationship", tool="contact_create", given={}, rows=("contacts", "name")),
        {},
        {"email": "{token}@example.org", "phone": "+977 1", "relation": "aunt"},
    ),
    "medicine": (
        Together(butler="health", tool="medication_add", given={}, rows=("medications", "name")),
        {"dosage": "400 mg", "frequency": "once a day"},
        {"dosage": "200 mg", "frequency": "twice a day"},
    ),
}


@pytest.mark.parametrize(("together", "known", "told"), TOLD.values(), ids=TOLD)
async def test_what_is_told_at_once_is_all_known(
    ecosystem: Ecosystem,
    token: str,
    together: Together,
    known: Mapping[str, str],
    told: Mapping[str, str],
) -> None:
    """Several facts about one thing, each by a call of its own at the same time: each is known then."""
    butler = ecosystem[together.butler]
    properties = (await butler.tools()).get(together.tool, {}).get("properties", {})
    if not told.keys() <= properties.keys():
        not_run("subject", f"{butler.name} has no tool {together.tool} with these arguments")
    told = fill(told, token)
    name = f"vera {token}"
    if known:
        await butler.call(together.tool, name=name, **known)
    answers = await _at_once(
        ecosystem, together, [{"name": name, key: value} for key, value in told.items()]
    )
    table, column = together.rows
    rows = await butler.database.rows(f"SELECT * FROM {table} WHERE {column} = %s", (name,))
    # A second one of a name may be refused, in words; what was taken is known.
    expected = {
        key: value
        for (key, value), answer in zip(told.items(), answers, strict=True)
        if not answer.is_error
    }

    assert expected, f"none of {told} was taken: {[answer.text for answer in answers]}"
    found = {key: value for key, value in expected.items() if value in [row[key] for row in rows]}

    expect_same(f"what was acknowledged of a {table[:-1]} is known", expected=expected, found=found)


async def _at_once(
    ecosystem: Ecosystem, together: Together, calls: list[dict[str, Any]]
) -> list[ToolResult]:
    """The answers to calls that are made at the same time, in the order of the calls.

    What they share is held until some of them wait to write it, and they go on together.
    """
    butler = ecosystem[together.butler]
    answers: dict[int, ToolResult] = {}

    async def call(client: Conversation, number: int, arguments: dict[str, Any]) -> None:
        given = {
            key: value.replace("{number}", str(number)) if isinstance(value, str) else value
            for key, value in arguments.items()
        }
        answers[number] = await client.try_call(together.tool, **given)

    table, _ = together.once or together.rows
    async with AsyncExitStack() as open_ones:
        clients = [await open_ones.enter_async_context(open_conversation(butler)) for _ in calls]
        async with trio.open_nursery() as nursery, hold_table(butler, table):
            for number, (client, arguments) in enumerate(zip(clients, calls, strict=True)):
                nursery.start_soon(call, client, number, arguments)
            await until_they_meet(butler, answered=lambda: len(answers) == len(calls))
    return [answers[number] for number in range(len(calls))]
