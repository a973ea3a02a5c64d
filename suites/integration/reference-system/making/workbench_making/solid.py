"""One closed valid solid out of a B-rep file, or why there is none; and its box.

Everything else here measures solids that have passed: an open shell has no inside, so neither a
weight nor a wall.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench_contract.findings import Finding, Stage
from workbench_making.findings import finding

if TYPE_CHECKING:
    from build123d import Shape, Solid

Point = tuple[float, float, float]

#: Of a box; the digits below are noise of the geometry.
_PLACES = 6
#: What a side may be longer than what it fits into: rounding, and no machine's tolerance.
_FIT_MM = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """An axis-aligned box, in mm."""

    min_mm: Point
    max_mm: Point

    @property
    def size_mm(self) -> Point:
        """Its sides, x, y, z."""
        (ax, ay, az), (bx, by, bz) = self.min_mm, self.max_mm
        return (bx - ax, by - ay, bz - az)


def read(path: Path, *, file: str) -> tuple[Solid | None, list[Finding]]:
    """Read a B-rep file that holds one closed valid solid.

    Args:
        path: where the file lies.
        file: what the design's author calls it.
    """
    from build123d import import_brep

    try:
        shape = import_brep(str(path))
    except (OSError, ValueError) as error:
        return None, [_wrong(file, f"no B-rep: {error}", "a solid as build123d exports it")]
    return check(shape, file=file)


def check(shape: Shape[Any], *, file: str) -> tuple[Solid | None, list[Finding]]:
    """The one solid of a shape, or all that keeps it from being one."""
    solids = shape.solids()
    if len(solids) != 1:
        return None, [
            _wrong(file, f"{len(solids)} solids", "one solid: a part is made in one piece")
        ]
    (solid,) = solids
    findings = []
    loose = len(shape.faces()) - len(solid.faces())
    if loose:
        findings.append(_wrong(file, f"{loose} faces beside the solid", "the solid alone"))
    open_shells = _open_shells(solid)
    if open_shells:
        findings.append(
            _wrong(file, f"{open_shells} open shells", "closed shells: no gap anywhere")
        )
    elif not solid.is_valid:
        findings.append(
            _wrong(file, "a solid that is not valid", "faces that meet and do not cross")
        )
    elif not math.isfinite(solid.volume) or solid.volume <= 0:
        findings.append(_wrong(file, f"a volume of {solid.volume:g} mm³", "a volume above 0"))
    return (None if findings else solid), findings


def box_of(shape: Shape[Any]) -> Box:
    """The smallest box around a shape, by its surfaces and not by its mesh."""
    from OCP.Bnd import Bnd_Box
    from OCP.BRepBndLib import BRepBndLib

    box = Bnd_Box()
    BRepBndLib.AddOptimal_s(shape.wrapped, box, False, False)
    low, high = box.CornerMin(), box.CornerMax()
    return Box(
        min_mm=(_clean(low.X()), _clean(low.Y()), _clean(low.Z())),
        max_mm=(_clean(high.X()), _clean(high.Y()), _clean(high.Z())),
    )


def does_not_fit(box: Box, sides_mm: Sequence[float], *, what: str, file: str) -> Iterator[Finding]:
    """Each axis in which a box is longer than what it has to fit into, as it stands."""
    for axis, side, most in zip("xyz", box.size_mm, sides_mm, strict=True):
        if side > most + _FIT_MM:
            found = f"{side:.6g} mm along {axis}"
            expected = f"at most {most:g} mm, {what}'s side along {axis}"
            yield finding(Stage.VALID, file=file, where="the solid", found=found, expected=expected)


def _open_shells(solid: Solid) -> int:
    from OCP.BRep import BRep_Tool

    return sum(not BRep_Tool.IsClosed_s(shell.wrapped) for shell in solid.shells())


def _clean(value: float) -> float:
    return round(value, _PLACES) + 0.0


def _wrong(file: str, found: str, expected: str) -> Finding:
    return finding(Stage.VALID, file=file, where="the solid", found=found, expected=expected)
