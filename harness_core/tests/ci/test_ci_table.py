"""The table at the end of a run of CI, and what keeps such a run from passing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

CASE = '<testcase classname="suites.demo.test_demo" name="test_{0}">{1}</testcase>'
SKIPPED = "<skipped message=\"gate 'smolvm': no smolvm (optional: no index has it)\">x</skipped>"
FAILED = '<failure message="assert 1 == 2">x</failure>'


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """An empty tree of suites."""
    (tmp_path / "suites").mkdir()
    (tmp_path / "pyproject.toml").touch()
    return tmp_path


def report(tree: Path, session: str, *cases: str) -> None:
    """What pytest leaves of a session: its cases, by what became of them."""
    path = tree / ".evidence/reports" / f"{session}.xml"
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = "".join(CASE.format(number, case) for number, case in enumerate(cases))
    path.write_text(f'<testsuites><testsuite time="1">{rows}</testsuite></testsuites>')


def planted(tree: Path, suite: str, *verdicts: str) -> None:
    """What planted faults leave."""
    path = tree / ".evidence/faults" / suite / "report.json"
    path.parent.mkdir(parents=True)
    rows = [{"id": v, "verdict": v, "tests": [], "duration_s": 1.0} for v in verdicts]
    path.write_text(json.dumps(rows))


def table(tree: Path, *arguments: str, **sessions: str) -> "subprocess.CompletedProcess[str]":
    """Run the command on what nox says of its sessions."""
    rows = [{"name": name, "signatures": [name], "result": r} for name, r in sessions.items()]
    (tree / "nox.json").write_text(json.dumps({"sessions": rows}))
    words = ["ci", "table", "--nox", "nox.json", *arguments]
    return subprocess.run(
        [sys.executable, "-m", "harness_core.front.cli", *words],
        cwd=tree,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_whole_run_is_one_table(tree):
    """A line for each session and for each reason of its skips; status 0."""
    report(tree, "core", "", "")
    report(tree, "demo", "", SKIPPED, SKIPPED)
    planted(tree, "demo", "killed", "killed", "killed")
    done = table(tree, "--left-out=containers: it was said so", core="success", demo="success")

    assert (0, "") == (done.returncode, done.stderr)
    assert [
        "session      passed  failed  skipped  why",
        "core              2       0        0",
        "demo              1       0        2  2 gate 'smolvm': no smolvm (optional: no index has it)",
        "faults-demo       3       0        0",
        "not run: containers: it was said so",
    ] == done.stdout.splitlines()


@pytest.mark.parametrize(
    ("cases", "verdicts", "result", "problem"),
    [
        pytest.param([""], ["killed"], "failed", "demo: it did not succeed", id="session"),
        pytest.param(["", FAILED], ["killed"], "success", "demo: 1 failed", id="test"),
        pytest.param([SKIPPED], ["killed"], "success", "demo: nothing ran", id="skips"),
        pytest.param([""], ["killed", "survived"], "success", "faults-demo: 1 failed", id="fault"),
        pytest.param([""], [], "success", "no planted fault was tried", id="no-fault"),
        pytest.param(None, ["killed"], "success", "no suite ran", id="no-suite"),
    ],
)
def test_what_keeps_a_run_from_passing(tree, cases, verdicts, result, problem):
    """Each way in which a run has not shown what it should is a sentence, and status 1."""
    report(tree, "core", "")
    if cases is not None:
        report(tree, "demo", *cases)
    if verdicts:
        planted(tree, "demo", *verdicts)
    done = table(tree, core="success", demo=result)

    assert 1 == done.returncode
    assert [problem] == [
        line[: len(problem)] for line in done.stderr.splitlines() if not line.startswith(" ")
    ]


def test_what_failed_is_named(tree):
    """Each test that failed stands below its session, with the first line of its cause; once."""
    report(tree, "core", "")
    report(tree, "demo", "", FAILED, *[FAILED.replace("1 == 2", f"{n} == 2") for n in range(30)])
    planted(tree, "demo", "killed", "survived")
    done = table(tree, core="success", demo="failed")

    words = done.stderr.splitlines()
    assert ["demo: 31 failed", "  suites.demo.test_demo::test_1: assert 1 == 2"] == words[:2]
    assert "  and more: see .evidence/reports" == words[21]
    assert ["faults-demo: 1 failed", "  survived: survived"] == words[22:]


def test_what_nox_writes_is_what_is_read(tree):
    """The report of nox itself, of a session that ends well and of one that does not."""
    report(tree, "core", "")
    report(tree, "demo", "")
    planted(tree, "demo", "killed")
    (tree / "noxfile.py").write_text(
        "import nox\n@nox.session(venv_backend='none')\ndef demo(session): session.error('no')\n"
        "@nox.session(venv_backend='none')\ndef core(session): pass\n"
    )
    nox = [sys.executable, "-m", "nox", "--report", "nox-report.json"]
    subprocess.run(nox, cwd=tree, capture_output=True, check=False)
    done = table(tree, "--nox=nox-report.json")

    assert (1, ["demo: it did not succeed"]) == (done.returncode, done.stderr.splitlines())


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "found "),
        ("[]", "found "),
        ("{}", "sessions: found nothing, expected an array"),
        ('{"sessions": [1]}', "sessions[0]: found 1, expected an object"),
    ],
)
def test_a_report_of_nox_that_is_none_is_refused(tree, text, reason):
    """A file that nox did not write is one clear error."""
    (tree / "odd.json").write_text(text)
    done = table(tree, "--nox=odd.json")

    assert 2 == done.returncode
    assert f"cannot read odd.json: {reason}" in done.stderr
    assert "Traceback" not in done.stderr
