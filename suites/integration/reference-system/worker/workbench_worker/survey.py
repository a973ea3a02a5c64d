"""The geometry of a benchmark's environment, measured in a process that has run none of its script.

Everything is imported before the fork: behind the walls there are the system's programs alone.
"""

from __future__ import annotations

import os
from typing import Any

from workbench_contract.findings import Finding
from workbench_contract.handover import GEOMETRY, EnvironmentSolid
from workbench_contract.objectives import Objectives
from workbench_making import sharing, solid
from workbench_making.sharing import NamedSolid
from workbench_making.zones import outside


def survey(folder: str, names: list[str], objectives: str) -> dict[str, Any]:
    """Measure what ``build`` has left in a folder.

    Args:
        names: of the solids, in the order of their files.
        objectives: as JSON.
    """
    goal = Objectives.model_validate_json(objectives, strict=False)
    made, findings = environment_in(folder, names, goal, file=GEOMETRY)
    solids = [
        EnvironmentSolid(
            name=each.name,
            volume_mm3=round(each.solid.volume, 4),
            min_mm=list(each.box.min_mm),
            max_mm=list(each.box.max_mm),
        )
        for each in made
    ]
    return {
        "findings": [each.model_dump(mode="json") for each in findings],
        "geometry": [each.model_dump(mode="json") for each in solids],
    }


def environment_in(
    folder: str, names: list[str], goal: Objectives, *, file: str
) -> tuple[list[NamedSolid], list[Finding]]:
    """The solids of an environment, and all that is wrong with them by themselves and with each other.

    Args:
        folder: where ``build`` has left them.
        names: of them, in the order of their files.
        goal: within whose bounds they are.
        file: the script that leaves them.
    """
    from build123d import import_brep

    bounds = solid.Box(
        min_mm=_point(goal.simulation_bounds.min_mm), max_mm=_point(goal.simulation_bounds.max_mm)
    )
    findings: list[Finding] = []
    made: list[NamedSolid] = []
    for number, name in enumerate(names):
        shape = import_brep(os.path.join(folder, f"part-{number}.brep"))
        one, wrong = solid.check(shape, file=file)
        findings += [each.model_copy(update={"where": name}) for each in wrong]
        if one is None:
            continue
        made.append(sharing.named(name, one))
        findings += outside(name, made[-1].box, bounds, file=file, what="the simulation")
    return made, findings + sharing.passing_through(made, file=file)


def _point(values: list[float]) -> tuple[float, float, float]:
    x, y, z = values
    return (x, y, z)
