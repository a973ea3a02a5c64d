"""What was written under a name is found, changed and removed by that very name, however it is spelt.

Called over MCP, without a model. A product may keep a name in another spelling, as long as whoever says
what he said before is understood. A roster that lacks a tool skips its rows by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest

from harness_core.front.skips import not_run
from suites.e2e.ecosystem.butler import Butler
from suites.e2e.ecosystem.conversation import Conversation, open_conversation
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.observe.journey import parts_of
from suites.e2e.observe.sentences import expect_same

pytestmark = [
    pytest.mark.covers("E2E-TOOLS", "E2E-PERSISTENCE"),
    pytest.mark.capability("domain"),
]

#: Names whose spelling one place may mend and another not: capitals, which not every language has one
#: of for each small letter, and blanks within and around.
NAMES: Final = {
    "capitals": "Old MAPS {token}",
    "capitals-of-elsewhere": "Übel ΟΔΟΣ {token} ÉΣ",
    "a-dotted-capital": "İzmir {token}",
    "two-blanks": "old  maps {token}",
    "a-tab": "old\tmaps {token}",
    "blanks-around": " maps {token}  ",
}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
async def test_a_thing_is_found_by_the_names_it_was_given(
    ecosystem: Ecosystem, token: str, name: str
) -> None:
    """A thing of a list is shown, told more of, and removed by the list's name and its own."""
    general = ecosystem["general"]
    await _offers(general, "entity_create", "entity_search", "entity_update", "entity_delete")
    said = name.format(token=token)
    place = {"collection": said, "name": said}
    async with open_conversation(general) as client:
        for data in ({"of": token}, {"again": 1}):
            await client.call("entity_create", **place, data=data)
        shown = await _shown(client, "entity_search", token, collection=said)

        expect_same(f"a list is shown by its name, {said!r}", expected=1, found=len(shown))
        found = await _shown(client, "entity_search", token, query=said)

        expect_same(f"a thing is found by its name, {said!r}", expected=1, found=len(found))
        await _expect_taken(client, "entity_update", {**place, "data": {"more": 2}}, said)
        rows = await general.database.rows(
            "SELECT data FROM entities WHERE data ->> 'of' = %s", (token,)
        )

        expect_same(
            f"all that was told of {said!r} is told of one thing",
            expected=[{"of": token, "again": 1, "more": 2}],
            found=[row["data"] for row in rows],
        )
        await _expect_taken(client, "entity_delete", place, said)


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
async def test_a_person_is_found_by_the_name_that_was_said(
    ecosystem: Ecosystem, token: str, name: str
) -> None:
    """What was said of a person, in some calls with one name, is shown to who asks with that name."""
    relationship = ecosystem["relationship"]
    await _offers(
        relationship,
        *("contact_create", "contact_search", "note_create", "note_search"),
        *("important_date_add", "important_date_list"),
    )
    said = name.format(token=token)
    day = {"label": f"day {token}", "month": 2, "day": 29}
    async with open_conversation(relationship) as client:
        await client.call("contact_create", name=said, email=f"{token}@example.org")
        await client.call("note_create", contact_name=said, body=f"likes tea {token}")
        await client.call("important_date_add", contact_name=said, **day)
        people = await relationship.database.rows(
            "SELECT name FROM contacts WHERE name LIKE %s", (f"%{token}%",)
        )

        expect_same(f"one name, {said!r}, is one person", expected=1, found=len(people))
        found = {
            "contact_search": len(await _shown(client, "contact_search", token, query=said)),
            "note_search": len(await _shown(client, "note_search", token, contact_name=said)),
            "important_date_list": len(
                await _shown(client, "important_date_list", token, contact_name=said)
            ),
        }

    expect_same(
        f"what was said of {said!r} is shown to who asks for it by that name",
        expected=dict.fromkeys(found, 1),
        found=found,
    )


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
async def test_a_complaint_is_found_by_its_name(
    ecosystem: Ecosystem, token: str, name: str
) -> None:
    """A symptom is shown to who asks for it by its name, and the doses of a medicine are of one."""
    health = ecosystem["health"]
    await _offers(health, "symptom_log", "symptom_search", "medication_add", "medication_log_dose")
    said = name.format(token=token)
    async with open_conversation(health) as client:
        await client.call("symptom_log", name=said, severity=2, notes=token)
        shown = await _shown(client, "symptom_search", token, name=said)

        expect_same(f"a symptom is shown by its name, {said!r}", expected=1, found=len(shown))
        await client.call("medication_add", name=said, dosage="5 mg")
        await client.call("medication_log_dose", name=said, notes=token)
    medicines = await health.database.rows(
        "SELECT m.id, count(d.id) AS doses FROM medications m"
        " LEFT JOIN medication_doses d ON d.medication_id = m.id"
        " WHERE m.name LIKE %s GROUP BY m.id",
        (f"%{token}%",),
    )

    expect_same(
        f"a dose of {said!r} is one of the medicine of that name",
        expected=[1],
        found=[row["doses"] for row in medicines],
    )


async def _expect_taken(
    client: Conversation, tool: str, arguments: Mapping[str, Any], said: str
) -> None:
    answer = await client.try_call(tool, **arguments)

    assert not answer.is_error, (
        f"what was put there as {said!r} is there under that name; {tool} with {dict(arguments)} was "
        f"answered with {answer.text}"
    )


async def _shown(
    client: Conversation, tool: str, token: str, **question: str
) -> list[Mapping[str, Any]]:
    """What a reading tool shows with the token in it: rows, not what is around them."""
    answer = await client.call(tool, **question)
    return [
        part
        for part in parts_of(answer)
        if isinstance(part, Mapping) and "id" in part and token in str(part)
    ]


async def _offers(butler: Butler, *tools: str) -> None:
    lacking = [tool for tool in tools if tool not in await butler.tools()]
    if lacking:
        not_run("subject", f"{butler.name} has no tool {', '.join(lacking)}")
