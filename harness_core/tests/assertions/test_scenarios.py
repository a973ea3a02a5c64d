"""Scenario rows: every mistake is found at collection, and the loose judgement can fail."""

import dataclasses
import math
import re
from collections import namedtuple
from typing import Any

import pytest

from harness_core.assertions import (
    DbAssertion,
    E2EScenario,
    check_scenarios,
    expect_tool_calls,
    fill,
    new_token,
)
from harness_core.base.errors import BadInput

BUTLERS = ("general", "health", "relationship")


def assertion(**changes: Any) -> DbAssertion:
    """A good assertion, changed."""
    fields = {"butler": "health", "table": "symptoms", "where": {"note": "x"}}
    return DbAssertion(**{**fields, **changes})


def row(**changes: Any) -> E2EScenario:
    """A good row, changed."""
    fields: dict[str, Any] = {
        "id": "health-symptom",
        "description": "A symptom is logged.",
        "input_prompt": "I have a headache, {token}",
        "expected_butler": "health",
        "expected_tool_calls": ["symptom_log"],
    }
    return E2EScenario(**{**fields, **changes})


def check(*rows: Any) -> tuple[E2EScenario, ...]:
    """Check a table of these rows."""
    return check_scenarios(rows, where="scenarios.py", butlers=BUTLERS)


def test_rows_without_mistakes_pass_unchanged():
    """What can be run and can fail is returned as it was written."""
    rows = (
        row(),
        row(
            id="multi-2",
            input_prompt="Log it; use {{braces}} and {token}",
            expected_butler=["health", "relationship"],
            expected_tool_calls=["health.symptom_log", "relationship.route.execute", "note_create"],
            db_assertions=(
                assertion(where={"note": "{token}"}, column_checks={"severity": 3}),
                assertion(butler="general", table="public.entities", where={}, count=0),
            ),
            tags=("multi",),
            expected_output="noted",
            timeout_s=5,
        ),
        row(
            id="rows-only",
            expected_tool_calls=(),
            db_assertions=[assertion(where={"note": "{token}"}, count=2)],
        ),
        row(id="either", expected_tool_calls=(), alternatives=["general"], pass_rate=0.9),
    )

    assert rows == check(*rows)
    assert ("health", "relationship") == rows[1].expected_butlers


MISTAKES: list[tuple[str, dict[str, Any], str]] = [
    ("id-with-space", {"id": "Health log"}, "id"),
    ("id-empty", {"id": ""}, "id"),
    ("id-snake", {"id": "health_log"}, "id"),
    ("description-empty", {"description": " "}, "description"),
    ("prompt-empty", {"input_prompt": "  \n"}, "input_prompt"),
    ("prompt-no-text", {"input_prompt": None}, "input_prompt"),
    ("prompt-unknown-field", {"input_prompt": "log {tokn}"}, "input_prompt"),
    ("butler-unknown", {"expected_butler": "helth"}, "expected_butler"),
    ("butler-one-unknown", {"expected_butler": ["health", "x"]}, "expected_butler"),
    ("butler-none", {"expected_butler": []}, "expected_butler"),
    ("butler-empty", {"expected_butler": ""}, "expected_butler"),
    ("butler-list-of-numbers", {"expected_butler": [1]}, "expected_butler"),
    ("butler-twice", {"expected_butler": ["health", "health"]}, "expected_butler"),
    ("tools-none", {"expected_tool_calls": None}, "expected_tool_calls"),
    ("tools-numbers", {"expected_tool_calls": [3]}, "expected_tool_calls"),
    ("tool-empty", {"expected_tool_calls": [""]}, "expected_tool_calls"),
    ("tool-of-other", {"expected_tool_calls": ["general.x"]}, "expected_tool_calls"),
    ("tool-without-name", {"expected_tool_calls": ["health."]}, "expected_tool_calls"),
    ("output-empty", {"expected_output": ""}, "expected_output"),
    ("timeout-zero", {"timeout_s": 0}, "timeout_s"),
    ("timeout-nan", {"timeout_s": math.nan}, "timeout_s"),
    ("timeout-endless", {"timeout_s": math.inf}, "timeout_s"),
    ("timeout-flag", {"timeout_s": True}, "timeout_s"),
    ("no-effect", {"expected_tool_calls": []}, "db_assertions"),
    ("assertions-without-token", {"db_assertions": [assertion()]}, "db_assertions"),
    ("alternative-unknown", {"alternatives": ["garden"]}, "alternatives"),
    ("alternative-expected", {"alternatives": ["health"]}, "alternatives"),
    ("forbidden-expected", {"forbidden_tool_calls": ["symptom_log"]}, "forbidden_tool_calls"),
    ("forbidden-with-butler", {"forbidden_tool_calls": ["a.b"]}, "forbidden_tool_calls"),
    ("pass-rate-of-one", {"pass_rate": 1.0}, "pass_rate"),
    ("pass-rate-too-low", {"pass_rate": 0.2}, "pass_rate"),
    ("assertion-no-assertion", {"db_assertions": [{"table": "x"}]}, "db_assertions[0]"),
    ("assertion-butler", {"db_assertions": [assertion(butler="x")]}, "db_assertions[0].butler"),
    ("assertion-butlers", {"db_assertions": [assertion(butler=["x"])]}, "db_assertions[0].butler"),
    ("assertion-table", {"db_assertions": [assertion(table="")]}, "db_assertions[0].table"),
    ("assertion-where", {"db_assertions": [assertion(where="a=1")]}, "db_assertions[0].where"),
    ("assertion-any-row", {"db_assertions": [assertion(where={})]}, "db_assertions[0].where"),
    ("assertion-count", {"db_assertions": [assertion(count=-1)]}, "db_assertions[0].count"),
    ("assertion-count-flag", {"db_assertions": [assertion(count=True)]}, "db_assertions[0].count"),
    (
        "assertion-second",
        {"db_assertions": [assertion(), assertion(column_checks=["x"])]},
        "db_assertions[1].column_checks",
    ),
    (
        "assertion-columns-of-no-row",
        {"db_assertions": [assertion(count=0, column_checks={"a": 1})]},
        "db_assertions[0].column_checks",
    ),
    (
        "assertion-token-nobody-said",
        {"input_prompt": "x", "db_assertions": [assertion(where={"note": "{token}"})]},
        "db_assertions[0].where",
    ),
]


@pytest.mark.parametrize(
    ("changes", "key"),
    [pytest.param(changes, key, id=name) for name, changes, key in MISTAKES],
)
def test_mistake_in_a_row_is_named(changes, key):
    """Each mistake is one error with file, row and field, however the value is malformed."""
    bad = row(**changes)

    with pytest.raises(BadInput) as refused:
        check(row(id="fine"), bad)

    assert "scenarios.py" == refused.value.where
    assert f"scenario {bad.id!r}: {key}" == refused.value.key
    assert refused.value.expected


def test_table_that_would_test_nothing_is_refused():
    """An empty table, a row that is none, and an id used twice are refused."""
    with pytest.raises(BadInput) as empty:
        check()
    with pytest.raises(BadInput) as other:
        check(row(), {"id": "x"})
    with pytest.raises(BadInput) as twice:
        check(row(), row(description="another"))

    assert "no scenario" == empty.value.found
    assert "row 1" == other.value.key
    assert ("row 1: id", "health-symptom") == (twice.value.key, twice.value.found)


CALLS = {
    "health": [{"name": "symptom_log"}, {"name": "meal_log", "is_error": True}],
    "general": [{"name": "route.execute", "is_error": False}],
}


@pytest.mark.parametrize(
    "expected",
    [["symptom_log"], ["health.symptom_log", "general.route.execute"], ["route.execute"], []],
)
def test_expected_tool_that_was_called_passes(expected):
    """A tool is found by its name, with or without its butler, dots in the name included."""
    assert None is expect_tool_calls(CALLS, expected)


@pytest.mark.parametrize(
    ("expected", "times"),
    [("general.symptom_log", 0), ("meal_log", 1), ("symptom", 0), ("health.route.execute", 0)],
)
def test_expected_tool_that_was_not_called_fails(expected, times):
    """A tool that was not called, failed, or was called elsewhere fails with what was called."""
    with pytest.raises(AssertionError) as failed:
        expect_tool_calls(CALLS, ["symptom_log", expected])

    assert f"tool {expected} was called {times} time(s), never with success" in str(failed.value)
    listed = "calls recorded: health.symptom_log, health.meal_log (failed), general.route.execute"
    assert listed in str(failed.value)


def test_tool_that_failed_first_and_worked_then_passes():
    """One success is enough: agents may try again."""
    calls = {"health": [{"name": "a", "is_error": True}, {"name": "a"}]}

    assert None is expect_tool_calls(calls, ["a"])


def test_no_calls_at_all_fail_with_words():
    """A session without any call is said to have had none."""
    with pytest.raises(AssertionError, match="calls recorded: none"):
        expect_tool_calls({"health": []}, ["a"])


Point = namedtuple("Point", "x y")  # noqa: PYI024 - what a matcher may be made of


@dataclasses.dataclass(frozen=True)
class Matcher:
    """A matcher as the database package has them."""

    text: str

    def with_texts(self, change):
        """The same matcher with its texts changed."""
        return Matcher(change(self.text))


def test_fill_reaches_every_text():
    """The token arrives inside mappings, lists, tuples, sets and matchers; types stay."""
    value = {
        "a": "x {token}",
        "b": ["{token}", 3, None],
        "c": ("{token}",),
        "d": Point("{token}", 1),
        "e": {"{token}"},
        "f": Matcher("~{token}"),
        "g": {"h": {"i": "{token}{token}"}},
        "j": b"{token}",
    }

    assert {
        "a": "x T",
        "b": ["T", 3, None],
        "c": ("T",),
        "d": Point("T", 1),
        "e": {"T"},
        "f": Matcher("~T"),
        "g": {"h": {"i": "TT"}},
        "j": b"{token}",
    } == fill(value, "T")


def test_tokens_are_fresh_words():
    """No token is met twice, and each looks like no ordinary word."""
    tokens = {new_token() for _ in range(500)}

    assert 500 == len(tokens)
    assert all(re.fullmatch(r"zx[a-z2-9]{8}", token) for token in tokens)
