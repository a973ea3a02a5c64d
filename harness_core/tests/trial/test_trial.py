"""What a product can do is tried on the product: what it claims, and what it could claim."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from functools import partial

import pytest
import trio

from harness_core.assurance.trial import Tried, Verdict, render_trial, to_json, try_capabilities
from harness_core.base.errors import BadInput, HarnessError, Unavailable
from harness_core.base.screen import plain
from harness_core.system.claims import pretending
from harness_core.system.staging import subject_of
from harness_core.system.suites import load_suite

#: Does what its command line says, and ends as it says.
PRODUCT = """
import json, sys
print("reading the stars")
if "dead" in sys.argv:
    sys.exit("the stars are gone")
print(json.dumps(sys.argv[1:]))
"""

TESTS = """
import json
import subprocess

import pytest

from harness_core.base.errors import Unavailable
from harness_core.front.skips import not_run


@pytest.fixture
def words(subject):
    done = subprocess.run(subject.command(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"the product did not start: {done.stdout}{done.stderr}"
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.capability("holds")
@pytest.mark.parametrize("row", [1, 2])
def test_holds(words, row):
    assert "holds" in words


@pytest.mark.capability("vain")
def test_vain(words):
    assert "vain" in words, "it is vain: expected the word, found none\\nand more"


@pytest.mark.capability("could")
def test_could(words):
    assert "could" in words


@pytest.mark.capability("lacks")
def test_lacks(words):
    raise ConnectionError("hung up")


@pytest.mark.capability("needy")
def test_needy():
    raise AssertionError("must not run")


@pytest.mark.capability("left-out")
def test_left_out():
    not_run("subject", "it has no such tool")


@pytest.mark.capability("rows")
@pytest.mark.parametrize("row", [1, 2])
def test_rows(row):
    if row == 2:
        not_run("gate", "a door is shut", gate="door")


@pytest.fixture
def engine():
    raise Unavailable("find an engine", observed="there is none")


@pytest.mark.capability("broken")
def test_broken(engine):
    assert engine


@pytest.mark.capability("joint", "vain")
def test_joint(words):
    assert "vain" in words, "it cannot join"


@pytest.mark.capability("asked")
def test_asked(subject):
    assert "asked" in subject.capabilities, "nobody asked"
    assert not {"could", "lacks"} & subject.capabilities, "others are pretended with it"


def test_boots(words):
    assert words


def test_boots_not(engine):
    assert engine
"""

NAMES = (
    *("holds", "vain", "could", "lacks", "needy", "left_out", "rows", "broken", "joint", "asked"),
)

SUITE = """
[suite]
name = "demo"
summary = "s"
group = "test"
subject = "subject.toml"
boots = "test_demo.py::test_boots"
[[session]]
name = "demo"
summary = "s"
""" + "".join(
    f'[[capability]]\nname = "{name.replace("_", "-")}"\ndemands = "d"\n'
    f'shown_by = ["test_demo.py::test_{name}"]\n' + ('needs = ["texts.x"]\n' * (name == "needy"))
    for name in NAMES
)

SUBJECT = """
[subject]
name = "stars"
argv = ["{python}", "{product}", {words}]
capabilities = ["holds", "vain", "left-out", "broken", "joint"]
"""


@pytest.fixture(scope="module")
def make(tmp_path_factory):
    """Makes a tree with a suite, and the subject file of a product that is given these words."""

    def making(*words: str, suite: str = SUITE):
        root = tmp_path_factory.mktemp("tree")
        folder = root / "suites" / "demo"
        folder.mkdir(parents=True)
        product, subject = root / "product.py", root / "mine.toml"
        text = SUBJECT.format(python=sys.executable, product=product, words=json.dumps(words)[1:-1])
        files = {
            root / "pyproject.toml": "[dependency-groups]\ntest = []\n[tool.pytest]\n",
            folder / "suite.toml": suite,
            folder / "subject.toml": text,
            folder / "test_demo.py": TESTS,
            product: PRODUCT,
            subject: text,
        }
        for path, content in files.items():
            path.write_text(content)
        return root, load_suite(folder), subject

    return making


def tried(root, suite, path, **how):
    """Try its capabilities."""
    subject = subject_of(suite, path, root=root)
    return trio.run(partial(try_capabilities, suite, subject, root=root, **how))


@pytest.fixture(scope="module")
def trial(make):
    """What became of every capability, tried once for all tests of this file."""
    return tried(*make("holds", "could"))


@pytest.mark.parametrize(
    ("name", "verdict", "detail"),
    [
        ("holds", Verdict.HOLDS, ""),
        ("vain", Verdict.IN_VAIN, "it is vain: expected the word, found none"),
        ("could", Verdict.COULD, ""),
        ("lacks", Verdict.LACKS, "ConnectionError: hung up"),
        ("needy", Verdict.UNTRIED, "needs texts.x in mine.toml"),
        ("left-out", Verdict.UNTRIED, "it has no such tool"),
        ("rows", Verdict.UNTRIED, "gate 'door': a door is shut"),
        ("broken", Verdict.UNTRIED, "the harness could not run it: Unavailable: cannot find an"),
        ("joint", Verdict.UNTRIED, "its test needs 'vain' too, which does not hold"),
        ("asked", Verdict.COULD, ""),
    ],
)
def test_verdict(trial, name, verdict, detail):
    """Only what the product did speaks of it; a skip, a missing key and the harness do not."""
    found = {each.name: each for each in trial.tried}[name]

    assert (verdict, detail) == (found.verdict, found.detail[: len(detail)] if detail else "")
    assert (found.name in {"holds", "vain", "left-out", "broken", "joint"}) == found.claimed


def test_report(trial):
    """What is wrong stands first, each with its reason; machines get the order of the suite.toml."""
    lines = plain(render_trial(trial)).splitlines()

    assert "capabilities of demo that stars (mine.toml) has" == lines[0]
    assert ["claimed", "in", "vain", "vain", "it", "is", "vain:"] == lines[1].split()[:7]
    assert "1 claimed in vain, 5 could not be tried, 2 could be claimed" in lines[-1]
    rows = to_json(trial)["capabilities"]
    assert [name.replace("_", "-") for name in NAMES] == [row["name"] for row in rows]
    assert trial.in_vain


def test_a_product_that_does_not_start_is_told_once(make):
    """With its last lines; nothing else is tried."""
    said = []
    trial = tried(*make("dead"), say=said.append)
    text = plain(render_trial(trial))

    assert "stars (mine.toml) does not start, so that no capability of demo was tried" in text
    assert 1 == text.count("the stars are gone")
    assert "the product did not start: reading the stars" in trial.not_started
    assert () == trial.tried
    assert trial.in_vain
    assert 1 == len(said), said


def test_names_are_printed_whole(trial):
    """Also where no capability has a reason to show."""
    name = "a-capability-of-many-letters"
    rows = [Tried(name=each, claimed=True, verdict=Verdict.HOLDS) for each in ("b", name)]
    text = plain(render_trial(replace(trial, tried=tuple(rows))))

    assert f"  holds  {name}\n  2 holds" in text


@pytest.mark.parametrize(
    ("test", "says"),
    [
        ("test_boots_not", "there is none"),
        ("test_left_out", "no such tool"),
        ("test_x", "collected"),
    ],
)
def test_a_start_that_the_harness_cannot_try_is_no_verdict(make, test, says):
    """Neither an error of the harness nor a skip says that the product does not start."""
    suite = SUITE.replace("::test_boots", f"::{test}")

    with pytest.raises(Unavailable, match=says):
        tried(*make("holds", suite=suite))


@pytest.mark.parametrize(
    ("words", "status", "rows"),
    [
        pytest.param(("holds", "vain"), 0, 10, marks=pytest.mark.slow),
        (("holds",), 1, 10),
        (("dead",), 1, 0),
    ],
)
def test_command(make, words, status, rows):
    """Status 1 when something is claimed in vain, or nothing starts; JSON alone on stdout."""
    root, _, path = make(*words)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "harness_core.front.cli", "subject", "check", "demo"),
            *(str(path), "--json", f"--root={root}", "--", "-p", "no:randomly"),
        ],
        env=os.environ | {"CI": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert status == done.returncode, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert (rows > 0, rows) == (found["starts"], len(found["capabilities"]))


def test_products_of_a_suite_whose_own_is_a_library_are_tried(make):
    """Its subject files are read, though it has none itself."""
    library = SUITE.replace('subject = "subject.toml"', 'tables = "keys:DemoTables"')
    root, suite, path = make("holds", "could", suite=library)
    keys = "from harness_core.system.subject import Tables\n\nclass DemoTables(Tables): ...\n"
    (suite.folder / "keys.py").write_text(keys)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "harness_core.front.cli", "subject", "check", "demo"),
            *(str(path), "--json", f"--root={root}", "--", "-p", "no:randomly"),
        ],
        env=os.environ | {"CI": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert 1 == done.returncode, done.stdout + done.stderr
    found = {row["name"]: row["verdict"] for row in json.loads(done.stdout)["capabilities"]}
    assert {"holds": "holds", "vain": "claimed in vain", "could": "could be claimed"} == {
        name: found[name] for name in ("holds", "vain", "could")
    }


def test_command_without_a_suite_is_an_error_of_its_own(make):
    """Status 2 is neither of the verdicts."""
    root, _, path = make()
    command = (sys.executable, "-m", "harness_core.front.cli", "subject", "check", "demon")
    done = subprocess.run(
        [*command, str(path), f"--root={root}"], capture_output=True, text=True, check=False
    )

    assert 2 == done.returncode
    assert "found 'demon', expected a suite with subject files: demo" in done.stderr


def test_what_no_suite_declares_cannot_be_tried(make):
    """A misspelt --try-capability would try nothing."""
    root, suite, path = make()
    subject = subject_of(suite, path, root=root)

    with pytest.raises(BadInput, match="Did you mean holds") as refused:
        pretending(subject, suite, ["hold"])

    assert isinstance(refused.value, HarnessError)
    assert {"could"} == pretending(subject, suite, ["could"]).capabilities - subject.capabilities
