"""Products whose prompts are shaped in other ways: judged for what they do, not for how they ask.

The model provider is a stand-in, the gateway's rehearsed model. The products are the reference
system with another classifying prompt (``BUTLERS_PROMPT_SHAPE``), each once as it is and once with a
misrouting of its own.
"""

from __future__ import annotations

import os
import re
import subprocess  # lint: allow driver: runs the harness itself, not the system
import sys
from pathlib import Path

import pytest

from harness_core.base.slowness import patience
from harness_core.front.skips import not_run
from harness_core.front.suite_fixtures import suite_subject
from harness_core.system.subject import subject_bin

pytestmark = pytest.mark.aside("runs the suite itself, on another product")

#: One domain each, and several at once.
ROWS = (
    "health-symptom-log",
    "general-book-to-list",
    "relationship-contact-create",
    "three-domains-weight-contact-film",
)

#: Shape → what the subject file says of it; nothing where it is read from the structure.
SHAPES = {
    "spans": """
[model]
message = "### message\\n{message}\\n### end message"
answer = '[{"agent": "{target}", "start": "{start}", "end": "{end}", "confidence": 0.9}]'
""",
    "prose": "",
    "tool": "",
}

END_S = 240


@pytest.mark.runner
@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_a_foreign_prompt_is_no_failure(
    shape: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """A product that asks in its own way and routes right passes every row."""
    done = judged(shape, tmp_path, pytestconfig)

    assert 0 == done.returncode, done.stdout
    assert f"{len(ROWS)} passed" in done.stdout


@pytest.mark.prompts
@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_a_misrouting_behind_a_foreign_prompt_is_the_products(
    shape: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """What the model answered and what the product made of it stand in the first line."""
    done = judged(shape, tmp_path, pytestconfig, fault="foreign-misrouted")
    found = re.findall(r"AssertionError: (expected .*)", done.stdout)

    assert 1 == done.returncode, done.stdout
    assert "HARNESS ERROR" not in done.stdout, done.stdout
    assert "3 failed, 1 passed" in done.stdout, done.stdout
    assert any(
        line.startswith("expected health, found that sessions ran on general; ") for line in found
    ), found
    assert all("; the model had answered " in line for line in found), found


def judged(
    shape: str, folder: Path, config: pytest.Config, *, fault: str = ""
) -> subprocess.CompletedProcess[str]:
    """A few rows, in a run of their own, on a product that asks in that shape."""
    if config.getoption("--subject"):
        not_run(
            "options", "the products are made of the reference system, and --subject names another"
        )
    reference = suite_subject(config, config.rootpath / "suites" / "e2e").path
    text = reference.read_text(encoding="utf-8")
    text = re.sub(r"(?ms)^\[model\]\n.*?(?=^\[|^#)", lambda _: SHAPES[shape], text)
    text = text.replace("[env]\n", f'[env]\nBUTLERS_PROMPT_SHAPE = "{shape}"\n', 1)
    text = text.replace('"../../../roster"', f'"{config.rootpath / "roster"}"')
    text = text.replace('"butlers/', f'"{reference.parent}/butlers/')
    path = folder / "product.toml"
    path.write_text(re.sub(r"(?m)^project = .*\n", "", text), encoding="utf-8")
    tests = [f"suites/e2e/test_scenario_runner.py::test_scenario[{row}]" for row in ROWS]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *tests, f"--subject={path}", f"--evidence={folder / 'e'}"],
        cwd=config.rootpath,
        env=os.environ | {"HARNESS_SUBJECT_BIN": subject_bin(), "BUTLERS_FAULT": fault},
        capture_output=True,
        text=True,
        timeout=patience(END_S),
        check=False,
    )
