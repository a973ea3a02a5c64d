"""Products of other makes: a right one is blamed by nobody, a fault is told at once and nothing else."""

import json
from functools import partial

import pytest
import trio

from harness_core.assurance.planted import (
    Choice,
    Verdict,
    ask_right,
    foreign_products,
    plant_fault,
    run_faults,
)
from harness_core.base.errors import BadInput
from harness_core.base.evidence import open_evidence
from harness_core.front.foreign import expect_right, expect_told, right, wrong
from harness_core.system.suites import load_suite

# STALL says which way the stall goes wrong; a suite of its own judges it.
TESTS = """
import os

import pytest

from harness_core.front.skips import not_run

STALL = os.environ.get("STALL", "")


def test_price():
    assert STALL not in {"dear", "both", "late"}, "an apple costs 1: found 2"


def test_weight():
    assert STALL not in {"light", "both"}, "an apple weighs 1: found 0"


def test_sum():
    assert STALL != "dear", "a basket: an apple costs 1: found 2"


def test_scales():
    if STALL == "broken":
        raise OSError("no scales: an apple costs 1")
    assert STALL not in {"late", "hidden"}, "something is wrong\\nan apple costs 1: found 2"


def test_bread():
    not_run("subject", "a stall sells no bread")


@pytest.mark.slow
def test_always_red():
    assert False, "red anyway"


@pytest.mark.runner
def test_begins_again():
    assert False, "must never be asked"
"""

ASKED = '[asked]\nneeds = ["scales"]\nbeside = ["."]\nmarkers = "not slow"\npasses = 4\n'


def fault(mode: str, *tests: str, says: str = "apple costs 1", **more: object) -> str:
    """One [[fault]]."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in more.items()]
    named = json.dumps([f"test_stall.py::{test}" for test in tests])
    return "\n".join(
        [
            f'[[fault]]\nid = "{mode}"\nwhy = "w"\nrequirement = "R-1"\nsays = "{says}"',
            f'env = {{ STALL = "{mode}" }}\ntests = {named}',
            *lines,
            "",
        ]
    )


@pytest.fixture
def tree(tmp_path):
    """A tree with a suite, and one product of another make in it; its faults are to be written."""
    folder = tmp_path / "suites" / "demo"
    (folder / "foreign" / "stall").mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text(
        "[tool.pytest]\nmarkers = ['slow: takes long', 'runner: starts a pytest']\n"
    )
    (folder / "suite.toml").write_text(
        '[suite]\nname = "demo"\nsummary = "s"\ngroup = "test"\n'
        '[[session]]\nname = "demo"\nsummary = "s"\n'
    )
    (folder / "test_stall.py").write_text(TESTS)
    (folder / "foreign/stall/subject.toml").write_text('[subject]\nname = "s"\nargv = ["true"]\n')
    return tmp_path


def product_of(tree, faults: str, *, asked: str = ASKED):
    """The product, with these faults."""
    (tree / "suites/demo/foreign/stall/faults.toml").write_text(asked + faults)
    (product,) = foreign_products(load_suite(tree / "suites/demo"))
    return product


RED = "failed an assertion in call: AssertionError: "

#: Fault, the test that it names, its verdict, and what is no kill.
CASES = [
    ("dear", "price", Verdict.KILLED, []),
    ("dear", "sum", Verdict.KILLED, []),
    ("dear", "weight", Verdict.SURVIVED, ["weight: it passed"]),
    ("dear", "fruit", Verdict.NO_VERDICT, ["fruit: it did not run to its end"]),
    (
        "both",
        "price",
        Verdict.NO_VERDICT,
        [f"weight: blamed besides: {RED}an apple weighs 1: found 0"],
    ),
    (
        "late",
        "price",
        Verdict.NO_VERDICT,
        [f"scales: blamed besides: {RED}something is wrong"],
    ),
    (
        "hidden",
        "scales",
        Verdict.NO_VERDICT,
        [
            "scales: wrong reason: nothing like /apple costs 1/ in: AssertionError: something is wrong"
        ],
    ),
    (
        "broken",
        "scales",
        Verdict.NO_VERDICT,
        ["scales: raised, which is no assertion, in call: OSError: no scales: an apple costs 1"],
    ),
]


@pytest.mark.parametrize(
    ("mode", "test", "verdict", "others"), CASES, ids=[f"{each[0]}-{each[1]}" for each in CASES]
)
async def test_a_fault_is_told_at_once_and_nothing_else(tree, mode, test, verdict, others):
    """Each named test fails, each failure says it in its first line; an error says nothing."""
    product = product_of(tree, fault(mode, f"test_{test}"))

    result = await plant_fault(
        product, product.faults[0], root=tree, evidence=open_evidence(tree / "out")
    )

    assert verdict == result.verdict
    assert others == [
        f"{each.test.rpartition('::test_')[2]}: {each.detail}"
        for each in result.tests
        if each.verdict is not Verdict.KILLED
    ]


#: What is asked, what the named test is, and the beginning of each line.
RIGHT = [
    (ASKED, "test_price", []),
    (ASKED.replace("4", "5"), "test_price", ["4 tests passed, expected 5 at least"]),
    (ASKED, "test_bread", ["test_bread: control run: skipped: NotRun: a stall sells no bread"]),
    (ASKED, "test_fruit", ["test_fruit: control run: no test has this id"]),
    (
        "",
        "test_price",
        ["test_always_red: failed an assertion in call: AssertionError: red anyway"],
    ),
    ('[asked]\nright = ["test_stall.py::test_sum"]\n', "test_price", []),
]


@pytest.mark.parametrize(("asked", "test", "lines"), RIGHT, ids=range(len(RIGHT)))
async def test_what_is_right_is_blamed_by_nobody(tree, monkeypatch, asked, test, lines):
    """A test that fails, one of a fault that does not pass, and too few that do are lines each."""
    monkeypatch.setenv("STALL", "dear")
    product = product_of(tree, fault("dear", test), asked=asked)

    found = await ask_right(product, root=tree, evidence=open_evidence(tree / "out"))

    assert lines == [line.rpartition("::")[2] for line in found]


def test_a_suite_asks_it_in_a_few_lines(tree):
    """A row for each product and each fault, with its gates; the message names both."""
    evidence = open_evidence(tree / "out")
    product_of(tree, fault("dear", "test_price") + fault("light", "test_price"))
    (one,) = right(tree / "suites/demo")
    told, silent = wrong(tree / "suites/demo")

    assert ("stall", "stall-dear", "stall-light") == (one.id, told.id, silent.id)
    assert [("scales",)] * 2 == [mark.args for row in (one, told) for mark in row.marks]
    expect_right(*one.values, evidence)
    expect_told(*told.values, evidence)
    with pytest.raises(
        AssertionError, match=r"stall with light \(w\): (.|\n)*test_price: survived"
    ):
        expect_told(*silent.values, evidence)


def test_the_command_plants_the_same(tree):
    """Those of a subject file, after a control run: what is red anyway is not blamed on a fault."""
    asked = ASKED.replace("not slow", "")
    product = product_of(
        tree, fault("dear", "test_price") + fault("both", "test_price"), asked=asked
    )
    choice = Choice(subject=product.subject, only=["dear"])

    results = trio.run(partial(run_faults, product.suite, root=tree, choice=choice))

    assert [("dear", Verdict.KILLED)] == [(each.fault.id, each.verdict) for each in results]
    assert (tree / ".evidence/faults/demo-stall/control/outcomes.jsonl").is_file()
    assert choice.rerun("demo") == f"nox -s faults -- demo dear --subject {product.subject}"


@pytest.mark.parametrize(
    ("asked", "key", "expected"),
    [
        ("[asked]\nmarks = 1\n", "asked.marks", "one of needs, right"),
        ("[asked]\npasses = 0\n", "asked.passes", "a whole number from 1 on"),
        ('[asked]\nright = ["test_other.py"]\n', "asked.right", "a file or folder relative to"),
        ('[asked]\nbeside = ["x/test_y.py::test_z"]\n', "asked.beside", "a file or folder"),
    ],
)
def test_what_is_asked_names_its_mistake(tree, asked, key, expected):
    """A mistake is one error with file, key and what would be right."""
    with pytest.raises(BadInput) as caught:
        product_of(tree, fault("dear", "test_price"), asked=asked)

    assert key == caught.value.key
    assert expected in caught.value.expected
    assert caught.value.where.endswith("foreign/stall/faults.toml")
