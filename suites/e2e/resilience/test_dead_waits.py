"""The suite's own wait for the end of a message: a part that dies by itself ends it.

The call in the middle of which it dies is held by the gateway: a stand-in for the model provider.
"""

from __future__ import annotations

import os
import signal

import pytest
import trio

from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.observe.journey import follow
from suites.e2e.worlds.canned import to_health
from suites.e2e.worlds.chaos import Chaos

pytestmark = [
    pytest.mark.aside("judges the suite's own wait"),
    pytest.mark.capability("ingest.v1", "own-process"),
    pytest.mark.disturbs,
]


async def test_a_death_ends_the_wait(fragile: Ecosystem, chaos: Chaos) -> None:
    """Long before its deadline, and the journey says who died, and how."""
    message = to_health()
    held = await chaos.hold(message.token)
    sent = await fragile.send(message.text)
    await chaos.until_met(held)
    # Not by its handle, which would know that it was asked to end.
    os.kill(fragile.switchboard.process.place.pid, signal.SIGKILL)
    began = trio.current_time()
    journey = await follow(fragile, sent)
    waited_s = trio.current_time() - began
    await chaos.release(held)
    await chaos.start("switchboard")

    assert "switchboard was killed by SIGKILL" in journey.unfinished, (
        f"the journey says who died: expected the switchboard, found {journey.unfinished!r}"
    )
    assert waited_s < fragile.patience_s, (
        f"a death ends the wait: expected less than {fragile.patience_s} s, found {waited_s:.1f} s"
    )
