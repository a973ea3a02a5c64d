"""What has no other place: lists that grow, and messages that are for no other butler."""

from __future__ import annotations

import pytest

from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.observe.expect_journey import expect_finished, expect_journey, fallback_reason
from suites.e2e.observe.journey import follow

pytestmark = pytest.mark.main


@pytest.mark.covers("E2E-PERSISTENCE")
@pytest.mark.slow
@pytest.mark.capability("domain")
async def test_a_list_grows(ecosystem: Ecosystem, token: str) -> None:
    """Two things put on one list in two messages: one list, two things, both on it."""
    for thing in (f"lantern {token}", f"rope {token}"):
        journey = await follow(
            ecosystem, await ecosystem.send(f'Put "{thing}" on the {token} list')
        )
        expect_journey(journey, ["general"])
    database = ecosystem["general"].database
    (collection,) = await database.rows(
        "SELECT * FROM collections WHERE name ILIKE %s", (f"%{token}%",)
    )
    things = await database.rows(
        "SELECT * FROM entities WHERE collection_id = %s ORDER BY name", (collection["id"],)
    )

    assert [f"lantern {token}", f"rope {token}"] == [thing["name"] for thing in things], (
        f"both things are on the one list; found {things}"
    )


@pytest.mark.covers("E2E-CLASSIFICATION")
async def test_a_message_without_words_goes_to_general(ecosystem: Ecosystem) -> None:
    """An empty message is not lost: general is given it, and the inbox row says why.

    A product may ask a model about it, of which no sensible answer comes.
    """
    journey = await follow(ecosystem, await ecosystem.send("   "), rehearsed=False)
    story = journey.text()

    assert not journey.unfinished, f"the message has no final state\n{story}"
    assert ("general",) == journey.targets(), f"a message without words goes to general\n{story}"
    assert fallback_reason(journey.inbox[0]["decomposition"]), (
        f"the row says why it fell back\n{story}"
    )
    (session,) = journey.of_message("general")
    expect_finished(session, butler="general", story=story)
