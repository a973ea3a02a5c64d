"""What the models of a suite may cost, and what is shown before a run that costs money."""

from pathlib import Path

import pytest

from harness_core.base import limits
from harness_core.front.budget import ModelBudget, cost_plan, model_budget

SUITE = """
[suite]
name = "demo"
summary = "A demo."
group = "test"
{budget}
[[session]]
name = "demo"
summary = "All of it."
"""


def suite(root: Path, budget: str) -> Path:
    """The folder of a suite."""
    folder = root / "demo"
    folder.mkdir()
    (folder / "suite.toml").write_text(SUITE.format(budget=budget))
    return folder


@pytest.mark.parametrize(
    ("given", "budget", "usd", "source"),
    [
        (None, "", limits.LLM_BUDGET_USD, "the default"),
        (None, "budget_usd = 1.5", 1.5, "budget_usd in demo/suite.toml"),
        (None, "budget_usd = 0", 0.0, "budget_usd in demo/suite.toml"),
        (0.5, "budget_usd = 1.5", 0.5, "--llm-budget-usd"),
        (0.0, "budget_usd = 1.5", 0.0, "--llm-budget-usd"),
    ],
    ids=["default", "suite", "suite-none", "command-line", "command-line-none"],
)
def test_the_command_line_wins_over_the_suite(tmp_path, given, budget, usd, source):
    """A budget has one source, and it is named; nothing is the same as zero."""
    found = model_budget(suite(tmp_path, budget), given=given)

    assert ModelBudget(usd=usd, source=source) == found


def test_outside_of_every_suite_the_default_holds():
    """Tests of the harness itself belong to none."""
    assert ModelBudget(usd=limits.LLM_BUDGET_USD, source="the default") == model_budget(
        None, given=None
    )


def test_a_plan_says_what_is_known():
    """Budget and where it comes from, how many tests, what they cost once; and what is not known."""
    budget = ModelBudget(usd=1.5, source="budget_usd in e2e/suite.toml")
    known = {"a": 0.2, "b": 0.11, "elsewhere": 9.0}

    assert [
        "models (live): e2e may spend 1.50 USD (budget_usd in e2e/suite.toml); 3 tests chosen",
        "  once each, at the tokens counted offline: 0.31 USD; 1 test of them not run offline here",
    ] == cost_plan([("e2e", budget, ["a", "b", "c"])], mode="live", known=known)
    assert [
        "models (record): e2e may spend 1.50 USD (budget_usd in e2e/suite.toml); 1 test chosen",
        "  none of them was run offline here, so what they cost is not known",
    ] == cost_plan([("e2e", budget, ["c"])], mode="record", known=known)


def test_a_plan_that_does_not_fit_says_so():
    """Before the first call, not after most of them."""
    small = ModelBudget(usd=0.3, source="--llm-budget-usd")
    plan = cost_plan([("e2e", small, ["a", "b"])], mode="live", known={"a": 0.2, "b": 0.11})

    assert "  that is more than they may spend: the run will stop before its end" == plan[-1]


def test_two_suites_have_a_budget_each():
    """Each is held to its own; together they may spend the sum."""
    one = ModelBudget(usd=1.5, source="budget_usd in a/suite.toml")
    other = ModelBudget(usd=0.2, source="the default")
    plan = cost_plan([("a", one, ["x"]), ("b", other, ["y"])], mode="live", known={})

    assert ["a may spend 1.50 USD", "b may spend 0.20 USD"] == [
        line.partition(": ")[2].partition(" (")[0] for line in plan if "may spend" in line
    ]
    assert "  together at most 1.70 USD" == plan[-1]
