"""What a product of another roster, other tools or other tables cannot be asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness_core.assertions import E2EScenario
from harness_core.doubles.turns import Given, Turn, Use
from harness_core.front.skips import not_run
from suites.e2e.ecosystem.handle import DOMAIN, Ecosystem

__all__ = ["need_trades"]


async def need_trades(ecosystem: Ecosystem, scenario: E2EScenario) -> None:
    """A scenario is not run on a product that has not its butlers, or, by its own word, not their tools.

    Of a product with the capability ``domain`` whatever is missing is its failure.
    """
    missing = sorted({*scenario.expected_butlers} - {*ecosystem.butlers})
    if missing:
        not_run("subject", f"the roster has no butler {', '.join(map(repr, missing))}")
    if DOMAIN in ecosystem.subject.capabilities:
        return
    offered: dict[str, Mapping[str, Any]] = {}
    for name in scenario.expected_butlers:
        offered |= await ecosystem[name].tools()
    for use in _uses(scenario.model):
        if use.tool not in offered:
            not_run("subject", f"no tool {use.tool!r}, and no capability {DOMAIN!r}")
        strange = {*use.arguments} - {*offered[use.tool].get("properties", {})}
        if strange:
            names = ", ".join(sorted(strange))
            not_run("subject", f"{use.tool} takes no {names}, and no capability {DOMAIN!r}")
    for row in scenario.db_assertions:
        database = ecosystem[row.butler].database
        try:
            await database.expect_columns(row.table, {*row.where, *row.column_checks})
        except AssertionError as lacking:
            not_run("subject", f"{lacking}, and no capability {DOMAIN!r}")


def _uses(turns: Sequence[Turn]) -> Iterator[Use]:
    for turn in turns:
        if isinstance(turn, Use):
            yield turn
        elif isinstance(turn, tuple):
            yield from turn
        elif isinstance(turn, Given):
            yield from _uses(turn.turns)
