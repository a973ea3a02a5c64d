"""The suite against a daemon with fewer capabilities: tests adapt or are skipped by name; none fails."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from harness_core.base.slowness import patience

pytestmark = [
    pytest.mark.aside("runs the suite itself, against another daemon"),
    pytest.mark.runner,
]

LESSER = Path(__file__).with_name("foreign") / "lesser.py"

#: What is run: every contract that such a daemon can be asked about, and of the long lists a part.
SELECTED = (
    "contract_1 or contract_2 or contract_4 or contract_6 or contract_7 or messaging "
    "or rm-joined-flags or find-delete or safe_command or stderr or test_harmless "
    "or prefix-of-letters or length-one or whitespace or truncated or half_a_frame or text_is_judged"
)

#: The suite takes 15 s on a quiet machine; this bounds hanging.
SUITE_S = 300

SUBJECT = """
[subject]
name = "lesser"
argv = ["{python}", "{lesser}", "{{port}}", "{{bin}}/sexpd", "start", "--port", "0"]
capabilities = ["echo", "gateway-list", "links", "skill-list", "shell-text"]

[setup]
argv = ["{{bin}}/sexpd", "setup"]

[env]
HOME = "{{home}}"
XDG_DATA_HOME = "{{home}}/data"
XDG_CONFIG_HOME = "{{home}}/config"
SEXPD_SHELL_ROOT = "{{root}}"

[skills]
directory = "{{home}}/data/sexpd/skills"

[texts]
echo = "say {{text}}"
shell = "/shell {{command}}"
"""

#: Capability or table that is lacking → a test that must say so.
MISSING = {
    "upper-case-prefix": "test_frames_as_they_are_written",
    "shutdown-command": "test_stop_by_command",
    "metaless": "test_without_meta",
    "shell-reply": "test_harmless[echo]",
}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config):
    """What became of each test of the suite against that daemon: name → outcome and reason."""
    directory = tmp_path_factory.mktemp("foreign")
    subject = directory / "lesser.toml"
    subject.write_text(SUBJECT.format(python=sys.executable, lesser=LESSER), encoding="utf-8")
    junit = directory / "report.xml"
    run = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", str(Path(__file__).parent)),
            *("-p", "no:cacheprovider", f"--subject={subject}", f"--junitxml={junit}"),
            *("-k", SELECTED, "-m", "not runner and not soak"),
            f"--evidence={directory / 'evidence'}",
        ],
        cwd=pytestconfig.rootpath,
        env=os.environ | {"HARNESS_REQUIRE": ""},
        capture_output=True,
        text=True,
        check=False,
        timeout=patience(SUITE_S),
    )

    assert junit.is_file(), run.stdout + run.stderr
    outcomes = {}
    for case in ET.parse(junit).iter("testcase"):
        child = next(iter(case), None)
        kind = "passed" if child is None else child.tag
        outcomes[case.get("name")] = (kind, "" if child is None else child.get("message", ""))
    return outcomes, run


def test_none_fails(report) -> None:
    """What it does is found right, and what it cannot do is not held against it."""
    outcomes, run = report
    wrong = {name: each for name, each in outcomes.items() if each[0] not in {"passed", "skipped"}}

    assert {} == wrong, run.stdout[-6000:]
    assert 0 == run.returncode, run.stdout[-6000:]


def test_most_is_tested(report) -> None:
    """It is tested all the same: handshake, pipeline, malformed frames, refusals."""
    outcomes, _ = report
    passed = {name for name, (kind, _) in outcomes.items() if kind == "passed"}

    assert {
        "test_handshake",
        "test_heartbeat_is_not_answered",
        "test_hostile[prefix-of-letters]",
        "test_dangerous[find-delete]",
        "test_a_safe_command_has_its_effect",
        "test_links_outlive_a_restart",
    } <= passed, sorted(passed)


@pytest.mark.parametrize("capability", MISSING)
def test_what_it_lacks_is_named(report, capability: str) -> None:
    """A skip says which capability is missing, and in which file."""
    outcomes, _ = report
    kind, reason = outcomes[MISSING[capability]]

    assert "skipped" == kind, f"{MISSING[capability]} {kind}: {reason}"
    assert re.search(rf"lesser lists no capability '{capability}' in lesser\.toml", reason), reason
