"""What cannot be is refused in words and leaves nothing: no such day, no number, no time.

Called over MCP, without a model. A roster that lacks a tool, or an argument of it, skips its rows by
name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

import pytest

from harness_core.assertions import fill
from harness_core.front.skips import not_run
from suites.e2e.ecosystem.conversation import open_conversation
from suites.e2e.ecosystem.handle import Ecosystem

pytestmark = [
    pytest.mark.covers("E2E-TOOLS", "E2E-PERSISTENCE"),
    pytest.mark.capability("domain"),
]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call that is taken, and values of its arguments with which it is not.

    Attributes:
        butler: whose tool it is.
        tool: its name.
        good: arguments with which it is taken.
        wrong: what is put in their place, by what is wrong with it; ``LEFT_OUT`` for nothing.
        left: the tables in which it leaves something, and columns that hold the token then.
    """

    butler: str
    tool: str
    good: Mapping[str, Any]
    wrong: Mapping[str, Mapping[str, Any]]
    left: Mapping[str, str]


LEFT_OUT: Final = object()

#: No moment, in any reading: words, a day that never was, an hour too many.
_NO_TIME: Final = {
    "words-for-a-time": "the day before",
    "no-such-day": "2026-02-30T10:00:00Z",
    "no-such-hour": "2026-02-20T25:00:00Z",
}


def _no_time(argument: str) -> Mapping[str, Mapping[str, Any]]:
    return {name: {argument: text} for name, text in _NO_TIME.items()}


CALLS: Final = (
    Call(
        butler="health",
        tool="measurement_log",
        good={"kind": "heart_rate", "value": 61, "notes": "{token}"},
        wrong={
            "words-for-a-number": {"value": "much"},
            "no-number": {"value": None},
            "number-left-out": {"value": LEFT_OUT},
            "kind-left-out": {"kind": LEFT_OUT},
            **_no_time("measured_at"),
        },
        left={"measurements": "notes"},
    ),
    Call(
        butler="health",
        tool="symptom_log",
        good={"name": "cough", "severity": 2, "notes": "{token}"},
        wrong={
            "words-for-a-number": {"severity": "bad"},
            "name-left-out": {"name": LEFT_OUT},
            "name-of-nothing": {"name": ""},
            **_no_time("occurred_at"),
        },
        left={"symptoms": "notes"},
    ),
    Call(
        butler="health",
        tool="medication_log_dose",
        good={"name": "drug {token}", "notes": "{token}"},
        wrong={"name-left-out": {"name": LEFT_OUT}, **_no_time("taken_at")},
        left={"medication_doses": "notes", "medications": "name"},
    ),
    Call(
        butler="health",
        tool="meal_log",
        good={"description": "soup {token}"},
        wrong={"words-for-a-number": {"calories": "many"}, **_no_time("eaten_at")},
        left={"meals": "description"},
    ),
    Call(
        butler="relationship",
        tool="important_date_add",
        good={"contact_name": "Bo {token}", "label": "day {token}", "month": 2, "day": 28},
        wrong={
            "month-13": {"month": 13},
            "month-0": {"month": 0},
            "day-32": {"month": 1, "day": 32},
            "day-0": {"day": 0},
            "february-30": {"day": 30},
            "april-31": {"month": 4, "day": 31},
            "no-leap-year": {"day": 29, "year": 2001},
            "day-left-out": {"day": LEFT_OUT},
        },
        left={"important_dates": "label", "contacts": "name"},
    ),
    Call(
        butler="relationship",
        tool="reminder_create",
        good={"message": "call {token}", "contact_name": "Cy {token}"},
        wrong={"message-left-out": {"message": LEFT_OUT}, **_no_time("due_at")},
        left={"reminders": "message", "contacts": "name"},
    ),
    Call(
        butler="relationship",
        tool="note_create",
        good={"contact_name": "Dee {token}", "body": "likes tea {token}"},
        wrong={"words-left-out": {"body": LEFT_OUT}, "nobody": {"contact_name": ""}},
        left={"notes": "body", "contacts": "name"},
    ),
    Call(
        butler="general",
        tool="entity_create",
        good={"collection": "shelf {token}", "name": "atlas {token}", "data": {"pages": 2}},
        wrong={
            "words-for-an-object": {"data": "two pages"},
            "name-left-out": {"name": LEFT_OUT},
            "name-of-nothing": {"name": ""},
        },
        left={"entities": "name", "collections": "name"},
    ),
)


@pytest.mark.parametrize("call", CALLS, ids=[call.tool for call in CALLS])
async def test_what_cannot_be_is_refused(ecosystem: Ecosystem, token: str, call: Call) -> None:
    """Each wrong value is refused in words and leaves no row; the right ones are taken after that."""
    butler = ecosystem[call.butler]
    properties = (await butler.tools()).get(call.tool, {}).get("properties", {})
    if not call.good.keys() <= properties.keys():
        not_run("subject", f"{call.butler} has no tool {call.tool} with {', '.join(call.good)}")
    good = fill(call.good, token)

    async def left() -> dict[str, int]:
        return {
            table: len(
                await butler.database.rows(
                    f"SELECT 1 FROM {table} WHERE {column} LIKE %s", (f"%{token}%",)
                )
            )
            for table, column in call.left.items()
        }

    async with open_conversation(butler) as client:
        for what, changes in call.wrong.items():
            if not changes.keys() <= properties.keys():
                continue
            given = {
                key: value for key, value in (good | dict(changes)).items() if value is not LEFT_OUT
            }
            answer = await client.try_call(call.tool, **given)

            assert answer.is_error, (
                f"{call.tool} of what cannot be ({what}) is refused; with {given} it was answered with "
                f"{answer.text}"
            )
            assert answer.text.strip(), f"{call.tool} was refused ({what}) without a word"
            found = await left()

            assert not any(found.values()), (
                f"what was refused left nothing; {call.tool} with {given} left rows: {found}"
            )
        await client.call(call.tool, **good)

    assert all((await left()).values()), (
        f"what is right is taken after what was wrong; {call.tool} with {good} left {await left()}"
    )
