"""Chaos gives back what it broke, proves it, and says so when it cannot."""

from __future__ import annotations

import socket
from contextlib import nullcontext

import pytest

from harness_core.base.errors import HarnessError
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.worlds import chaos as module
from suites.e2e.worlds.canned import to_two
from suites.e2e.worlds.chaos import Chaos, expect_in_time

pytestmark = pytest.mark.aside("the suite's own way of breaking things and giving them back")


@pytest.mark.capability("own-process", "registry-table")
@pytest.mark.disturbs
async def test_everything_broken_is_given_back(fragile: Ecosystem) -> None:
    """After a test that broke all it could and then failed, the ecosystem is what it was."""
    chaos = Chaos(fragile)
    await chaos.begin()
    environment = dict(fragile["relationship"].environment)
    await chaos.start("relationship", LEFT_BY_A_TEST="1")
    await chaos.hold("")
    await chaos.enlist("ghost", like="general", url="http://127.0.0.1:9/sse", description="ghost")
    await chaos.kill("general")
    await chaos.pause("health")
    await chaos.stop("relationship")
    await chaos.kill_database()
    await chaos.restore()

    assert fragile["relationship"].environment == environment, "its environment was not put back"
    assert not fragile.unusable, f"what was given back is called unusable: {fragile.unusable}"
    await fragile.switchboard.database.expect_no_row("butler_registry", where={"name": "ghost"})
    message = to_two()
    sent = await fragile.send(message.text)
    for butler in message.butlers:
        await message.expect_row(fragile, butler)

    assert sent.answer["duplicate"] is False, f"a new message is a duplicate: {sent.answer}"


@pytest.mark.capability("own-process")
@pytest.mark.disturbs
async def test_what_cannot_be_given_back_is_reported(fragile: Ecosystem) -> None:
    """An ecosystem that stays broken is marked, and later tests on it are errors of the harness."""
    chaos = Chaos(fragile)
    await chaos.begin()
    await chaos.kill("general")
    with socket.create_server(("127.0.0.1", fragile["general"].port)):
        with pytest.raises(HarnessError):
            await chaos.restore()
        marked = fragile.unusable
        with pytest.raises(HarnessError, match="a test broke it for good"):
            fragile.check_usable()
    # What held the port is gone: this time everything comes back, and may be used again.
    fragile.unusable = ""
    await chaos.restore()

    assert marked, "an ecosystem that could not be given back is not marked as unusable"
    status = await fragile["general"].status()

    assert status["name"] == "general", f"general calls itself {status['name']!r}"


@pytest.mark.parametrize(
    ("took_s", "busy", "verdict"),
    [
        pytest.param(2.9, 1.0, AssertionError, id="early"),
        pytest.param(3.0, 1.0, None, id="at-once"),
        pytest.param(11.0, 1.0, None, id="in-time"),
        pytest.param(11.1, 1.0, AssertionError, id="late"),
        pytest.param(2.9, 2.0, AssertionError, id="early-on-a-busy-machine"),
        pytest.param(11.1, 2.0, HarnessError, id="late-on-a-busy-machine"),
        pytest.param(19.1, 2.0, AssertionError, id="later-than-busy"),
    ],
)
def test_a_deadline_is_judged_where_the_machine_can_tell(  # lint: allow patching: of the load
    monkeypatch, took_s, busy, verdict
) -> None:
    """Early is a failure, late too; what a busy machine may have added is an error of the harness."""
    monkeypatch.setattr(module, "slowness", lambda: busy)
    with pytest.raises(verdict) if verdict else nullcontext():
        expect_in_time("the hop", took_s, deadline_s=3.0, slack_s=8.0)
