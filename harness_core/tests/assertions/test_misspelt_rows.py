"""A scenario row with every mistake that a hurry makes: file, row and field in one sentence."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from pathlib import Path
from typing import Any

import pytest

from harness_core.assertions import DbAssertion, E2EScenario, check_scenarios
from harness_core.assurance.conformance import Mistake, mistakes_in
from harness_core.base.errors import BadInput

ROW: dict[str, Any] = {
    "id": "health-symptom",
    "description": "A symptom is logged.",
    "input_prompt": "I have a headache, {token}",
    "expected_butler": "health",
    "expected_tool_calls": ["symptom_log"],
    "db_assertions": [
        {
            "butler": "health",
            "table": "symptoms",
            "where": {"note": "{token}"},
            "column_checks": {"severity": 7},
            "count": 1,
        }
    ],
    "tags": ["health"],
    "expected_output": "noted",
    "forbidden_tool_calls": ["symptom_delete"],
    "alternatives": ["general"],
    "pass_rate": 0.9,
    "timeout_s": 30,
}

#: Columns have names of the product's choice, and values of any kind.
COLUMNS = ("db_assertions.where.", "db_assertions.column_checks.")


def read(content: Any) -> tuple[E2EScenario, ...]:
    """The row as a suite would write it, checked as its collection does."""
    fields = dict(content)
    if isinstance(fields.get("db_assertions"), list):
        fields["db_assertions"] = [DbAssertion(**row) for row in fields["db_assertions"]]
    return check_scenarios(
        [E2EScenario(**fields)], where="scenarios.py", butlers=["general", "health"]
    )


@pytest.mark.parametrize(
    "mistake",
    [
        pytest.param(mistake, id=f"{mistake.key} {mistake.kind}")
        for mistake in mistakes_in(ROW)
        if not mistake.key.startswith(COLUMNS)
    ],
)
def test_a_mistake_in_a_row_is_one_error(mistake: Mistake) -> None:
    """What has no default is missed, what is no field or of another kind is refused."""
    error = refusal(mistake.content)

    if error is None:
        assert "missing" == mistake.kind
        return
    assert any(name in f"{error.key} {error.next_step}" for name in mistake.names), error
    assert Path(__file__).name in error.where or error.where == "scenarios.py"


def refusal(content: Any) -> BadInput | None:
    """What is said of the row; nothing when it is in order."""
    try:
        read(content)
    except BadInput as error:
        return error
    return None


def test_a_misspelt_field_is_told_with_its_line() -> None:
    """The right one is suggested."""
    with pytest.raises(BadInput, match="Did you mean description") as refused:
        E2EScenario(id="one", descripton="x", input_prompt="x", expected_butler="health")

    assert f"{__file__}:" in refused.value.where
    assert "E2EScenario 'one': descripton" == refused.value.key


def test_a_row_can_be_copied_and_sent() -> None:
    """As any value can."""
    (row,) = read(ROW)

    assert row == copy.deepcopy(row) == pickle.loads(pickle.dumps(row))
    assert "other" == dataclasses.replace(row, id="other").id
