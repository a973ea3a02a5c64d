"""A suite on several products: contract x product, what each cell says, and where its reports lie."""

import json
import os
import re
import subprocess
import sys

import pytest

SUITE = """
[suite]
name = "demo"
summary = "A demo."
group = "test"
subject = "good.toml"
ledger = "ledger.toml"
[[capability]]
name = "speech"
demands = "It speaks."
shown_by = ["test_it.py::test_lacks"]
[[session]]
name = "demo"
summary = "All of it."
markers = "not slow"
default = true
[[session]]
name = "demo_more"
summary = "More."
paths = ["test_more.py"]
"""
LEDGER = """
[ledger]
prefix = "C-"
faults_each = 1
failures = []
"""
REQUIREMENT = """
[[requirement]]
id = "C-{0}"
title = "t"
asserts = ["a"]
no_fail_path = "nothing can be refused"
status = "covered"
"""
SUBJECT = """
[subject]
name = "{0}"
argv = ["{0}"]
capabilities = {1}
"""
TESTS = """
import pytest
from harness_core.base.errors import HarnessError

@pytest.mark.covers("C-HOLDS")
@pytest.mark.parametrize("n", range(3))
def test_holds(n):
    pass

@pytest.mark.covers("C-HOLDS")
def test_a(): pass

@pytest.mark.covers("C-HOLDS")
def test_b(): pass

@pytest.mark.covers("C-HOLDS")
def test_c(): pass

@pytest.mark.covers("C-HOLDS")
def test_d(): pass

@pytest.mark.covers("C-BREAKS")
@pytest.mark.parametrize("n", range(3))
def test_breaks(n, subject):
    assert n == 1 or subject.argv == ("good",), f"a reply is due: expected {n}, found none"

@pytest.mark.covers("C-LACKS")
@pytest.mark.capability("speech")
def test_lacks():
    pass

@pytest.mark.covers("C-PART")
@pytest.mark.capability("speech")
def test_part():
    pass

@pytest.mark.covers("C-PART")
def test_part_whole():
    pass

@pytest.mark.covers("C-OURS")
def test_ours(subject):
    if subject.argv != ("good",):
        raise HarnessError("look", observed="it is dark")

@pytest.mark.covers("C-KNOWN")
def test_known(subject):
    assert subject.argv == ("good",), "it must be tall: expected 2 m, found 1 m"

@pytest.mark.aside("judges the suite's own helpers")
def test_aside(subject):
    assert subject.argv == ("good",), "not asked"
"""
MORE = """
import pytest

@pytest.mark.covers("C-MORE")
def test_more():
    pass
"""
ROW = """
[[known]]
test = "test_it.py::test_known"
says = "it must be tall"
reason = "It is short"
link = "#1"
"""
CONTRACTS = ["HOLDS", "BREAKS", "LACKS", "PART", "OURS", "KNOWN", "MORE"]


@pytest.fixture
def tree(tmp_path):
    """A tree with a suite of seven contracts, the good product, a bad one and a broken file."""
    folder = tmp_path / "suites/demo"
    files = {
        "../../pyproject.toml": "[dependency-groups]\ntest = []\n[tool.pytest]\n"
        'addopts = ["-p", "no:cacheprovider", "--import-mode=importlib"]\nmarkers = ["slow: s"]\n',
        "suite.toml": SUITE,
        "ledger.toml": LEDGER + "".join(map(REQUIREMENT.format, CONTRACTS)),
        "good.toml": SUBJECT.format("good", '["speech"]'),
        "others/bad.toml": SUBJECT.format("bad", "[]"),
        "others/bad.known.toml": ROW,
        "others/wrong.toml": "[subject]\nname = 'wrong'\nargv = ['x']\n",
        "others/wrong.known.toml": "[[known]]\n",
        "test_it.py": TESTS,
        "test_more.py": MORE,
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def survey(tree, *words):
    """Run the command; other plugins of this environment take a second to load."""
    own = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    return subprocess.run(
        [sys.executable, "-m", "harness_core.front.cli", "survey", "demo", *words],
        cwd=tree,
        env=own | {"CI": "", "HARNESS_STATE_DIR": str(tree / "state")},
        capture_output=True,
        text=True,
        check=False,
    )


GOOD, BAD, WRONG = (
    f"--subject=suites/demo/{n}.toml" for n in ("good", "others/bad", "others/wrong")
)


def test_each_contract_on_each_product(tree):
    """Holds, in part, broken, known, not run with the reason, and what the harness could not judge."""
    done = survey(tree, GOOD, BAD)

    assert 0 == done.returncode, done.stdout + done.stderr
    _, _, table = done.stdout.partition("contract  ")
    assert [
        ["C-HOLDS", "holds", "holds"],
        ["C-BREAKS", "holds", "broken (2) [1]"],
        ["C-LACKS", "holds", "not run [2]"],
        ["C-PART", "holds", "holds in part [3]"],
        ["C-OURS", "holds", "harness could not run (1) [4]"],
        ["C-KNOWN", "holds", "known (1) [5]"],
        ["C-MORE", "holds", "holds"],
    ] == [re.split(r"\s{2,}", line) for line in table.splitlines()[1:8]], done.stdout
    assert [
        "[1] test_it.py::test_breaks[0]: a reply is due: expected 0, found none",
        "[2] bad lists no capability 'speech' in bad.toml",
        "[3] 1 of 2: bad lists no capability 'speech' in bad.toml",
        "[4] test_it.py::test_ours: cannot look: it is dark.",
        "[5] test_it.py::test_known: It is short (#1)",
    ] == table.splitlines()[8:13]
    assert re.search(r"^good: 7 holds in \d+ s; ", done.stdout, re.MULTILINE)


def test_for_machines(tree):
    """Every cell, and where the reports lie, which can be compared."""
    done = survey(tree, "--json", GOOD, BAD)
    good, bad = json.loads(done.stdout)

    assert {"shows": "broken", "count": 2} == {
        key: bad["cells"]["C-BREAKS"][key] for key in ("shows", "count")
    }
    assert {"holds"} == {cell["shows"] for cell in good["cells"].values()}
    assert ["good", "bad"] == [good["name"], bad["name"]]
    words = ["report", "--compare", good["folder"], bad["folder"]]
    compared = subprocess.run(
        [sys.executable, "-m", "harness_core.front.cli", *words],
        cwd=tree,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "\nended otherwise: 6\n" in compared.stdout, compared.stdout + compared.stderr


def test_what_was_not_chosen_is_said(tree):
    """A contract of which some tests were left out does not hold; a few of them are named."""
    done = survey(tree, GOOD, "--session=demo", "-k", "test_holds")

    assert re.search(r"^C-HOLDS +holds in part \[1\]$", done.stdout, re.MULTILINE), done.stdout
    a, b, c = (f"test_it.py::test_{name}" for name in "abc")
    assert f"[1] 4 of 5 tests were not chosen: {a}, {b}, {c}, …\n" in done.stdout


def test_a_product_that_cannot_be_run_has_a_column_that_says_so(tree):
    """One mistake in its files takes nothing from the others, and blames no product."""
    done = survey(tree, WRONG, GOOD, "--session=demo_more")

    assert 0 == done.returncode, done.stdout + done.stderr
    [row] = re.findall(r"^C-MORE .*$", done.stdout, re.MULTILINE)
    assert ["C-MORE", "harness could not run [1]", "holds"] == re.split(r"\s{2,}", row)
    assert re.search(r"^\[1\] cannot read \S+wrong\.known\.toml: ", done.stdout, re.MULTILINE)
    assert "broken" not in done.stdout


@pytest.mark.parametrize(
    ("words", "mistake"),
    [
        ((GOOD, GOOD), "--subject: found 'suites/demo/good.toml', expected it once"),
        ((GOOD, "--session=demos"), "--session: found 'demos', expected demo, demo_more"),
    ],
)
def test_a_mistake_is_one_error(tree, words, mistake):
    """Nothing is run."""
    done = survey(tree, *words)

    assert 2 == done.returncode
    assert mistake in done.stderr
    assert 1 == len(done.stderr.splitlines()), done.stderr
