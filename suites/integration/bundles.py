"""What a planner hands over, sound and with numbers of its own; tests make it wrong in one place.

Costs and weights are computed here, by the rules that the contract gives and the rates of the shipped
``manufacturing_config.yaml``; nothing of it is the product's code.
"""

from __future__ import annotations

import copy
import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Any, Final

import yaml
from workbench_contract.estimate import Estimate
from workbench_contract.objectives import Objectives

__all__ = [
    "ESTIMATE",
    "FILES",
    "OBJECTIVES",
    "PLAN",
    "TODO",
    "Bundle",
    "Made",
    "aiming",
    "capped",
    "caps_of",
    "changed",
    "doubled",
    "milled",
    "moulded",
    "printed",
    "sound",
]

#: The dumper in C, where PyYAML has it: generated tests write thousands of files.
_DUMPER: Final = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

PLAN: Final = "plan.md"
TODO: Final = "todo.md"
OBJECTIVES: Final = "objectives.yaml"
ESTIMATE: Final = "preliminary_cost_estimation.yaml"
FILES: Final = (PLAN, TODO, OBJECTIVES, ESTIMATE)

_PLAN: Final = """\
# Plan {word}

## 1. Solution Overview

A flap throws the ball over the pit; {word} says which design it is.

## 2. Parts List

| id | what | quantity | unit_cost_usd | catalogue_version |
|---|---|---|---|---|
{rows}

## 3. Assembly Strategy

1. Press the flap onto the shaft.
2. Screw the base down.

## 4. Cost & Weight Budget

- planner_target_max_unit_cost_usd: {cost} USD
- planner_target_max_weight_g: {weight} g

## 5. Risk Assessment

- The ball may miss: the flap is adjustable.
"""

_COST: Final = "planner_target_max_unit_cost_usd"
_WEIGHT: Final = "planner_target_max_weight_g"

_HANDLING_USD: Final = Fraction(15 * 36, 3600)
_FASTENING_USD: Final = Fraction(20 * 36, 3600)
#: Catalogue parts that take time to fasten besides.
_FASTENERS: Final = frozenset({"screw", "nut", "insert"})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A part that is made, as the estimate has it, with what it costs and weighs.

    Attributes:
        fields: without cost and weight.
        usd: of one piece, exactly.
        grams: of one piece, exactly.
    """

    fields: Mapping[str, Any]
    usd: Fraction
    grams: Fraction

    def row(self) -> dict[str, Any]:
        """The part of the estimate."""
        told = {"unit_cost_usd": _rounded(self.usd), "unit_weight_g": _rounded(self.grams)}
        return {**self.fields, **told}


def _rounded(exact: Fraction) -> float:
    """To hundredths, halves up."""
    return float((Decimal(round(exact * 10**9)) / 10**9).quantize(Decimal("0.01"), ROUND_HALF_UP))


#: Material → g/cm³ and USD/kg, as the shipped configuration has them.
_MATERIALS: Final = {
    "aluminium_6061": (Fraction(270, 100), Fraction(650, 100)),
    "steel_1018": (Fraction(787, 100), Fraction(240, 100)),
    "brass_c360": (Fraction(850, 100), Fraction(980, 100)),
    "pom_stock": (Fraction(141, 100), Fraction(820, 100)),
    "abs": (Fraction(104, 100), Fraction(260, 100)),
    "polypropylene": (Fraction(905, 1000), Fraction(160, 100)),
    "pom": (Fraction(141, 100), Fraction(310, 100)),
    "pla_filament": (Fraction(124, 100), Fraction(22)),
    "abs_filament": (Fraction(104, 100), Fraction(26)),
    "petg_filament": (Fraction(127, 100), Fraction(24)),
}


def _mass(volume_mm3: Fraction, material: str) -> Fraction:
    return volume_mm3 / 1000 * _MATERIALS[material][0]


def _material_usd(volume_mm3: Fraction, material: str) -> Fraction:
    return _mass(volume_mm3, material) / 1000 * _MATERIALS[material][1]


def milled(
    name: str,
    volume_mm3: object,
    stock_mm: Sequence[float],
    *,
    units: int,
    quantity: int = 1,
    material: str = "aluminium_6061",
) -> Made:
    """60 USD set-up shared by all; the whole stock is paid; 12000 mm³/min removed at 75 USD/h."""
    volume, pieces = Fraction(str(volume_mm3)), quantity * units
    box = Fraction(1)
    for side in stock_mm:
        box *= Fraction(str(side))
    usd = Fraction(60, pieces) + _material_usd(box, material)
    usd += (box - volume) / 12_000 * Fraction(75, 60)
    fields = {
        "id": name,
        "method": "cnc",
        "material": material,
        "quantity": quantity,
        "volume_mm3": float(volume),
        "stock_mm": list(stock_mm),
    }
    return Made(fields=fields, usd=usd, grams=_mass(volume, material))


def moulded(
    name: str,
    volume_mm3: object,
    wall_mm: object,
    *,
    units: int,
    quantity: int = 1,
    material: str = "abs",
    draft_deg: float = 1.5,
) -> Made:
    """4650 USD mould and set-up shared by all, 6 % runner, 12 s + 2.2 s by the wall² at 45 USD/h."""
    volume, wall = Fraction(str(volume_mm3)), Fraction(str(wall_mm))
    usd = (
        Fraction(4650, quantity * units)
        + _material_usd(volume * Fraction(106, 100), material)
        + (12 + Fraction(22, 10) * wall**2) * Fraction(45, 3600)
    )
    fields = {
        "id": name,
        "method": "injection_moulding",
        "material": material,
        "quantity": quantity,
        "volume_mm3": float(volume),
        "wall_mm": float(wall),
        "draft_deg": draft_deg,
    }
    return Made(fields=fields, usd=usd, grams=_mass(volume, material))


def printed(
    name: str,
    volume_mm3: object,
    *,
    units: int,
    quantity: int = 1,
    material: str = "pla_filament",
    layer_mm: str = "0.2",
    infill: str = "0.3",
) -> Made:
    """5 USD set-up shared by all; 0.45 mm by the layer by 60 mm/s at 4 USD/h for what is laid."""
    laid = Fraction(str(volume_mm3)) * Fraction(infill)
    seconds = laid / (Fraction(45, 100) * Fraction(layer_mm) * 60)
    usd = (
        Fraction(5, quantity * units) + _material_usd(laid, material) + seconds * Fraction(4, 3600)
    )
    fields = {
        "id": name,
        "method": "print",
        "material": material,
        "quantity": quantity,
        "volume_mm3": float(Fraction(str(volume_mm3))),
        "layer_mm": float(layer_mm),
        "infill": float(infill),
    }
    return Made(fields=fields, usd=usd, grams=_mass(laid, material))


def _three(number: int, units: int) -> list[Made]:
    """One part of each method."""
    return [
        milled(f"base-{number}", 40_000 + 10 * number, (60, 50, 20), units=units),
        moulded(f"cap-{number}", 3_000 + number, 2, units=units, quantity=2),
        printed(f"flap-{number}", 9_000 + number, units=units),
    ]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """The four files; the structured ones as data.

    Attributes:
        todo: the whole file.
    """

    plan: str
    todo: str
    objectives: dict[str, Any]
    estimate: dict[str, Any]

    def files(self) -> dict[str, str]:
        """Path to text."""
        return {
            PLAN: self.plan,
            TODO: self.todo,
            OBJECTIVES: _yaml(self.objectives),
            ESTIMATE: _yaml(self.estimate),
        }

    def replaced(self, **parts: Any) -> Bundle:
        """The same with other parts."""
        return replace(self, **parts)

    def planned(self, text: str, other: str) -> Bundle:
        """The same with one place of the plan otherwise.

        Raises:
            ValueError: the plan has no such place, or several.
        """
        if self.plan.count(text) != 1:
            raise ValueError(
                f"cannot change {text!r}: the plan has it {self.plan.count(text)} times"
            )
        return self.replaced(plan=self.plan.replace(text, other))


def changed(value: Mapping[str, Any], path: str, new: object) -> dict[str, Any]:
    """A copy of data with something else at ``a.0.b``; without the key where ``new`` is ``...``."""
    made = copy.deepcopy(dict(value))
    *steps, last = (int(step) if step.isdigit() else step for step in path.split("."))
    at: Any = made
    for step in steps:
        at = at[step]
    if new is ...:
        del at[last]
    else:
        at[last] = copy.deepcopy(new)
    return made


def aiming(bundle: Bundle, *, cost: object = None, weight: object = None) -> Bundle:
    """The bundle with other targets, in plan and estimate alike.

    Raises:
        ValueError: its plan does not have the target that its estimate has.
    """
    estimate = bundle.estimate
    for key, value, unit in ((_COST, cost, "USD"), (_WEIGHT, weight, "g")):
        if value is not None:
            before = bundle.estimate["constraints"][key]
            shown = f"{before:.2f}" if key == _COST else f"{before:g}"
            bundle = bundle.planned(f"- {key}: {shown} {unit}", f"- {key}: {value} {unit}")
            estimate = changed(estimate, f"constraints.{key}", float(str(value)))
    return bundle.replaced(estimate=estimate)


def doubled(text: str, key: str) -> str:
    """YAML with one of its keys twice, wherever it stands; the last is the one of the text.

    Raises:
        ValueError: it has no such key.
    """
    made, count = re.subn(
        rf"^( *){key}:", rf"\1{key}: 1\n\1{key}:", text, count=1, flags=re.MULTILINE
    )
    if not count:
        raise ValueError(f"cannot double {key}: the text has no such key")
    return made


def caps_of(bundle: Bundle) -> tuple[Decimal, Decimal]:
    """USD and grams that the objectives allow."""
    given = bundle.objectives["constraints"]
    return Decimal(str(given["max_unit_cost_usd"])), Decimal(str(given["max_weight_g"]))


def capped(bundle: Bundle, cost: Decimal, weight: Decimal) -> Bundle:
    """The bundle with other caps, in objectives and estimate alike."""
    objectives, estimate = bundle.objectives, bundle.estimate
    for key, value in (("max_unit_cost_usd", cost), ("max_weight_g", weight)):
        objectives = changed(objectives, f"constraints.{key}", float(value))
        estimate = changed(estimate, f"constraints.benchmark_{key}", float(value))
    return bundle.replaced(objectives=objectives, estimate=estimate)


def sound(
    todo: str,
    *,
    number: int,
    bought: Sequence[tuple[Mapping[str, Any], int]] = (),
    units: int = 1000,
    made: Sequence[Made] | None = None,
    objectives: Mapping[str, Any] | None = None,
) -> Bundle:
    """A bundle that nothing is wrong with.

    Args:
        todo: the list as it was issued; every entry of it is ticked.
        number: makes all numbers and names of the bundle other than those of another one; up to 999.
        bought: candidates of the catalogue, and how many of each are in one unit.
        units: ordered together.
        made: the parts that are made; one of each method when left out.
        objectives: those that the planner was given; its own when left out.
    """
    made = _three(number, units) if made is None else list(made)
    rows = [_bought(part, quantity, units) for part, quantity in bought]
    pieces = sum(int(each.fields["quantity"]) for each in made) + sum(n for _, n in bought)
    fastened = sum(n for part, n in bought if part["category"] in _FASTENERS)
    assembly = pieces * _HANDLING_USD + fastened * _FASTENING_USD if pieces > 1 else Fraction(0)
    usd = assembly + sum(each.usd * int(each.fields["quantity"]) for each in made)
    grams = sum(each.grams * int(each.fields["quantity"]) for each in made)
    usd += sum(Fraction(str(row["unit_cost_usd"])) * int(row["quantity"]) for row in rows)
    grams += sum(Fraction(str(part["weight_g"])) * quantity for part, quantity in bought)
    goal = _objectives(number) if objectives is None else dict(objectives)
    caps = goal["constraints"]
    targets = {
        "planner_target_max_unit_cost_usd": float(Decimal(str(caps["max_unit_cost_usd"])) - 1),
        "planner_target_max_weight_g": float(Decimal(str(caps["max_weight_g"])) - 1),
    }
    ids = [str(each.fields["id"]) for each in made]
    estimate = {
        "constraints": {
            "benchmark_max_unit_cost_usd": caps["max_unit_cost_usd"],
            "benchmark_max_weight_g": caps["max_weight_g"],
            **targets,
        },
        "manufactured_parts": [each.row() for each in made],
        "cots_parts": rows,
        "assembly": {
            "units": units,
            "steps": [{"parts": ids[:2], "joint": "rigid"}] if len(ids) > 1 else [],
        },
        "totals": {
            "assembly_cost_usd": _rounded(assembly),
            "unit_cost_usd": _rounded(usd),
            "weight_g": _rounded(grams),
        },
    }
    lines = [
        f"| `{part['id']}` | made | {part['quantity']} | {part['unit_cost_usd']:.2f} | |"
        for part in estimate["manufactured_parts"]
    ]
    lines += [
        f"| `{row['part_id']}` | bought | {row['quantity']} | {row['unit_cost_usd']:.2f} "
        f"| {row['catalogue_version']} |"
        for row in rows
    ]
    plan = _PLAN.format(
        word=f"design-{number}",
        rows="\n".join(lines),
        cost=f"{targets['planner_target_max_unit_cost_usd']:.2f}",
        weight=f"{targets['planner_target_max_weight_g']:g}",
    )
    # What is built here is of the contract's form, or the mistake is ours.
    Objectives.model_validate(goal)
    Estimate.model_validate(estimate)
    return Bundle(
        plan=plan, todo=todo.replace("- [ ]", "- [x]"), objectives=goal, estimate=estimate
    )


def _bought(part: Mapping[str, Any], quantity: int, units: int) -> dict[str, Any]:
    reached = [tier for tier in part["quantity_tiers"] if tier["from_quantity"] <= quantity * units]
    price = max(reached, key=lambda tier: tier["from_quantity"])["unit_cost_usd"]
    return {
        "part_id": part["part_id"],
        "quantity": quantity,
        "unit_cost_usd": float(price),
        "catalogue_version": part["catalogue_version"],
        "source": part["source"],
    }


def _objectives(number: int) -> dict[str, Any]:
    """A ball, a pit, a goal; caps that no other number has."""
    return {
        "goal_zone": {"min_mm": [80, -10, 0], "max_mm": [100, 10, 20]},
        "forbid_zones": [
            {"name": f"pit-{number}", "min_mm": [30, -10, 0], "max_mm": [50, 10, 5]},
        ],
        "build_zone": {"min_mm": [0, -20, 0], "max_mm": [70, 20, 60]},
        "simulation_bounds": {"min_mm": [-50, -50, -10], "max_mm": [150, 50, 100]},
        "moved_object": {
            "label": "ball",
            "shape": "sphere",
            "size": {"radius_mm": 5},
            "start_mm": [10, 0, 40],
            "static_randomization": {"start_mm": [2, 2, 0], "scale": {"min": 0.8, "max": 1.2}},
            "runtime_jitter": {"start_mm": [1, 1, 0.5]},
        },
        "moving_parts": [
            {
                "name": "flap",
                "type": "motor",
                "dof": "rotate_y",
                "control": {
                    "mode": "oscillate",
                    "low": {"deg": -20},
                    "high": {"deg": 45},
                    "period_s": 2,
                },
            },
            {"name": "gate", "type": "passive", "dof": "slide_z"},
        ],
        "constraints": {"max_unit_cost_usd": 50 + number / 100, "max_weight_g": 1200 + number},
        "randomization": {"variant": f"v{number}", "seeds": [number, number + 1]},
    }


def _yaml(value: Mapping[str, Any]) -> str:
    text: str = yaml.dump(dict(value), Dumper=_DUMPER, sort_keys=False, allow_unicode=True)
    return text
