"""A benchmark's environment beside its objectives, over the whole randomization, in a process of its own.

It has run none of the environment's script (``survey.py``).
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from workbench_contract.benchmark import (
    Configuration,
    ConfigurationKind,
    ValidationFinding,
)
from workbench_contract.findings import Stage
from workbench_contract.objectives import Objectives
from workbench_making.findings import finding, position
from workbench_making.sharing import MOST_SHARED_MM3, NamedSolid
from workbench_making.starts import Met, object_at, without_room
from workbench_planning import variants
from workbench_planning.boxes import exact
from workbench_planning.variants import Placement
from workbench_worker import planted
from workbench_worker.survey import environment_in

#: Configurations that one finding shows.
_SHOWN = 20


def validate_environment(
    folder: str,
    names: list[str],
    objectives: str,
    *,
    script: str,
    file: str,
    samples: int,
    seed: int,
) -> dict[str, Any]:
    """Hold what ``build`` has left in a folder against objectives.

    Args:
        names: of the solids, in the order of their files.
        objectives: as JSON.
        script: that leaves them; findings call it so, and the objectives ``file``.
        samples: starts besides the given one and the corners.
        seed: of the samples.
    """
    goal = Objectives.model_validate_json(objectives, strict=False)
    solids, wrong = environment_in(folder, names, goal, file=script)
    findings = [ValidationFinding(**each.model_dump()) for each in wrong]
    corners = variants.corners(goal.moved_object)
    placements = {
        ConfigurationKind.GIVEN: [variants.given(goal.moved_object)],
        ConfigurationKind.CORNER: corners,
        ConfigurationKind.SAMPLE: planted.sampled(
            goal.moved_object, variants.samples(goal.moved_object, samples, seed=seed)
        ),
    }
    findings += _starts(goal, solids, placements, file=file)
    return {
        "findings": [each.model_dump(mode="json") for each in findings],
        "bodies": len(solids),
        "corners": len(corners),
    }


def _starts(
    goal: Objectives,
    solids: list[NamedSolid],
    placements: dict[ConfigurationKind, list[Placement]],
    *,
    file: str,
) -> list[ValidationFinding]:
    """A finding for each solid that leaves the object no room at some start."""
    moved = goal.moved_object
    met: dict[int, list[tuple[Configuration, Placement, Met]]] = defaultdict(list)
    known: dict[Placement, list[Met]] = {}
    for kind, starts in placements.items():
        for number, start in enumerate(starts):
            if start not in known:
                known[start] = without_room(object_at(moved, start.start_mm, start.scale), solids)
            for each in known[start]:
                configuration = Configuration(
                    kind=kind,
                    number=number,
                    offset_mm=[
                        float(exact(at) - exact(given))
                        for at, given in zip(start.start_mm, moved.start_mm, strict=True)
                    ],
                    scale=start.scale,
                )
                met[each.index].append((configuration, start, each))
    looked_at = sum(map(len, placements.values()))
    return [
        _without_room(moved.label, solids[index].name, cases, looked_at, file=file)
        for index, cases in sorted(met.items())
    ]


def _without_room(
    label: str,
    name: str,
    cases: list[tuple[Configuration, Placement, Met]],
    looked_at: int,
    *,
    file: str,
) -> ValidationFinding:
    _, start, worst = max(cases, key=lambda each: (each[2].whole, each[2].volume_mm3))
    verb = "starts inside" if worst.whole else f"shares {worst.volume_mm3:.6g} mm³ with"
    told = finding(
        Stage.PRICE,
        file=file,
        where="moved_object.start_mm",
        found=f"{label} {verb} {name}, at {position(start.start_mm)} and scale {start.scale:.6g}; "
        f"in {len(cases)} of {looked_at} starts",
        expected=f"starts at which it shares at most {MOST_SHARED_MM3:g} mm³ with any solid",
    )
    return ValidationFinding(
        **told.model_dump(),
        configurations=[configuration for configuration, _, _ in cases[:_SHOWN]],
        count=len(cases),
    )
