"""Solids by build123d: an agent's script to a file, and a file to numbers.

``build`` runs the agent's code and may say anything; what counts is measured by ``measure``, in a
process that has run none of it.
"""

from __future__ import annotations

import math
import os
import runpy
import sys
from typing import Any

from workbench_worker import joints
from workbench_worker.modelerror import ModelError

#: What a script must leave, and the files made of it, in a folder of the job's own.
PART = "part"
#: Of several solids: a mapping of their ids.
PARTS = "parts"
_MOST_PARTS = 200
_NAME_CHARS = 200
BREP = "part.brep"
STL = "part.stl"

#: Of the mesh that physics sees; finer is slower.
TOLERANCE_MM = 0.1
ANGLE_RAD = 0.3

#: A tool of a mill or a nozzle leaves no edge shorter than this.
_SHORTEST_EDGE_MM = {"cnc": 0.5, "print": 0.2}


def build(model: str, target: str) -> dict[str, Any]:
    """Run a script and leave its solids in files of ``target``, a folder that is made for it.

    Returns:
        ``names`` of the parts, ``joints`` between them, by the model ``DesignJoint``, and what is said of
        joints that are ``unmapped``.
    """
    from build123d import Compound, Part, Solid, export_brep, export_stl

    # What a script was compiled to by earlier code of the session is not what it says.
    sys.dont_write_bytecode, sys.pycache_prefix = True, f"{target}-bytecode"
    # Its own modules are found as when Python runs it.
    sys.path.insert(0, os.path.dirname(model))
    try:
        left = runpy.run_path(model, run_name="__main__")
    # Whatever the agent's own script raises is for the agent.
    except (Exception, SystemExit) as error:
        raise ModelError(f"cannot run {model}: {type(error).__name__}: {error}. Correct it") from error
    named = left.get(PARTS, {"": left.get(PART)})
    if not isinstance(named, dict) or not 0 < len(named) <= _MOST_PARTS:
        raise ModelError(
            f"cannot use {model}: `{PARTS}` is no mapping of 1 to {_MOST_PARTS} solids by their ids. "
            "Leave one there"
        )
    shapes = []
    for name, part in named.items():
        part = getattr(part, "part", part)  # a builder holds its part
        if not isinstance(part, (Part, Solid)) or not part.solids():
            kind = "nothing" if part is None else type(part).__name__
            where = f"{PARTS}[{str(name)[:100]!r}]" if PARTS in left else PART
            raise ModelError(f"cannot use {model}: `{where}` is {kind}, no solid. Leave a solid there")
        shapes.append(part)
    os.mkdir(target)
    for number, shape in enumerate(shapes):
        export_brep(shape, os.path.join(target, f"part-{number}.brep"))
    part = shapes[0] if len(shapes) == 1 else Compound(children=shapes)
    export_brep(part, os.path.join(target, BREP))
    export_stl(
        part, os.path.join(target, STL), tolerance=TOLERANCE_MM, angular_tolerance=ANGLE_RAD
    )
    names = [str(name)[:_NAME_CHARS] for name in named]
    connected, unmapped = joints.read(model, dict(zip(names, shapes, strict=True)))
    return {"names": names, "joints": connected, "unmapped": unmapped}


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
