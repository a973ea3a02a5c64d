"""Solids by build123d: an agent's script to a file, and a file to numbers.

``build`` runs the agent's code and may say anything; what counts is measured by ``measure``, in a
process that has run none of it.
"""

from __future__ import annotations

import math
import os
import runpy
from typing import Any

#: What a script must leave, and the files made of it, in a folder of the job's own.
PART = "part"
BREP = "part.brep"
STL = "part.stl"

#: Of the mesh that physics sees; finer is slower.
_TOLERANCE_MM = 0.1
_ANGLE_RAD = 0.3

#: A tool of a mill or a nozzle leaves no edge shorter than this.
_SHORTEST_EDGE_MM = {"cnc": 0.5, "print": 0.2}


class ModelError(Exception):
    """The model is no model; one sentence for the agent."""


def build(model: str, target: str) -> dict[str, Any]:
    """Run a script and leave its solid in files of ``target``, a folder that is made for it."""
    from build123d import Part, Solid, export_brep, export_stl

    try:
        left = runpy.run_path(model, run_name="__main__")
    # Whatever the agent's own script raises is for the agent.
    except (Exception, SystemExit) as error:
        raise ModelError(f"cannot run {model}: {type(error).__name__}: {error}. Correct it") from error
    part = left.get(PART)
    part = getattr(part, "part", part)  # a builder holds its part
    if not isinstance(part, (Part, Solid)) or not part.solids():
        kind = "nothing" if part is None else type(part).__name__
        raise ModelError(f"cannot use {model}: `{PART}` is {kind}, no solid. Leave a solid there")
    os.mkdir(target)
    export_brep(part, os.path.join(target, BREP))
    export_stl(
        part, os.path.join(target, STL), tolerance=_TOLERANCE_MM, angular_tolerance=_ANGLE_RAD
    )
    return {}


def measure(brep: str, method: str, max_size_mm: float) -> dict[str, Any]:
    """Whether a solid can be made, by its own geometry."""
    from build123d import import_brep

    shape = import_brep(brep)
    size = shape.bounding_box().size
    size_mm = [round(value, 4) for value in (size.X, size.Y, size.Z)]
    reasons = []
    if not shape.is_valid or shape.volume <= 0 or not math.isfinite(shape.volume):
        reasons.append("the solid is not closed")
    if len(shape.solids()) != 1:
        reasons.append(f"it is {len(shape.solids())} solids, and one can be made at a time")
    if max(size_mm) > max_size_mm:
        reasons.append(f"its longest side is {max(size_mm):g} mm, the machine takes {max_size_mm:g}")
    shortest = min((edge.length for edge in shape.edges()), default=0.0)
    least = _SHORTEST_EDGE_MM[method]
    if shortest < least:
        reasons.append(f"its shortest edge is {shortest:.3g} mm, {method} makes none below {least:g}")
    return {
        "manufacturable": not reasons,
        "reasons": reasons,
        "volume_mm3": round(shape.volume, 4),
        "size_mm": size_mm,
        "faces": len(shape.faces()),
    }
