"""One event, as it stands in ``events.jsonl`` and in the controller's store."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from pydantic import Field

from workbench_contract.base import Model


class EventSource(StrEnum):
    """Who numbered it: each counts from 1 within a session, without gaps."""

    WORKER = "worker"
    CONTROLLER = "controller"


class EventKind(StrEnum):
    TOOL_CALL = "tool_call"
    SIMULATION_REQUEST = "simulation_request"
    SIMULATION_RESULT = "simulation_result"
    SEED_VARIANT = "seed_variant"
    MANUFACTURABILITY_CHECK = "manufacturability_check"
    LINT_FAILURE = "lint_failure"
    PLAN_SUBMISSION = "plan_submission"
    REVIEW_DECISION = "review_decision"
    PRICING = "pricing"
    RENDERED = "rendered"
    COTS_SEARCH = "cots_search"
    SKILL_READ = "skill_read"
    JOB_CANCELLED = "job_cancelled"
    JOB_PREEMPTED = "job_preempted"
    WORKFLOW_TRANSITION = "workflow_transition"
    FLOW_TRANSITION = "flow_transition"
    ASSET_UPLOADED = "asset_uploaded"
    UPLOAD_FAILED = "upload_failed"
    BACKUP = "backup"


class Event(Model):
    """Something that happened in a session.

    Attributes:
        seq: from 1, per session and source, each by one more than the last.
        episode_id: of the episode that the session belongs to; none for a session without one.
    """

    session_id: str
    source: EventSource
    seq: int = Field(ge=1)
    kind: EventKind
    time: datetime
    episode_id: str | None = None
    trace_id: str | None = None
    payload: dict[str, Any]


class EventPage(Model):
    """Events in order.

    Attributes:
        last_seq: number of the last event there is, whether it is on this page or not.
    """

    events: list[Event]
    last_seq: int
