"""Findings on a product: known failures are neither green nor red, and no list grows stale."""

import re
from xml.etree import ElementTree as ET

import pytest

from harness_core.tests.plugin.inner import Inner

SUITE = """
[suite]
name = "demo"
summary = "A demo."
group = "test"
subject = "product/subject.toml"
[[session]]
name = "demo"
summary = "All of it."
"""
SUBJECT = """
[subject]
name = "demo"
argv = ["true"]
"""
TESTS = """
import pytest
from harness_core.base.errors import HarnessError

def test_good():
    pass

def test_bad():
    assert False, "a reply is due within 5 s: expected one, found none"

@pytest.mark.parametrize("n", range(2))
def test_rows(n):
    assert n == 7, f"expected seven, found {n}"

@pytest.fixture
def leaving():
    yield
    assert False, "nothing is left: expected no file, found one"

def test_leaves(leaving):
    pass

def test_ours():
    raise HarnessError("look", observed="expected light, it is dark")

@pytest.mark.skip
def test_skipped():
    pass
"""
ALL = {
    "test_bad": "expected one, found none",
    "suites/demo/test_it.py::test_rows": "expected seven",
    "test_leaves": "nothing is left",
}


def row(test: str, says: str, **changed: str) -> str:
    """One row; a test by its short name is one of test_it.py."""
    test = test if "/" in test or "*" in test else f"test_it.py::{test}"
    keys = {"test": test, "says": says, "reason": "It is slow.", "link": "#7"} | changed
    return "[[known]]\n" + "".join(f"{key} = {value!r}\n" for key, value in keys.items())


@pytest.fixture
def demo(tmp_path):
    """A suite with a subject; its tests run with the findings that are given."""
    inner = Inner(tmp_path, ini="addopts = -p no:cacheprovider")
    files = {
        "pyproject.toml": "[dependency-groups]\ntest = []\n",
        "suites/demo/suite.toml": SUITE,
        "suites/demo/product/subject.toml": SUBJECT,
        "suites/demo/test_it.py": TESTS,
        "suites/demo/test_more.py": "def test_more(): pass\n",
    }

    def run(known: str, *words: str, file: str = "known.toml"):
        inner.write(files | {f"suites/demo/product/{file}": known})
        words = words if any("suites" in word for word in words) else ("suites/demo", *words)
        return inner.run("-q", "--tb=short", *words)

    run.root = inner.root
    return run


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_what_fails_as_listed_is_known(demo, workers):
    """A counter of its own; what is the harness's, what is not listed, and what passes stay as they are."""
    done = demo("".join(row(*each) for each in ALL.items()), workers, "--junitxml=it.xml")

    assert re.search(r"\n2 passed, 1 skipped, 1 error, 4 known in", done.stdout), done.stdout
    assert 6 == done.returncode, "only the harness went wrong"
    _, _, section = done.stdout.partition("= known failures: 4 =")
    assert re.search(r"It is slow \(#7\)\n +suites/demo/test_it\.py::test_", section), done.stdout
    skipped = ET.parse(demo.root / "it.xml").iterfind(".//skipped[@type='pytest.xfail']")
    assert 4 * ["It is slow (#7)"] == [each.get("message") for each in skipped]


def test_a_run_of_known_failures_ends_well(demo):
    """It is not red."""
    done = demo(row("test_bad", "found none"), "-k", "test_bad or test_good")

    assert 0 == done.returncode, done.stdout
    assert "1 passed, 6 deselected, 1 known" in done.stdout


def test_what_is_not_listed_fails(demo):
    """A list of some takes nothing from the rest."""
    done = demo(row("test_bad", "found none"), "-k", "test_bad or test_rows")

    assert 1 == done.returncode, done.stdout
    assert "2 failed, 5 deselected, 1 known" in done.stdout


def test_what_fails_otherwise_fails(demo):
    """And its report says that another failure is listed."""
    done = demo(row("test_bad", "expected two"), "-k", "test_bad")

    assert 1 == done.returncode, done.stdout
    assert (
        "known.toml lists this test as failing with 'expected two': it fails otherwise"
        in done.stdout
    )


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_what_passes_fails_and_says_to_take_the_row_out(demo, workers):
    """A list that says too much hides the next failure."""
    done = demo(row("test_good", "found none"), workers, "-k", "test_good")

    assert 1 == done.returncode, done.stdout
    assert re.search(
        r"it passed, and \S+known\.toml lists it as failing with 'found none': It is slow \(#7\)\. "
        "Take the row out",
        done.stdout,
    ), done.stdout
    assert "1 failed" in done.stdout
    assert "passed" not in done.stdout.splitlines()[-1]


def test_a_row_about_no_test_is_a_mistake_of_the_file(demo):
    """Only where the whole suite was collected, whatever of it is chosen; then nothing is run."""
    gone = row("test_gone", "found none")
    whole, part = demo(gone), demo(gone, "suites/demo/test_more.py")
    unchosen = demo(row("test_bad", "found none"), "-k", "test_more")

    assert 4 == whole.returncode, whole.stdout
    said = whole.stdout + whole.stderr
    assert re.search(
        r"cannot read \S+known\.toml: known\[0\]\.test: found 'test_it.py::test_gone', "
        r"expected the id of a test of suites/demo, or a pattern with \*",
        said,
    ), said
    assert (0, 0) == (part.returncode, unchosen.returncode), part.stdout + unchosen.stdout


@pytest.mark.parametrize(
    ("rows", "mistake"),
    [
        (
            row("test_bad", ""),
            r"known\[0\]\(test_it.py::test_bad\)\.says: found '', expected a text",
        ),
        (
            row("test_bad", "x") + "[[known]]\ntest = 'x'\nsays = 'y'\nreason = 'z'\n",
            r"known\[1\]\(x\)\.link: found nothing, expected a text",
        ),
        (
            row("test_bad", "x", until="2027"),
            r"known\[0\]\(.*\)\.until: found '2027', expected one of",
        ),
        ("[[know]]\n", "know: found .*, expected known and nothing else"),
        ("[[known", "found .*, expected a file of known failures"),
    ],
)
def test_a_mistake_is_one_error(demo, rows, mistake):
    """With file, row, key, found and expected; nothing is run."""
    done = demo(rows)
    said = done.stdout + done.stderr

    assert 4 == done.returncode, said
    assert re.search(rf"cannot read \S+known\.toml: {mistake}", said), said
    assert 1 == said.count("cannot read"), said


def test_a_product_may_have_a_file_of_its_own(demo):
    """``NAME.known.toml`` is for ``NAME.toml`` alone, and the other one is not read."""
    done = demo(row("test_bad", "found none"), "-k", "test_bad", file="subject.known.toml")
    (demo.root / "suites/demo/product/other.toml").write_text(SUBJECT)
    words = ("--subject=suites/demo/product/other.toml", "suites/demo")
    other = demo(row("test_bad", "found none"), "-k", "test_bad", *words, file="subject.known.toml")

    assert (0, 1) == (done.returncode, other.returncode), done.stdout + other.stdout


def test_patterns(demo):
    """``*`` is any text; brackets mean themselves."""
    one = demo(row("test_it.py::test_r*", "expected seven"), "-k", "test_rows")
    brackets = demo(row("test_rows[1]", "expected seven"), "-k", "test_rows")

    assert "2 known" in one.stdout, one.stdout
    assert "1 failed" in brackets.stdout, brackets.stdout
    assert "1 known" in brackets.stdout, brackets.stdout
