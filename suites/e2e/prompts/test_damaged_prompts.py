"""Damages what the reference's models are asked, and finds the rows that notice.

The other way round: a row that passes whatever the prompt says shows nothing of the prompt. Each
damage boots an ecosystem of its own and sends it every row that is not of the corpus, and every
injection; the table at the end says who noticed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable

import pytest
import trio

from harness_core.assertions import fill, new_token
from harness_core.base.bridge import Loop
from harness_core.base.evidence import Evidence
from harness_core.front.pytest_plugin import add_summary
from harness_core.front.skips import not_run
from harness_core.process import Run
from harness_core.system.subject import Subject
from suites.e2e.ecosystem.boot import open_ecosystem
from suites.e2e.ecosystem.handle import Ecosystem, Sent
from suites.e2e.observe.expect_scenario import expect_scenario
from suites.e2e.observe.journey import follow
from suites.e2e.prompts.damages import DAMAGES, Damage
from suites.e2e.scenarios import SCENARIOS
from suites.e2e.security.injections import INJECTIONS
from suites.e2e.security.unmoved import expect_unmoved

pytestmark = [pytest.mark.prompts, pytest.mark.covers("E2E-CLASSIFICATION")]

#: Messages under way at a time.
AT_ONCE = 6


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A message and its judge."""

    id: str
    send: Callable[[Ecosystem], Awaitable[Sent]]
    judge: Callable[[Ecosystem, Sent], Awaitable[object]]


@pytest.mark.parametrize("damage", DAMAGES, ids=[damage.fault for damage in DAMAGES])
def test_a_damaged_prompt_is_noticed(
    damage: Damage,
    harness_loop: Loop,
    harness_run: Run,
    subject: Subject,
    evidence: Evidence,
    pytestconfig: pytest.Config,
    progress: Callable[[str], None],
) -> None:
    """At least one row dies of it; of what no reader would notice, none does.

    The model provider is a stand-in, the gateway's rehearsed model: only it does what rows say.
    """
    if pytestconfig.getoption("--subject") or pytestconfig.getoption("--llm") != "rehearsed":
        not_run("subject", f"{subject.name} has no switches that damage its prompts")
    booting = open_ecosystem(
        harness_run,
        subject,
        evidence=evidence,
        environment={"BUTLERS_FAULT": damage.fault},
        say=progress,
    )
    with harness_loop.hold(booting) as ecosystem:
        noticed = harness_loop.run(lambda: who_notices(ecosystem))
    names = ", ".join(sorted(noticed)) or "none"
    why = f" ({damage.unseen})" if damage.unseen else ""
    add_summary(
        pytestconfig,
        f"{damage.what} ({damage.fault})",
        f"{len(noticed)} of {len(rows())} rows notice{why}: {names}\n"
        + "\n".join(sorted({f"  {text}" for text in noticed.values()})[:3]),
    )

    assert bool(noticed) != bool(damage.unseen), f"{damage.what}: noticed by {names}"


async def who_notices(ecosystem: Ecosystem) -> dict[str, str]:
    """Row → the first line of what it found wrong."""
    noticed: dict[str, str] = {}
    turn = trio.CapacityLimiter(AT_ONCE)

    async def run(row: Row) -> None:
        async with turn:
            sent = await row.send(ecosystem)
            try:
                await row.judge(ecosystem, sent)
            except AssertionError as found:
                noticed[row.id] = str(found).partition("\n")[0][:160]

    async with trio.open_nursery() as nursery:
        for row in rows():
            nursery.start_soon(run, row)
    return noticed


def rows() -> list[Row]:
    """Scenarios outside the corpus, and all injections."""
    scenarios = [_scenario(row) for row in SCENARIOS if "corpus" not in row.tags]
    return [*scenarios, *(_injection(row) for row in INJECTIONS)]


def _scenario(scenario) -> Row:
    token = new_token()

    async def send(ecosystem: Ecosystem) -> Sent:
        return await ecosystem.send(*fill((scenario.input_prompt, scenario.model), token))

    async def judge(ecosystem: Ecosystem, sent: Sent) -> object:
        journey = await follow(ecosystem, sent, seconds=scenario.timeout_s)
        return await expect_scenario(ecosystem, scenario, journey, token)

    return Row(id=scenario.id, send=send, judge=judge)


def _injection(row) -> Row:
    async def send(ecosystem: Ecosystem) -> Sent:
        return await ecosystem.send(*fill((row.text, row.model), new_token()))

    async def judge(ecosystem: Ecosystem, sent: Sent) -> None:
        expect_unmoved(ecosystem, row, await follow(ecosystem, sent))

    return Row(id=f"injection:{row.id}", send=send, judge=judge)
