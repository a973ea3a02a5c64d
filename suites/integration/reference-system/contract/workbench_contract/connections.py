"""How the parts of a design hold together: rigid pairs with their fasteners, where joints start, what drives them.

Every place is in the frame of the assembly, where the parts' solids lie as they are put together. What is
named here is looked for on the solids: a hole that is not there holds nothing.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from workbench_contract.base import Model

_Coordinate = Annotated[float, Field(strict=True, ge=-1e6, le=1e6, allow_inf_nan=False)]
_Length = Annotated[float, Field(strict=True, gt=0, le=1e6, allow_inf_nan=False)]
_Name = Annotated[str, Field(min_length=1, max_length=128)]
Place = tuple[_Coordinate, _Coordinate, _Coordinate]


class HoleUse(Model):
    """One side of a fastener.

    Attributes:
        at_mm: a point on the hole's axis, within its depth.
        axis: along it, either way; of any length but 0.
        holds: whether this side adds the fastener: its thread is here. One of the two sides does.
    """

    part: _Name
    at_mm: Place
    axis: Place
    diameter_mm: _Length
    holds: bool = Field(strict=True)


class Fastener(Model):
    """A screw, bolt or pin through one part into another.

    Attributes:
        part_id: in the catalogue.
        diameter_mm: of its shank.
        length_mm: of its shank, below the head.
    """

    name: _Name
    part_id: _Name
    diameter_mm: _Length
    length_mm: _Length
    holes: tuple[HoleUse, HoleUse]


class RigidPair(Model):
    """Two parts that do not move against each other."""

    parts: tuple[_Name, _Name]
    fasteners: list[Fastener] = Field(max_length=200)


class Movement(StrEnum):
    """How one part moves in another."""

    REVOLUTE = "revolute"
    PRISMATIC = "prismatic"


class JointStart(Model):
    """A joint that moves, and where it starts on a part.

    Attributes:
        at_mm: revolute: a point on the axis of a hole or a boss, within its length. Prismatic: a point
            on a plane face, or such a point of a hole or boss.
        axis: about which, or along which it moves.
    """

    name: _Name
    part: _Name
    movement: Movement
    at_mm: Place
    axis: Place


class Drive(Model):
    """A catalogue part that moves a joint: no more torque than the catalogue has for it.

    Attributes:
        joint: label of the joint in the script; a revolute or prismatic one.
        part_id: a servo or motor of the catalogue; each joint takes a piece of its own.
        radius_mm: prismatic: of the pinion on its shaft, whose rack moves; of a revolute joint none.
    """

    joint: _Name
    part_id: _Name
    radius_mm: Annotated[float, Field(strict=True, ge=1, le=1e6, allow_inf_nan=False)] | None = None


class Connections(Model):
    """All connections of a design.

    Attributes:
        joints: joints of the script's (``workbench_contract/joints.py``) need no entry here.
        grounded: parts that are held where they are; the others are free, but for their joints and pairs.
        drives: of joints that are motorised.
    """

    pairs: list[RigidPair] = Field(max_length=500)
    joints: list[JointStart] = Field(default_factory=list, max_length=500)
    grounded: list[_Name] = Field(default_factory=list, max_length=200)
    drives: list[Drive] = Field(default_factory=list, max_length=100)
