"""How far designs are from the geometry that the numbers of their plans give.

Each part is rebuilt from the ``features`` of its plan's estimate, and held against the solid that was handed
over, where it stands. What cannot be rebuilt has no deviation, and says what is missing.
"""

from __future__ import annotations

from pydantic import Field

from workbench_contract.artifact import Name
from workbench_contract.base import Model
from workbench_contract.features import Features
from workbench_contract.handover import Content


class PlannedPart(Model):
    """A part of a plan; without numbers it cannot be rebuilt."""

    id: Name
    features: Features | None = None


class CompareRequest(Model):
    """Hold a design against the numbers of a plan.

    Attributes:
        step: the design, each solid labelled with the id of its part.
    """

    parts: list[PlannedPart] = Field(min_length=1, max_length=200)
    step: Content


class Deviation(Model):
    """How far a solid is from the one that was planned.

    Attributes:
        volume_share: difference of the volumes, as a share of the planned one.
        box_mm: the largest difference of a side of the boxes around them.
        surface_mm: the largest distance from a point on one surface to the other, over samples of both.
    """

    volume_share: float
    box_mm: float
    surface_mm: float


class ComparedPart(Model):
    """A part of the plan beside the solid of that id.

    Attributes:
        planned_mm3, built_mm3: volumes; none of what is not there.
        deviation: none where one of the two is not there.
        missing: what would be needed; empty where there is a deviation.
    """

    part: str
    planned_mm3: float | None
    built_mm3: float | None
    deviation: Deviation | None
    missing: str


class Compared(Model):
    """All parts of the plan, in its order."""

    parts: list[ComparedPart]


class Tolerance(Deviation):
    """The largest deviation that is none, as configured: up to it, and with it, a part is as planned."""


class PartFidelity(ComparedPart):
    """``within``: whether the deviation is within the tolerance; none without one."""

    within: bool | None


class Fidelity(Model):
    """A design beside its plan.

    Attributes:
        plan_id: the hand-over that its coder started from.
        within: not when a part is not; none where no part is outside, and one cannot be told.
        missing: what would be needed where it cannot be told; else empty.
    """

    handover_id: str
    episode_id: str
    plan_id: str | None
    tolerance: Tolerance
    parts: list[PartFidelity]
    within: bool | None
    missing: str


class PlanFidelity(Model):
    """A page of the designs that were made of a plan, in the order in which they were handed over.

    Attributes:
        total: of all designs.
        judged: how many of this page can be told.
        preserved: share of these that are within the tolerance; none of none.
        missing: what would be needed for that share; empty where there is one.
    """

    plan_id: str
    tolerance: Tolerance
    designs: list[Fidelity]
    total: int
    judged: int
    preserved: float | None
    missing: str
