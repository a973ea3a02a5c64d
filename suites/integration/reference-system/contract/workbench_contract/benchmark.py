"""Geometry on the worker, whether a model can be simulated, what a reviewer can decide."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from workbench_contract.base import Model
from workbench_contract.simulation import JOB, MODEL


class ModelRequest(Model):
    model: str = MODEL
    job_id: str | None = JOB


class Validated(Model):
    """Whether the model can be simulated at all."""

    valid: bool
    reasons: list[str]
    bodies: int


class AnalyzeRequest(ModelRequest):
    """Can it be made?

    Attributes:
        method: how.
        max_size_mm: longest edge of the machine's build space.
    """

    method: str = Field(default="cnc", pattern="^(cnc|print)$")
    max_size_mm: float = Field(default=500.0, gt=0)


class Analyzed(Model):
    manufacturable: bool
    reasons: list[str]
    volume_mm3: float
    size_mm: list[float]
    faces: int


class ReviewDecision(StrEnum):
    APPROVED = "approved"
    REJECTED = "rejected"
    CONFIRM_PLAN_REFUSAL = "confirm_plan_refusal"
    REJECT_PLAN_REFUSAL = "reject_plan_refusal"
