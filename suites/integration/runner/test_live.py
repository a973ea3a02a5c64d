"""The session that asks a provider: without a key it says why it does not; with one it does."""

from functools import partial
from typing import Final

import pytest
import trio

from harness_core.base.evidence import Evidence
from harness_core.base.slowness import patience
from harness_core.doubles.model import open_gateway
from harness_core.doubles.turns import Rehearsal, use
from harness_core.process import open_run
from suites.integration.live.test_live_run import FILE, TASK

LIVE: Final = "suites/integration/live"
END_S: Final = 240.0

#: Of pytest, when every test of a run was skipped.
SKIPPED: Final = 5


@pytest.mark.aside("about runs of this suite; proves no requirement")
@pytest.mark.runner
def test_without_a_key_no_provider_is_asked(start) -> None:
    """Its test is chosen, and skipped for its gate, before anything is booted."""
    run = start(LIVE, "--llm=live", ANTHROPIC_API_KEY="", CI="", HARNESS_REQUIRE="")
    code = run.process.wait(timeout=patience(END_S))

    assert code == SKIPPED, f"expected status {SKIPPED}, all skipped, found {code}\n{run.text()}"
    said = "gate 'live-llm': ANTHROPIC_API_KEY is not set"
    assert said in run.text(), f"the reason is said: expected {said!r}, found\n{run.text()}"
    assert "1 skipped" in run.text(), f"one test asks a provider: found\n{run.text()}"
    assert "booting" not in run.text(), f"nothing is booted in vain: found\n{run.text()}"


@pytest.mark.aside("about runs of this suite; proves no requirement")
@pytest.mark.runner
async def test_with_a_key_the_provider_is_asked(start, evidence: Evidence) -> None:
    """It passes with a gateway of another process as the provider, which is asked with the key, and paid."""
    turns = (
        use("fs_write", path=f"assets/{FILE}", content="{token}"),
        use("execute", command=f"cat assets/{FILE}"),
    )
    rehearsal = Rehearsal(message=TASK.format(token="{token:word}"), turns=turns)
    async with (
        open_run(evidence=evidence) as own,
        open_gateway(own, mode="rehearsed", evidence=evidence) as provider,
    ):
        await provider.client.rehearse(rehearsal)
        run = start(
            *(LIVE, "--llm=live", f"--llm-upstream={provider.url}"),
            ANTHROPIC_API_KEY=provider.api_key,
        )
        code = await trio.to_thread.run_sync(partial(run.process.wait, timeout=patience(END_S)))
        asked = await provider.client.ledger()

    assert code == 0, f"expected the run to pass, found {code}\n{run.text()}"
    assert "1 passed" in run.text(), f"expected its one test to run, found\n{run.text()}"
    statuses = [entry.status for entry in asked]
    assert statuses == [200] * 3, f"expected the provider asked three times, found {statuses}"
    assert provider.api_key not in run.text(), "the key of the provider is told to nobody"
