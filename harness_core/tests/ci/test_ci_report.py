"""What a job shows: each failure beside its line, with the first lines of its cause; what was skipped."""

import json
import os
import subprocess
import sys

import pytest

from harness_core.base.errors import BadInput
from harness_core.front.ci import Failure, Report, annotate, read_faults, read_report, summarize

TESTS = """
import pytest
from harness_core.base.errors import NotReady

class TestTotal:
    def test_fails(self):
        assert {"x": 2} == {"x": 1}, "the total: 50 %, not 100 %"

def deep():
    raise ValueError("first\\n\\nsecond\\nthird\\nfourth")

def test_raises():
    deep()

def test_helped(helper):
    helper()  # the call

def test_harness():
    raise NotReady("start postgres", observed="no answer in 5 s", next_step="Look at the log")

@pytest.fixture
def broken():
    raise RuntimeError("no <room>")

def test_setup(broken): pass

@pytest.fixture
def sticky():
    yield
    raise RuntimeError("it stays")

def test_teardown(sticky): assert False, "and the test failed"

@pytest.mark.parametrize("row", ["a/b.c", "d|e"])
def test_rows(row):
    if row == "d|e":
        pytest.skip("gate 'docker': no engine answers")

@pytest.mark.skip(reason="gate 'docker': no engine answers")
def test_marked(): pass

def test_passes(): pass

@pytest.mark.requires("live-llm")
def test_demands(): pass
"""


HELPER = """
import pytest

@pytest.fixture
def helper():
    def check():
        raise ValueError("found by a helper")
    return check
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A tree in which pytest has run a file of failures, and one that cannot be imported."""
    root = tmp_path_factory.mktemp("tree")
    folder = root / "suites" / "demo" / "deep"
    folder.mkdir(parents=True)
    (folder / "test_demo.py").write_text(TESTS)
    (root / "suites" / "demo" / "conftest.py").write_text(HELPER)
    (folder / "test_broken.py").write_text("def broken(:\n")
    (root / "pyproject.toml").write_text("[tool.pytest]\n")
    subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "--import-mode=importlib", "-q"),
            *("-p", "no:cacheprovider", "--continue-on-collection-errors"),
            "--junitxml=.evidence/reports/demo.xml",
        ],
        cwd=root,
        env={**os.environ, "HARNESS_REQUIRE": "live-llm", "ANTHROPIC_API_KEY": "", "CI": ""},
        check=False,
        capture_output=True,
    )
    return root


@pytest.fixture(scope="module")
def report(tree):
    """The report of that run, read back."""
    return read_report(tree / ".evidence/reports/demo.xml", root=tree)


FILE = "suites/demo/deep/test_demo.py"


@pytest.mark.parametrize(
    ("name", "kind", "place", "cause"),
    [
        ("TestTotal::test_fails", "failed", "assert {", "AssertionError: the total: 50 %, not"),
        ("test_raises", "failed", "raise ValueError", "ValueError: first"),
        ("test_helped", "failed", "# the call", "ValueError: found by a helper"),
        ("test_harness", "HARNESS ERROR", "raise NotReady", "cannot start postgres: no answer"),
        ("test_demands", "HARNESS ERROR", None, "gate 'live-llm' is demanded by"),
        ("test_setup", "error", '"no <room>"', "RuntimeError: no <room>"),
        ("test_teardown", "failed", "and the test", "AssertionError: and the test failed"),
        ("test_teardown", "error", '"it stays"', "RuntimeError: it stays"),
    ],
)
def test_a_failure_is_shown_at_its_line(report, name, kind, place, cause):
    """The file, the line that failed, the first lines of the cause, and how to run it again."""
    (failure,) = [
        each for each in report.failures if each.name == f"{FILE}::{name}" and each.kind == kind
    ]
    lines = [
        number for number, line in enumerate(TESTS.splitlines(), start=1) if place and place in line
    ]

    assert FILE == failure.file
    assert failure.line in (lines or [0])
    assert cause in failure.cause[0]
    assert len(failure.cause) <= 3
    assert f"nox -s demo -- {FILE}::{name}" == failure.rerun


def test_a_file_that_cannot_be_imported_is_shown(report):
    """Its failure is no test's; it names the file and the syntax error."""
    (failure,) = [each for each in report.failures if "test_broken" in each.name]

    assert "suites/demo/deep/test_broken.py" == failure.file
    assert "SyntaxError: invalid syntax" == failure.cause[-1]


def test_what_passed_and_what_was_skipped_is_counted(report):
    """A test that failed twice (body and teardown) passed not at all; skips stand by reason."""
    assert 2 == report.passed
    assert {"gate 'docker': no engine answers": 2} == report.skips
    assert 9 == len(report.failures)


def test_an_annotation_is_one_line_with_its_escapes(report):
    """A colon, a comma or a per cent sign of ours does not end a property or a line."""
    lines = annotate([report])
    (line,) = [line for line in lines if "test_fails" in line]

    assert line.startswith(f"::error file={FILE},line=7,title=demo%3A failed%3A suites/demo/deep/")
    assert "::AssertionError: the total: 50 %25, not 100 %25%0A" in line
    assert all(line.startswith("::error ") and "\n" not in line for line in lines)


def test_the_summary_has_a_table_and_no_markup_of_ours(report):
    """Numbers, causes and skips; what a test says opens no tag and no column."""
    text = summarize([report], title="demo 1/2")

    assert text.startswith("### demo 1/2\n")
    assert "| demo | 2 | 9 | 2 |" in text
    assert "no &lt;room&gt;" in text
    assert "| 2 | gate 'docker': no engine answers |" in text
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert {3, 6} == {line.count("|") for line in rows if not line.startswith("| session")}


def test_a_job_without_a_report_says_so():
    """An environment that could not be built leaves no report: the summary is not empty."""
    assert "No report of tests: it has none, or it ended before the first." in summarize(
        [], title="e2e"
    )


def test_more_failures_than_are_shown_are_counted():
    """GitHub drops what exceeds ten: the last says how many."""
    failures = tuple(Failure(name=f"t{n}", kind="failed", cause=("c",)) for n in range(70))
    many = Report(session="s", passed=0, failures=failures, seconds=1.0)

    lines = annotate([many])
    text = summarize([many], title="s")

    assert 10 == len(lines)
    assert "::error title=and 61 more::They are in the summary of this run." == lines[-1]
    assert 50 == text.count("| failed: ")
    assert "and 20 more" in text


def test_a_fault_that_was_not_killed_is_shown(tmp_path):
    """Which tests did not notice, and the command that plants it again."""
    path = tmp_path / "faults" / "demo" / "report.json"
    path.parent.mkdir(parents=True)
    tests = [
        {"test": "a", "verdict": "killed", "detail": "AssertionError"},
        {"test": "b", "verdict": "survived", "detail": "it passed"},
    ]
    killed = {"id": "one", "verdict": "killed", "duration_s": 1.5, "tests": tests[:1]}
    survived = {"id": "two", "verdict": "survived", "duration_s": 2.0, "tests": tests}
    path.write_text(json.dumps([killed, survived]))

    report = read_faults(path)

    assert ("faults-demo", 1, 3.5) == (report.session, report.passed, report.seconds)
    assert [("two", "survived", ("b: it passed",), "nox -s faults -- demo two")] == [
        (each.name, each.kind, each.cause, each.rerun) for each in report.failures
    ]


@pytest.mark.parametrize("text", ["", "<a", "<testsuites/>"])
def test_a_malformed_report_is_refused_by_name(tmp_path, text):
    """Half a report, as a killed run may leave, is an error that names the file."""
    path = tmp_path / "demo.xml"
    path.write_text(text)

    with pytest.raises(BadInput, match="expected a JUnit report"):
        read_report(path, root=tmp_path)


@pytest.mark.parametrize(
    ("text", "key", "expected"),
    [("{", "", "a report of planted faults"), ('[{"id": "a"}]', "[0].verdict", "a text")],
)
def test_malformed_faults_are_refused_by_name(tmp_path, text, key, expected):
    """So is a report of faults."""
    path = tmp_path / "report.json"
    path.write_text(text)

    with pytest.raises(BadInput) as refused:
        read_faults(path)

    assert (str(path), key, expected) == (
        refused.value.where,
        refused.value.key,
        refused.value.expected,
    )
