"""``preliminary_cost_estimation.yaml``: is it whole, and are its numbers those that were computed?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, Protocol

from workbench_contract.estimate import Assembly, Estimate, EstimateConstraints, MilledPart
from workbench_contract.findings import Finding, Stage
from workbench_planning.boxes import exact
from workbench_planning.schema import items_at, model_of, part_of
from workbench_planning.strict_yaml import Document, Path, read_yaml
from workbench_planning.templates import placeholders
from workbench_planning.text import finding, shortened

FILE = "preliminary_cost_estimation.yaml"

#: What a typed number may be from the computed one, in hundredths of the latter; so much passes.
TOLERANCE_PERCENT = 1


class ComputedPart(Protocol):
    """A part that is made, as it was priced."""

    @property
    def id(self) -> str: ...
    @property
    def unit_cost_usd(self) -> Decimal: ...
    @property
    def unit_weight_g(self) -> Decimal: ...


class ComputedCots(Protocol):
    """A part of the catalogue, at the price that its quantity has."""

    @property
    def part_id(self) -> str: ...
    @property
    def unit_cost_usd(self) -> Decimal: ...


class ComputedTotals(Protocol):
    """One unit of a design, as it was priced."""

    @property
    def parts(self) -> Sequence[ComputedPart]: ...
    @property
    def bought(self) -> Sequence[ComputedCots]: ...
    @property
    def assembly_cost_usd(self) -> Decimal: ...
    @property
    def unit_cost_usd(self) -> Decimal: ...
    @property
    def weight_g(self) -> Decimal: ...


def read_estimate(data: bytes) -> tuple[Estimate | None, list[Finding]]:
    """The estimate, or all that is wrong with it; what can be judged is, whatever else is wrong."""
    document, marks = read_yaml(data, file=FILE, with_gaps=True)
    if document is None:
        return None, marks
    marks += placeholders(document, file=FILE)
    estimate, findings = model_of(Estimate, document, file=FILE)
    # Neither a placeholder nor NaN is a number that is too small, which needs no second finding.
    told = {each.where for each in marks}
    findings = [*marks, *(each for each in findings if each.where not in told)]
    findings += [*_targets(document), *_ids(document), *_stocks(document)]
    return (None if findings else estimate), findings


def differences(typed: Estimate, computed: ComputedTotals) -> list[Finding]:
    """The numbers that are more than ``TOLERANCE_PERCENT`` from what was computed."""
    findings = []
    for where, found, expected, unit in _pairs(typed, computed):
        if abs(found - expected) * 100 > abs(expected) * TOLERANCE_PERCENT:
            due = f"the computed {expected} {unit}, within {TOLERANCE_PERCENT} %"
            findings.append(finding(FILE, where, f"{found} {unit}", due, stage=Stage.PRICE))
    return findings


def _pairs(
    typed: Estimate, computed: ComputedTotals
) -> Iterator[tuple[str, Decimal, Decimal, str]]:
    """Each typed number with its place, what was computed, and the unit of both."""
    made = {each.id: each for each in computed.parts}
    for index, part in enumerate(typed.manufactured_parts):
        if priced := made.get(part.id):
            where = f"manufactured_parts[{index}]"
            yield f"{where}.unit_cost_usd", part.unit_cost_usd, priced.unit_cost_usd, "USD"
            yield f"{where}.unit_weight_g", _decimal(part.unit_weight_g), priced.unit_weight_g, "g"
    bought = {each.part_id: each for each in computed.bought}
    for index, row in enumerate(typed.cots_parts):
        if known := bought.get(row.part_id):
            where = f"cots_parts[{index}].unit_cost_usd"
            yield where, row.unit_cost_usd, known.unit_cost_usd, "USD"
    totals = typed.totals
    yield "totals.assembly_cost_usd", totals.assembly_cost_usd, computed.assembly_cost_usd, "USD"
    yield "totals.unit_cost_usd", totals.unit_cost_usd, computed.unit_cost_usd, "USD"
    yield "totals.weight_g", _decimal(totals.weight_g), computed.weight_g, "g"


def _targets(document: Document) -> list[Finding]:
    """Targets above their caps; as high passes."""
    typed = part_of(EstimateConstraints, document, ("constraints",))
    if typed is None:
        return []
    findings = []
    for name in ("max_unit_cost_usd", "max_weight_g"):
        target = getattr(typed, f"planner_target_{name}")
        cap = getattr(typed, f"benchmark_{name}")
        if target > cap:
            path: Path = ("constraints", f"planner_target_{name}")
            expected = f"at most benchmark_{name}, {cap:g}"
            findings.append(finding(FILE, document.where(path), f"{target:g}", expected))
    return findings


def _ids(document: Document) -> list[Finding]:
    """Ids that two parts have, steps that name no part, an estimate of nothing."""
    findings = []
    first: dict[str, Path] = {}
    count = 0
    for key, name in (("manufactured_parts", "id"), ("cots_parts", "part_id")):
        for index, item in enumerate(items_at(document.value, (key,))):
            count += 1
            given = item.get(name) if isinstance(item, dict) else None
            path: Path = (key, index, name)
            if isinstance(given, str) and first.setdefault(given, path) != path:
                owner = document.where(first[given])
                found = f"{shortened(given)}, which {owner} has"
                findings.append(finding(FILE, document.where(path), found, "an id of its own"))
    if not count:
        found = "no part, neither made nor bought"
        findings.append(finding(FILE, "manufactured_parts", found, "at least one part"))
    assembly = part_of(Assembly, document, ("assembly",))
    for index, step in enumerate(assembly.steps if assembly else ()):
        for place, given in enumerate(step.parts):
            if given not in first:
                where = document.where(("assembly", "steps", index, "parts", place))
                findings.append(
                    finding(FILE, where, shortened(given), "the id of a part of this file")
                )
    return findings


def _stocks(document: Document) -> list[Finding]:
    """Milled parts that are larger than the box that they are cut from."""
    findings = []
    for index in range(len(items_at(document.value, ("manufactured_parts",)))):
        path: Path = ("manufactured_parts", index)
        part = part_of(MilledPart, document, path)
        if part is None:
            continue
        x, y, z = (exact(edge) for edge in part.stock_mm)
        if exact(part.volume_mm3) > x * y * z:
            found = f"a part of {part.volume_mm3:g} mm³ from a stock box of {float(x * y * z):g}"
            where = document.where((*path, "stock_mm"))
            findings.append(finding(FILE, where, found, "a box that holds the part"))
    return findings


def _decimal(number: Any) -> Decimal:
    """A number as it was typed."""
    return Decimal(repr(number))
