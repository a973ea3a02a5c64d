"""Every mistake in a table of scenarios, found before the first one runs.

Called by the suite's adapter at collection, so that a typo is one clear error of the collection
and not a failing (or, worse, a passing) test.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from harness_core.assertions._rows import DbAssertion, E2EScenario, Golden
from harness_core.assertions._sequential import SequentialPlan
from harness_core.assertions._token import TOKEN_FIELD
from harness_core.base.errors import BadInput
from harness_core.doubles.turns import Route, Use, is_turn

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
    if not rows:
        raise BadInput(where, found="no scenario", expected="at least one: nothing would be tested")
    seen: set[str] = set()
    for number, row in enumerate(rows):
        if not isinstance(row, E2EScenario):
            raise BadInput(where, key=f"row {number}", found=row, expected="an E2EScenario")
        for field, found, expected in _mistakes(row, butlers):
            key = f"scenario {row.id!r}: {field}"
            raise BadInput(where, key=key, found=found, expected=expected)
        if row.id in seen:
            raise BadInput(where, key=f"row {number}: id", found=row.id, expected="a unique id")
        seen.add(row.id)
    return tuple(rows)


#: (field, what was found there, what would be accepted)
_Mistake = tuple[str, object, str]


def _mistakes(row: E2EScenario, butlers: Collection[str]) -> Iterator[_Mistake]:
    """What is wrong with a row, the most basic first; a later check relies on the earlier ones."""
    if not _is_text(row.id) or not _KEBAB.fullmatch(row.id):
        yield "id", row.id, "kebab-case, e.g. 'health-symptom-log'"
    if not _is_text(row.description):
        yield "description", row.description, "a sentence for the reader"
    yield from _mistakes_of_prompt(row)
    yield from _mistakes_of_butlers(row, butlers)
    if not _are_texts(row.tags):
        yield "tags", row.tags, "a tuple of texts"
    output = row.expected_output
    if output is not None and not isinstance(output, Golden) and not _is_text(output):
        yield "expected_output", output, "a text that is not empty, GOLDEN, or None"
    if not _is_number(row.timeout_s) or not 0 < row.timeout_s < math.inf:
        yield "timeout_s", row.timeout_s, "seconds above zero"
    if not isinstance(row.db_assertions, list | tuple):
        yield "db_assertions", row.db_assertions, "a list of DbAssertion"
    yield from _mistakes_of_judgement(row, butlers)
    yield from _mistakes_of_model(row)
    if not row.expected_tool_calls and not row.db_assertions and not row.alternatives:
        yield "db_assertions", [], "a row or a tool call to check: it asserts no effect"
    yield from _mistakes_of_assertions(row, butlers)


def _mistakes_of_assertions(row: E2EScenario, butlers: Collection[str]) -> Iterator[_Mistake]:
    rows: Sequence[Any] = row.db_assertions
    for number, assertion in enumerate(rows):
        at = f"db_assertions[{number}]"
        if not isinstance(assertion, DbAssertion):
            yield at, assertion, "a DbAssertion"
        for field, found, expected in _mistakes_in(assertion, row=row, butlers=butlers):
            yield f"{at}.{field}", found, expected
    effects = [assertion for assertion in rows if assertion.count != 0]
    if effects and TOKEN_FIELD not in repr([(a.where, a.column_checks) for a in effects]):
        expected = f"{TOKEN_FIELD} in one of them: else a row of another run would do"
        yield "db_assertions", f"no {TOKEN_FIELD}", expected


def _mistakes_of_judgement(row: E2EScenario, butlers: Collection[str]) -> Iterator[_Mistake]:
    for name in row.alternatives:
        if name not in butlers or name in row.expected_butlers:
            yield "alternatives", name, f"another one of {', '.join(sorted(butlers))}"
    wanted = {tool.rpartition(".")[2] for tool in row.expected_tool_calls}
    if not _are_texts(row.forbidden_tool_calls):
        yield "forbidden_tool_calls", row.forbidden_tool_calls, "a list of bare names of tools"
    for tool in row.forbidden_tool_calls:
        if not _is_text(tool) or "." in tool or tool in wanted:
            yield "forbidden_tool_calls", tool, "the bare name of a tool that is not expected"
    if row.pass_rate is not None and not _is_number(row.pass_rate):
        yield "pass_rate", row.pass_rate, "a share between 0 and 1, or None"
    if row.pass_rate is not None:
        try:
            SequentialPlan.for_rate(row.pass_rate)
        except BadInput as error:
            yield "pass_rate", row.pass_rate, error.expected


def _mistakes_of_model(row: E2EScenario) -> Iterator[_Mistake]:
    """Turns that could not be what the row expects; a row for real models alone has none."""
    for turn in row.model:
        if not is_turn(turn):
            yield "model", turn, "turns: route(…), use(…), say(…) and so on, or a tuple of use(…)"
    routes = [turn for turn in row.model if isinstance(turn, Route)]
    for turn in routes:
        if turn.target not in {*row.expected_butlers, *row.alternatives}:
            expected = f"a butler that the row expects: {', '.join(row.expected_butlers)}"
            yield "model", f"route({turn.target!r})", expected
        if turn.prompt and turn.prompt not in row.input_prompt:
            yield "model", f"route(…, {turn.prompt!r})", "a part of input_prompt, word for word"
    if row.model and not routes:
        yield "model", row.model, f"a route to {' and '.join(row.expected_butlers)}"
    used = {use.tool for turn in row.model for use in _uses(turn)}
    for tool in row.expected_tool_calls if row.model else ():
        if tool.rpartition(".")[2] not in used:
            yield "model", sorted(used), f"a use of {tool!r}, which the row expects"


def _uses(turn: object) -> tuple[Use, ...]:
    if isinstance(turn, tuple):
        return turn
    return (turn,) if isinstance(turn, Use) else ()


def _mistakes_of_prompt(row: E2EScenario) -> Iterator[_Mistake]:
    if not _is_text(row.input_prompt):
        yield "input_prompt", row.input_prompt, "a text that is not empty"
    for field in _FIELD.findall(row.input_prompt):
        if "{" + field + "}" != TOKEN_FIELD:
            yield "input_prompt", "{" + field + "}", f"{TOKEN_FIELD} as the only field"


def _mistakes_of_butlers(row: E2EScenario, butlers: Collection[str]) -> Iterator[_Mistake]:
    expected = row.expected_butler
    if not isinstance(expected, str) and not _are_texts(expected):
        yield "expected_butler", expected, "the name of a butler, or a list of names"
    if not expected:
        yield "expected_butler", expected, "at least one butler"
    for name in row.expected_butlers:
        if name not in butlers:
            yield "expected_butler", name, f"one of {', '.join(sorted(butlers))}"
    if len(set(row.expected_butlers)) != len(row.expected_butlers):
        yield "expected_butler", expected, "each butler once"
    if not _are_texts(row.expected_tool_calls):
        yield "expected_tool_calls", row.expected_tool_calls, "a list of tool names"
    for tool in row.expected_tool_calls:
        butler, dot, name = tool.partition(".")
        if not name and (dot or not butler):
            yield "expected_tool_calls", tool, "'tool' or 'butler.tool'"
        if dot and butler not in row.expected_butlers:
            yield "expected_tool_calls", tool, "a tool of an expected butler"


def _mistakes_in(
    assertion: DbAssertion, *, row: E2EScenario, butlers: Collection[str]
) -> Iterator[_Mistake]:
    if not _is_text(assertion.butler) or assertion.butler not in butlers:
        yield "butler", assertion.butler, f"one of {', '.join(sorted(butlers))}"
    if not _is_text(assertion.table):
        yield "table", assertion.table, "a table name"
    for field in ("where", "column_checks"):
        if not isinstance(getattr(assertion, field), Mapping):
            yield field, getattr(assertion, field), "a mapping from column to value"
    if assertion.count is not None and (type(assertion.count) is not int or assertion.count < 0):
        yield "count", assertion.count, "zero or more rows"
    if not assertion.where and assertion.count != 0:
        yield "where", {}, "a condition: without one any old row would do"
    if assertion.count == 0 and assertion.column_checks:
        yield "column_checks", assertion.column_checks, "none when no row may exist"
    uses_token = TOKEN_FIELD in repr(assertion.where) + repr(assertion.column_checks)
    if uses_token and TOKEN_FIELD not in row.input_prompt:
        yield "where", TOKEN_FIELD, f"{TOKEN_FIELD} in input_prompt too"


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _are_texts(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
