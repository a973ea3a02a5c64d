"""Plan and estimate against each other, over generated parts lists; the rest is in test_handover.py."""

from collections import Counter
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench_contract.estimate import Estimate
from workbench_contract.objectives import Objectives
from workbench_planning.agreement import CatalogueRow, disagreements
from workbench_planning.plan_md import read_plan

OBJECTIVES = Objectives.model_validate(
    {
        "goal_zone": {"min_mm": [80, -10, 0], "max_mm": [100, 10, 20]},
        "forbid_zones": [],
        "build_zone": {"min_mm": [0, -20, 0], "max_mm": [70, 20, 60]},
        "simulation_bounds": {"min_mm": [-50, -50, -10], "max_mm": [150, 50, 100]},
        "moved_object": {
            "label": "ball",
            "shape": "sphere",
            "size": {"radius_mm": 5},
            "start_mm": [10, 0, 40],
        },
        "moving_parts": [],
        "constraints": {"max_unit_cost_usd": 50, "max_weight_g": 1200},
        "randomization": {"variant": "v1", "seeds": [0]},
    }
)
IDS = ["base", "flap", "M4x20", "a_b", "Größe-1", "p:1"]


def estimate_of(quantities):
    """An estimate of bought parts with these quantities."""
    return Estimate.model_validate(
        {
            "constraints": {
                "benchmark_max_unit_cost_usd": 50,
                "benchmark_max_weight_g": 1200,
                "planner_target_max_unit_cost_usd": 45,
                "planner_target_max_weight_g": 1000,
            },
            "manufactured_parts": [],
            "cots_parts": [
                {
                    "part_id": name,
                    "quantity": quantity,
                    "unit_cost_usd": 1,
                    "catalogue_version": 1,
                    "source": "s",
                }
                for name, quantity in quantities.items()
            ],
            "assembly": {"steps": []},
            "totals": {"assembly_cost_usd": 0, "unit_cost_usd": 1, "weight_g": 1},
        }
    )


def plan_of(rows, *, table):
    """A plan with a parts list of (id, quantity)."""
    if table:
        head = ["| part | catalogue_version | Quantity | unit_cost_usd |", "|---|---|---|---|"]
        lines = head + [f"| `{name}` | 1 | {quantity} | 1.00 |" for name, quantity in rows]
    else:
        lines = [
            f"- `{name}`: bought; quantity: {quantity}; unit_cost_usd: 1 USD\n  - catalogue_version: 1"
            for name, quantity in rows
        ]
    text = "\n".join(
        [
            "## 1. Solution Overview\n\nA flap.\n\n## 2. Parts List\n",
            *lines,
            "\n## 3. Assembly Strategy\n\n1. Mount.\n\n## 4. Cost & Weight Budget\n",
            "- planner_target_max_unit_cost_usd: 45\n- planner_target_max_weight_g: 1000",
            "\n## 5. Risk Assessment\n\n- None.\n",
        ]
    )
    plan, findings = read_plan(text.encode())

    assert [] == findings
    return plan


def told(plan, estimate, catalogue):
    """What the two differ in."""
    return disagreements(
        plan=plan, estimate=estimate, objectives=OBJECTIVES, benchmark=None, catalogue=catalogue
    )


_ROWS = st.lists(st.tuples(st.sampled_from(IDS), st.integers(1, 3)), min_size=1, max_size=8)


@given(_ROWS, st.dictionaries(st.sampled_from(IDS), st.integers(1, 3), min_size=1), st.booleans())
def test_parts(rows, quantities, table):
    """One finding for each row too many, each part without a row, each first row of another quantity."""
    known = {
        name: CatalogueRow(part_id=name, version=1, unit_cost_usd=Decimal(1)) for name in quantities
    }
    findings = told(plan_of(rows, table=table), estimate_of(quantities), known)
    first = dict(reversed(rows))
    expected = Counter(
        again=len(rows) - len(first),
        unknown=sum(name not in quantities for name in first),
        missing=sum(name not in first for name in quantities),
        quantity=sum(quantities.get(name, number) != number for name, number in first.items()),
    )
    seen = Counter(
        again=sum("a second time" in each.found for each in findings),
        unknown=sum("a row named" in each.found for each in findings),
        missing=sum("no row named" in each.found for each in findings),
        quantity=sum("quantity" in each.found for each in findings),
    )

    assert expected == seen
    assert len(findings) == seen.total()


@given(
    st.integers(1, 12),
    st.integers(1, 12),
    st.dictionaries(st.integers(1, 150), st.integers(1, 99), max_size=4),
    st.integers(1, 99),
)
def test_price_of_a_quantity(quantity, units, tiers, typed_cents):
    """The price is that of the last tier that all pieces of all units reach, looked for one by one."""
    row = CatalogueRow(
        part_id="p",
        version=1,
        unit_cost_usd=Decimal("0.50"),
        tiers=tuple((pieces, Decimal(cents) / 100) for pieces, cents in tiers.items()),
    )
    due = 50
    for pieces in range(1, quantity * units + 1):
        due = tiers.get(pieces, due)
    estimate = estimate_of({"p": quantity}).model_copy(deep=True)
    estimate.assembly.units = units
    estimate.cots_parts[0].unit_cost_usd = Decimal(typed_cents) / 100
    wheres = [
        each.where for each in told(plan_of([("p", quantity)], table=True), estimate, {"p": row})
    ]

    assert (due != typed_cents) == ("cots_parts[0].unit_cost_usd" in wheres)


@pytest.mark.parametrize(
    ("text", "same"),
    [("1", True), ("1.00", True), ("$1", True), ("1 USD", True), ("$ 1.00 USD", True), ("1 x", True),
     ("", False), ("-1", False), ("1,00", False), ("1e0", False), ("one", False), ("1 EUR", False),
     ("1.00 each", False), ("１", False), ("0.999", False), ("1" * 500, False)],
)  # fmt: skip
def test_numbers_of_a_plan(text, same):
    """A number may have its unit with it, and nothing else."""
    row = CatalogueRow(part_id="p", version=1, unit_cost_usd=Decimal(1))
    plan = plan_of([("p", 1)], table=True)
    fields = plan.parts[0].fields | {"unit_cost_usd": text}
    object.__setattr__(plan.parts[0], "fields", fields)

    assert same == (told(plan, estimate_of({"p": 1}), {"p": row}) == [])
