"""Capabilities are declared, marked and asked for under the same names, and shown by tests there are."""

import pytest

from harness_core.assurance.requirements import check_tree

SUITE = """
[suite]
name = "demo"
summary = "s"
group = "test"
[[session]]
name = "echo"
summary = "s"
[[capability]]
name = "echo"
demands = "It says what it is told."
shown_by = ["test_demo.py::test_echo[row]", "test_demo.py::TestMore::test_more"]
[[capability]]
name = "links"
demands = "It links."
shown_by = ["test_demo.py::test_links"]
[[capability]]
name = "own"
demands = "It is alone."
shown_by = ["test_demo.py::test_echo"]
"""

TESTS = """
import pytest
from suites.demo.names import LINKS, OWN

pytestmark = [pytest.mark.slow, pytest.mark.capability("echo")]

@pytest.mark.parametrize("row", [pytest.param(1, marks=pytest.mark.capability(LINKS))])
def test_echo(row):
    assert f(row)

@pytest.mark.capability("echo", LINKS)
def test_links(subject):
    assert f() if OWN in subject.capabilities else g()

class TestMore:
    def test_more(self):
        assert f()
"""

NAMES = 'LINKS = "links"\nOWN: str = "own"\n'


@pytest.fixture
def found(tmp_path):
    """What the lint finds in a tree with these files: rule, line and what to do."""

    def finding(*, suite=SUITE, tests=TESTS, names=NAMES):
        files = {
            "pyproject.toml": "[dependency-groups]\ntest = []\n",
            "suites/demo/suite.toml": suite,
            "suites/demo/README.md": "# demo\n",
            "suites/demo/names.py": names,
            "suites/demo/test_demo.py": tests,
        }
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return [(problem.rule, problem.path, problem.line) for problem in check_tree(tmp_path)]

    return finding


def test_what_agrees_is_no_finding(found):
    """Marks of modules, tests and rows, names by way of a constant, questions of code."""
    assert [] == found()


@pytest.mark.parametrize(
    ("change", "rule", "file", "line"),
    [
        (
            {"tests": TESTS.replace('"echo", LINKS', '"ecko", LINKS')},
            "undeclared",
            "test_demo.py",
            11,
        ),
        ({"names": NAMES.replace('"own"', '"owned"')}, "undeclared", "test_demo.py", 13),
        (
            {"tests": TESTS.replace("OWN in", "{OWN, 'lone'} <=")},
            "undeclared",
            "test_demo.py",
            13,
        ),
        (
            {"tests": TESTS.replace(" if OWN in subject.capabilities else g()", "")},
            "unused",
            "suite.toml",
            18,
        ),
    ],
)
def test_names_that_do_not_agree_are_found(found, change, rule, file, line):
    """A mark or question that no suite.toml declares skips for ever; a declared name nobody uses."""
    assert (f"capability-{rule}", f"suites/demo/{file}", line) in found(**change)


def test_what_starts_the_product_is_there(found):
    """By a test that was renamed, nothing starts."""
    suite = SUITE.replace("group =", 'boots = "test_demo.py::{}"\ngroup =')

    assert [] == found(suite=suite.format("test_echo[row]"))
    assert [("shown-by-no-test", "suites/demo/suite.toml", 5)] == found(
        suite=suite.format("test_gone")
    )


@pytest.mark.parametrize(("test", "line"), [("test_echo[row]", 10), ("test_links", 14)])
def test_what_shows_a_capability_is_there(found, test, line):
    """A test that was renamed shows nothing."""
    findings = found(suite=SUITE.replace(test, "test_gone"))

    assert [("shown-by-no-test", "suites/demo/suite.toml", line)] == findings


def test_tests_that_need_a_capability_need_no_mark(found):
    """Patterns of their files and names say so; one whose words stand in no file is idle."""
    suite = SUITE + 'tests = ["test_*.py", "test_demo.py::*more*", "test_demo.py::*row*"]\n'
    alone = TESTS.replace(" if OWN in subject.capabilities else g()", "")

    assert [] == found(suite=suite, tests=alone)
    findings = found(suite=suite.replace("*more*", "*less*"), tests=alone)
    assert [("needed-by-no-test", "suites/demo/suite.toml", 18)] == findings
