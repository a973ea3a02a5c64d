"""The volume that solids have in common, by their surfaces and not by their meshes.

What touches has none. Up to 0.1 mm³ is no intersection: a design is typed in decimals, and geometry has noise.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench_contract.findings import Finding, Stage
from workbench_making.findings import finding
from workbench_making.solid import Box, box_of

if TYPE_CHECKING:
    from build123d import Solid

#: Solids that share more intersect.
MOST_SHARED_MM3 = 0.1
#: Of a volume; the digits below are noise of the geometry.
_PLACES = 6
#: A box is as good as this: what is nearer is looked at.
_BOX_MM = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedSolid:
    """A solid that findings call by a name.

    Attributes:
        name: need not be its own alone.
        solid: closed and valid.
        box: the smallest around it.
    """

    name: str
    solid: Solid
    box: Box


def named(name: str, solid: Solid) -> NamedSolid:
    """A solid with its name and its box."""
    return NamedSolid(name=name, solid=solid, box=box_of(solid))


def shared_mm3(one: NamedSolid, other: NamedSolid) -> float:
    """The volume that two solids have in common; 0 where they touch or are apart."""
    if _apart(one.box, other.box):
        return 0.0
    shared = one.solid.intersect(other.solid)
    volume = sum(each.volume for each in shared.solids()) if shared else 0.0
    return float(volume)


def intersects(volume_mm3: float) -> bool:
    """Whether that is more than solids which touch may share."""
    return round(volume_mm3, _PLACES) > MOST_SHARED_MM3


def passing_through(solids: Sequence[NamedSolid], *, file: str) -> list[Finding]:
    """Each pair of solids that intersects.

    Args:
        file: the script that leaves them.
    """
    findings = []
    for one, other in itertools.combinations(solids, 2):
        volume = shared_mm3(one, other)
        if intersects(volume):
            findings.append(
                finding(
                    Stage.PRICE,
                    file=file,
                    where=one.name,
                    found=f"{volume:.6g} mm³ of it within {other.name}",
                    expected="solids that do not pass through each other",
                )
            )
    return findings


def _apart(one: Box, other: Box) -> bool:
    return any(
        max(low, least) - min(high, most) > _BOX_MM
        for low, high, least, most in zip(
            one.min_mm, one.max_mm, other.min_mm, other.max_mm, strict=True
        )
    )
