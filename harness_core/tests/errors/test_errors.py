"""The text of errors of the harness: one shape, every part where the reader looks for it."""

from pathlib import Path

import pytest

from harness_core.base.errors import (
    BadInput,
    BudgetExceeded,
    ChildExited,
    HarnessError,
    NotReady,
    PortTaken,
    Unavailable,
)


def test_text_is_cannot_verb_object_observed_next_step():
    """Sentence, tail and log follow in this order; full stops are not doubled."""
    error = HarnessError(
        "start postgres",
        observed="port 5432 is taken.",
        next_step="Stop it.",
        tail=["one", "two"],
        log=Path("/e/postgres.log"),
    )

    assert (
        "cannot start postgres: port 5432 is taken. Stop it.\n"
        "last 2 lines of output:\n  | one\n  | two\nfull log: /e/postgres.log" == str(error)
    )


@pytest.mark.parametrize(
    ("error", "text", "fields"),
    [
        (
            BadInput("a.toml", key="port", found="x", expected="a number"),
            "cannot read a.toml: port: found 'x', expected a number.",
            {"where": "a.toml", "key": "port", "found": "x", "expected": "a number"},
        ),
        (
            ChildExited("start a", name="a", returncode=3),
            "cannot start a: a exited with 3.",
            {"name": "a", "returncode": 3},
        ),
        (
            ChildExited("start a", name="a", returncode=-9),
            "cannot start a: a killed by signal 9.",
            {"returncode": -9},
        ),
        (
            PortTaken(80, owner="pid 1 (nginx)"),
            (
                "cannot use port 80 on 127.0.0.1: it is held by pid 1 (nginx). Stop that process, or "
                "free the port, and run again."
            ),
            {"port": 80, "owner": "pid 1 (nginx)"},
        ),
        (
            NotReady("start a", observed="silence", stage="port", waited_s=2.0),
            "cannot start a: silence.",
            {"stage": "port", "waited_s": 2.0},
        ),
        (Unavailable("start a", observed="no a"), "cannot start a: no a.", {"action": "start a"}),
        (
            BudgetExceeded(budget_usd=0.2, spent_usd=0.15, reserved_usd=0.1),
            (
                "cannot call the model: the run has spent 0.1500 USD, holds 0.1000 USD for calls in "
                "flight and may spend 0.2000 USD. Raise the limit with --llm-budget-usd, or run fewer "
                "scenarios."
            ),
            {"budget_usd": 0.2, "spent_usd": 0.15, "reserved_usd": 0.1},
        ),
    ],
    ids=["bad-input", "exited", "killed", "port-taken", "not-ready", "unavailable", "budget"],
)
def test_each_error_has_its_text_and_fields(error, text, fields):
    """Tests read fields; people read the text."""
    assert text == str(error)
    assert fields == {name: getattr(error, name) for name in fields}
    assert isinstance(error, HarnessError)
    assert not isinstance(error, AssertionError)
