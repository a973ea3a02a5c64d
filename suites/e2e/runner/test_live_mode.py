"""The live mode, against a loopback upstream: same scenarios, a real key's care, a hard budget.

The upstream stands in for the model provider, which cannot be reached here: it is a second
gateway in offline mode, which speaks the provider's API. The run under test is a pytest of its
own, as a person would start it with a key.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness_core.bridge import Loop
from harness_core.evidence import Evidence
from harness_core.llm import open_gateway
from harness_core.process import Run
from suites.e2e.scenarios import SCENARIOS

#: Room for two or three messages: a call reserves its whole answer, about 0.02 USD.
BUDGET_USD = "0.04"

END_S = 180


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
        finished = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "suites/e2e/test_scenario_runner.py"),
                *("--llm", "live", "--llm-upstream", provider.url),
                *("--llm-budget-usd", BUDGET_USD, f"--evidence={tmp_path}"),
            ],
            cwd=pytestconfig.rootpath,
            env=os.environ | {"ANTHROPIC_API_KEY": provider.api_key},
            capture_output=True,
            text=True,
            timeout=END_S,
            check=False,
        )
        calls = harness_loop.run(provider.client.ledger)
    output = evidence.write_text("output.txt", finished.stdout + finished.stderr)
    counts = {
        word: int(number)
        for number, word in re.findall(r"(\d+) (passed|failed|error)", finished.stdout)
    }

    assert 0 != finished.returncode, output
    assert counts.get("passed", 0) >= 1, f"no scenario passed against the upstream: {output}"
    assert counts["passed"] < len(SCENARIOS), f"the budget stopped nothing: {output}"
    assert "failed" not in counts, f"a lack of money was blamed on the product: {output}"
    assert counts.get("error", 0) >= 1, f"the run does not say why it stopped: {output}"
    assert calls, "the upstream was never called"
    assert f"may spend {float(BUDGET_USD):.4f} USD" in finished.stdout
    assert "model calls (live)" in finished.stdout
    written = [path for path in tmp_path.rglob("*") if path.is_file()]

    assert written
    assert [] == [path for path in written if provider.api_key in path.read_text(errors="replace")]
    assert provider.api_key not in finished.stdout + finished.stderr
