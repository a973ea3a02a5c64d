"""Runs of a scene: what is asked for, how each ended, what all say together."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from workbench_contract.artifact import Sha256
from workbench_contract.base import Model
from workbench_contract.files import PATH_CHARS
from workbench_contract.objectives import Control
from workbench_contract.problem import Problem

#: Of a request: what it is about, and the id by which its job may be cancelled.
MODEL = Field(
    default="model.py",
    min_length=1,
    max_length=PATH_CHARS,
    description="a build123d script that leaves a solid in `part`, or an MJCF file (.xml)",
)
JOB = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")


class Outcome(StrEnum):
    """How a simulated run ended."""

    GOAL_HIT = "goal_hit"
    FORBID_HIT = "forbid_hit"
    OUT_OF_BOUNDS = "out_of_bounds"
    TIMEOUT = "timeout"
    INSTABILITY = "instability"
    MOTOR_OVERLOAD = "motor_overload"


class SimulateRequest(Model):
    """Let a scene run and watch.

    Attributes:
        variant: static variant of the environment; where there are objectives it decides where the
            moved object starts and how large it is, within their static randomization.
        seed: of the jitter of the first run; those of the others follow from it.
        duration_s: simulated seconds.
        runs: how many.
        objectives: path of the file whose zones judge a run and whose object is moved; a design stands in
            the environment of its benchmark then. Without any the scene has no goal and ends 5 m away, and
            a design is dropped onto a floor.
        controls: what actuators are told, by their names.
        trajectories: whether each run leaves a file.
    """

    model: str = MODEL
    variant: str = Field(default="default", min_length=1, max_length=100)
    seed: int = Field(default=0, ge=0, lt=2**31)
    duration_s: float = Field(default=1.0, gt=0, le=600)
    runs: int = Field(default=1, ge=1, le=100)
    objectives: str | None = Field(default=None, min_length=1, max_length=PATH_CHARS)
    controls: dict[str, Control] = Field(default_factory=dict, max_length=100)
    trajectories: bool = False
    job_id: str | None = JOB


class Body(Model):
    """Where a body came to rest, in metres."""

    name: str
    position_m: list[float]


class Trajectory(Model):
    """The file of a run, in its session."""

    path: str
    sha256: Sha256


class Ending(Model):
    """How a run ended.

    Attributes:
        steps: physics steps taken.
        energy_j: total energy at the end.
    """

    outcome: Outcome
    reason: str
    steps: int
    simulated_s: float
    energy_j: float
    bodies: list[Body]


class SimulatedRun(Ending):
    """One run.

    Attributes:
        goal_gap_mm: how near the object came to the goal; 0 where it was reached, none without a goal.
    """

    seed: int
    goal_gap_mm: float | None = None
    trajectory: Trajectory | None = None


Share = Annotated[float, Field(ge=0, le=1)]


class Interval(Model):
    """Of a share, Wilson's, with a confidence of 95 %."""

    low: Share
    high: Share


class Aggregate(Model):
    """What all runs say together.

    Attributes:
        counts: of every outcome, 0 included.
        success_rate: share that hit the goal; none where there is no goal.
        interval: of that share.
    """

    runs: int
    counts: dict[Outcome, int]
    success_rate: Share | None = None
    interval: Interval | None = None


class Simulated(Ending):
    """Runs, and when they waited and ran; its ending is that of the first.

    Attributes:
        queued_at: when it was asked for.
        started_at: when its turn came; no other simulation of the worker runs from then on
        finished_at: until then.
        runs: all of them, the first included.
    """

    job_id: str
    variant: str
    seed: int
    runs: list[SimulatedRun]
    aggregate: Aggregate
    queued_at: datetime
    started_at: datetime
    finished_at: datetime


class SimulationRefused(Problem):
    """A run that has no result, tracked as one that has."""

    job_id: str
    variant: str
    seed: int
