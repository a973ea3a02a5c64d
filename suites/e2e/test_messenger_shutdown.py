"""Asked to stop, the messenger ends its session first and its modules then: what that sends goes out.

Telegram is a stand-in, a recorder on loopback: nothing leaves the machine. The session's model is held by
the gateway until the butler is stopping: a stand-in for the model provider, whose calls cannot be held.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Final

import pytest
import trio

from harness_core.doubles.model import Fault
from harness_core.doubles.turns import use
from harness_core.front.skips import not_run
from suites.e2e.ecosystem.mcp import CannotReach, ToolResult
from suites.e2e.observe.sentences import expect_same
from suites.e2e.worlds.chaos import expect_soon, refuses
from suites.e2e.worlds.credentialed import Connected
from suites.e2e.worlds.deliveries import expect_booked, sent_telegrams

pytestmark = [
    pytest.mark.main,
    pytest.mark.covers("E2E-DELIVERY", "E2E-LIFECYCLE"),
    pytest.mark.capability("modules", "own-process"),
]

#: A session from its call to its end, on a loaded machine.
SESSION_S: Final = 60.0

#: From SIGTERM to the first refusal.
REFUSES_S: Final = 20.0


@pytest.mark.slow
@pytest.mark.disturbs
async def test_a_session_that_is_drained_has_its_modules(connected: Connected, token: str) -> None:
    """A message that the last session sends, while its butler shuts down, arrives and is booked."""
    messenger = connected.butlers["messenger"]
    if "message_send" not in await messenger.tools():
        not_run("subject", "messenger has no tool message_send")
    prompt = f"Send a telegram to 4716: on the way out {token}"
    words = {"channel": "telegram", "recipient": "4716", "message": f"on the way out {token}"}
    await connected.butlers.rehearse(prompt, [use("message_send", **words)])
    client = connected.butlers.gateway.client
    mark = connected.telegram.mark()
    answers: list[ToolResult] = []

    async def trigger() -> None:
        with suppress(CannotReach):  # what counts is what goes out
            answers.append(
                await messenger.try_call("trigger", {"prompt": prompt}, seconds=SESSION_S)
            )

    hold = Fault(kind="hold", contains=token)
    try:
        async with trio.open_nursery() as nursery, client.fault(hold) as number:

            async def is_held() -> bool:
                return await client.fault_met(number) > 0

            nursery.start_soon(trigger)
            await expect_soon("the session asks its model", is_held, seconds=SESSION_S)
            nursery.start_soon(messenger.stop)
            await expect_soon(
                "a butler that shuts down refuses work",
                partial(refuses, messenger),
                seconds=REFUSES_S,
            )
    finally:
        await messenger.restart()

    expect_same(
        "a session that is drained does its work: its modules stop after it",
        expected=[("4716", words["message"])],
        found=sent_telegrams(connected, mark),
        story=str(answers),
    )
    await expect_booked(connected, token, channel="telegram", recipient="4716")
