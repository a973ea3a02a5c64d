"""Add butlers, not boilerplate: a folder with a ``butler.toml`` is all a new butler needs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness_core.base.bridge import Loop
from harness_core.base.evidence import Evidence
from harness_core.doubles.turns import route, say
from harness_core.infrastructure.databases import Contains
from harness_core.process import Run
from harness_core.system.subject import Subject
from suites.e2e.ecosystem.boot import link_butlers, open_ecosystem
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.observe.expect_journey import expect_inbox, expect_routing, expect_sessions
from suites.e2e.observe.journey import follow

pytestmark = pytest.mark.covers("E2E-NEW-BUTLER")

GARDEN = """
[butler]
name = "garden"
port = 8177
description = "Garden: plants, seeds, sowing, watering, tomatoes, roses and the greenhouse."
capabilities = ["plants", "watering", "sowing"]
"""


@pytest.mark.slow
def test_a_new_folder_is_booted_registered_and_reached(
    harness_loop: Loop,
    harness_run: Run,
    subject: Subject,
    evidence: Evidence,
    tmp_path: Path,
    token: str,
    progress: Callable[[str], None],
) -> None:
    """In a copy of the roster, one new folder is booted, registered, and gets its messages."""
    roster = tmp_path / "roster"
    link_butlers(subject, roster, ["switchboard"])
    (roster / "garden").mkdir()
    (roster / "garden" / "butler.toml").write_text(GARDEN, encoding="utf-8")
    manager = open_ecosystem(harness_run, subject, evidence=evidence, roster=roster, say=progress)
    with harness_loop.hold(manager) as ecosystem:
        harness_loop.run(lambda: expect_reached(ecosystem, token))


async def expect_reached(ecosystem: Ecosystem, token: str) -> None:
    """The new butler serves, is listed, and runs the one session of its message."""
    assert set(ecosystem.butlers) == {"garden", "switchboard"}, (
        f"the roster has garden and switchboard, found {sorted(ecosystem.butlers)}"
    )
    await ecosystem.switchboard.database.expect_row(
        "butler_registry",
        where={"name": "garden", "endpoint_url": Contains(f":{ecosystem['garden'].port}/")},
    )
    status = await ecosystem["garden"].status()

    assert status["name"] == "garden", f"garden calls itself {status['name']!r}"
    sent = await ecosystem.send(
        f"Please water the tomatoes in the greenhouse ({token})",
        model=[route("garden"), say("They are watered.")],
    )
    journey = await follow(ecosystem, sent)
    expect_inbox(journey, ["garden"])
    expect_routing(journey, ["garden"])
    expect_sessions(journey, ["garden"])
