"""``validate_costing_and_price``: what an estimate's design costs and weighs, whatever its author typed.

The script of the system behind the gate of price: everything is computed from methods, materials and
geometry, catalogue prices are looked up, and what was typed is held against that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from workbench_contract.estimate import (
    Estimate,
    EstimateTotals,
    ManufacturedPart,
    MilledPart,
)
from workbench_contract.estimate import MouldedPart as EstimatedMoulded
from workbench_contract.findings import Finding
from workbench_making.configuration import Configuration
from workbench_making.pricing import CncPart, MouldedPart, Part, PrintedPart
from workbench_making.totals import Bought, Caps, CataloguePart, Design, Totals, over_caps, total
from workbench_planning.estimate import FILE, differences


@dataclass(frozen=True, slots=True, kw_only=True)
class Costing:
    """What was computed of an estimate.

    Attributes:
        totals: None if something cannot be priced.
        findings: what keeps it from being handed over; all of it.
        corrected: the estimate with every number that was computed; None without totals.
    """

    totals: Totals | None
    findings: tuple[Finding, ...]
    corrected: Estimate | None


def validate_costing_and_price(
    estimate: Estimate,
    configuration: Configuration,
    lookup: Callable[[str], CataloguePart | None],
    *,
    benchmark: Caps,
) -> Costing:
    """Price an estimate and judge it.

    Findings are: what cannot be priced; else what was typed and is more than 1 % from what was
    computed, and what is over the benchmark's caps or the planner's own targets. Exactly at a cap
    or target passes.

    Args:
        lookup: a part of the catalogue by its id, None when there is none.
        benchmark: the caps as the benchmark has them, and not as the estimate repeats them.
    """
    totals, findings = total(design_of(estimate), configuration, lookup, file=FILE)
    if totals is None:
        return Costing(totals=None, findings=tuple(findings), corrected=None)
    given = estimate.constraints
    targets = Caps(
        max_unit_cost_usd=_exact(given.planner_target_max_unit_cost_usd),
        max_weight_g=_exact(given.planner_target_max_weight_g),
    )
    findings = differences(estimate, totals)
    findings += over_caps(totals, benchmark, file=FILE)
    if targets != benchmark:
        findings += over_caps(totals, targets, file=FILE, whose="the planner's own target")
    return Costing(totals=totals, findings=tuple(findings), corrected=_corrected(estimate, totals))


def design_of(estimate: Estimate) -> Design:
    """What an estimate says that is put together."""
    return Design(
        parts=tuple(_part(part) for part in estimate.manufactured_parts),
        bought=tuple(
            Bought(part_id=row.part_id, quantity_n=row.quantity) for row in estimate.cots_parts
        ),
        units_n=estimate.assembly.units,
    )


def _part(part: ManufacturedPart) -> Part:
    volume = _exact(part.volume_mm3)
    if isinstance(part, MilledPart):
        x, y, z = part.stock_mm
        return CncPart(
            id=part.id,
            material=part.material,
            quantity_n=part.quantity,
            volume_mm3=volume,
            stock_mm=(_exact(x), _exact(y), _exact(z)),
        )
    if isinstance(part, EstimatedMoulded):
        return MouldedPart(
            id=part.id,
            material=part.material,
            quantity_n=part.quantity,
            volume_mm3=volume,
            wall_mm=_exact(part.wall_mm),
            draft_deg=_exact(part.draft_deg),
        )
    return PrintedPart(
        id=part.id,
        material=part.material,
        quantity_n=part.quantity,
        volume_mm3=volume,
        layer_mm=_exact(part.layer_mm),
        infill=_exact(part.infill),
    )


def _corrected(estimate: Estimate, totals: Totals) -> Estimate:
    """The estimate with the computed numbers; parts are in the same order as in the design."""
    made = [
        part.model_copy(
            update={
                "unit_cost_usd": priced.unit_cost_usd,
                "unit_weight_g": float(priced.unit_weight_g),
            }
        )
        for part, priced in zip(estimate.manufactured_parts, totals.parts, strict=True)
    ]
    bought = [
        row.model_copy(update={"unit_cost_usd": priced.unit_cost_usd})
        for row, priced in zip(estimate.cots_parts, totals.bought, strict=True)
    ]
    computed = EstimateTotals(
        assembly_cost_usd=totals.assembly_cost_usd,
        unit_cost_usd=totals.unit_cost_usd,
        weight_g=float(totals.weight_g),
    )
    return estimate.model_copy(
        update={"manufactured_parts": made, "cots_parts": bought, "totals": computed}
    )


def _exact(number: float | Decimal) -> Decimal:
    """A number as it was typed: the shortest text that reads as the same."""
    return number if isinstance(number, Decimal) else Decimal(repr(number))
