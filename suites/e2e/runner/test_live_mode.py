"""The live mode, against a loopback upstream: same scenarios, a real key's care, a hard budget.

The upstream stands in for the model provider, which cannot be reached here: it is a second
gateway in mode `rehearsed`, which speaks the provider's API. The run under test is a pytest of its
own, as a person would start it with a key.
"""

from __future__ import annotations

import os
import re
import subprocess  # lint: allow driver: runs the harness itself, not the system
import sys
from pathlib import Path

import pytest

from harness_core.base.bridge import Loop
from harness_core.base.evidence import Evidence
from harness_core.base.slowness import patience
from harness_core.doubles.model import Fault, open_gateway
from harness_core.process import Run
from suites.e2e.scenarios import SCENARIOS
from suites.e2e.worlds.everyday import REHEARSALS

#: Room for two or three short messages: a call reserves its whole answer, about 0.02 USD.
BUDGET_USD = "0.04"
#: The rows in their order, since the first ones are short; a long one alone would be too much.
IN_ORDER = ("-p", "no:randomly")

END_S = 180


@pytest.mark.covers("E2E-COST")
@pytest.mark.runner
def test_the_budget_stops_a_live_run(
    harness_loop: Loop,
    harness_run: Run,
    evidence: Evidence,
    tmp_path: Path,
    pytestconfig: pytest.Config,
) -> None:
    """Scenarios pass against the provider until the budget ends the run, with a partial report."""
    with harness_loop.hold(open_gateway(harness_run, evidence=evidence)) as provider:
        harness_loop.run(lambda: provider.client.rehearse(*REHEARSALS))
        finished = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "suites/e2e/test_scenario_runner.py", *IN_ORDER),
                *("--llm", "live", "--llm-upstream", provider.url),
                *("--llm-budget-usd", BUDGET_USD, f"--evidence={tmp_path}"),
            ],
            cwd=pytestconfig.rootpath,
            env=os.environ | {"ANTHROPIC_API_KEY": provider.api_key},
            capture_output=True,
            text=True,
            timeout=patience(END_S),
            check=False,
        )
        calls = harness_loop.run(provider.client.ledger)
    output = evidence.write_text("output.txt", finished.stdout + finished.stderr)
    counts = {
        word: int(number)
        for number, word in re.findall(r"(\d+) (passed|failed|error)", finished.stdout)
    }

    assert 0 != finished.returncode, f"a run that is out of money fails: {output}"
    assert counts.get("passed", 0) >= 1, f"no scenario passed against the upstream: {output}"
    assert counts["passed"] < len(SCENARIOS), f"the budget stopped nothing: {output}"
    assert "failed" not in counts, f"a lack of money was blamed on the product: {output}"
    assert "error" in counts, f"the run does not say why it stopped: {output}"
    assert calls, "the upstream was never called"
    limit = f"may spend {float(BUDGET_USD):.4f} USD"
    assert limit in finished.stdout, f"the run says what it {limit}: {output}"
    assert "model calls (live)" in finished.stdout, f"the run says what its calls cost: {output}"
    written = [path for path in tmp_path.rglob("*") if path.is_file()]

    assert written, "a run leaves evidence, and there is none"
    holding = [path for path in written if provider.api_key in path.read_text(errors="replace")]
    assert [] == holding, f"no file of a run holds the provider's key, and these do: {holding}"
    shown = provider.api_key in finished.stdout + finished.stderr
    assert not shown, "the output of a run holds the provider's key"


#: A row with a pass rate, and the tool it is about.
RATED = ("health-meal-with-a-person", "meal_log")

#: Enough for all trials the plan allows.
AMPLE_USD = "3.00"

#: Up to some twenty trials of three sessions' worth of work.
TRIALS_S = 400


@pytest.mark.aside("how the suite judges a model that is not always right")
@pytest.mark.runner
@pytest.mark.slow
@pytest.mark.parametrize(
    ("share", "good"),
    [pytest.param(0.03, True, id="seldom"), pytest.param(0.8, False, id="mostly")],
)
def test_a_model_that_misbehaves_is_judged_by_its_rate(
    harness_loop: Loop,
    harness_run: Run,
    evidence: Evidence,
    tmp_path: Path,
    pytestconfig: pytest.Config,
    share: float,
    good: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    """A provider that claims without doing in some part of its answers passes or fails as declared.

    The provider also breaks one trial: that one counts for nothing, and the run says so.
    """
    scenario, tool = RATED
    lie = Fault(
        kind="answer", text="I have logged your meal.", contains=tool, share=share, times=1000
    )
    # One refused call, and the two variations the CLI tries after it.
    trouble = Fault(kind="status", status=400, times=3)
    with harness_loop.hold(open_gateway(harness_run, evidence=evidence)) as provider:
        harness_loop.run(lambda: provider.client.rehearse(*REHEARSALS))
        for fault in (trouble, lie):
            harness_loop.run(lambda fault=fault: provider.client.add_fault(fault))
        finished = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "suites/e2e/test_scenario_runner.py"),
                *("--llm", "live", "--llm-upstream", provider.url, "-k", scenario),
                *("--llm-budget-usd", AMPLE_USD, f"--evidence={tmp_path}"),
            ],
            cwd=pytestconfig.rootpath,
            env=os.environ | {"ANTHROPIC_API_KEY": provider.api_key},
            capture_output=True,
            text=True,
            timeout=patience(TRIALS_S),
            check=False,
        )
    output = evidence.write_text("output.txt", finished.stdout + finished.stderr)

    assert (0 if good else 1) == finished.returncode, output
    assert "1 not counted" in finished.stdout, f"the provider's own failure was counted: {output}"
    if good:
        assert ": good enough for a rate of 0.8" in finished.stdout, output
    else:
        assert ": not good enough for a rate of 0.8" in finished.stdout, output
        assert "claimed but not done: it says" in finished.stdout, output
