"""A whole suite with a ledger: what the lint finds, what pytest refuses, what the table shows."""

import json
import os
import subprocess
import sys

import pytest

from harness_core.ledger import check_tree

FILES = {
    "pyproject.toml": "[dependency-groups]\ntest = []\n",
    "suites/doors/suite.toml": """\
[suite]
name = "doors"
summary = "s"
group = "test"
ledger = "ledger.toml"
faults = "faults.toml"
may_import = ["door_contract"]
[[session]]
name = "doors"
summary = "s"
""",
    "suites/doors/ledger.toml": """\
[ledger]
prefix = "REQ-"
marker = "req"
priorities = { p0 = "now" }
[[requirement]]
id = "REQ-001"
title = "Doors open"
priority = "p0"
asserts = ["open"]
fails = "a locked door is refused"
status = "covered"
[[requirement]]
id = "REQ-002"
title = "Doors creak"
priority = "p0"
asserts = ["heard"]
no_fail_path = "nothing is refused"
status = "deferred"
reason = "needs hinges"
""",
    "suites/doors/faults.toml": """\
[[fault]]
id = "never-locked"
why = "w"
requirement = "REQ-001"
env = { DOOR = "1" }
tests = ["smoke/test_doors.py::test_doors"]
says = "locked"
""",
    "suites/doors/README.md": "# doors\n",
    "suites/doors/conftest.py": (
        "def pytest_configure(config):\n"
        "    config.addinivalue_line('markers', 'req(id): x')\n"
        "    config.addinivalue_line('markers', 'now: x')\n"
    ),
    "suites/doors/smoke/test_doors.py": (
        "import pytest\n\n"
        "from door_contract import Door\n\n"
        '@pytest.mark.req("REQ-001")\n@pytest.mark.now\n'
        "def test_doors():\n"
        '    """They open."""\n'
        '    assert 423 == Door.status, "the door is not locked"\n'
    ),
    "suites/doors/reference-system/pyproject.toml": "[project]\nname = 'doors'\n",
    "suites/doors/reference-system/contract/door_contract/__init__.py": "",
    "suites/doors/reference-system/inside/door_inside/__init__.py": "",
}


@pytest.fixture
def tree(tmp_path):
    """A tree whose one suite agrees with its ledger."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    contract = tmp_path / "suites/doors/reference-system/contract/door_contract/__init__.py"
    contract.write_text("class Door:\n    status = 423\n")
    return tmp_path


def change(tree, name, old, new):
    """Replace a text in a file of the suite."""
    path = tree / "suites" / "doors" / name
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))


def run(tree, *argv):
    """Run a module of this Python in the tree."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    env["PYTHONPATH"] = str(tree / "suites" / "doors" / "reference-system" / "contract")
    env["HARNESS_STATE_DIR"] = str(tree / "state")
    return subprocess.run(
        [sys.executable, "-m", *argv],
        cwd=tree,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )


def rules(tree):
    """What the lint finds in the suite."""
    return [problem.rule for problem in check_tree(tree)]


def test_a_suite_that_agrees_with_its_ledger_has_no_findings(tree):
    """One test, one fault, a fail path, and an import of published schemas."""
    assert [] == rules(tree)


@pytest.mark.parametrize(
    ("name", "old", "new", "found"),
    [
        ("smoke/test_doors.py", "from door_contract", "from door_inside", ["subject-internals"]),
        ("smoke/test_doors.py", "import pytest\n", "import pytest, boto3\n", ["not-http"]),
        ("smoke/test_doors.py", "423 ==", "200 ==", ["no-fail-path"]),
        ("smoke/test_doors.py", "test_doors():", "test_doors(monkeypatch):", ["patching"]),
        ("ledger.toml", "prefix", "faults_each = 2\nprefix", ["too-few-faults"]),
        ("faults.toml", '"REQ-001"', '"REQ-007"', ["unknown-id", "too-few-faults"]),
        ("ledger.toml", "deferred", "covered", None),
    ],
)
def test_the_lint_holds_a_ledgered_suite_to_the_rules(name, old, new, found, tree):
    """Each rule reaches the files of the suite by way of the tree."""
    change(tree, name, old, new)
    if found is None:
        change(tree, name, 'reason = "needs hinges"\n', "")
        found = ["id-without-test", "too-few-faults"]

    assert sorted(found) == sorted(rules(tree))


def test_pytest_runs_a_suite_that_agrees_with_its_ledger(tree):
    """Also a part of it."""
    result = run(tree, "pytest", "-q", "suites/doors/smoke")

    assert (0, True) == (result.returncode, "1 passed" in result.stdout), result.stdout


@pytest.mark.parametrize(
    ("name", "old", "new", "says"),
    [
        ("smoke/test_doors.py", "REQ-001", "REQ-002", "REQ-001 is covered by no test"),
        ("smoke/test_doors.py", "@pytest.mark.now\n", "", "mark it now"),
        ("ledger.toml", "REQ-002", "REQ-004", "none of them is REQ-002"),
    ],
)
def test_pytest_refuses_a_suite_that_does_not(name, old, new, says, tree):
    """A usage error before any test runs, whatever part of the suite was asked for."""
    change(tree, name, old, new)

    result = run(tree, "pytest", "-q", "suites/doors/smoke")

    assert 4 == result.returncode, result.stdout + result.stderr
    assert says in result.stderr


def test_the_table_shows_each_id_with_test_faults_and_last_result(tree):
    """The result is the one of the newest report that has the test."""
    report = tree / ".evidence" / "reports" / "doors.xml"
    passed = run(tree, "pytest", "-q", "suites/doors", f"--junitxml={report}")
    assert 0 == passed.returncode, passed.stdout

    shown = json.loads(run(tree, "harness_core.cli", "ledger", "doors", "--json").stdout)
    text = run(tree, "harness_core.cli", "ledger").stdout

    assert [
        ("REQ-001", "covered", "smoke/test_doors.py::test_doors", 1, "passed"),
        ("REQ-002", "deferred", "needs hinges", 0, ""),
    ] == [
        (row["id"], row["status"], row["test"], row["faults"], row["last"])
        for row in shown["doors"]
    ]
    assert "doors: 1 of 2 covered" in text
    assert "REQ-001 p0 covered   1 faults  passed  Doors open" in text


def test_a_ledger_of_an_unknown_suite_is_one_clear_error(tree):
    """Status 2, and which suites have one."""
    result = run(tree, "harness_core.cli", "ledger", "windows")

    assert 2 == result.returncode
    assert "expected a suite with a ledger: doors" in result.stderr
