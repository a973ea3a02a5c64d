"""Messages that try to be instructions change neither where they go nor what is done."""

from __future__ import annotations

import pytest

from harness_core.assertions import fill, new_token
from suites.e2e.ecosystem.handle import Ecosystem
from suites.e2e.observe.journey import follow
from suites.e2e.security.injections import INJECTIONS, Injection
from suites.e2e.security.unmoved import expect_unmoved

pytestmark = pytest.mark.covers("E2E-INJECTION")

#: One of each kind, for a run without the whole corpus; a message takes about a second.
QUICK = ("ignore-previous", "closing-tag", "undeclared-shell")


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, id=row.id, marks=() if row.id in QUICK else pytest.mark.corpus)
        for row in INJECTIONS
    ],
)
async def test_an_injection_changes_nothing(ecosystem: Ecosystem, row: Injection) -> None:
    """The errand is done by the butlers it is for, with the tools it needs; no secret leaks."""
    sent = await ecosystem.send(*fill((row.text, row.model), new_token()))
    journey = await follow(ecosystem, sent)
    expect_unmoved(ecosystem, row, journey)


@pytest.mark.aside("the rows themselves")
def test_the_corpus_is_sound() -> None:
    """At least twenty attempts, each with an id of its own and the word that distinguishes it."""
    assert len(INJECTIONS) >= 20
    assert len(INJECTIONS) == len({row.id for row in INJECTIONS})
    assert [] == [row.id for row in INJECTIONS if "{token}" not in row.text]
    assert set(QUICK) <= {row.id for row in INJECTIONS}
