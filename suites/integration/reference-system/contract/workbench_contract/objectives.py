"""``objectives.yaml``: what a design is for, where it may be, what it may cost.

Lengths in millimetres, the world's axes, z up. A zone is an axis-aligned box.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from workbench_contract.artifact import (
    Artifact,
    LengthMm,
    Mm,
    Name,
    PointMm,
    PositiveGrams,
    PositiveUsd,
    Seconds,
    SpreadsMm,
)


class Box(Artifact):
    """Two opposite corners; ``min_mm`` is below ``max_mm`` in every axis (judged by the gate)."""

    min_mm: PointMm
    max_mm: PointMm


class ForbidZone(Box):
    """What the moved object never enters; names are unique (judged by the gate)."""

    name: Name | None = None


class SphereSize(Artifact):
    radius_mm: LengthMm


class BoxSize(Artifact):
    x_mm: LengthMm
    y_mm: LengthMm
    z_mm: LengthMm


class CylinderSize(Artifact):
    radius_mm: LengthMm
    height_mm: LengthMm


class ScaleRange(Artifact):
    """Factors of the object's size, ``min`` at most ``max`` (judged by the gate)."""

    min: float = Field(default=1.0, gt=0, le=100)
    max: float = Field(default=1.0, gt=0, le=100)


class StaticRandomization(Artifact):
    """How variants of the environment differ; fixed for all runs of one variant.

    Attributes:
        start_mm: the object starts at most so far from its start, to either side.
        scale: all lengths of the object are multiplied by a factor of this range.
    """

    start_mm: SpreadsMm = Field(default_factory=lambda: [0.0, 0.0, 0.0])
    scale: ScaleRange = Field(default_factory=ScaleRange)


class RuntimeJitter(Artifact):
    """How runs of one variant differ, on top of it."""

    start_mm: SpreadsMm = Field(default_factory=lambda: [0.0, 0.0, 0.0])


class _MovedObject(Artifact):
    """What is to be moved; ``start_mm`` is its centre."""

    label: Name
    start_mm: PointMm
    static_randomization: StaticRandomization = Field(default_factory=StaticRandomization)
    runtime_jitter: RuntimeJitter = Field(default_factory=RuntimeJitter)


class MovedSphere(_MovedObject):
    shape: Literal["sphere"]
    size: SphereSize


class MovedBox(_MovedObject):
    shape: Literal["box"]
    size: BoxSize


class MovedCylinder(_MovedObject):
    shape: Literal["cylinder"]
    size: CylinderSize


MovedObject = Annotated[MovedSphere | MovedBox | MovedCylinder, Field(discriminator="shape")]


class PartType(StrEnum):
    MOTOR = "motor"
    PASSIVE = "passive"


class Dof(StrEnum):
    """The one way in which a part moves."""

    ROTATE_X = "rotate_x"
    ROTATE_Y = "rotate_y"
    ROTATE_Z = "rotate_z"
    SLIDE_X = "slide_x"
    SLIDE_Y = "slide_y"
    SLIDE_Z = "slide_z"

    @property
    def rotates(self) -> bool:
        """Whether positions are in degrees, and not in millimetres."""
        return self.value.startswith("rotate")


#: A share of what the motor can do, with its sign.
Level = Annotated[float, Field(ge=-1, le=1)]
#: Of a position, in the unit of the dof.
Degrees = Annotated[float, Field(ge=-36_000, le=36_000)]


class Constant(Artifact):
    mode: Literal["constant"]
    level: Level


class Sinusoidal(Artifact):
    mode: Literal["sinusoidal"]
    level: Level
    period_s: Seconds
    phase_deg: Degrees = 0.0


class Square(Artifact):
    """``level`` for the share ``duty`` of each period, its negative for the rest."""

    mode: Literal["square"]
    level: Level
    period_s: Seconds
    duty: float = Field(default=0.5, gt=0, lt=1)


class Trapezoidal(Artifact):
    """From 0 to ``level``, held, and back to 0."""

    mode: Literal["trapezoidal"]
    level: Level
    rise_s: Seconds
    hold_s: Seconds
    fall_s: Seconds


class Position(Artifact):
    """``deg`` of a part that rotates, ``mm`` of one that slides: one of the two (judged by the gate)."""

    deg: Degrees | None = None
    mm: Mm | None = None


class TimedPosition(Position):
    at_s: float = Field(ge=0, le=1e6)


class Waypoint(Artifact):
    """From one position to the next; times rise (judged by the gate)."""

    mode: Literal["waypoint"]
    waypoints: list[TimedPosition] = Field(min_length=1, max_length=1_000)


class Hold(Artifact):
    mode: Literal["hold"]
    position: Position


class Oscillate(Artifact):
    mode: Literal["oscillate"]
    low: Position
    high: Position
    period_s: Seconds


Control = Annotated[
    Constant | Sinusoidal | Square | Trapezoidal | Waypoint | Hold | Oscillate,
    Field(discriminator="mode"),
]


class MovingPart(Artifact):
    """A part that moves.

    Attributes:
        control: of a motor; a passive part has none (judged by the gate).
    """

    name: Name
    type: Annotated[PartType, Field(strict=False)]
    dof: Annotated[Dof, Field(strict=False)]
    control: Control | None = None
    description: str = Field(default="", max_length=2_000)


class Constraints(Artifact):
    """Caps; exactly at a cap passes."""

    max_unit_cost_usd: PositiveUsd
    max_weight_g: PositiveGrams


class Randomization(Artifact):
    """Which variant of the environment, and the seeds of its runs."""

    variant: Name
    seeds: list[Annotated[int, Field(ge=0, lt=2**31)]] = Field(min_length=1, max_length=1_000)


class Objectives(Artifact):
    """The whole file."""

    goal_zone: Box
    forbid_zones: list[ForbidZone] = Field(max_length=50)
    build_zone: Box
    simulation_bounds: Box
    moved_object: MovedObject
    moving_parts: list[MovingPart] = Field(max_length=100)
    constraints: Constraints
    randomization: Randomization
