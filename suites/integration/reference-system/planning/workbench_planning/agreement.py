"""Whether files that are each in order say the same: plan, estimate, objectives, catalogue.

How the plan is read (``sections.py`` says what a row's name and fields are):

- ``2. Parts List``: each row is one part of the estimate, by its id, each part has one row. A row's
  ``quantity`` and ``unit_cost_usd`` are the estimate's, if they are there. The row of a catalogue part has
  ``unit_cost_usd`` and ``catalogue_version``.
- ``4. Cost & Weight Budget``: rows ``planner_target_max_unit_cost_usd`` and
  ``planner_target_max_weight_g`` have the estimate's numbers; other rows are free.

A number in the plan may have its unit with it: ``12.50 USD``, ``$12.50``, ``900 g``, ``4 x``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from workbench_contract.estimate import Estimate
from workbench_contract.findings import Finding, Stage
from workbench_contract.objectives import Objectives
from workbench_planning import estimate as estimate_file
from workbench_planning import objectives as objectives_file
from workbench_planning import plan_md
from workbench_planning.plan_md import Plan
from workbench_planning.sections import Row
from workbench_planning.text import finding, shortened

_NUMBER = re.compile(r"\$?\s?([0-9]{1,12}(?:\.[0-9]{1,6})?)\s?(?:USD|g|x|×)?")
_TARGETS = ("planner_target_max_unit_cost_usd", "planner_target_max_weight_g")


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueRow:
    """A part as the catalogue has it now.

    Attributes:
        unit_cost_usd: of one, when few are ordered.
        tiers: (from how many pieces, USD of each), in any order.
    """

    part_id: str
    version: int
    unit_cost_usd: Decimal
    tiers: tuple[tuple[int, Decimal], ...] = ()

    def at(self, pieces: int) -> Decimal:
        """The price of each when so many are ordered together."""
        reached = [tier for tier in self.tiers if tier[0] <= pieces]
        return max(reached)[1] if reached else self.unit_cost_usd


def disagreements(
    *,
    plan: Plan,
    estimate: Estimate,
    objectives: Objectives,
    benchmark: Objectives | None,
    catalogue: Mapping[str, CatalogueRow],
) -> list[Finding]:
    """All in which a planner's files differ from each other, the benchmark and the catalogue.

    Args:
        benchmark: the objectives that the planner was given; none where the planner makes them.
        catalogue: the rows of the parts that the files name, as far as there are such parts.
    """
    return [
        *_objectives(objectives, benchmark),
        *_caps(estimate, objectives, benchmark),
        *_catalogue(estimate, catalogue),
        *_parts(plan, estimate),
        *_prices(plan, estimate),
        *_budget(plan, estimate),
    ]


def _objectives(objectives: Objectives, benchmark: Objectives | None) -> list[Finding]:
    if benchmark is None:
        return []
    return [
        each.model_copy(update={"stage": Stage.AGREE})
        for each in objectives_file.changed(objectives, benchmark)
    ]


def _caps(
    estimate: Estimate, objectives: Objectives, benchmark: Objectives | None
) -> Iterator[Finding]:
    """The estimate has the benchmark's caps, and aims below those of the objectives."""
    caps = (benchmark or objectives).constraints
    for key in ("max_unit_cost_usd", "max_weight_g"):
        typed = getattr(estimate.constraints, f"benchmark_{key}")
        cap = getattr(caps, key)
        if typed != cap:
            expected = f"the benchmark's {key}, {cap:g}"
            yield _of_estimate(f"constraints.benchmark_{key}", f"{typed:g}", expected)
        target = getattr(estimate.constraints, f"planner_target_{key}")
        most = getattr(objectives.constraints, key)
        if target > most:
            expected = f"at most constraints.{key} of {objectives_file.FILE}, {most:g}"
            yield _of_estimate(f"constraints.planner_target_{key}", f"{target:g}", expected)


def _catalogue(estimate: Estimate, catalogue: Mapping[str, CatalogueRow]) -> Iterator[Finding]:
    """The estimate's prices and versions are the catalogue's."""
    for index, part in enumerate(estimate.cots_parts):
        where = f"cots_parts[{index}]"
        known = catalogue.get(part.part_id)
        if known is None:
            found = f"{shortened(part.part_id)}, which the catalogue does not have"
            yield _of_estimate(f"{where}.part_id", found, "a part of the catalogue as it is now")
            continue
        if part.catalogue_version != known.version:
            expected = f"the catalogue's version, {known.version}"
            yield _of_estimate(f"{where}.catalogue_version", f"{part.catalogue_version}", expected)
        pieces = part.quantity * estimate.assembly.units
        if part.unit_cost_usd != known.at(pieces):
            expected = f"the catalogue's price for {pieces}, {known.at(pieces):.2f} USD"
            yield _of_estimate(f"{where}.unit_cost_usd", f"{part.unit_cost_usd} USD", expected)


def _parts(plan: Plan, estimate: Estimate) -> Iterator[Finding]:
    """The plan's parts are the estimate's, each once, as many."""
    quantities = {part.id: part.quantity for part in estimate.manufactured_parts}
    quantities |= {part.part_id: part.quantity for part in estimate.cots_parts}
    first: dict[str, Row] = {}
    for row in plan.parts:
        if row.name in first:
            found = f"{shortened(row.name)} a second time; it stands in line {first[row.name].line}"
            yield _of_plan(row, found, "one row for each part")
            continue
        first[row.name] = row
        if row.name not in quantities:
            expected = f"the id of a part in {estimate_file.FILE}, as a code span or first cell"
            yield _of_plan(row, f"a row named {shortened(row.name)}", expected)
            continue
        typed = row.fields.get("quantity")
        if typed and _number(typed) != quantities[row.name]:
            expected = f"{quantities[row.name]}, as in {estimate_file.FILE}"
            yield _of_plan(row, f"quantity {shortened(typed)} of {shortened(row.name)}", expected)
    for name in quantities:
        if name not in first:
            found = f"no row named {shortened(name)}"
            expected = f"a row for each part of {estimate_file.FILE}"
            yield _finding(plan_md.FILE, f"## {plan_md.PARTS}", found, expected)


def _prices(plan: Plan, estimate: Estimate) -> Iterator[Finding]:
    """The plan's prices and versions are the estimate's; those of catalogue parts have to be there."""
    rows = {row.name: row for row in reversed(plan.parts)}
    due: list[tuple[str, str, Decimal | int, bool]] = []
    for made in estimate.manufactured_parts:
        due.append((made.id, "unit_cost_usd", made.unit_cost_usd, False))
    for bought in estimate.cots_parts:
        due.append((bought.part_id, "unit_cost_usd", bought.unit_cost_usd, True))
        due.append((bought.part_id, "catalogue_version", bought.catalogue_version, True))
    for name, key, number, needed in due:
        # A part without a row is told once, with the parts.
        if name not in rows:
            continue
        typed = rows[name].fields.get(key, "")
        if (typed or needed) and _number(typed) != number:
            found = f"{shortened(typed) if typed else 'nothing'} for {key} of {shortened(name)}"
            yield _of_plan(rows[name], found, f"{number}, as in {estimate_file.FILE}")


def _budget(plan: Plan, estimate: Estimate) -> Iterator[Finding]:
    """The plan's budget has the estimate's targets."""
    for key in _TARGETS:
        rows = [row for row in plan.budget if row.name == key]
        due = getattr(estimate.constraints, key)
        if len(rows) != 1:
            found = f"{len(rows)} rows named {key}" if rows else f"no row named {key}"
            yield _finding(plan_md.FILE, f"## {plan_md.BUDGET}", found, f"one, with {due:g}")
            continue
        typed = _second(rows[0].texts)
        if _number(typed) != (due if isinstance(due, Decimal) else Decimal(repr(due))):
            expected = f"{due:g}, as in {estimate_file.FILE}"
            yield _of_plan(rows[0], f"{shortened(typed)} for {key}", expected)


def _second(texts: Sequence[str]) -> str:
    return texts[1] if len(texts) > 1 else ""


def _number(text: str) -> Decimal | None:
    """The number that a text of the plan is, with or without its unit."""
    seen = _NUMBER.fullmatch(text.strip())
    return Decimal(seen[1]) if seen else None


def _of_plan(row: Row, found: str, expected: str) -> Finding:
    return _finding(plan_md.FILE, f"line {row.line}", found, expected)


def _of_estimate(where: str, found: str, expected: str) -> Finding:
    return _finding(estimate_file.FILE, where, found, expected)


def _finding(file: str, where: str, found: str, expected: str) -> Finding:
    return finding(file, where, found, expected, stage=Stage.AGREE)
