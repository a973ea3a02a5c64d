"""A whole suite with a ledger: what the lint finds, what pytest refuses, what the table shows."""

import json
import os
import subprocess
import sys

import pytest

from harness_core.assurance.requirements import check_tree

FILES = {
    "pyproject.toml": (
        '[dependency-groups]\ntest = []\n[tool.pytest.ini_options]\naddopts = "--strict-markers"\n'
    ),
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
    "suites/doors/smoke/test_doors.py": (
        "import pytest\n\n"
        "from door_contract import Door\n\n"
        '@pytest.mark.covers("REQ-001")\n@pytest.mark.now\n'
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


def run(tree, *argv, ci=""):
    """Run a module of this Python in the tree."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    env |= {"CI": ci, "HARNESS_REQUIRE": ""}
    env["PYTHONPATH"] = str(tree / "suites" / "doors" / "reference-system" / "contract")
    env["HARNESS_STATE_DIR"] = str(tree / "state")
    # Other plugins of this environment take a second to load; what a test needs, it names.
    env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    env["PYTEST_PLUGINS"] = "harness_core.front.pytest_plugin" + (
        ",xdist.plugin" if "-n" in argv else ""
    )
    return subprocess.run(
        [sys.executable, "-m", *argv],
        cwd=tree,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )


def first_row(tree):
    """REQ-001 as ``harness ledger`` shows it."""
    shown = run(tree, "harness_core.front.cli", "ledger", "doors", "--json")
    return json.loads(shown.stdout)["doors"][0]


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
        ("smoke/test_doors.py", "import pytest\n", "import pytest, boto3\n", ["driver"]),
        ("smoke/test_doors.py", "423 ==", "200 ==", ["no-fail-path"]),
        ("smoke/test_doors.py", "test_doors():", "test_doors(monkeypatch):", ["patching"]),
        ("smoke/test_doors.py", "():", "(door):\n    assert door.open", ["no-sentence"]),
        ("ledger.toml", "prefix", "faults_each = 2\nprefix", ["too-few-faults"]),
        ("faults.toml", '"REQ-001"', '"REQ-007"', ["unknown-id", "too-few-faults"]),
        ("faults.toml", '"REQ-001"', '"REQ-002"', ["fault-elsewhere", "too-few-faults"]),
        ("ledger.toml", "[[", '[ledger.allowed]\ndriver = "why"\n[[', []),
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


def test_a_file_of_tests_aside_is_not_held_to_the_outside(tree):
    """It proves the suite; one test in it that proves a requirement, and all of it is held."""
    aside = "import pytest, subprocess\n@pytest.mark.aside('why')\ndef test_x():\n    assert f()\n"
    path = tree / "suites" / "doors" / "test_runs.py"
    path.write_text(aside)

    assert [] == rules(tree)

    path.write_text(f"{aside}\n@pytest.mark.covers('REQ-001')\n@pytest.mark.now\n{LOCKED}")

    assert ["driver"] == rules(tree)


LOCKED = "def test_locked():\n    assert 423 == 400 + 23\n"


def test_pytest_runs_a_suite_that_agrees_with_its_ledger(tree):
    """Also a part of it."""
    result = run(tree, "pytest", "-q", "suites/doors/smoke")

    assert (0, True) == (result.returncode, "1 passed" in result.stdout), result.stdout


@pytest.mark.parametrize(
    ("name", "old", "new", "says"),
    [
        ("smoke/test_doors.py", "REQ-001", "REQ-002", "REQ-001 is covered by no test"),
        ("smoke/test_doors.py", "@pytest.mark.now\n", "", "mark it now"),
        ("ledger.toml", "REQ-002", "REQ-004", "expected REQ-002"),
        ("ledger.toml", '"deferred"', '"covered"', "reason: found 'needs hinges', expected none"),
        ("suite.toml", "may_import", "may_imports", "Did you mean may_import?"),
    ],
)
def test_pytest_refuses_a_suite_that_does_not(name, old, new, says, tree):
    """One usage error before any test runs, whatever part of the suite was asked for."""
    change(tree, name, old, new)

    # Before it starts workers: the process that the user started collects nothing itself.
    result = run(tree, "pytest", "-q", "-n", "1", "suites/doors/smoke")

    assert 4 == result.returncode, result.stdout + result.stderr
    assert says in result.stderr
    assert "INTERNAL" not in result.stdout + result.stderr
    assert "Traceback" not in result.stdout + result.stderr


def test_what_is_not_python_is_left_to_pytest(tree):
    """It says where; that its ids have no tests would mislead."""
    (tree / "suites/doors/smoke/test_doors.py").write_text("def test_(:\n")

    result = run(tree, "pytest", "-q", "suites/doors")

    assert 2 == result.returncode, result.stdout + result.stderr
    assert "SyntaxError" in result.stdout


def test_the_table_shows_each_id_with_tests_faults_and_status(tree):
    """Before any run nothing is shown; afterwards what the newest report has."""
    report = tree / ".evidence" / "reports" / "doors.xml"
    before = run(tree, "harness_core.front.cli", "ledger").stdout
    passed = run(tree, "pytest", "-q", "suites/doors", f"--junitxml={report}")
    assert 0 == passed.returncode, passed.stdout

    shown = json.loads(run(tree, "harness_core.front.cli", "ledger", "doors", "--json").stdout)
    text = run(tree, "harness_core.front.cli", "ledger").stdout

    assert [
        ("REQ-001", "shown", "", "1 passed", ["smoke/test_doors.py::test_doors"], 1),
        ("REQ-002", "deferred", "deferred", "needs hinges", [], 0),
    ] == [
        (row["id"], row["status"], row["cause"], row["why"], row["tests"], row["faults"])
        for row in shown["doors"]
    ]
    assert "doors: 2 rows: 0 shown, 2 not shown (1 not run, 1 deferred)" in before
    assert "doors: 2 rows: 1 shown, 1 not shown (1 deferred)" in text
    assert "REQ-001  p0  shown     1 faults  Doors open" in text


WAYS = """\
import pytest
from harness_core.base.errors import HarnessError

pytestmark = [pytest.mark.now, pytest.mark.covers("REQ-001")]

@pytest.fixture
def stuck():
    yield
    raise HarnessError("tidy", observed="stuck")

@pytest.mark.parametrize("what", ["open", "shut"])
def test_way(what, request):
    if what == "shut":
        {body}
    assert 423 == 400 + 23

@pytest.mark.aside("not counted")
def test_beside():
    pytest.skip("beside")
"""

#: What a second test of REQ-001 does in one of its cases → status, cause and why of the row.
WHAT_BECOMES = {
    "passes": ("pass", "shown", "", "3 passed"),
    "skips": (
        "pytest.skip('no door here')",
        "not shown",
        "skipped",
        "1 skipped (no door here), 2 passed",
    ),
    "is-known-to-fail": (
        "pytest.xfail('rust')",
        "not shown",
        "skipped",
        "1 skipped (known failure: rust), 2 passed",
    ),
    "fails": ("assert 1 == 2", "failed", "", "1 failed, 2 passed"),
    "cannot-look": (
        "raise HarnessError('look', observed='too dark')",
        "error",
        "",
        "1 error, 2 passed",
    ),
    "cannot-be-undone": (
        "request.getfixturevalue('stuck')",
        "error",
        "",
        "1 error, 2 passed",
    ),
    "fails-and-cannot-be-undone": (
        "request.getfixturevalue('stuck'); assert 1 == 2",
        "failed",
        "",
        "1 failed, 2 passed",
    ),
}


@pytest.mark.parametrize(
    ("name", "options"),
    [*((name, ()) for name in WHAT_BECOMES), ("skips", ("-n", "2")), ("cannot-look", ("-n", "2"))],
)
def test_a_requirement_is_shown_when_every_case_passed(name, options, tree):
    """The end of the session and the table afterwards agree."""
    body, status, cause, why = WHAT_BECOMES[name]
    (tree / "suites/doors/test_ways.py").write_text(WAYS.replace("{body}", body))
    report = tree / ".evidence" / "reports" / "doors.xml"

    result = run(tree, "pytest", "-q", *options, "suites/doors", f"--junitxml={report}")
    row = first_row(tree)

    assert (status, cause, why) == (row["status"], row["cause"], row["why"])
    assert "requirements of doors shown by this session" in result.stdout
    sums = {
        "shown": "2 P0 rows: 1 shown, 1 not shown (1 deferred)",
        "not shown": "2 P0 rows: 0 shown, 2 not shown (1 skipped, 1 deferred)",
        "failed": "2 P0 rows: 0 shown, 1 failed, 1 not shown (1 deferred)",
        "error": "2 P0 rows: 0 shown, 1 error, 1 not shown (1 deferred)",
    }
    assert sums[status] in result.stdout
    assert "  deferred: REQ-002" in result.stdout
    assert (status == "shown") != (f"  {cause or status}: REQ-001: {why}" in result.stdout)


@pytest.mark.parametrize(
    ("body", "left_out"),
    [
        ("pass", False),
        ("pytest.xfail('rust')", True),
        ("pytest.skip('it rains')", True),
        ("not_run('gate', 'no hinge', gate='docker')", True),
        ("not_run('options', 'no time')", False),
        ("not_run('subject', 'has no hinge')", False),
    ],
)
@pytest.mark.parametrize("options", [(), pytest.param(("-n", "2"), marks=pytest.mark.slow)])
def test_a_priority_that_is_shown_whole_leaves_out_no_row(body, left_out, options, tree):
    """Where a machine or a known failure leaves one out the session is red; a choice is a choice."""
    change(tree, "ledger.toml", '{ p0 = "now" }', '{ p0 = "now" }\nwhole = ["p0"]')
    path = tree / "suites" / "doors" / "ledger.toml"
    path.write_text("[[requirement]]".join(path.read_text().split("[[requirement]]")[:2]))
    ways = "from harness_core.front.skips import not_run\n" + WAYS
    (tree / "suites/doors/test_ways.py").write_text(ways.replace("{body}", body))

    result = run(tree, "pytest", "-q", *options, "suites/doors")

    assert left_out == bool(result.returncode), result.stdout
    assert left_out == ("to be shown whole, and left out: REQ-001" in result.stdout)


def test_a_skip_that_ci_refuses_is_an_error_of_its_requirement(tree):
    """Of the harness, which could not show it, and not a failure of the product."""
    (tree / "suites/doors/test_ways.py").write_text(WAYS.replace("{body}", "pytest.skip('x')"))
    report = tree / ".evidence" / "reports" / "doors.xml"

    result = run(tree, "pytest", "-q", "suites/doors", f"--junitxml={report}", ci="1")
    row = first_row(tree)

    assert ("error", "1 error, 2 passed") == (row["status"], row["why"])
    assert "  error: REQ-001: 1 error, 2 passed" in result.stdout


def test_a_part_of_its_tests_shows_no_requirement(tree):
    """A test that the session did not choose is named in the table, and its id in the session."""
    (tree / "suites/doors/test_ways.py").write_text(WAYS.replace("{body}", "pass"))
    report = tree / ".evidence" / "reports" / "doors.xml"

    result = run(tree, "pytest", "-q", "suites/doors", "-k", "way", f"--junitxml={report}")

    assert "2 P0 rows: 0 shown, 2 not shown (1 not run, 1 deferred)" in result.stdout
    assert "  not run: REQ-001" in result.stdout
    expected = "2 passed, 1 of 2 tests not run (smoke/test_doors.py::test_doors)"
    assert expected == first_row(tree)["why"]


def test_a_priority_without_a_test_is_summed_up_when_it_is_asked_for(tree):
    """Nothing ran, and that is said by what is not shown."""
    change(tree, "ledger.toml", '{ p0 = "now" }', '{ p0 = "now", p1 = "later" }')
    path = tree / "suites" / "doors" / "ledger.toml"
    head, row, last = path.read_text().split("[[requirement]]")
    last = last.replace('"p0"', '"p1"')
    path.write_text(f"{head}[[requirement]]{row}[[requirement]]{last}")

    result = run(tree, "pytest", "-q", "suites/doors", "-m", "(later) and (not slow)")
    silent = run(tree, "pytest", "-q", "suites/doors", "-k", "nothing")

    assert "1 P1 rows: 0 shown, 1 not shown (1 deferred)" in result.stdout
    assert "P0 rows" not in result.stdout
    assert "requirements of doors" not in silent.stdout


def test_a_failure_in_another_report_is_not_hidden(tree):
    """Cases of one test in two sessions: the newest report of each case counts, not of each test."""
    reports = tree / ".evidence" / "reports"
    (tree / "suites/doors/test_ways.py").write_text(WAYS.replace("{body}", "assert 1 == 2"))
    run(tree, "pytest", "suites/doors", "-k", "not open", f"--junitxml={reports}/one.xml")
    run(tree, "pytest", "suites/doors", "-k", "open", f"--junitxml={reports}/two.xml")

    row = first_row(tree)

    assert ("failed", "1 failed, 2 passed") == (row["status"], row["why"])


@pytest.mark.slow
def test_a_skip_in_one_session_leaves_what_another_has_shown(tree):
    """In the order of their files; a failure of the older one is not hidden by it either."""
    reports = tree / ".evidence" / "reports"
    ways = tree / "suites" / "doors" / "test_ways.py"
    statuses = []
    for body in ("pytest.skip('here')", "pass", "assert 1 == 2"):
        ways.write_text(WAYS.replace("{body}", body))
        run(tree, "pytest", "suites/doors", f"--junitxml={reports}/one.xml")
        ways.write_text(WAYS.replace("{body}", "pytest.skip('there')"))
        run(tree, "pytest", "suites/doors", "-k", "way", f"--junitxml={reports}/two.xml")
        statuses.append(first_row(tree)["status"])

    assert ["not shown", "shown", "failed"] == statuses


def test_a_ledger_of_an_unknown_suite_is_one_clear_error(tree):
    """Status 2, and which suites have one."""
    result = run(tree, "harness_core.front.cli", "ledger", "windows")

    assert 2 == result.returncode
    assert "expected a suite with a ledger: doors" in result.stderr
