"""Solids that are rebuilt from the numbers of a plan, beside those of a design, in a process of their own.

It has run none of the design's script: the design is a STEP file. Everything is imported before the fork.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from workbench_contract.features import BoxFeature, CylinderFeature, Feature, FeatureKind
from workbench_contract.fidelity import ComparedPart, Deviation, PlannedPart
from workbench_foundation import faults
from workbench_making import solid
from workbench_making.samples import sample
from workbench_making.solid import Point
from workbench_worker.modelerror import ModelError

_PARTS = TypeAdapter(list[PlannedPart])
#: Of all parts together, on each side; and of each part at least.
_POINTS = 40_000
_MOST_OF_A_PART, _LEAST_OF_A_PART = 2_000, 200
#: Of the grid on a curved face.
_LEAST_LINES, _MOST_LINES = 6, 32
#: Nearer to a surface is on it.
_ON_MM = 1e-5
#: The digits below are noise of the geometry.
_PLACES_MM, _PLACES_SHARE = 6, 9

_TURNED = {"x": (0.0, 90.0, 0.0), "y": (90.0, 0.0, 0.0), "z": (0.0, 0.0, 0.0)}


def compare(parts: str, step: str) -> dict[str, Any]:
    """Each part of a plan beside the solid of its id.

    Args:
        parts: of the plan, by the model ``PlannedPart``, as JSON.
        step: path of the design.

    Raises:
        ModelError: the design cannot be read.
    """
    planned = _PARTS.validate_json(parts)
    built = _read(step)
    if len(planned) == len(built) == 1:
        # A design of one part may leave it without a name.
        built = {planned[0].id: next(iter(built.values()))}
    points = min(_MOST_OF_A_PART, max(_LEAST_OF_A_PART, _POINTS // len(planned)))
    told = [_compared(part, built, points) for part in planned]
    return {"parts": [each.model_dump(mode="json") for each in told]}


def _compared(part: PlannedPart, built: Mapping[str, Any], points: int) -> ComparedPart:
    rebuilt, missing = _rebuilt(part)
    found = built.get(part.id)
    if found is None and not missing:
        missing = f"a solid {part.id!r} in the design"
    deviation = None
    if rebuilt is not None and found is not None:
        try:
            deviation = _deviation(rebuilt, found, points)
        except _failures() as error:
            missing = f"solids of {part.id!r} that can be measured: {error}"
    return ComparedPart(
        part=part.id,
        planned_mm3=rebuilt and rebuilt.volume,
        built_mm3=found and found.volume,
        deviation=deviation,
        missing=missing,
    )


def _rebuilt(part: PlannedPart) -> tuple[Any, str]:
    """The solid that the numbers of a plan give, or what is missing for one."""
    if part.features is None:
        return None, f"numbers of {part.id!r} in the plan: its features"
    if part.features[0].kind is not FeatureKind.ADD:
        return None, f"a first feature of {part.id!r} that adds"
    try:
        shape = _solid_of(part.features[0])
        for feature in part.features[1:]:
            other = _solid_of(feature)
            if faults.on("fidelity-without-cuts") and feature.kind is FeatureKind.CUT:
                continue
            if faults.on("fidelity-adds-once") and feature.kind is FeatureKind.ADD:
                continue
            shape = shape + other if feature.kind is FeatureKind.ADD else shape - other
        made, findings = solid.check(shape, file=part.id)
    except _failures() as error:
        return None, f"features of {part.id!r} that make a solid: {error}"
    if made is None:
        return None, f"features of {part.id!r} that make one solid, found {findings[0].found}"
    return made, ""


def _solid_of(feature: Feature) -> Any:
    from build123d import Box, Cylinder, Pos, Rot

    x, y, z = feature.at_mm
    if isinstance(feature, BoxFeature):
        return Pos(x, y, z) * Box(*feature.size_mm)
    assert isinstance(feature, CylinderFeature)
    axis = feature.axis.value
    if faults.on("fidelity-lies-along-x") and axis == "y":
        axis = "x"
    turned = Rot(*_TURNED[axis])
    return Pos(x, y, z) * turned * Cylinder(feature.radius_mm, feature.height_mm)


def _read(step: str) -> dict[str, Any]:
    """The solids of a STEP file by their labels."""
    from build123d import import_step

    try:
        whole = import_step(step)
        found = {}
        for shape in whole.children or [whole]:
            made, _ = solid.check(shape, file=step)
            if made is not None:
                found[shape.label] = made
    except _failures() as error:
        raise ModelError(f"cannot compare the design: it is no STEP ({error})") from error
    return found


def _deviation(rebuilt: Any, built: Any, points: int) -> Deviation:
    volume = abs(built.volume - rebuilt.volume) / rebuilt.volume
    boxes = [solid.box_of(each) for each in (rebuilt, built)]
    corners = np.array([(*box.min_mm, *box.max_mm) for box in boxes])
    if faults.on("fidelity-wherever-it-stands"):
        corners -= np.tile(corners[:, :3], 2)
        low, at = boxes[0].min_mm, boxes[1].min_mm
        built = built.translate([a - b for a, b in zip(low, at, strict=True)])
    surface = max(_farthest(rebuilt, built, points), _farthest(built, rebuilt, points))
    if faults.on("fidelity-one-way"):
        surface = _farthest(rebuilt, built, points)
    return Deviation(
        volume_share=round(volume, _PLACES_SHARE),
        box_mm=round(float(np.abs(corners[0] - corners[1]).max()), _PLACES_MM),
        surface_mm=round(surface, _PLACES_MM),
    )


def _farthest(one: Any, other: Any, points: int) -> float:
    """The largest distance of a point on one surface to the other surface."""
    measured = _beside(other)
    return max(_distance(measured, point) for point in _points_on(one, points))


def _points_on(shape: Any, most: int) -> list[Point]:
    """Points on a solid's surface, the same each time: all over its faces, and the corners of its mesh."""
    samples = sample(shape)
    groups = [samples.mesh.corners_mm.reshape(-1, 3), samples.points_mm[samples.flat[samples.faces]]]
    groups = [_thinned(np.unique(each, axis=0), most // 3) for each in groups]
    found = [(float(x), float(y), float(z)) for x, y, z in np.concatenate(groups)]
    curved = [face for face, flat in zip(samples.solid_faces, samples.flat, strict=True) if not flat]
    if not curved:
        return found
    # Between its corners the mesh of a curved face is not on it.
    lines = min(_MOST_LINES, max(_LEAST_LINES, math.isqrt(most // 3 // len(curved))))
    steps = [(number + 0.5) / lines for number in range(lines)]
    own = _beside(shape)
    for face in curved:
        for point in (face.position_at(u, v) for u in steps for v in steps):
            at = (point.X, point.Y, point.Z)
            # A face may be less than the surface that it lies on.
            if _distance(own, at) < _ON_MM:
                found.append(at)
    return found


def _thinned(points: Any, most: int) -> Any:
    return points[:: max(1, -(-len(points) // most))]


def _beside(shape: Any) -> Any:
    """What measures how far points are from a surface; of a solid all that is within it is near."""
    from build123d import Compound
    from OCP.BRepExtrema import BRepExtrema_DistShapeShape

    measured = BRepExtrema_DistShapeShape()
    measured.LoadS2(Compound(shape.faces()).wrapped)
    return measured


def _distance(measured: Any, point: Point) -> float:
    from OCP.BRepBuilderAPI import BRepBuilderAPI_MakeVertex
    from OCP.gp import gp_Pnt

    measured.LoadS1(BRepBuilderAPI_MakeVertex(gp_Pnt(*point)).Vertex())
    measured.Perform()
    return float(measured.Value())


def _failures() -> tuple[type[Exception], ...]:
    """What the geometry's kernel raises for shapes that it cannot make."""
    from OCP.Standard import Standard_Failure

    return (Standard_Failure, ValueError, RuntimeError, OSError, ArithmeticError)
