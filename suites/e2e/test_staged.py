"""What the page of ``harness up`` can send to an ecosystem, and how far it sees that come."""

from __future__ import annotations

from functools import partial

import pytest

from harness_core.base.errors import BadInput
from harness_core.base.evidence import Link, Message
from harness_core.base.wait import deadline, until
from suites.e2e.ecosystem.handle import REHEARSED, Ecosystem
from suites.e2e.staged import Letters, letters

pytestmark = pytest.mark.aside("tries what a person sends from the page, and judges no product")


async def test_a_scenario_is_sent_and_followed_to_its_end(ecosystem: Ecosystem) -> None:
    """Its way begins with the person; while it is under way, what has not come is no failure."""
    page = letters(ecosystem, ecosystem.subject)
    identity = await page.send("health-symptom-log", "")
    seen: list[set[str]] = []
    with deadline("see the message end", seconds=ecosystem.patience_s):
        await until(partial(_ended, page, identity, seen))
    story = (await page.way(identity)).story
    (message,) = [row for row in story if isinstance(row, Message)]
    links = [row for row in story if isinstance(row, Link)]

    assert identity == message.id
    assert identity in message.names
    assert "you" == links[0].source
    assert not [states for states in seen if "broken" in states]


async def _ended(page: Letters, identity: str, seen: list[set[str]]) -> bool:
    way = await page.way(identity)
    if not way.ended:
        seen.append({row.state for row in way.story if isinstance(row, Link)})
    return way.ended


async def test_what_it_offers_can_be_told_apart(ecosystem: Ecosystem) -> None:
    """Each has an id of its own and a text; free text is for models that understand it."""
    page = letters(ecosystem, ecosystem.subject)
    offers = page.offers()

    assert len({offer.id for offer in offers}) == len(offers) > 0
    assert [] == [offer.id for offer in offers if not (offer.title and offer.text)]
    assert (ecosystem.gateway.mode != REHEARSED) == page.free_text


async def test_what_was_never_offered_is_not_sent(ecosystem: Ecosystem) -> None:
    """Nor is anything followed that was not sent here."""
    page = letters(ecosystem, ecosystem.subject)

    with pytest.raises(BadInput, match="the id of a scenario"):
        await page.send("no-such", "")
    with pytest.raises(BadInput, match="one that was sent here"):
        await page.way("no-such")
