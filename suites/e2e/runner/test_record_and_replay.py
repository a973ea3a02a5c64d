"""Record and replay: scenarios recorded from a provider pass again when the provider is gone.

The provider is a second gateway in mode `rehearsed`, which speaks the provider's API. Both runs are a
pytest of their own, as a person would start them, with tokens, ids and times of their own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness_core.base.bridge import Loop
from harness_core.base.evidence import Evidence
from harness_core.base.slowness import patience
from harness_core.doubles.model import open_gateway
from harness_core.front.pytest_plugin import HARNESS_ERROR_EXIT
from harness_core.process import Run
from suites.e2e.worlds.everyday import REHEARSALS

pytestmark = pytest.mark.aside("the harness's own recording")

#: One message to one butler, one to two, and one whose answer speaks of tomorrow.
ROWS = (
    "health-symptom-log",
    "two-domains-headache-and-reminder",
    "relationship-reminder-create",
)

END_S = 180


@pytest.mark.runner
def test_a_recorded_run_is_replayed_without_its_provider(
    harness_loop: Loop,
    harness_run: Run,
    evidence: Evidence,
    tmp_path: Path,
    pytestconfig: pytest.Config,
) -> None:
    """The same rows pass from the cassette alone; a changed recording ends as a harness error."""
    cassette = tmp_path / "cassette"
    with harness_loop.hold(open_gateway(harness_run, evidence=evidence)) as provider:
        harness_loop.run(lambda: provider.client.rehearse(*REHEARSALS))
        key = {"ANTHROPIC_API_KEY": provider.api_key}
        recorded = scenarios(
            pytestconfig,
            *("--llm", "record", "--llm-upstream", provider.url, "--llm-budget-usd", "2"),
            *(f"--llm-cassette={cassette}", f"--evidence={tmp_path / 'record'}"),
            environment=key,
        )
        secret = provider.api_key
    evidence.write_text("record.txt", recorded.stdout + recorded.stderr)
    files = sorted(cassette.glob("*.json"))

    assert 0 == recorded.returncode, recorded.stdout
    assert f"{len(ROWS)} passed" in recorded.stdout
    assert files
    assert [] == [path for path in files if secret in path.read_text(encoding="utf-8")]
    options = ("--llm", "replay", f"--llm-cassette={cassette}")
    replayed = scenarios(pytestconfig, *options, f"--evidence={tmp_path / 'replay'}")
    evidence.write_text("replay.txt", replayed.stdout + replayed.stderr)

    assert 0 == replayed.returncode, replayed.stdout
    assert f"{len(ROWS)} passed" in replayed.stdout
    assert "nothing was spent: mode replay" in replayed.stdout
    change_wording(files)
    missed = scenarios(pytestconfig, *options, f"--evidence={tmp_path / 'miss'}", rows=[ROWS[0]])
    evidence.write_text("miss.txt", missed.stdout + missed.stderr)

    assert HARNESS_ERROR_EXIT == missed.returncode, missed.stdout
    assert "cannot replay a model call: the nearest recorded request is " in missed.stdout
    assert "HARNESS ERROR" in missed.stdout


def scenarios(
    config: pytest.Config,
    *options: str,
    rows: tuple[str, ...] | list[str] = ROWS,
    environment: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a few scenarios in a pytest of their own."""
    tests = [f"suites/e2e/test_scenario_runner.py::test_scenario[{row}]" for row in rows]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-v", *tests, *options],
        cwd=config.rootpath,
        env=os.environ | (environment or {}),
        capture_output=True,
        text=True,
        timeout=patience(END_S),
        check=False,
    )


def change_wording(files: list[Path]) -> None:
    """As if the recording had been made with another prompt."""
    for path in files:
        body = json.loads(path.read_text(encoding="utf-8"))
        body["request"]["system"] = "You were another."
        path.write_text(json.dumps(body), encoding="utf-8")
