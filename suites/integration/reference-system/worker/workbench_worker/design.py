"""The verdict about a design that was built, in a process that has run none of its script.

Everything is imported before the fork: behind the walls there are the system's programs alone.
"""

from __future__ import annotations

import os
from decimal import Decimal
from typing import Any

from pydantic import TypeAdapter

from workbench_contract.catalogue import PartPrice
from workbench_contract.connections import Connections
from workbench_contract.estimate import Estimate, ManufacturedPart, MilledPart, PrintedPart
from workbench_contract.findings import Finding, Stage
from workbench_contract.objectives import Objectives
from workbench_making import solid
from workbench_making.findings import finding, one_of
from workbench_making.judgement import Limits, MadePart, validate_and_price
from workbench_making.manufacturability import Asked
from workbench_making.totals import Bought, Totals
from workbench_worker import planted
from workbench_worker.costs import caps_of, shop
from workbench_worker.prices import Looked

#: Of one gram in a cubic millimetre.
_KG_M3 = 1e6

_PRICES = TypeAdapter(dict[str, PartPrice])

# Read before the fork.
shop()


def judge(
    folder: str,
    script: str,
    names: list[str],
    estimate: str,
    objectives: str,
    connections: str,
    prices: str,
    version: int,
) -> dict[str, Any]:
    """Judge what ``build`` has left in a folder.

    Args:
        names: of the parts, in the order of their files; one that is empty stands for the only part.
        estimate, objectives, connections: as JSON; the first two as they were handed over.
        prices: part id to price, as JSON; what is not in it the catalogue does not have.
    """
    plan = Estimate.model_validate_json(estimate, strict=False)
    goal = Objectives.model_validate_json(objectives, strict=False)
    looked = Looked(version=version, prices=_PRICES.validate_json(prices))
    planned = {part.id: part for part in plan.manufactured_parts}
    if names == [""] and len(planned) == 1:
        names = list(planned)
    wrong = _misnamed(names, planned, script)
    made, unread = _read(folder, script, names, planned)
    if wrong or unread:
        return _told(None, [*wrong, *unread])
    zone = solid.Box(min_mm=_point(goal.build_zone.min_mm), max_mm=_point(goal.build_zone.max_mm))
    judgement = validate_and_price(
        made,
        [Bought(part_id=row.part_id, quantity_n=row.quantity) for row in plan.cots_parts],
        planted.connected(Connections.model_validate_json(connections)),
        shop(),
        looked.part,
        limits=Limits(caps=caps_of(goal.constraints), build_zone=zone),
        file=script,
        units_n=plan.assembly.units,
    )
    told = _told(judgement.totals, list(judgement.findings))
    if judgement.totals is not None:
        told["densities_kg_m3"] = _densities(made, judgement.totals)
    return told


def _densities(made: list[MadePart], totals: Totals) -> dict[str, float]:
    """Of one piece of each part, as it is simulated; hollows of prints count."""
    volumes = {part.name: part.shape.volume for part in made}
    return {
        part.id: float(part.exact_g) / volumes[part.id] * _KG_M3 for part in totals.parts
    }


def _misnamed(
    names: list[str], planned: dict[str, ManufacturedPart], script: str
) -> list[Finding]:
    """Parts that are not in the plan, and parts of the plan that were not built."""
    strange = [name for name in names if name not in planned]
    missing = [name for name in planned if name not in names]
    return [
        *(
            finding(
                Stage.VALID,
                file=script,
                where="parts",
                found=f"a part named {name!r}",
                expected=one_of(planned),
            )
            for name in strange
        ),
        *(
            finding(
                Stage.VALID,
                file=script,
                where="parts",
                found=f"no part named {name!r}",
                expected="every part of the estimate that is made",
            )
            for name in missing
        ),
    ]


def _read(
    folder: str, script: str, names: list[str], planned: dict[str, ManufacturedPart]
) -> tuple[list[MadePart], list[Finding]]:
    from build123d import import_brep

    made: list[MadePart] = []
    findings: list[Finding] = []
    for number, name in enumerate(names):
        if name not in planned:
            continue
        try:
            shape = import_brep(os.path.join(folder, f"part-{number}.brep"))
        except (OSError, ValueError) as error:
            found, expected = f"no B-rep: {error}", "a solid as build123d exports it"
            findings.append(
                finding(Stage.VALID, file=script, where=name, found=found, expected=expected)
            )
            continue
        made.append(_made(name, shape, planned[name]))
    return made, findings


def _made(name: str, shape: Any, part: ManufacturedPart) -> MadePart:
    """A part as it was built, to be made as it was planned."""
    stock = _point(part.stock_mm) if isinstance(part, MilledPart) else None
    printed = part if isinstance(part, PrintedPart) else None
    return MadePart(
        name=name,
        shape=shape,
        asked=Asked(method=part.method, material=part.material, stock_mm=stock),
        quantity_n=part.quantity,
        layer_mm=Decimal(repr(printed.layer_mm)) if printed else None,
        infill=Decimal(repr(printed.infill)) if printed else None,
    )


def _told(totals: Totals | None, findings: list[Finding]) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    told = None
    if totals is not None:
        rows = [
            {
                "id": part.id,
                "quantity": part.quantity_n,
                "unit_cost_usd": float(part.unit_cost_usd),
                "unit_weight_g": float(part.unit_weight_g),
            }
            for part in totals.parts
        ]
        rows += [
            {
                "id": part.part_id,
                "quantity": part.quantity_n,
                "unit_cost_usd": float(part.unit_cost_usd),
                "unit_weight_g": float(part.unit_weight_g),
            }
            for part in totals.bought
        ]
        told = {
            "assembly_cost_usd": float(totals.assembly_cost_usd),
            "unit_cost_usd": float(totals.unit_cost_usd),
            "weight_g": float(totals.weight_g),
        }
    return {
        "findings": [each.model_dump(mode="json") for each in findings],
        "totals": told,
        "parts": rows,
    }


def _point(values: list[float]) -> tuple[float, float, float]:
    x, y, z = values
    return x, y, z
