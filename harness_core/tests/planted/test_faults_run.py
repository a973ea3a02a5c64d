"""Each verdict of the fault runner, on a small project whose product is one environment variable."""

import json
from functools import partial
from pathlib import Path

import pytest
import trio

from harness_core.assurance.planted import (
    Choice,
    Verdict,
    load_faults,
    render_table,
    run_faults,
    to_json,
)
from harness_core.assurance.planted._outcomes import read_outcomes
from harness_core.base.errors import BadInput
from harness_core.base.screen import plain
from harness_core.system.suites import load_suite

# Every test of this project passes without a fault; DEMO says which way it goes wrong.
TESTS = """
import os
import signal
import subprocess
import sys
import threading

import pytest

from harness_core.front.skips import not_run

DEMO = os.environ.get("DEMO", "")


def test_total():
    total = -1 if DEMO == "negative" else 1
    assert total > 0, f"the total is {total}"


def test_error():
    if DEMO == "error":
        raise RuntimeError("the total is broken")
    assert not DEMO


def test_skip():
    if DEMO == "skip":
        not_run("options", "the total is not there")
    assert not DEMO


def test_hang():
    if DEMO == "hang":
        child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
        with open(os.environ["DEMO_PID"], "w") as file:
            file.write(str(child.pid))
        threading.Event().wait()
    assert not DEMO


def test_crash():
    if DEMO == "crash":
        os.kill(os.getpid(), signal.SIGKILL)
    assert not DEMO


@pytest.fixture
def product():
    assert DEMO != "setup", "the total is wrong at set-up"


def test_setup(product):
    assert not DEMO


def test_group():
    if DEMO == "group":
        raise ExceptionGroup("nursery", [AssertionError("the total is wrapped")])
    if DEMO == "mixed-group":
        raise ExceptionGroup("nursery", [AssertionError("the total"), OSError("and more")])
    assert not DEMO


def test_refused():
    with pytest.raises(ValueError):
        if DEMO != "accepted":
            raise ValueError


def test_fail():
    if DEMO == "fail":
        pytest.fail("the total timed out")
    assert not DEMO


@pytest.mark.parametrize("row", ["one", "two"])
def test_rows(row):
    assert not (DEMO == "both" or (DEMO == "only-one" and row == "one")), "the total of a row"


def test_red_anyway():
    assert DEMO == "never", "the total is red without a fault"


def test_unrelated():
    assert False, "must never be selected"
"""


def make_suite(root: Path, faults: str, *, tests: str = TESTS):
    """A tree with one suite, its tests and its faults.toml."""
    folder = root / "suites" / "demo"
    folder.mkdir(parents=True, exist_ok=True)
    (root / "pyproject.toml").write_text("[tool.pytest]\n")
    (folder / "suite.toml").write_text(
        '[suite]\nname = "demo"\nsummary = "s"\ngroup = "test"\nfaults = "faults.toml"\n'
        '[[session]]\nname = "demo"\nsummary = "s"\n'
    )
    (folder / "faults.toml").write_text(faults)
    (folder / "test_demo.py").write_text(tests)
    return load_suite(folder)


def row(mode: str, *tests: str, says: str = "the total", more: str = "", id_: str = "") -> str:
    """One [[fault]] of a faults.toml."""
    names = json.dumps([f"test_demo.py::{test}" for test in tests])
    return (
        f'[[fault]]\nid = "{id_ or mode}"\nwhy = "w"\nrequirement = "R-1"\n'
        f"env = {{ DEMO = \"{mode}\" }}\ntests = {names}\nsays = '{says}'\n{more}\n"
    )


#: id, named tests, what the verdict is and what the first test's line says.
CASES = [
    ("negative", ["test_total"], Verdict.KILLED, "AssertionError: the total is -1"),
    ("group", ["test_group"], Verdict.KILLED, "AssertionError: the total is wrapped"),
    ("both", ["test_rows"], Verdict.KILLED, "the total of a row"),
    ("one-row", ["test_rows[one]"], Verdict.KILLED, "the total of a row"),
    ("accepted", ["test_refused"], Verdict.KILLED, "DID NOT RAISE"),
    ("harmless", ["test_rows"], Verdict.SURVIVED, "it passed"),
    ("only-one", ["test_rows"], Verdict.SURVIVED, "the total of a row"),
    ("half", ["test_total", "test_rows"], Verdict.SURVIVED, "AssertionError: the total is -1"),
    ("error", ["test_error"], Verdict.NO_VERDICT, "raised, which is no assertion, in call"),
    ("mixed-group", ["test_group"], Verdict.NO_VERDICT, "raised, which is no assertion, in call"),
    ("skip", ["test_skip"], Verdict.NO_VERDICT, "skipped: NotRun: the total is not there"),
    ("crash", ["test_crash"], Verdict.NO_VERDICT, "it did not run to its end"),
    ("setup", ["test_setup"], Verdict.NO_VERDICT, "failed an assertion in setup"),
    ("fail", ["test_fail"], Verdict.NO_VERDICT, "raised, which is no assertion, in call"),
    ("hang", ["test_hang"], Verdict.NO_VERDICT, "no end within 6 s"),
    ("red", ["test_red_anyway"], Verdict.NO_VERDICT, "control run: failed an assertion in call"),
    ("missing", ["test_missing"], Verdict.NO_VERDICT, "control run: no test has this id"),
    ("other-reason", ["test_total"], Verdict.NO_VERDICT, "wrong reason: nothing like /the sum/"),
    # What the test's source says is shown with a failure, but is not what the failure says.
    ("source", ["test_total"], Verdict.NO_VERDICT, "wrong reason"),
]

#: Where the switch or the expected words are not those of the id.
MODES = {
    "one-row": "only-one",
    "half": "negative",
    "other-reason": "negative",
    "source": "negative",
}
SAYS = {"accepted": "DID NOT RAISE", "other-reason": "the sum", "source": 'DEMO == "negative"'}


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory):
    """Every case as a fault of one suite, planted once for all tests of this file."""
    root = tmp_path_factory.mktemp("verdicts")
    pid_file = root / "pid"
    faults = [
        row(
            MODES.get(id_, id_),
            *tests,
            id_=id_,
            says=SAYS.get(id_, "the total"),
            more="limit_s = 6" if id_ == "hang" else "",
        )
        for id_, tests, _, _ in CASES
    ]
    suite = make_suite(root, "".join(faults))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DEMO_PID", str(pid_file))
        # A fault left in the caller's environment must not spoil the control run.
        patch.setenv("DEMO", "negative")
        results = trio.run(partial(run_faults, suite, root=root))
    hung = Path(f"/proc/{pid_file.read_text()}")
    return {result.fault.id: result for result in results}, hung


@pytest.mark.slow
@pytest.mark.parametrize(("id_", "tests", "verdict", "detail"), CASES, ids=[c[0] for c in CASES])
def test_verdict(verdicts, id_, tests, verdict, detail):
    """Only a failed assertion in the test's own body kills; a pass survives; the rest is neither."""
    result = verdicts[0][id_]

    assert verdict == result.verdict
    assert detail in result.tests[0].detail


@pytest.mark.slow
def test_id_without_row_stands_for_every_row(verdicts):
    """A test named without a parameter is judged in every row, with one by that row alone."""
    rows = [test.test for test in verdicts[0]["both"].tests]
    one = [test.test for test in verdicts[0]["one-row"].tests]

    assert [f"suites/demo/test_demo.py::test_rows[{name}]" for name in ("one", "two")] == rows
    assert ["suites/demo/test_demo.py::test_rows[one]"] == one


@pytest.mark.slow
def test_hung_fault_leaves_no_process(verdicts):
    """What a test started before its run was ended by the time limit is gone."""
    assert not verdicts[1].exists()


async def test_broken_file_does_not_take_the_others_down(tmp_path):
    """A test file that cannot be imported costs its own faults their verdict, no others."""
    folder = tmp_path / "suites" / "demo"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "test_broken.py").write_text("import no_such_module\n")
    broken = row("x", "test_y", id_="broken").replace("_demo.py", "_broken.py")
    suite = make_suite(tmp_path, broken + row("negative", "test_total"))

    results = await run_faults(suite, root=tmp_path)

    assert [Verdict.NO_VERDICT, Verdict.KILLED] == [result.verdict for result in results]


@pytest.mark.parametrize(
    ("choice", "chosen"),
    [(Choice(only=["both"]), ["both"]), (Choice(files=["faults"]), ["negative", "both"])],
)
async def test_only_the_chosen_faults_run(tmp_path, choice, chosen):
    """Faults named by id, or of a file by its name; each end is reported."""
    suite = make_suite(tmp_path, row("negative", "test_total") + row("both", "test_rows"))
    lines = []

    results = await run_faults(suite, root=tmp_path, choice=choice, say=lines.append)

    assert [(each, Verdict.KILLED) for each in chosen] == [
        (result.fault.id, result.verdict) for result in results
    ]
    assert f"[{len(chosen)}/{len(chosen)}] both: killed" in lines[-1]


async def test_faults_may_run_at_once(tmp_path):
    """The results are those of one at a time; so is the control run, divided by files."""
    other = row("both", "test_rows", id_="beside").replace("_demo.py", "_other.py")
    missing = row("negative", "test_gone", id_="missing").replace("_demo.py", "_other.py")
    suite = make_suite(
        tmp_path, row("negative", "test_total") + row("harmless", "test_rows") + other + missing
    )
    demo = tmp_path / "suites" / "demo"
    (demo / "test_other.py").write_text((demo / "test_demo.py").read_text())

    lines = []

    results = await run_faults(suite, root=tmp_path, jobs=2, say=lines.append)

    expected = {"negative": "killed", "harmless": "survived", "beside": "killed"}
    assert [*expected.items(), ("missing", "no verdict")] == [
        (result.fault.id, result.verdict) for result in results
    ]
    parts = [read_outcomes(path) for path in tmp_path.glob(".evidence/**/control-*/outcomes.jsonl")]
    files = [{nodeid.partition("::")[0] for nodeid in part.tests} for part in parts]
    assert [1, 1] == [len(names) for names in files]
    assert 2 == len(set.union(*files))
    assert 2 == sum("control run [" in line for line in lines), lines


@pytest.mark.parametrize(
    ("choice", "found", "expected"),
    [
        (Choice(only=["positive"]), "positive", "one of negative"),
        (Choice(files=["other"]), "no other.toml", "one of faults"),
    ],
)
async def test_a_choice_of_nothing_is_refused(tmp_path, choice, found, expected):
    """An id or a file that is not there is an error that lists the known ones."""
    suite = make_suite(tmp_path, row("negative", "test_total"))

    with pytest.raises(BadInput) as caught:
        await run_faults(suite, root=tmp_path, choice=choice)

    assert (found, expected) == (caught.value.found, caught.value.expected)


@pytest.mark.slow
def test_report_names_the_tests_that_prove_nothing(verdicts):
    """The table shows why a fault was not killed; the JSON has every test."""
    results = [verdicts[0]["half"], verdicts[0]["negative"]]

    table = plain(render_table(results, title="demo"))

    assert "SURVIVED" in table
    assert "suites/demo/test_demo.py::test_rows[one]: it passed" in table
    assert "1 of 2 planted faults killed" in table
    assert ["survived", "killed"] == [row["verdict"] for row in to_json(results)]


@pytest.mark.parametrize(
    ("broken", "key", "expected"),
    [
        (row("a", "test_total").replace('"a"', '"A b"', 1), "fault[0].id", "a text like"),
        (row("a", "test_total") * 2, "fault.id", "an id used once"),
        (row("a"), "fault[0].tests", "at least one"),
        (row("a", "test_total").replace("_demo", "_other"), "fault[0].tests", "file.py::test_name"),
        (row("a", "test_total", says="("), "fault[0].says", "a regular expression"),
        (row("a", "test_total", says=".*"), "fault[0].says", "does not match everything"),
        (row("a", "test_total", more="limit_s = 0"), "fault[0].limit_s", "a positive number"),
        ("fault = 1\n", "fault", "at least one [[fault]]"),
    ],
)
def test_malformed_file_names_its_mistake(tmp_path, broken, key, expected):
    """Every mistake in a faults.toml is one error with file, key and what would be right."""
    suite = make_suite(tmp_path, broken)

    with pytest.raises(BadInput) as caught:
        load_faults(suite.faults)

    assert key == caught.value.key
    assert expected in caught.value.expected
    assert str(suite.faults) == caught.value.where


def test_a_folder_of_files_is_one_plan(tmp_path):
    """Faults of every file in a folder count, test files are relative to the suite, ids are unique."""
    suite = make_suite(tmp_path, row("one", "test_total"))
    folder = suite.folder / "faults"
    folder.mkdir()
    with pytest.raises(BadInput, match=r"no \*\.toml"):
        load_faults(folder)
    (suite.folder / "faults.toml").rename(folder / "a.toml")
    (folder / "b.toml").write_text(row("two", "test_total"))

    assert [("one", "a"), ("two", "b")] == [(row.id, row.file) for row in load_faults(folder)]

    (folder / "c.toml").write_text(row("one", "test_total"))
    with pytest.raises(BadInput, match=r"c\.toml.*an id used once"):
        load_faults(folder)


def test_a_sentence_that_quotes_what_is_no_text_can_be_printed(tmp_path):
    """A product's name in Latin-1 stands in an assertion; it is told, and not lost with the run."""
    row = {"nodeid": "a", "phase": "call", "outcome": "failed", "text": "found 'Z\udcfcrich'"}
    row |= {"assertion": True, "duration_s": 0.1}
    (tmp_path / "outcomes.jsonl").write_text(json.dumps(row) + "\n")

    found = read_outcomes(tmp_path / "outcomes.jsonl").tests["a"].text

    assert found.encode() == rb"found 'Z\udcfcrich'"
