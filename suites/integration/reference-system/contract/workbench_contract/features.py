"""What a part is made of in numbers: boxes and cylinders, added and cut one after another.

In the frame in which the design is put together; lengths in mm.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from workbench_contract.artifact import Artifact, EdgesMm, LengthMm, PointMm


class FeatureKind(StrEnum):
    """What a feature does to what those before it have left; the first one adds."""

    ADD = "add"
    CUT = "cut"


class Axis(StrEnum):
    X = "x"
    Y = "y"
    Z = "z"


class _Feature(Artifact):
    """``at_mm``: its centre."""

    kind: Annotated[FeatureKind, Field(strict=False)]
    at_mm: PointMm


class BoxFeature(_Feature):
    """``size_mm``: its edges along x, y, z."""

    shape: Literal["box"]
    size_mm: EdgesMm


class CylinderFeature(_Feature):
    """``axis``: that it lies along."""

    shape: Literal["cylinder"]
    radius_mm: LengthMm
    height_mm: LengthMm
    axis: Annotated[Axis, Field(strict=False)]


Feature = Annotated[BoxFeature | CylinderFeature, Field(discriminator="shape")]
#: Of one part.
Features = Annotated[list[Feature], Field(min_length=1, max_length=100)]
