"""What was written is changed, completed and removed by its owner's tools, and nothing beside it.

Called over MCP, without a model. A roster that lacks a tool skips its test by name.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, Final

import pytest

from harness_core.front.skips import not_run
from suites.e2e.ecosystem.butler import Butler
from suites.e2e.ecosystem.handle import Ecosystem

pytestmark = pytest.mark.covers("E2E-TOOLS", "E2E-PERSISTENCE")

#: What is known of a thing at first, and what is told of it later: a key that stays, one that changes
#: and one that is new.
_FIRST: Final[Mapping[str, Any]] = {"author": "Ö", "pages": 310}
_LATER: Final[Mapping[str, Any]] = {"pages": 311, "read": {"on": "2026-10-25", "again": None}}


async def test_a_thing_is_changed_and_removed(ecosystem: Ecosystem, token: str) -> None:
    """Of things of like names in two collections one is changed and then removed; the others stay."""
    general = ecosystem["general"]
    await _offers(general, "entity_create", "entity_update", "entity_delete")
    names = ("atlas", "atlas 2")
    shelves = (f"shelf {token}", f"shelf {token} 2")
    for shelf in shelves:
        for name in names:
            data = {**_FIRST, "of": f"{token} {shelf} {name}"}
            await general.call("entity_create", collection=shelf, name=name, data=data)
    before = await _things(general, token)
    changing = {"collection": shelves[0], "name": "atlas"}
    said = await general.call("entity_update", **changing, data=dict(_LATER))
    changed = await _things(general, token)
    removed = await general.call("entity_delete", **changing)
    after = await _things(general, token)
    refused = [
        await general.try_call("entity_update", {**changing, "data": {"read": 2}}),
        await general.try_call("entity_delete", changing),
        await general.try_call("entity_delete", {"collection": f"no {token}", "name": "atlas 2"}),
    ]

    place = f"{token} {shelves[0]} atlas"
    expected = {**before, place: {**before[place], **_LATER}}
    assert 4 == len(before), f"four things were made; found {before}"
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
    """One of two reminders is done, once and again; the other is not, and an unknown one is refused."""
    relationship = ecosystem["relationship"]
    await _offers(relationship, "reminder_create", "reminder_complete", "reminder_list")
    for number in (1, 2):
        await relationship.call("reminder_create", message=f"call {number} {token}")
    rows = await _reminders(relationship, token)
    chosen = str(rows[f"call 1 {token}"]["id"])
    said = [await relationship.call("reminder_complete", reminder_id=chosen) for _ in range(2)]
    unknown = await relationship.try_call("reminder_complete", {"reminder_id": str(uuid.uuid4())})
    after = await _reminders(relationship, token)

    done = {message: row["done"] for message, row in after.items()}
    assert {f"call 1 {token}": True, f"call 2 {token}": False} == done, (
        f"the reminder that was completed is done, the other is not; found {done}"
    )
    assert all(said), f"completing says what it did; found {said}"
    assert unknown.is_error, f"an unknown reminder is refused; found {unknown.text}"


async def _reminders(relationship: Butler, token: str) -> dict[str, dict[str, Any]]:
    rows = await relationship.database.rows(
        "SELECT * FROM reminders WHERE message LIKE %s", (f"%{token}",)
    )
    return {row["message"]: row for row in rows}


async def _offers(butler: Butler, *tools: str) -> None:
    lacking = [tool for tool in tools if tool not in await butler.tools()]
    if lacking:
        not_run("subject", f"{butler.name} has no tool {', '.join(lacking)}")
