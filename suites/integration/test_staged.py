"""What the page of ``harness up`` can send to a stack, and how far it sees that come."""

from __future__ import annotations

import pytest

from harness_core.base.errors import BadInput
from harness_core.base.evidence import Link, Message
from harness_core.system.compose import Stack
from harness_core.system.subject import Subject
from suites.integration.patience import EPISODE_S, eventually
from suites.integration.staged import tasks

pytestmark = [
    pytest.mark.integration_p0,
    pytest.mark.aside("tries what a person sends from the page, and judges no product"),
]


async def test_an_episode_is_sent_and_followed_to_its_end(stack: Stack, subject: Subject) -> None:
    """Its way has each status that it went through, under the words of the offer."""
    page = tasks(stack, subject)
    identity = await page.send("writes-and-runs", "")

    async def ended() -> bool:
        return (await page.way(identity)).ended

    await eventually(ended, seconds=EPISODE_S, expected=f"the episode {identity} to end")
    story = (await page.way(identity)).story
    (message,) = [row for row in story if isinstance(row, Message)]

    assert (identity, "An agent writes a script") == (message.id, message.text[:24])
    assert "submitted" == next(row.source for row in story if isinstance(row, Link))


async def test_what_was_never_offered_is_not_sent(stack: Stack, subject: Subject) -> None:
    """Nor is anything followed that was not sent here."""
    page = tasks(stack, subject)

    with pytest.raises(BadInput, match="one of writes-and-runs"):
        await page.send("no-such", "")
    with pytest.raises(BadInput, match="one that was sent here"):
        await page.way("no-such")
