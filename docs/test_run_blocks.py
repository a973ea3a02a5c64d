"""A block that is wrong is found: output, commands, keys, names."""

from __future__ import annotations

import ast

import pytest

from docs.look_up import check_command, check_imports, check_keys
from docs.run_blocks import _matches, _not_run, _split

PRINTED = "collected 2 items\n\ntest_a.py ..   \n\n2 passed in 0.01s\n"


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ("...\n2 passed in …", True),
        ("collected 2 items\n...\n2 passed in 0.01s", True),
        ("collected 2 items\n\ntest_a.py ..\n\n2 passed in …", True),
        ("...\n3 passed in …", False),
        ("2 passed in …", False),
        ("...\ncollected 2 items", False),
        ("...\n2 passed in 0.01sx", False),
    ],
)
def test_what_is_shown_must_be_printed(shown, expected):
    """Whole, but for marked gaps."""
    assert expected == _matches(shown, PRINTED)


def test_commands_and_what_stands_below_them():
    """Lines of output belong to the command above; a line that goes on is one."""
    source = "$ a \\\n  b\nout\nmore\n$ c\n"

    assert [("a   b", "out\nmore"), ("c", "")] == _split("console", source)
    assert [("a", ""), ("b", "")] == _split("sh", "a\n\nb\n")


@pytest.mark.parametrize(
    "right",
    [
        "harness up e2e --subject my.toml   # hold it",
        "harness mutate daemon --sample 20 --seed 7",
        "harness survey daemon --subject a.toml -k contract_3",
        "KEY=… nox -s e2e -- --llm record",
        "nox -s faults -- e2e",
        "ls --whatever",
    ],
)
def test_commands_that_there_are(right):
    """Nothing is said of them, nor of other programs."""
    assert check_command(right) is None


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("harness upp e2e", "no command upp"),
        ("harness up e2e --subjekt my.toml", "no option --subjekt"),
        ("harness mutate daemon --smaple 20", "no option --smaple"),
        ("nox -s e3e", "no session e3e"),
    ],
)
def test_commands_that_there_are_not(wrong, says):
    """Said with the word that is wrong."""
    assert says in check_command(wrong)


def test_keys_that_there_are_not():
    """A misspelt one is named; a table of names of the author's own is free."""
    right = {"session": [{"name": "a", "markers": ""}], "optional_gates": {"my-gate": "why"}}
    wrong = {"session": [{"name": "a", "marker": ""}]}

    assert check_keys("suite.toml", right) is None
    assert "suite.toml has no session.marker" == check_keys("suite.toml", wrong)
    assert check_keys("subject files", {"subject": {"argv": []}, "env": {"A": "b"}}) is None


def test_names_that_there_are_not():
    """Of a module that is installed, in code that is not run."""
    tree = ast.parse("from harness_core.base.errors import HarnessError, HarnessErrror")

    assert "harness_core.base.errors has no HarnessErrror" == check_imports(tree)


def test_a_reason_is_more_than_a_word():
    """What is not run says why."""
    assert "expected a reason" in _not_run("toml", "a = 1", None, reason="slow")
