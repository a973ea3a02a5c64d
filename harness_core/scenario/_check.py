"""Every mistake in a table of scenarios, found before the first one runs.

Called by the suite's adapter at collection, so that a typo is one clear error of the collection
and not a failing (or, worse, a passing) test.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any, Final

from harness_core.errors import BadInput
from harness_core.scenario._rows import DbAssertion, E2EScenario
from harness_core.scenario._token import TOKEN_FIELD

__all__ = ["check_scenarios"]

_KEBAB: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_FIELD: Final = re.compile(r"(?<!\{)\{(\w*)\}(?!\})")


def check_scenarios(
    rows: Sequence[Any], *, where: str, butlers: Collection[str]
) -> tuple[E2EScenario, ...]:
    """Return ``rows`` when all of them can be run and each of them can fail.

    Args:
        rows: the table as the suite wrote it.
        where: the file it stands in, for messages.
        butlers: names of the butlers that the roster holds.

    Raises:
        BadInput: the first mistake, with file, row and field.
    """
    seen: set[str] = set()
    for number, row in enumerate(rows):
        if not isinstance(row, E2EScenario):
            raise BadInput(where, key=f"row {number}", found=row, expected="an E2EScenario")
        _check_row(row, where=where, butlers=butlers)
        if row.id in seen:
            raise BadInput(where, key=f"row {number}: id", found=row.id, expected="a unique id")
        seen.add(row.id)
    return tuple(rows)


def _check_row(row: E2EScenario, *, where: str, butlers: Collection[str]) -> None:
    def refuse(field: str, found: object, expected: str) -> BadInput:
        return BadInput(where, key=f"scenario {row.id!r}: {field}", found=found, expected=expected)

    if not isinstance(row.id, str) or not _KEBAB.fullmatch(row.id):
        raise refuse("id", row.id, "kebab-case, e.g. 'health-symptom-log'")
    if not isinstance(row.input_prompt, str) or not row.input_prompt.strip():
        raise refuse("input_prompt", row.input_prompt, "a text that is not empty")
    for field in _FIELD.findall(row.input_prompt):
        if "{" + field + "}" != TOKEN_FIELD:
            raise refuse("input_prompt", "{" + field + "}", f"{TOKEN_FIELD} as the only field")
    if not row.expected_butlers:
        raise refuse("expected_butler", row.expected_butler, "at least one butler")
    for name in row.expected_butlers:
        if name not in butlers:
            raise refuse("expected_butler", name, f"one of {', '.join(sorted(butlers))}")
    if isinstance(row.expected_tool_calls, str):
        raise refuse("expected_tool_calls", row.expected_tool_calls, "a list of tool names")
    for tool in row.expected_tool_calls:
        butler = tool.rpartition(".")[0]
        if butler and butler not in row.expected_butlers:
            raise refuse("expected_tool_calls", tool, "a tool of an expected butler")
    if isinstance(row.tags, str):
        raise refuse("tags", row.tags, "a tuple of texts")
    if not row.timeout_s > 0:
        raise refuse("timeout_s", row.timeout_s, "seconds above zero")
    if not row.expected_tool_calls and not row.db_assertions:
        raise refuse("db_assertions", [], "a row or a tool call to check: it asserts no effect")
    for number, assertion in enumerate(row.db_assertions):
        _check_assertion(assertion, number, row=row, where=where, butlers=butlers)


def _check_assertion(
    assertion: DbAssertion,
    number: int,
    *,
    row: E2EScenario,
    where: str,
    butlers: Collection[str],
) -> None:
    def refuse(field: str, found: object, expected: str) -> BadInput:
        key = f"scenario {row.id!r}: db_assertions[{number}].{field}"
        return BadInput(where, key=key, found=found, expected=expected)

    if not isinstance(assertion, DbAssertion):
        raise refuse("", assertion, "a DbAssertion")
    if assertion.butler not in butlers:
        raise refuse("butler", assertion.butler, f"one of {', '.join(sorted(butlers))}")
    if not assertion.table:
        raise refuse("table", assertion.table, "a table name")
    if not assertion.where and assertion.count != 0:
        raise refuse("where", {}, "a condition: without one any old row would do")
    if assertion.count is not None and assertion.count < 0:
        raise refuse("count", assertion.count, "zero or more rows")
    if assertion.count == 0 and assertion.column_checks:
        raise refuse("column_checks", assertion.column_checks, "none when no row may exist")
    uses_token = TOKEN_FIELD in repr(assertion.where) + repr(assertion.column_checks)
    if uses_token and TOKEN_FIELD not in row.input_prompt:
        raise refuse("where", TOKEN_FIELD, f"{TOKEN_FIELD} in input_prompt too")
