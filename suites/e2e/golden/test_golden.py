"""Golden runs: everything a message leaves is what was once reviewed and found right.

Update after a change that is meant, and read the difference: nox -s e2e -- suites/e2e/golden
--snapshot-update. A snapshot whose scenario is gone fails the run until it is removed the same way.
"""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from harness_core.assertions import E2EScenario, Golden, fill
from harness_core.front.skips import not_run
from harness_core.system.subject import Subject
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.golden.kept import extension_for
from suites.e2e.golden.snapshots import golden_directory, outcome_of
from suites.e2e.observe.journey import follow
from suites.e2e.scenarios import SCENARIOS

pytestmark = pytest.mark.covers("E2E-REGRESSION")

ROWS = [row for row in SCENARIOS if isinstance(row.expected_output, Golden)]


@pytest.fixture
def pinned(
    snapshot: SnapshotAssertion, subject: Subject, pytestconfig: pytest.Config
) -> SnapshotAssertion:
    """The subject's own snapshots, where answers are worded the same each time."""
    mode = pytestconfig.getoption("--llm")
    if mode != "rehearsed":
        not_run("options", f"a model words its answers anew each time: --llm {mode}")
    directory = golden_directory(subject)
    if directory is None:
        not_run("subject", f"{subject.name} has no [golden] directory in {subject.path.name}")
    return snapshot.use_extension(extension_for(directory))


@pytest.mark.parametrize("scenario", ROWS, ids=[row.id for row in ROWS])
async def test_a_journey_is_the_one_that_was_found_right(
    ecosystem: Ecosystem, scenario: E2EScenario, token: str, pinned: SnapshotAssertion
) -> None:
    """Inbox row, hops, sessions and domain rows of one message equal the snapshot, field by field."""
    text, turns = fill((scenario.input_prompt, scenario.model), token)
    sent = await ecosystem.send(
        text,
        model=turns,
        source={"channel": "api", "provider": "staging-harness", "endpoint_identity": "e2e"},
        sender={"identity": "person@example.test"},
        payload={"raw": {"text": text}, "normalized_text": text},
    )
    journey = await follow(ecosystem, sent, seconds=scenario.timeout_s)
    left = await outcome_of(ecosystem, journey, tuple(scenario.db_assertions), token=token)

    assert pinned == left, f"what message {text!r} leaves is what was reviewed (golden run)"
