"""Two runs side by side: what ended otherwise, what only one has, what took another time."""

import json
import subprocess
import sys

import pytest

CASE = '<testcase classname="suites.demo.test_it" name="{0}" time="{2}">{1}</testcase>'
FAILED = '<failure message="AssertionError: a reply is due: expected {0}, found none&#10;more">x</failure>'
SKIPPED = '<skipped type="pytest.skip" message="no such capability">x</skipped>'
KNOWN = '<skipped type="pytest.xfail" message="it is slow (#7)" />'
HARNESS = (
    '<properties><property name="harness_error" value="true" /></properties>'
    "<error message='failed on setup with \"harness_core.base.errors.NotReady: cannot boot: 9 s\"'>x</error>"
)


@pytest.fixture
def tree(tmp_path):
    """A tree with a suite of one file."""
    (tmp_path / "suites/demo").mkdir(parents=True)
    (tmp_path / "suites/demo/test_it.py").touch()
    (tmp_path / "pyproject.toml").touch()
    return tmp_path


def written(path, *cases):
    """A JUnit file of cases: name, what became of it, seconds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = "".join(CASE.format(*case) for case in cases)
    path.write_text(f'<testsuites><testsuite time="4">{rows}</testsuite></testsuites>')
    return path


def compare(tree, a, b, *words):
    """Run the command."""
    return subprocess.run(
        [sys.executable, "-m", "harness_core.front.cli", "report", "--compare", a, b, *words],
        cwd=tree,
        capture_output=True,
        text=True,
        check=False,
    )


def test_what_two_runs_have_not_in_common(tree):
    """With the first lines of both; status 1, as of diff."""
    a = written(
        tree / "a.xml",
        *(("test_same", "", 1), ("test_broke", "", 1), ("test_other", FAILED.format(1), 1)),
        *(("test_slow", "", 1), ("test_gone", SKIPPED, 0), ("test_wait", HARNESS, 9)),
    )
    b = written(
        tree / "b/reports/demo.xml",
        *(("test_same", "", 1.9), ("test_broke", FAILED.format(3), 1), ("test_new", KNOWN, 0)),
        *(("test_other", FAILED.format(2), 1), ("test_slow", "", 3.5), ("test_wait", "", 9)),
    )
    done = compare(tree, a, b.parents[1])

    assert (1, "") == (done.returncode, done.stderr)
    test = "suites/demo/test_it.py::test_"
    assert [
        f"A: {a}: 6 tests: 3 passed, 1 not run, 1 harness could not run, 1 failed, in 4.0 s",
        f"B: {b.parents[1]}: 6 tests: 3 passed, 1 known, 2 failed, in 4.0 s",
        "ended otherwise: 3",
        f"  {test}broke",
        "    A  passed",
        "    B  failed  a reply is due: expected 3, found none",
        f"  {test}other",
        "    A  failed  a reply is due: expected 1, found none",
        "    B  failed  a reply is due: expected 2, found none",
        f"  {test}wait",
        "    A  harness could not run  cannot boot: 9 s",
        "    B  passed",
        "only in A: 1",
        f"  {test}gone  not run  no such capability",
        "only in B: 1",
        f"  {test}new  known  it is slow (#7)",
        "took twice as long, and 1 s more: 1",
        f"  {test}slow  A 1.0 s  B 3.5 s",
    ] == done.stdout.splitlines()


def test_the_same_for_machines(tree):
    """Every test, with words, first lines and seconds."""
    a = written(tree / "a.xml", ("test_it", "", 1), ("test_gone", SKIPPED, 0))
    b = written(tree / "b.xml", ("test_it", FAILED.format(3), 4))
    found = json.loads(compare(tree, a, b, "--json").stdout)

    name = "suites/demo/test_it.py::test_it"
    assert {"word": "passed", "why": "", "seconds": 1.0} == found["otherwise"][name]["a"]
    why = "a reply is due: expected 3, found none"
    assert {"word": "failed", "why": why, "seconds": 4.0} == found["otherwise"][name]["b"]
    assert ["suites/demo/test_it.py::test_gone"] == list(found["only_in_a"])
    assert [name] == list(found["times"])


def test_alike(tree):
    """Status 0; a run that is compared with itself differs in nothing."""
    a = written(tree / "a.xml", ("test_it", "", 1), ("test_bad", FAILED.format(3), 4))
    done = compare(tree, a, a)

    assert 0 == done.returncode, done.stderr
    assert ["ended otherwise: 0", "only in A: 0", "only in B: 0"] == done.stdout.splitlines()[2:]


def test_a_test_of_two_sessions_is_what_it_is_where_it_ran(tree):
    """A session that leaves it out says nothing of it."""
    written(tree / "a/one.xml", ("test_it", FAILED.format(3), 1), ("test_more", "", 1))
    written(tree / "a/two.xml", ("test_it", SKIPPED, 0), ("test_more", FAILED.format(4), 1))
    b = written(tree / "b.xml", ("test_it", "", 1), ("test_more", "", 1))
    done = compare(tree, tree / "a", b)

    assert "2 tests: 2 failed, in 8.0 s" in done.stdout


@pytest.mark.parametrize("there", [False, True])
def test_what_is_no_run_is_one_error(tree, there):
    """A folder without a report, a file that is none."""
    a = written(tree / "a.xml", ("test_it", "", 1))
    bad = tree / "bad"
    bad.mkdir()
    if there:
        (bad / "it.xml").write_text("{}")
    done = compare(tree, a, bad)

    assert 2 == done.returncode
    assert 1 == len(done.stderr.splitlines()), done.stderr
    expected = "expected a JUnit report" if there else "found 'no report', expected a JUnit file"
    assert expected in done.stderr
