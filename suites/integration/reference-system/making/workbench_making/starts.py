"""Whether the moved object, where it starts, has room between the solids of an environment.

It starts as a simulation lets it start: its box along the axes, its cylinder upright, around its centre.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workbench_contract.objectives import MovedBox, MovedCylinder, MovedSphere
from workbench_making.sharing import NamedSolid, intersects, named, shared_mm3
from workbench_making.solid import Point

#: Of its volume; an object that is small enough is wholly inside before it shares much.
_WHOLE = 1 - 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Met:
    """A solid that has no room for the object.

    Attributes:
        index: of the solid.
        volume_mm3: that both have in common.
        whole: nothing of the object is outside.
    """

    index: int
    volume_mm3: float
    whole: bool


def object_at(
    moved: MovedSphere | MovedBox | MovedCylinder, centre_mm: Point, scale: float
) -> NamedSolid:
    """The object as a solid.

    Args:
        moved: its shape and size.
        centre_mm: where.
        scale: of all its lengths.
    """
    from build123d import Location, Solid

    x, y, z = centre_mm
    if isinstance(moved, MovedSphere):
        made = Solid.make_sphere(moved.size.radius_mm * scale, angle1=-90, angle2=90, angle3=360)
        corner = centre_mm
    elif isinstance(moved, MovedBox):
        a, b, c = (edge * scale for edge in (moved.size.x_mm, moved.size.y_mm, moved.size.z_mm))
        made = Solid.make_box(a, b, c)
        corner = (x - a / 2, y - b / 2, z - c / 2)
    else:
        radius, height = moved.size.radius_mm * scale, moved.size.height_mm * scale
        made = Solid.make_cylinder(radius, height)
        corner = (x, y, z - height / 2)
    return named(moved.label, made.moved(Location(corner)))


def without_room(started: NamedSolid, solids: Sequence[NamedSolid]) -> list[Met]:
    """The solids that an object intersects, or is wholly inside of."""
    found = []
    for index, each in enumerate(solids):
        volume = shared_mm3(started, each)
        whole = volume > 0 and volume >= _WHOLE * started.solid.volume
        if whole or intersects(volume):
            found.append(Met(index=index, volume_mm3=volume, whole=whole))
    return found
