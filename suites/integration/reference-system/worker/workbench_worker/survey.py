"""The geometry of a benchmark's environment, measured in a process that has run none of its script.

Everything is imported before the fork: behind the walls there are the system's programs alone.
"""

from __future__ import annotations

import itertools
import os
from typing import Any

from workbench_contract.findings import Finding, Stage
from workbench_contract.handover import GEOMETRY, EnvironmentSolid
from workbench_contract.objectives import Objectives
from workbench_making import solid
from workbench_making.findings import finding
from workbench_making.zones import outside

#: Solids that share less touch.
_TOUCHING_MM3 = 0.1


def survey(folder: str, names: list[str], objectives: str) -> dict[str, Any]:
    """Measure what ``build`` has left in a folder.

    Args:
        names: of the solids, in the order of their files.
        objectives: as JSON.
    """
    from build123d import import_brep

    goal = Objectives.model_validate_json(objectives, strict=False)
    bounds = solid.Box(
        min_mm=_point(goal.simulation_bounds.min_mm), max_mm=_point(goal.simulation_bounds.max_mm)
    )
    findings: list[Finding] = []
    made: dict[str, Any] = {}
    solids: list[EnvironmentSolid] = []
    for number, name in enumerate(names):
        shape = import_brep(os.path.join(folder, f"part-{number}.brep"))
        one, wrong = solid.check(shape, file=GEOMETRY)
        findings += [each.model_copy(update={"where": name}) for each in wrong]
        if one is None:
            continue
        made[name] = one
        box = solid.box_of(one)
        findings += outside(name, box, bounds, file=GEOMETRY, what="the simulation")
        solids.append(
            EnvironmentSolid(
                name=name,
                volume_mm3=round(one.volume, 4),
                min_mm=list(box.min_mm),
                max_mm=list(box.max_mm),
            )
        )
    findings += _overlaps(made)
    return {
        "findings": [each.model_dump(mode="json") for each in findings],
        "geometry": [each.model_dump(mode="json") for each in solids],
    }


def _overlaps(made: dict[str, Any]) -> list[Finding]:
    findings = []
    for (one, a), (other, b) in itertools.combinations(made.items(), 2):
        shared = a.intersect(b)
        volume = sum(each.volume for each in shared.solids()) if shared else 0.0
        if volume > _TOUCHING_MM3:
            findings.append(
                finding(
                    Stage.PRICE,
                    file=GEOMETRY,
                    where=one,
                    found=f"{volume:.6g} mm³ of it within {other}",
                    expected="solids that do not pass through each other",
                )
            )
    return findings


def _point(values: list[float]) -> tuple[float, float, float]:
    x, y, z = values
    return (x, y, z)
