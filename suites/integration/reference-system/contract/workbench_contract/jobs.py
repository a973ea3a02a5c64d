"""Long work that is answered at once, and reported by signed callbacks when it has come further.

A callback is signed with a key that worker and controller share: HMAC-SHA256 over the job's id, a line
feed and the body, in hexadecimal digits behind ``sha256=``.
"""

from __future__ import annotations

import hashlib
import hmac
from datetime import datetime
from enum import StrEnum
from typing import Any

from pydantic import AwareDatetime, Field

from workbench_contract.base import Model, Text
from workbench_contract.problem import Problem

#: The header of a callback that holds its signature.
SIGNATURE = "X-Callback-Signature"

JOB_ID = r"^[A-Za-z0-9-]{1,64}$"


class Operation(StrEnum):
    """What may be done in a job, by the worker's operation of that name."""

    SIMULATE = "simulate"
    ANALYZE = "analyze"
    VALIDATE_AND_PRICE = "validate_and_price"

    @property
    def path(self) -> str:
        """Of the worker's endpoint."""
        return f"/benchmark/{self.value}"


class JobStatus(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"

    @property
    def final(self) -> bool:
        """Whether a job stays there."""
        return self in (JobStatus.COMPLETED, JobStatus.FAILED)


class JobRequest(Model):
    """Long work in an episode's session.

    Attributes:
        arguments: the body of the worker's operation.
    """

    operation: Operation
    arguments: dict[str, Any]


class JobStep(Model):
    """One step of a job's life.

    Attributes:
        sequence: 0 of the first; of a callback its own.
        at: when the worker took it; of the first, when the controller did.
    """

    sequence: int
    status: JobStatus
    reason: str
    at: datetime


class JobSummary(Model):
    """A job as it stands in a list."""

    job_id: str
    episode_id: str
    session_id: str
    trace_id: str
    operation: Operation
    status: JobStatus
    reason: str
    created_at: datetime
    updated_at: datetime


class Job(JobSummary):
    """A job as it is now.

    Attributes:
        result: what the operation answered; none before it has.
    """

    result: dict[str, Any] | None
    steps: list[JobStep]


class JobList(Model):
    """Jobs of an episode, latest first, and how many there are in all."""

    jobs: list[JobSummary]
    total: int


class JobRefused(Problem):
    """The job exists, and has failed before the worker had it."""

    job_id: str
    status: JobStatus


class Callback(Model):
    """What the worker reports.

    Attributes:
        sequence: from 1, each by one more than the last.
        reason: for people; of a failure, why.
        result: what the operation answered, with the last step.
    """

    sequence: int = Field(ge=1, le=1_000)
    status: JobStatus
    reason: Text = Field(max_length=10_000)
    at: AwareDatetime
    result: dict[str, Any] | None = None


class CallbackTaken(Model):
    """A callback was taken, now or before.

    Attributes:
        repeated: it had been taken before; nothing has changed.
    """

    job_id: str
    status: JobStatus
    repeated: bool


class JobOffer(Model):
    """What the controller gives the worker to do."""

    job_id: str = Field(pattern=JOB_ID)
    operation: Operation
    arguments: dict[str, Any]


class JobTaken(Model):
    """The worker will do it, and report."""

    job_id: str


def signature_of(key: str, job_id: str, body: bytes) -> str:
    """The signature of a callback: ``sha256=…``."""
    digest = hmac.new(key.encode(), job_id.encode() + b"\n" + body, hashlib.sha256)
    return f"sha256={digest.hexdigest()}"
