"""What a butler's own tools acknowledge stands in its tables, and its reading tools show that.

Called over MCP, without a model: what a session's tool call leaves is judged by the scenarios. A roster
that lacks a tool skips its rows by name.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Iterator, Mapping
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import pytest

from harness_core.assertions import fill
from harness_core.front.skips import not_run
from suites.e2e.ecosystem.conversation import open_conversation
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.observe.journey import parts_of
from suites.e2e.observe.sentences import expect_moment

pytestmark = [
    pytest.mark.covers("E2E-TOOLS", "E2E-PERSISTENCE"),
    pytest.mark.capability("domain"),
]

#: Given times: of zones with odd offsets, and on both sides of a change of the clock there.
TIMES: Final = (
    "2026-10-25T01:30:00+05:45",
    "2026-11-01T00:30:00-02:30",
    "2026-11-01T00:30:00-03:30",
    "2026-11-01T00:30:00Z",
)

#: A word that no reader takes for anything.
ODD: Final = "Zoë 茶 50%_ 'q' \"d\" \\ {token}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """One call that writes, and what it must leave.

    Attributes:
        tool: of which butler and by which name.
        given: its arguments.
        table: where the row is.
        where: a column that holds the token of this call alone.
        row: columns of the row; times are compared as moments, numbers by value.
        reader: the tool that shows the row, and its arguments; empty for none.
        now: the column that says when, where no time was given.
    """

    tool: tuple[str, str]
    given: Mapping[str, Any]
    table: str
    where: str
    row: Mapping[str, Any]
    reader: tuple[str, Mapping[str, Any]] | None = None
    now: str = ""


def _times(column: str) -> Iterator[tuple[str, str]]:
    return ((f"{column.partition('_')[0]}-{number}", time) for number, time in enumerate(TIMES))


ROWS: Final[Mapping[str, Written]] = {
    **{
        f"measurement-{name}": Written(
            tool=("health", "measurement_log"),
            given={
                "kind": kind,
                "value": value,
                "unit": "mmol/L",
                "notes": ODD,
                "measured_at": time,
            },
            table="measurements",
            where="notes",
            row={"kind": kind, "value": value, "unit": "mmol/L", "notes": ODD, "measured_at": time},
            reader=("measurement_history", {"kind": kind, "days": 3660, "limit": 200}),
        )
        for (name, time), (kind, value) in zip(
            _times("measured_at"),
            [("blood_sugar", 5.4), ("temperature", 38.4), ("steps", 12_345), ("height", 1.785)],
            strict=True,
        )
    },
    "measurement-of-two": Written(
        tool=("health", "measurement_log"),
        given={"kind": "blood_pressure", "value": 128, "value2": 83.5, "notes": "{token}"},
        table="measurements",
        where="notes",
        row={"value": 128, "value2": 83.5, "unit": None},
        reader=("measurement_history", {"kind": "blood_pressure"}),
        now="measured_at",
    ),
    "symptom": Written(
        tool=("health", "symptom_log"),
        given={"name": "back pain", "severity": 1, "notes": ODD, "occurred_at": TIMES[1]},
        table="symptoms",
        where="notes",
        row={"name": "back pain", "severity": 1, "notes": ODD, "occurred_at": TIMES[1]},
        reader=("symptom_search", {"name": "back pain", "days": 3660, "limit": 200}),
    ),
    "symptom-now": Written(
        tool=("health", "symptom_log"),
        given={"name": "nausea", "severity": 10, "notes": "{token}"},
        table="symptoms",
        where="notes",
        row={"name": "nausea", "severity": 10},
        reader=("symptom_search", {"days": 1}),
        now="occurred_at",
    ),
    "dose": Written(
        tool=("health", "medication_log_dose"),
        given={"name": "metformin", "dosage": "1½ tablets", "notes": ODD, "taken_at": TIMES[2]},
        table="medication_doses",
        where="notes",
        row={"dosage": "1½ tablets", "notes": ODD, "taken_at": TIMES[2]},
    ),
    "medicine": Written(
        tool=("health", "medication_add"),
        given={"name": "drug {token}", "dosage": "5 mg", "frequency": "twice a day"},
        table="medications",
        where="name",
        row={"name": "drug {token}", "dosage": "5 mg", "frequency": "twice a day", "active": True},
        reader=("medication_list", {}),
    ),
    "meal": Written(
        tool=("health", "meal_log"),
        given={"description": ODD, "kind": "dinner", "calories": 0, "eaten_at": TIMES[0]},
        table="meals",
        where="description",
        row={"description": ODD, "kind": "dinner", "calories": 0, "eaten_at": TIMES[0]},
        reader=("meal_history", {"days": 3660, "limit": 200}),
    ),
    "contact": Written(
        tool=("relationship", "contact_create"),
        given={
            "name": ODD,
            "email": "{token}@example.org",
            "phone": "+977 1 555-01",
            "relation": "aunt",
        },
        table="contacts",
        where="email",
        row={
            "name": ODD,
            "email": "{token}@example.org",
            "phone": "+977 1 555-01",
            "relation": "aunt",
        },
        reader=("contact_search", {"query": "{token}"}),
    ),
    "note": Written(
        tool=("relationship", "note_create"),
        given={"contact_name": "Ana {token}", "body": f"{ODD} likes\nold maps"},
        table="notes",
        where="body",
        row={"body": f"{ODD} likes\nold maps"},
        reader=("note_search", {"contact_name": "Ana {token}"}),
    ),
    "reminder": Written(
        tool=("relationship", "reminder_create"),
        given={"message": ODD, "due": "on Sunday", "due_at": "2031-03-09T02:30:00-03:30"},
        table="reminders",
        where="message",
        row={
            "message": ODD,
            "due": "on Sunday",
            "due_at": "2031-03-09T02:30:00-03:30",
            "done": False,
            "contact_id": None,
        },
        reader=("reminder_list", {"limit": 200}),
    ),
    "date-without-a-year": Written(
        tool=("relationship", "important_date_add"),
        given={"contact_name": "Leap {token}", "label": "day {token}", "month": 2, "day": 29},
        table="important_dates",
        where="label",
        row={"label": "day {token}", "month": 2, "day": 29, "year": None},
        reader=("important_date_list", {"contact_name": "Leap {token}"}),
    ),
    "thing": Written(
        tool=("general", "entity_create"),
        given={
            "collection": "shelf {token}",
            "name": ODD,
            "data": {"author": ["Ö", None, 1.5], "n": {"": 0}},
        },
        table="entities",
        where="name",
        row={"name": ODD, "data": {"author": ["Ö", None, 1.5], "n": {"": 0}}},
        reader=("entity_search", {"collection": "shelf {token}"}),
    ),
    "thing-of-one-letter": Written(
        tool=("general", "entity_create"),
        given={"collection": "letters {token}", "name": "x", "data": {"of": "{token}"}},
        table="entities",
        where="data::text",
        row={"name": "x", "data": {"of": "{token}"}},
    ),
    "collection": Written(
        tool=("general", "collection_create"),
        given={"name": "box {token}", "description": ODD},
        table="collections",
        where="name",
        row={"name": "box {token}", "description": ODD},
        reader=("collection_list", {"limit": 200}),
    ),
}

#: Arguments that say when something was.
TIMED: Final = {"measured_at", "occurred_at", "taken_at", "eaten_at", "due_at"}

#: A row that says "now" was written within this time of the call, by the same clock.
MOMENTS: Final = dt.timedelta(minutes=10)


@pytest.mark.parametrize("written", ROWS.values(), ids=ROWS)
async def test_what_a_tool_acknowledges_is_there_and_shown(
    ecosystem: Ecosystem, token: str, written: Written
) -> None:
    """The row has every column that was given, and the reading tool shows the same; once."""
    name, tool = written.tool
    butler = ecosystem[name]
    schema = (await butler.tools()).get(tool)
    if schema is None or not written.given.keys() <= schema.get("properties", {}).keys():
        not_run("subject", f"{name} has no tool {tool} with {', '.join(written.given)}")
    async with open_conversation(butler) as client:
        said = await client.call(tool, **fill(written.given, token))

        assert said, f"{tool} says what it has done; found {said!r}"
        rows = await butler.database.rows(
            f"SELECT *, clock_timestamp() AS asked_at FROM {written.table}"
            f" WHERE {written.where} LIKE %s",
            (f"%{token}%",),
        )

        assert len(rows) == 1, f"{tool} was called once, and {written.table} has {len(rows)} rows"
        expected = fill(written.row, token)
        expect_all(f"{tool} leaves what it was given", expected, rows[0])
        for part in parts_of(said):
            if isinstance(part, Mapping) and token in str(part.get(written.where)):
                same = {column: value for column, value in expected.items() if column in part}
                expect_all(f"{tool} says what it leaves", same, part)
        if written.now:
            apart = rows[0]["asked_at"] - rows[0][written.now]

            assert abs(apart) < MOMENTS, (
                f"without a time {tool} means now; {written.now} is {rows[0][written.now]}, and it "
                f"is {rows[0]['asked_at']}"
            )
        if written.reader:
            reader, arguments = written.reader
            answer = await client.call(reader, **fill(arguments, token))
            shown = [
                part
                for part in parts_of(answer)
                if isinstance(part, Mapping) and token in str(part.get(written.where))
            ]

            assert len(shown) == 1, f"{reader} shows the row once; found {len(shown)}: {shown}"
            expect_all(f"{reader} shows what stands in the row", expected, shown[0])


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if TIMED & row.given.keys()])
async def test_two_of_one_moment_are_two(ecosystem: Ecosystem, token: str, name: str) -> None:
    """What is told twice, of one thing and of one time, in other words, is there twice."""
    written = ROWS[name]
    butler_name, tool = written.tool
    butler = ecosystem[butler_name]
    schema = (await butler.tools()).get(tool)
    if schema is None or not written.given.keys() <= schema.get("properties", {}).keys():
        not_run("subject", f"{butler_name} has no tool {tool} with {', '.join(written.given)}")
    words = [f"{number} {token}" for number in (1, 2)]
    answers = [
        await butler.try_call(tool, {**fill(written.given, token), written.where: each})
        for each in words
    ]
    rows = await butler.database.rows(
        f"SELECT {written.where} AS words FROM {written.table} WHERE {written.where} LIKE %s",
        (f"%{token}",),
    )
    taken = [each for each, answer in zip(words, answers, strict=True) if not answer.is_error]

    assert taken, f"{tool} was refused: {answers[0].text}"
    assert taken == sorted(row["words"] for row in rows), (
        f"two things are the same only by what the contract names: {tool} acknowledged {taken} of "
        f"one moment, and {written.table} has {rows}"
    )


def expect_all(clause: str, expected: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """Each expected column is there with its value."""
    for column, value in expected.items():
        assert column in found, f"{clause}: no {column} in {sorted(found)}"
        assert _plain(value, value) == _plain(found[column], value), (
            f"{clause}: {column} was given as {value!r}, found {found[column]!r}"
        )


def _plain(value: Any, like: Any) -> Any:
    """A value as it can be compared: a moment for a time, a decimal for a number."""
    if isinstance(like, str) and like in {*TIMES, "2031-03-09T02:30:00-03:30"}:
        moment = value if isinstance(value, dt.datetime) else expect_moment("a time shown", value)
        return moment.astimezone(dt.UTC)
    if isinstance(like, int | float) and not isinstance(like, bool):
        with suppress(InvalidOperation):
            return Decimal(str(value))
    return value
