"""Geometry and physics on the worker; what a reviewer can decide."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from workbench_contract.base import Model
from workbench_contract.files import PATH_CHARS
from workbench_contract.simulation import JOB_PATTERN, Body, Outcome

_MODEL = Field(
    default="model.py",
    min_length=1,
    max_length=PATH_CHARS,
    description="a build123d script that leaves a solid in `part`, or an MJCF file (.xml)",
)
_JOB = Field(default=None, pattern=JOB_PATTERN)


class SimulateRequest(Model):
    """Drop the model onto the floor and watch.

    Attributes:
        variant: static variant of the environment.
        seed: of the jitter of this run.
        duration_s: simulated seconds.
    """

    model: str = _MODEL
    variant: str = Field(default="default", min_length=1, max_length=100)
    seed: int = Field(default=0, ge=0, lt=2**31)
    duration_s: float = Field(default=1.0, gt=0, le=600)
    job_id: str | None = _JOB


class Simulated(Model):
    """A run, and when it waited and ran.

    Attributes:
        queued_at: when it was asked for.
        started_at: when its turn came; no other simulation of the worker runs from then on
        finished_at: until then.
        steps: physics steps taken.
        energy_j: total energy at the end.
    """

    job_id: str
    variant: str
    seed: int
    outcome: Outcome
    reason: str
    steps: int
    simulated_s: float
    energy_j: float
    bodies: list[Body]
    queued_at: datetime
    started_at: datetime
    finished_at: datetime


class ModelRequest(Model):
    model: str = _MODEL
    job_id: str | None = _JOB


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
