"""What was written is changed, completed and removed by its owner's tools, and nothing beside it.

Called over MCP, without a model. A roster that lacks a tool skips its test by name.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import uuid
from collections.abc import Mapping
from typing import Any, Final

import pytest
import trio

from harness_core.assertions import fill
from harness_core.front.skips import not_run
from suites.e2e.ecosystem.butler import Butler
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.ecosystem.mcp import ToolResult

pytestmark = [
    pytest.mark.covers("E2E-TOOLS", "E2E-PERSISTENCE"),
    pytest.mark.capability("domain"),
]

#: What is known of a thing at first, and what is told of it later: a key that stays, one that changes
#: and one that is new.
_FIRST: Final[Mapping[str, Any]] = {"author": "Ö", "pages": 310}
_LATER: Final[Mapping[str, Any]] = {"pages": 311, "read": {"on": "2026-10-25", "again": None}}

#: Calls at a time: more than a pool of connections has, so that some meet in the same moment.
AT_ONCE: Final = 16


async def test_a_thing_is_changed_and_removed(ecosystem: Ecosystem, token: str) -> None:
    """Of things of like names in two collections one is changed and then removed; the others stay.

    Its name is a pattern for the others': as SQL or a shell or a regular expression has them.
    """
    general = ecosystem["general"]
    await _offers(general, "entity_create", "entity_update", "entity_delete")
    chosen, *others = names = ("a.l_s*%", "a.l_s*% 2", "a.las*%", "axl_sss%", "a.l_sx%")
    shelves = (f"shelf_{token}", f"shelf_{token} 2", f"shelf {token}")
    for shelf in shelves:
        for name in names:
            data = {**_FIRST, "of": f"{token} {shelf} {name}"}
            await general.call("entity_create", collection=shelf, name=name, data=data)
    before = await _things(general, token)
    changing = {"collection": shelves[0], "name": chosen}
    said = await general.call("entity_update", **changing, data=dict(_LATER))
    changed = await _things(general, token)
    removed = await general.call("entity_delete", **changing)
    after = await _things(general, token)
    refused = [
        await general.try_call("entity_update", {**changing, "data": {"read": 2}}),
        await general.try_call("entity_delete", changing),
        await general.try_call("entity_delete", {"collection": f"no {token}", "name": others[0]}),
    ]

    place = f"{token} {shelves[0]} {chosen}"
    expected = {**before, place: {**before[place], **_LATER}}
    made = len(names) * len(shelves)
    assert made == len(before), f"{made} things were made; found {before}"
    assert expected == changed, (
        f"keys that are set change, others stay: {expected}; found {changed}"
    )
    expected.pop(place)
    assert expected == after, f"one thing is removed: {expected}; found {after}"
    assert said, f"a change says what it did; found {said!r}"
    assert removed, f"a removal says what it did; found {removed!r}"
    for answer in refused:
        assert answer.is_error, f"what is not there is not changed or removed; found {answer.text}"
    assert expected == await _things(general, token), "what was refused has changed something"


async def _things(general: Butler, token: str) -> dict[str, dict[str, Any]]:
    """What is known of each thing, by the place that its own data names."""
    rows = await general.database.rows(
        "SELECT data FROM entities WHERE data ->> 'of' LIKE %s", (f"{token} %",)
    )
    return {row["data"]["of"]: row["data"] for row in rows}


async def test_a_reminder_is_completed(ecosystem: Ecosystem, token: str) -> None:
    """One of three reminders is done, once and again; the others are not, and an unknown one is refused.

    Another one is of the same person, in the same words, for another day.
    """
    relationship = ecosystem["relationship"]
    await _offers(relationship, "reminder_create", "reminder_complete", "reminder_list")
    days = [dt.datetime(2031, month, 9, 2, 30, tzinfo=dt.UTC) for month in (3, 4, 5)]
    for day, words in zip(days, ("call", "call", "visit"), strict=True):
        await relationship.call(
            "reminder_create",
            message=f"{words} {token}",
            contact_name=f"Vera {token}",
            due_at=day.isoformat(),
        )
    rows = await _reminders(relationship, token)
    chosen = str(rows[days[0]]["id"])
    said = [await relationship.call("reminder_complete", reminder_id=chosen) for _ in range(2)]
    unknown = await relationship.try_call("reminder_complete", {"reminder_id": str(uuid.uuid4())})
    after = await _reminders(relationship, token)

    done = {day: row["done"] for day, row in after.items()}
    assert {days[0]: True, days[1]: False, days[2]: False} == done, (
        f"the reminder that was completed is done, the others are not; found {done}"
    )
    assert all(said), f"completing says what it did; found {said}"
    assert unknown.is_error, f"an unknown reminder is refused; found {unknown.text}"


async def _reminders(relationship: Butler, token: str) -> dict[dt.datetime, dict[str, Any]]:
    """Those of the test, by the day for which they are."""
    rows = await relationship.database.rows(
        "SELECT * FROM reminders WHERE message LIKE %s", (f"%{token}",)
    )
    return {row["due_at"]: row for row in rows}


async def _offers(butler: Butler, *tools: str) -> None:
    lacking = [tool for tool in tools if tool not in await butler.tools()]
    if lacking:
        not_run("subject", f"{butler.name} has no tool {', '.join(lacking)}")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """A call about one thing, and calls after it that mention the thing and are about another.

    Attributes:
        butler: whose tools they are.
        first: the tool that makes the thing, and its arguments.
        later: the same of what comes after it.
        table: where the thing is.
        where: a column that holds the token of this test alone.
    """

    butler: str
    first: tuple[str, Mapping[str, Any]]
    later: tuple[tuple[str, Mapping[str, Any]], ...]
    table: str
    where: str


_DRUG: Final = "drug {token}"
_PERSON: Final = "Ana {token}"
_SHELF: Final = "shelf {token}"

BESIDE: Final[Mapping[str, Beside]] = {
    "a-dose-and-its-medicine": Beside(
        butler="health",
        first=(
            "medication_add",
            {"name": _DRUG, "dosage": "400 mg", "frequency": "twice a day"},
        ),
        later=(
            ("medication_log_dose", {"name": _DRUG}),
            ("medication_log_dose", {"name": _DRUG, "dosage": "200 mg", "notes": "half"}),
            ("medication_add", {"name": f"{_DRUG} forte", "dosage": "800 mg"}),
        ),
        table="medications",
        where="name",
    ),
    "what-is-known-of-a-person": Beside(
        butler="relationship",
        first=(
            "contact_create",
            {
                "name": _PERSON,
                "email": "{token}@example.org",
                "phone": "+977 1 5",
                "relation": "aunt",
            },
        ),
        later=(
            ("note_create", {"contact_name": _PERSON, "body": "likes maps"}),
            ("reminder_create", {"contact_name": _PERSON, "message": "call", "due": "soon"}),
            (
                "important_date_add",
                {"contact_name": _PERSON, "label": "birthday", "month": 2, "day": 29},
            ),
            ("contact_create", {"name": f"{_PERSON} B", "email": "b@example.org"}),
        ),
        table="contacts",
        where="name",
    ),
    "a-thing-and-its-collection": Beside(
        butler="general",
        first=("collection_create", {"name": _SHELF, "description": "old maps, unfolded"}),
        later=(
            ("entity_create", {"collection": _SHELF, "name": "atlas", "data": {"pages": 2}}),
            ("entity_delete", {"collection": _SHELF, "name": "atlas"}),
            ("collection_create", {"name": f"{_SHELF} 2", "description": "new maps"}),
        ),
        table="collections",
        where="name",
    ),
}


@pytest.mark.parametrize("beside", BESIDE.values(), ids=BESIDE)
async def test_a_later_call_changes_nothing_beside(
    ecosystem: Ecosystem, token: str, beside: Beside
) -> None:
    """Updating one thing changes no other, also when the other is mentioned."""
    butler = ecosystem[beside.butler]
    await _offers(butler, beside.first[0], *(tool for tool, _ in beside.later))

    async def row() -> dict[str, Any]:
        rows = await butler.database.rows(
            f"SELECT * FROM {beside.table} WHERE {beside.where} LIKE %s ORDER BY created_at LIMIT 1",
            (f"%{token}",),
        )
        assert rows, f"what {beside.first[0]} made is there, in {beside.table}: found no row"
        return {key: value for key, value in rows[0].items() if key != "updated_at"}

    await butler.call(beside.first[0], **fill(beside.first[1], token))
    before = await row()
    for tool, arguments in beside.later:
        await butler.call(tool, **fill(arguments, token))
        after = await row()
        changed = {
            key: (before[key], after.get(key)) for key in before if before[key] != after.get(key)
        }

        assert not changed, (
            f"{tool} with {dict(arguments)} is about another thing, and changed this one in "
            f"{beside.table} (before, after): {changed}"
        )


#: A call that makes a thing, the same with less, and with another value. Butler, tool, what it is told
#: first, what again; the table, and the column that holds the token.
AGAIN: Final[Mapping[str, tuple[str, str, Mapping[str, Any], Mapping[str, Any], str, str]]] = {
    "medicine": (
        "health",
        "medication_add",
        {"name": _DRUG, "dosage": "5 mg", "frequency": "twice a day"},
        {"name": _DRUG, "dosage": "10 mg"},
        "medications",
        "name",
    ),
    "person": (
        "relationship",
        "contact_create",
        {"name": _PERSON, "email": "{token}@example.org", "phone": "+977 1", "relation": "aunt"},
        {"name": _PERSON, "phone": "+977 2"},
        "contacts",
        "name",
    ),
    "date": (
        "relationship",
        "important_date_add",
        {"contact_name": _PERSON, "label": "day {token}", "month": 2, "day": 29, "year": 2000},
        {"contact_name": _PERSON, "label": "day {token}", "month": 3, "day": 1},
        "important_dates",
        "label",
    ),
    "collection": (
        "general",
        "collection_create",
        {"name": _SHELF, "description": "old maps, unfolded"},
        {"name": _SHELF},
        "collections",
        "name",
    ),
    "thing": (
        "general",
        "entity_create",
        {"collection": _SHELF, "name": "atlas {token}", "data": dict(_FIRST)},
        {"collection": _SHELF, "name": "atlas {token}"},
        "entities",
        "name",
    ),
}


@pytest.mark.parametrize("again", AGAIN.values(), ids=AGAIN)
async def test_what_is_not_mentioned_again_stays(
    ecosystem: Ecosystem, token: str, again: tuple[Any, ...]
) -> None:
    """A thing that is told of once more, with less, keeps what is not mentioned then."""
    name, tool, first, later, table, where = again
    butler = ecosystem[name]
    await _offers(butler, tool)

    async def rows() -> list[dict[str, Any]]:
        return [
            {key: value for key, value in row.items() if key != "updated_at"}
            for row in await butler.database.rows(
                f"SELECT * FROM {table} WHERE {where} LIKE %s ORDER BY created_at", (f"%{token}",)
            )
        ]

    await butler.call(tool, **fill(first, token))
    before = await rows()

    assert len(before) == 1, f"{tool} made one row in {table}, found {before}"
    answer = await butler.try_call(tool, fill(later, token))
    # A product may keep two, or refuse the second: what the first one said stands all the same.
    found = ((await rows()) or [{}])[0]
    given = set() if answer.is_error else {key for key in later if key in found}
    changed = {
        key: (before[0][key], found[key])
        for key in before[0]
        if key not in given and before[0][key] != found.get(key)
    }

    assert not changed, (
        f"updating one thing changes no other: {tool} with {fill(later, token)} was answered with "
        f"{answer.text}, and changed (before, after) {changed}"
    )


async def test_changes_at_once_lose_nothing(ecosystem: Ecosystem, token: str) -> None:
    """Of many changes of one thing at a time, each of another key, every one is there afterwards."""
    general = ecosystem["general"]
    await _offers(general, "entity_create", "entity_update")
    thing = {"collection": f"shelf {token}", "name": "atlas"}
    await general.call("entity_create", **thing, data={**_FIRST, "of": f"{token} atlas"})
    answers: dict[str, ToolResult] = {}

    async def change(key: str, value: int) -> None:
        answers[key] = await general.try_call("entity_update", {**thing, "data": {key: value}})

    async with trio.open_nursery() as nursery:
        for number in range(AT_ONCE):
            nursery.start_soon(change, f"key {number}", number)
    taken = {f"key {n}": n for n in range(AT_ONCE) if not answers[f"key {n}"].is_error}
    (found,) = (await _things(general, token)).values()
    lost = sorted(set(taken) - set(found))

    assert taken, f"none of {AT_ONCE} changes was taken: {answers}"
    assert not lost, f"concurrent writers lose nothing: of {len(taken)} changes are lost {lost}"
    expected = {**_FIRST, "of": f"{token} atlas", **taken}
    assert found == expected, f"expected {expected}, found {found}"


async def test_a_person_met_at_once_is_one(ecosystem: Ecosystem, token: str) -> None:
    """Notes about somebody unknown, several at a time: one contact, and every note."""
    relationship = ecosystem["relationship"]
    await _offers(relationship, "note_create")
    name = f"Vera {token}"
    answers: list[ToolResult] = []

    async def note(number: int) -> None:
        arguments = {"contact_name": name, "body": f"fact {number} {token}"}
        answers.append(await relationship.try_call("note_create", arguments))

    async with trio.open_nursery() as nursery:
        for number in range(AT_ONCE):
            nursery.start_soon(note, number)
    refused = [answer.text for answer in answers if answer.is_error]
    contacts = await relationship.database.rows("SELECT id FROM contacts WHERE name = %s", (name,))
    notes = await relationship.database.rows(
        "SELECT body FROM notes WHERE body LIKE %s", (f"%{token}",)
    )

    assert not refused, f"expected {AT_ONCE} notes to be taken, refused were {refused}"
    assert len(contacts) == 1, f"one name is one contact, found {len(contacts)}"
    assert len(notes) == AT_ONCE, f"expected {AT_ONCE} notes, found {len(notes)}"
