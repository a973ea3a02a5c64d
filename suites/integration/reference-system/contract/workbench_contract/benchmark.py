"""Geometry on the worker, whether a model can be simulated, what a reviewer can decide."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from workbench_contract.base import Model
from workbench_contract.files import PATH_CHARS
from workbench_contract.findings import Finding
from workbench_contract.simulation import JOB, MODEL


class ModelRequest(Model):
    model: str = MODEL
    job_id: str | None = JOB


#: Starts that are looked at besides the corners: each is held against all geometry around it.
MOST_SAMPLES = 1_000


class ValidateRequest(ModelRequest):
    """Can the model be simulated at all; of a script with objectives: is that a benchmark?

    Attributes:
        model: with objectives, the script of the environment, which leaves its solids in ``parts``.
        objectives: path of the file that says what is moved, where, and how that varies; without one
            nothing but the model is looked at.
        samples: starts within the range of the randomization, besides all of its corners.
        seed: of the samples; one is chosen, and answered, where it is left out.
    """

    objectives: str | None = Field(default=None, min_length=1, max_length=PATH_CHARS)
    samples: int = Field(default=20, ge=0, le=MOST_SAMPLES)
    seed: int | None = Field(default=None, ge=0, lt=2**31)


class ConfigurationKind(StrEnum):
    """``given``: as the objectives have it. ``corner``: all that varies at one of its ends."""

    GIVEN = "given"
    CORNER = "corner"
    SAMPLE = "sample"


class Configuration(Model):
    """One start of the moved object.

    Attributes:
        number: among those of its kind, from 0.
        offset_mm: from the given start, by static randomization and runtime jitter together.
        scale: of all its lengths.
    """

    kind: ConfigurationKind
    number: int
    offset_mm: list[float]
    scale: float


class ValidationFinding(Finding):
    """What keeps an environment and its objectives from being a benchmark.

    Attributes:
        configurations: at which the object has no room, the first of them; none of what does not depend
            on where it starts.
        count: how many there are.
    """

    configurations: list[Configuration] = Field(default_factory=list)
    count: int = 0


class Sampling(Model):
    """What was looked at: the given start, every corner, and samples that follow from the seed."""

    seed: int
    samples: int
    corners: int


class Validated(Model):
    """Whether the model can be simulated at all, or is a benchmark with its objectives.

    Attributes:
        reasons: why it is not valid, as sentences.
        bodies: that move; of an environment its solids.
        findings: all of the first stage that has any: the objectives as a planner's gate has it, then
            the geometry.
        warnings: what is allowed and probably not meant.
        sampling: none where the object was placed nowhere.
    """

    valid: bool
    reasons: list[str]
    bodies: int
    findings: list[ValidationFinding] = Field(default_factory=list)
    warnings: list[Finding] = Field(default_factory=list)
    sampling: Sampling | None = None


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
