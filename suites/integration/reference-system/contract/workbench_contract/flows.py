"""Flows: planner, coder and reviewer one after another, until a design is approved or a bound is reached.

A benchmark's flow comes to a benchmark, an engineering flow to a design that solves one.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from pydantic import Field

from workbench_contract.base import Model, Text
from workbench_contract.benchmark import ReviewDecision
from workbench_contract.episodes import TASK_CHARS, AgentRole, EpisodeStatus, Metadata, Purpose
from workbench_contract.problem import Problem
from workbench_contract.review import Seen

_ID = Field(default=None, pattern=r"^[A-Za-z0-9-]{1,64}$")


class BenchmarkRequest(Model):
    """A benchmark to be made.

    Attributes:
        seed, variant, metadata: of each of its episodes.
    """

    task: Text = Field(min_length=1, max_length=TASK_CHARS)
    seed: int = Field(default=0, ge=0, lt=2**31)
    variant: Text = Field(default="default", min_length=1, max_length=100)
    metadata: Metadata = Field(default_factory=dict)


class FlowRequest(BenchmarkRequest):
    """A design to be made.

    Attributes:
        benchmark_id: the flow of the benchmark that is to be solved; it has to be completed. None where the
            planner makes its own objectives.
    """

    benchmark_id: str | None = _ID


class FlowAccepted(Model):
    flow_id: str
    workflow_id: str
    purpose: Purpose
    status: EpisodeStatus


class FlowRefused(Problem):
    """The flow exists, and has failed before it could be started."""

    flow_id: str
    status: EpisodeStatus


class Cause(StrEnum):
    """Why a flow goes where it goes."""

    SUBMITTED = "submitted"
    TAKEN_UP = "taken_up"
    HANDED_OVER = "handed_over"
    APPROVED = "approved"
    REJECTED = "rejected"
    PLAN_REFUSAL_CONFIRMED = "plan_refusal_confirmed"
    PLAN_REFUSAL_REJECTED = "plan_refusal_rejected"
    ROUNDS_USED_UP = "rounds_used_up"
    STAGE_ENDED = "stage_ended"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


class FlowTransition(Model):
    """One step of a flow.

    Attributes:
        ordinal: from 1, in the order of the steps.
        role: whose turn it is from then on; none before the first and after the last.
        round: how often it was that role's turn, this one included.
        episode_id: of that turn.
    """

    ordinal: int
    status: EpisodeStatus
    cause: Cause
    role: AgentRole | None
    round: int | None
    episode_id: str | None
    reason: str
    at: datetime


class FlowSummary(Model):
    """A flow as it stands in a list.

    Attributes:
        given_id: the hand-over that its planner starts from.
        handover_id: what it has come to: the hand-over that was approved, and none before it was.
    """

    flow_id: str
    purpose: Purpose
    workflow_id: str
    run_id: str | None
    status: EpisodeStatus
    reason: str
    task: str
    seed: int
    variant: str
    metadata: dict[str, Any]
    benchmark_id: str | None
    given_id: str | None
    handover_id: str | None
    created_at: datetime
    updated_at: datetime


class SeenInEvent(Seen):
    """A file that a reviewer looked at.

    Attributes:
        event_seq: of the worker's event of its session that says so.
    """

    event_seq: int


class DecisionEvidence(Model):
    """What a decision rests on."""

    images_viewed: list[SeenInEvent]
    videos_viewed: list[SeenInEvent]
    files_checked: list[SeenInEvent]


class Decision(Model):
    """A review that was accepted, as the controller keeps it.

    Attributes:
        decision_id: the hand-over that the review is.
        reviewed_id: the hand-over that was reviewed.
        optimal: the reviewer expects no design that is materially cheaper.
        event_seq: of the worker's event that says so.
    """

    decision_id: str
    flow_id: str | None
    episode_id: str
    session_id: str
    reviewed_id: str
    decision: ReviewDecision
    evidence: DecisionEvidence
    comments: list[str]
    optimal: bool
    event_seq: int
    decided_at: datetime


class DecisionList(Model):
    """A page of decisions, in the order in which they were made."""

    decisions: list[Decision]
    total: int


class Flow(FlowSummary):
    """A flow with its steps and decisions."""

    interrupt_requested_at: datetime | None
    transitions: list[FlowTransition]
    decisions: list[Decision]


class FlowList(Model):
    """A page of flows, latest first."""

    flows: list[FlowSummary]
    total: int


class FlowInterruptAccepted(Model):
    """The interruption is under way; the flow's status shows when it is done."""

    flow_id: str
    status: EpisodeStatus
    interrupt_requested_at: datetime
