"""``preliminary_cost_estimation.yaml``: of what a design is made, and what the planner takes it to cost.

Costs and weights of parts are of one piece; totals are of one unit of the design.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from workbench_contract.artifact import (
    Artifact,
    EdgesMm,
    Grams,
    LengthMm,
    Name,
    PositiveGrams,
    PositiveUsd,
    Quantity,
    Usd,
    VolumeMm3,
)
from workbench_contract.features import Features


class EstimateConstraints(Artifact):
    """The benchmark's caps, and what the planner aims at; no target is above its cap (judged by the gate)."""

    benchmark_max_unit_cost_usd: PositiveUsd
    benchmark_max_weight_g: PositiveGrams
    planner_target_max_unit_cost_usd: PositiveUsd
    planner_target_max_weight_g: PositiveGrams


class _ManufacturedPart(Artifact):
    """A part that is made.

    Attributes:
        material: one that ``manufacturing_config.yaml`` has for the method (judged where that is known).
        quantity: pieces in one unit of the design.
        volume_mm3: of the finished part; of a print within its outer faces.
        features: its geometry in numbers, where the design has it; without them nobody can rebuild it.
    """

    id: Name
    material: Name
    quantity: Quantity
    volume_mm3: VolumeMm3
    unit_cost_usd: Usd
    unit_weight_g: Grams
    description: str = Field(default="", max_length=2_000)
    features: Features | None = None


class MilledPart(_ManufacturedPart):
    """``stock_mm``: sides of the box that it is cut from."""

    method: Literal["cnc"]
    stock_mm: EdgesMm


class MouldedPart(_ManufacturedPart):
    """``wall_mm``: its thickest wall. ``draft_deg``: its least draft."""

    method: Literal["injection_moulding"]
    wall_mm: LengthMm
    draft_deg: float = Field(ge=0, lt=90)


class PrintedPart(_ManufacturedPart):
    """``infill``: share of the volume."""

    method: Literal["print"]
    layer_mm: LengthMm
    infill: float = Field(gt=0, le=1)


ManufacturedPart = Annotated[MilledPart | MouldedPart | PrintedPart, Field(discriminator="method")]


class CotsPart(Artifact):
    """A part of the catalogue.

    Attributes:
        quantity: pieces in one unit of the design.
        unit_cost_usd: as the catalogue has it for the pieces that are ordered.
        catalogue_version: from which that is.
        source: where the catalogue has it from.
    """

    part_id: Name
    quantity: Quantity
    unit_cost_usd: Usd
    catalogue_version: int = Field(ge=1, lt=2**31)
    source: str = Field(min_length=1, max_length=500)


class Joint(StrEnum):
    RIGID = "rigid"
    REVOLUTE = "revolute"
    PRISMATIC = "prismatic"


class AssemblyStep(Artifact):
    """Parts that are joined; ids of this file (judged by the gate)."""

    parts: list[Name] = Field(min_length=2, max_length=100)
    joint: Annotated[Joint, Field(strict=False)]


class Assembly(Artifact):
    """How the parts are put together.

    Attributes:
        units: of the design that are ordered together; set-ups, moulds and prices count all of them.
    """

    units: Quantity = 1
    steps: list[AssemblyStep] = Field(max_length=500)


class EstimateTotals(Artifact):
    """Of one unit of the design."""

    assembly_cost_usd: Usd
    unit_cost_usd: Usd
    weight_g: Grams


class Estimate(Artifact):
    """The whole file."""

    constraints: EstimateConstraints
    manufactured_parts: list[ManufacturedPart] = Field(max_length=200)
    cots_parts: list[CotsPart] = Field(max_length=200)
    assembly: Assembly
    totals: EstimateTotals
