"""The suite on a product that differs from the reference in every respect a subject file can describe."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness_core.base.slowness import patience
from harness_core.front.skips import not_run
from harness_core.ports import lease_port
from harness_core.system.subject import subject_bin
from suites.e2e.ecosystem.roster import read_roster
from suites.e2e.ecosystem.subject_file import read_subject, tables_of
from suites.e2e.ecosystem.tools import HttpTools, tools_of

pytestmark = pytest.mark.aside("runs the suite itself, on another product")

HERE = Path(__file__).parent
TEMPLATE = HERE.parent / "subjects" / "foreign.toml"

#: A part of the suite that asks for every table of the file, and for what the product lacks.
PART = (
    "suites/e2e/test_ecosystem_health.py",
    "suites/e2e/test_handles.py",
    "suites/e2e/test_scenario_runner.py::test_scenario[health-symptom-log]",
    "suites/e2e/test_scenario_runner.py::test_scenario[two-domains-headache-and-reminder]",
    "suites/e2e/contracts/test_idempotency.py::test_the_same_event_twice_is_one_message",
    "suites/e2e/contracts/test_idempotency.py::test_fifty_callers_at_once_are_one_message",
    "suites/e2e/contracts/test_session_truth.py",
    "suites/e2e/security/test_injection.py::test_an_injection_changes_nothing[ignore-previous]",
    "suites/e2e/observability/test_traces.py",
)

END_S = 420


def test_the_template_is_a_subject_file() -> None:
    """What is handed to people to copy is read without a mistake, and differs in every respect."""
    subject = read_subject(TEMPLATE)
    tables = tables_of(subject)
    tools = tools_of(subject, name="health", port=1234)

    assert tables.one_process
    assert isinstance(tools, HttpTools)
    assert "http://127.0.0.1:1234/call/{tool}" == tools.call_url
    assert "tracing" not in subject.capabilities
    assert {*tables.ports} - {"source"} <= set(read_roster(subject.resolve("../../../roster")))


@pytest.mark.runner
@pytest.mark.slow
def test_the_suite_judges_a_foreign_product(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """One process, other ports and variables, tools over HTTP, no traces: judged, or skipped by name."""
    if pytestconfig.getoption("--subject"):
        not_run(
            "options",
            "the foreign product is made of the reference system, and --subject names another",
        )
    with lease_port() as lease:
        # A product that insists on a number; given back just before it is wanted.
        port = lease.port
    text = TEMPLATE.read_text(encoding="utf-8").replace("29100", str(port))
    argv = [sys.executable, str(HERE / "house.py"), f"{subject_bin()}/butlers", "{roster_dir}"]
    words = ", ".join(f'"{word}"' for word in argv)
    text = re.sub(r"(?m)^argv = .*$", lambda _: f"argv = [{words}]", text)
    text = text.replace('"../../../roster"', f'"{pytestconfig.rootpath / "roster"}"')
    # The house speaks MCP to the butlers behind it with the suite's own client.
    text = text.replace("[env]\n", f'[env]\nPYTHONPATH = "{pytestconfig.rootpath}"\n')
    path = tmp_path / "house.toml"
    path.write_text(text, encoding="utf-8")
    parts = [part for part in PART if (pytestconfig.rootpath / part.partition("::")[0]).exists()]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-rs", *parts),
            *(f"--subject={path}", f"--evidence={tmp_path / 'evidence'}"),
        ],
        cwd=pytestconfig.rootpath,
        env=os.environ | {"HARNESS_SUBJECT_BIN": subject_bin()},
        capture_output=True,
        text=True,
        timeout=patience(END_S),
        check=False,
    )
    output = done.stdout + done.stderr
    passed = re.search(r"^=+ (\d+) passed", output, re.MULTILINE)

    assert 0 == done.returncode, output
    assert passed is not None, output
    assert int(passed[1]) >= 10, output
    assert f"ready at 127.0.0.1:{port}" in output
    for missing in ("'own-process'", "'tracing'"):
        assert re.search(rf"SKIPPED.*{missing}", output), (
            f"nothing was skipped for {missing}: {output}"
        )
