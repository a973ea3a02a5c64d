"""`validate_costing_and_price`: an estimate is held against what is computed of it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from workbench_contract.estimate import Estimate
from workbench_contract.findings import Stage
from workbench_making import configuration
from workbench_making.configuration import Configuration
from workbench_making.costing import Costing, validate_costing_and_price
from workbench_making.totals import Caps, CataloguePart

D = Decimal


def _configuration() -> Configuration:
    found, _ = configuration.read(configuration.shipped())
    assert found is not None
    return found


CONFIG = _configuration()
SCREW = CataloguePart(
    part_id="m3x10", unit_cost_usd=D("0.12"), weight_g=D("0.8"), fastener=True, tiers=((100, D("0.08")),)
)


def estimate(**changed: Any) -> Estimate:
    """Two plates, a bracket and four screws, in one unit.

    By hand. Plate: 60/2 + 0.324 kg × 6.50 + 3 min × 1.25 = 35.856 → 35.86, 226.8 g. Bracket:
    5 + 0.16368 + 1.23457 = 6.39825 → 6.40, 7.44 g. Screws 4 × 0.12 = 0.48, 3.2 g. Together 7 pieces ×
    15 s + 4 × 20 s = 185 s × 0.01 = 1.85. Sum 2 × 35.856 + 6.39825 + 0.48 + 1.85 = 80.44025 → 80.44;
    453.6 + 7.44 + 3.2 = 464.24 g.
    """
    content: dict[str, Any] = {
        "constraints": {
            "benchmark_max_unit_cost_usd": 100.0,
            "benchmark_max_weight_g": 600.0,
            "planner_target_max_unit_cost_usd": 90.0,
            "planner_target_max_weight_g": 500.0,
        },
        "manufactured_parts": [
            {"id": "plate", "method": "cnc", "material": "aluminium_6061", "quantity": 2,
             "volume_mm3": 84000.0, "stock_mm": [100.0, 60.0, 20.0],
             "unit_cost_usd": 35.86, "unit_weight_g": 226.8},
            {"id": "bracket", "method": "print", "material": "pla_filament", "quantity": 1,
             "volume_mm3": 30000.0, "layer_mm": 0.2, "infill": 0.2,
             "unit_cost_usd": 6.4, "unit_weight_g": 7.44},
        ],
        "cots_parts": [
            {"part_id": "m3x10", "quantity": 4, "unit_cost_usd": 0.12, "catalogue_version": 1,
             "source": "catalogue"},
        ],
        "assembly": {"units": 1, "steps": []},
        "totals": {"assembly_cost_usd": 1.85, "unit_cost_usd": 80.44, "weight_g": 464.24},
    }
    for path, value in changed.items():
        *steps, last = path.split("__")
        target: Any = content
        for step in steps:
            target = target[int(step) if step.isdigit() else step]
        target[last] = value
    return Estimate.model_validate(content)


def judged(given: Estimate, *, cost: str = "100.00", weight: str = "600") -> Costing:
    """The costing of an estimate under a benchmark's caps."""
    caps = Caps(max_unit_cost_usd=D(cost), max_weight_g=D(weight))
    return validate_costing_and_price(
        given, CONFIG, {"m3x10": SCREW}.get, benchmark=caps
    )


def test_an_estimate_that_is_right_passes() -> None:
    """And is computed as it was by hand."""
    found = judged(estimate())

    assert () == found.findings
    assert found.totals is not None
    assert (D("80.44"), D("464.24"), D("1.85")) == (
        found.totals.unit_cost_usd, found.totals.weight_g, found.totals.assembly_cost_usd
    )
    assert estimate() == found.corrected


@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        ("manufactured_parts__0__unit_cost_usd", 36.3, "manufactured_parts[0].unit_cost_usd"),
        ("manufactured_parts__1__unit_weight_g", 7.3, "manufactured_parts[1].unit_weight_g"),
        ("cots_parts__0__unit_cost_usd", 0.08, "cots_parts[0].unit_cost_usd"),
        ("totals__unit_cost_usd", 50.0, "totals.unit_cost_usd"),
        ("totals__weight_g", 470.0, "totals.weight_g"),
        ("totals__assembly_cost_usd", 0.0, "totals.assembly_cost_usd"),
    ],
)
def test_what_was_typed_is_held_against_what_is_computed(path: str, value: float, where: str) -> None:
    """More than 1 % is a finding, and the corrected estimate has what was computed."""
    found = judged(estimate(**{path: value}))

    assert [(Stage.PRICE, where)] == [(row.stage, row.where) for row in found.findings]
    assert estimate() == found.corrected


@pytest.mark.parametrize(
    ("cost", "weight", "over"),
    [
        ("80.44", "464.24", []),
        ("80.43", "464.24", ["totals.unit_cost_usd"]),
        ("80.44", "464.23", ["totals.weight_g"]),
        ("80.43", "464.23", ["totals.unit_cost_usd", "totals.weight_g"]),
    ],
)
def test_the_benchmarks_caps_are_the_benchmarks(cost: str, weight: str, over: list[str]) -> None:
    """Whatever the estimate says that they are; exactly at them passes."""
    found = judged(estimate(), cost=cost, weight=weight)

    assert over == [row.where for row in found.findings]
    assert all("the benchmark's cap" in row.expected for row in found.findings)


@pytest.mark.parametrize(("target", "over"), [(80.44, False), (80.43, True)])
def test_a_plan_is_within_its_own_target(target: float, over: bool) -> None:
    """What is promised is kept."""
    found = judged(estimate(constraints__planner_target_max_unit_cost_usd=target))

    assert over == bool(found.findings)
    assert {"at most 80.43 USD, the planner's own target"} >= {row.expected for row in found.findings}


def test_prices_are_those_of_the_order() -> None:
    """Of 25 units: 100 screws at 0.08, the set-up in 50 plates; one unit is what is told."""
    found = judged(estimate(assembly__units=25))

    assert found.totals is not None
    assert D("0.08") == found.totals.bought[0].unit_cost_usd
    # 60/50 + 2.106 + 3.75
    assert D("7.06") == found.totals.parts[0].unit_cost_usd


@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        ("manufactured_parts__0__material", "abs", "manufactured_parts[0].material"),
        ("manufactured_parts__1__layer_mm", 0.5, "manufactured_parts[1].layer_mm"),
        ("cots_parts__0__part_id", "m3x11", "cots_parts[0].part_id"),
    ],
)
def test_what_cannot_be_priced_has_no_totals(path: str, value: Any, where: str) -> None:
    """Nothing else is said then: the numbers would be about another design."""
    found = judged(estimate(**{path: value}))

    assert (None, None) == (found.totals, found.corrected)
    assert [where] == [row.where for row in found.findings]
