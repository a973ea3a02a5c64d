"""preliminary_cost_estimation.yaml: required fields per method, caps and targets, computed numbers."""

import copy
import json
from dataclasses import dataclass, field
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench_contract.estimate import Estimate
from workbench_planning.estimate import differences, read_estimate
from workbench_planning.templates import ESTIMATE

GOOD = {
    "constraints": {
        "benchmark_max_unit_cost_usd": 50.10,
        "benchmark_max_weight_g": 1200,
        "planner_target_max_unit_cost_usd": 45,
        "planner_target_max_weight_g": 1000.5,
    },
    "manufactured_parts": [
        {"id": "base", "method": "cnc", "material": "aluminium_6061", "quantity": 1, "volume_mm3": 40000,
         "stock_mm": [50, 40, 20], "unit_cost_usd": 12.50, "unit_weight_g": 108},
        {"id": "cap", "method": "injection_moulding", "material": "abs", "quantity": 2, "volume_mm3": 3000,
         "wall_mm": 2, "draft_deg": 1.5, "unit_cost_usd": 4.10, "unit_weight_g": 3.12},
        {"id": "flap", "method": "print", "material": "pla_filament", "quantity": 1, "volume_mm3": 9000,
         "layer_mm": 0.2, "infill": 0.3, "unit_cost_usd": 6, "unit_weight_g": 3.348},
    ],
    "cots_parts": [
        {"part_id": "ISO4762-M4x20", "quantity": 4, "unit_cost_usd": 0.12, "catalogue_version": 1,
         "source": "bd_warehouse"},
    ],
    "assembly": {"units": 10, "steps": [{"parts": ["base", "flap"], "joint": "revolute"}]},
    "totals": {"assembly_cost_usd": 2.05, "unit_cost_usd": 29.23, "weight_g": 123.5},
}  # fmt: skip

ABSENT = object()


def told(value):
    """What is found of an estimate; JSON is YAML."""
    text = value if isinstance(value, str) else json.dumps(value)
    estimate, findings = read_estimate(text.encode())

    assert (estimate is None) == bool(findings)
    assert all(
        "preliminary_cost_estimation.yaml" == each.file and each.expected for each in findings
    )
    return [(each.where.split(" (")[0], each.found) for each in findings]


def with_(path, value):
    """The good estimate, with something else at a path like ``cots_parts.0.quantity``."""
    made = copy.deepcopy(GOOD)
    *steps, last = (int(step) if step.isdigit() else step for step in path.split("."))
    at = made
    for step in steps:
        at = at[step]
    if value is ABSENT:
        del at[last]
    else:
        at[last] = value
    return made


def test_good():
    """An estimate without a fault is read as it is."""
    estimate, findings = read_estimate(json.dumps(GOOD).encode())

    assert [] == findings
    assert Decimal("0.12") == estimate.cots_parts[0].unit_cost_usd
    assert ["cnc", "injection_moulding", "print"] == [p.method for p in estimate.manufactured_parts]
    assert estimate == Estimate.model_validate_json(estimate.model_dump_json())


REQUIRED = [
    *(f"constraints.{key}" for key in GOOD["constraints"]),
    *(f"manufactured_parts.{n}.{key}" for n in range(3) for key in GOOD["manufactured_parts"][n]),
    *(f"cots_parts.0.{key}" for key in GOOD["cots_parts"][0]),
    *(f"totals.{key}" for key in GOOD["totals"]),
    *GOOD,
    "assembly.steps",
    "assembly.steps.0.parts",
    "assembly.steps.0.joint",
]


@pytest.mark.parametrize("path", REQUIRED)
def test_required(path):
    """Each field that a part of its method, or the file, has to have is missed by its name."""
    name = ".".join(path.split("."))
    for number in "012":
        name = name.replace(f".{number}", f"[{number}]")
    missing = [where for where, found in told(with_(path, ABSENT)) if found == "nothing"]

    assert [name] == missing


NUMBERS = [
    path
    for path in REQUIRED
    if path.rpartition(".")[2]
    in {"quantity", "volume_mm3", "unit_cost_usd", "unit_weight_g", "wall_mm", "draft_deg", "layer_mm",
        "infill", "catalogue_version", "weight_g", "assembly_cost_usd"} or path.startswith("constraints.")
]  # fmt: skip


@pytest.mark.parametrize("path", NUMBERS)
@pytest.mark.parametrize("value", ["1", True, None, [1], {}, -1])
def test_numbers(path, value):
    """Text, booleans, nothing, lists and numbers below the least are no numbers of an estimate."""
    assert 1 == len(told(with_(path, value)))


FORM = {
    "half a piece": ("manufactured_parts.0.quantity", 1.5, "manufactured_parts[0].quantity"),
    "no piece": ("manufactured_parts.0.quantity", 0, "manufactured_parts[0].quantity"),
    "no screw": ("cots_parts.0.quantity", 0, "cots_parts[0].quantity"),
    "method": ("manufactured_parts.0.method", "casting", "manufactured_parts[0].method"),
    "method in capitals": ("manufactured_parts.0.method", "CNC", "manufactured_parts[0].method"),
    "field of another method": ("manufactured_parts.0.infill", 1, "manufactured_parts[0].infill"),
    "unknown key": ("margin", 1, "margin"),
    "flat stock": ("manufactured_parts.0.stock_mm", [50, 40], "manufactured_parts[0].stock_mm"),
    "more than full": ("manufactured_parts.2.infill", 1.01, "manufactured_parts[2].infill"),
    "upright draft": ("manufactured_parts.1.draft_deg", 90, "manufactured_parts[1].draft_deg"),
    "a third of a cent": ("totals.unit_cost_usd", 29.233, "totals.unit_cost_usd"),
    "version in text": ("cots_parts.0.catalogue_version", "1", "cots_parts[0].catalogue_version"),
    "no source": ("cots_parts.0.source", "", "cots_parts[0].source"),
    "joint": ("assembly.steps.0.joint", "glue", "assembly.steps[0].joint"),
    "step of one": ("assembly.steps.0.parts", ["base"], "assembly.steps[0].parts"),
    "step of a stranger": ("assembly.steps.0.parts", ["base", "lid"], "assembly.steps[0].parts[1]"),
    "target above cap": ("constraints.planner_target_max_unit_cost_usd", 50.11,
                         "constraints.planner_target_max_unit_cost_usd"),
    "target above cap in grams": ("constraints.planner_target_max_weight_g", 1200.1,
                                  "constraints.planner_target_max_weight_g"),
    "id twice": ("manufactured_parts.1.id", "base", "manufactured_parts[1].id"),
    "id of a bought part": ("cots_parts.0.part_id", "cap", "cots_parts[0].part_id"),
    "part larger than stock": ("manufactured_parts.0.stock_mm", [40, 40, 24.999], "manufactured_parts[0].stock_mm"),
    "placeholder": ("manufactured_parts.0.material", "TBD", "manufactured_parts[0].material"),
    "placeholder of the template": ("totals.weight_g", "<0>", "totals.weight_g"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORM)
def test_form(name):
    """Each fault is one finding at its own place."""
    path, value, where = FORM[name]

    assert [where] == [each[0] for each in told(with_(path, value))]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("constraints.planner_target_max_unit_cost_usd", 50.10),
        ("constraints.planner_target_max_weight_g", 1200),
        ("manufactured_parts.0.stock_mm", [40, 40, 25]),
        ("manufactured_parts.2.infill", 1),
        ("manufactured_parts.1.draft_deg", 0),
        ("cots_parts", []),
        ("assembly.steps", []),
    ],
)
def test_at_the_limit(path, value):
    """What is exactly at its limit passes."""
    assert [] == told(with_(path, value))


def test_nothing_to_make():
    """An estimate of no part is a finding."""
    made = with_("manufactured_parts", []) | {"cots_parts": [], "assembly": {"steps": []}}

    assert [("manufactured_parts", "no part, neither made nor bought")] == told(made)


def test_all_is_told():
    """Targets, ids and stocks are judged while something else is wrong."""
    made = with_("totals.weight_g", "light")
    made["constraints"]["planner_target_max_weight_g"] = 2000
    made["constraints"]["planner_target_max_unit_cost_usd"] = 60
    made["manufactured_parts"][1]["id"] = "base"
    made["manufactured_parts"][0]["stock_mm"] = [1, 1, 1]

    assert {
        "totals.weight_g",
        "constraints.planner_target_max_weight_g",
        "constraints.planner_target_max_unit_cost_usd",
        "manufactured_parts[1].id",
        "manufactured_parts[0].stock_mm",
    } == {each[0] for each in told(made)}


def test_template():
    """The file as it is issued is refused, each placeholder once."""
    findings = told(ESTIMATE)

    assert ESTIMATE.count("<") == sum("<" in found for _, found in findings)
    assert len({where for where, _ in findings}) == len(findings)


@dataclass
class Priced:
    """A part that was priced."""

    id: str
    unit_cost_usd: Decimal
    unit_weight_g: Decimal = Decimal(0)

    @property
    def part_id(self):
        return self.id


@dataclass
class Computed:
    """Totals that were computed."""

    parts: list = field(default_factory=list)
    bought: list = field(default_factory=list)
    assembly_cost_usd: Decimal = Decimal("2.05")
    unit_cost_usd: Decimal = Decimal("29.23")
    weight_g: Decimal = Decimal("123.5")


TYPED = Estimate.model_validate(GOOD)

COMPUTED = {
    "same": (Computed(), []),
    "one percent less": (Computed(weight_g=Decimal("125")), ["totals.weight_g"]),
    "at one percent": (Computed(assembly_cost_usd=Decimal("2.05"), weight_g=Decimal("123.5")), []),
    "cost": (Computed(unit_cost_usd=Decimal("29.53")), ["totals.unit_cost_usd"]),
    "nearly": (Computed(unit_cost_usd=Decimal("29.52")), []),
    "costs nothing": (Computed(assembly_cost_usd=Decimal("0.00")), ["totals.assembly_cost_usd"]),
    "part": (
        Computed(parts=[Priced("cap", Decimal("4.10"), Decimal("3.00"))]),
        ["manufactured_parts[1].unit_weight_g"],
    ),
    "bought": (
        Computed(bought=[Priced("ISO4762-M4x20", Decimal("0.10"))]),
        ["cots_parts[0].unit_cost_usd"],
    ),
}


@pytest.mark.parametrize("name", COMPUTED)
def test_differences(name):
    """Numbers more than one percent from the computed ones are findings of the price stage."""
    computed, expected = COMPUTED[name]
    findings = differences(TYPED, computed)

    assert expected == [each.where for each in findings]
    assert all("price" == each.stage for each in findings)


@given(st.integers(0, 10_000), st.integers(0, 10_000))
def test_one_percent(typed_cents, computed_cents):
    """In whole cents: a finding exactly when the difference is more than a hundredth of the computed."""
    estimate = Estimate.model_validate(with_("totals.unit_cost_usd", typed_cents / 100))
    computed = Computed(unit_cost_usd=Decimal(computed_cents) / 100)
    expected = 100 * abs(typed_cents - computed_cents) > computed_cents

    assert expected == bool(differences(estimate, computed))


@given(st.integers(1, 2000), st.integers(1, 2000))
def test_targets_in_cents(target, cap):
    """In whole cents: a target passes exactly when it is not above its cap."""
    made = with_("constraints.planner_target_max_unit_cost_usd", target / 100)
    made["constraints"]["benchmark_max_unit_cost_usd"] = cap / 100

    assert (target > cap) == bool(told(made))
