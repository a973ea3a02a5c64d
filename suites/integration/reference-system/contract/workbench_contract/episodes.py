"""What the controller takes and answers."""

from __future__ import annotations

import json
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from workbench_contract.base import Model, Text
from workbench_contract.events import Event, EventSource
from workbench_contract.journal import Observation
from workbench_contract.problem import Problem
from workbench_contract.skills import SkillsGiven
from workbench_contract.todo import IssuedEntry

#: The longest task that is taken.
TASK_CHARS = 20_000

HANDOVER = Field(default=None, pattern=r"^[A-Za-z0-9-]{1,64}$")


def _storable(metadata: dict[str, Any]) -> dict[str, Any]:
    """JSON as it can be stored: what is accepted is there whole."""
    try:
        text = json.dumps(metadata, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (ValueError, RecursionError) as error:
        raise ValueError("cannot store this: it holds what JSON has not. Leave it out") from error
    if "\\u0000" in text.replace("\\\\", ""):
        raise ValueError("cannot store this: it holds U+0000. Leave it out")
    return metadata


#: What else is known of a task, for whoever reads it.
Metadata = Annotated[dict[str, Any], AfterValidator(_storable)]


class EpisodeStatus(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"

    @property
    def final(self) -> bool:
        """Whether an episode stays there."""
        return self not in (EpisodeStatus.QUEUED, EpisodeStatus.RUNNING)


class AgentRole(StrEnum):
    PLANNER = "planner"
    CODER = "coder"
    REVIEWER = "reviewer"


class Purpose(StrEnum):
    """What an agent works at: a benchmark, or a design that solves one."""

    ENGINEERING = "engineering"
    BENCHMARK = "benchmark"


class EpisodeRequest(Model):
    """A task for an agent.

    Attributes:
        purpose: what its role leaves differs by it.
        seed: of everything random in the run.
        variant: static variant of the environment, tracked with every simulation.
        handover_id: of the hand-over that the agent starts from; none to start from nothing.
    """

    task: Text = Field(min_length=1, max_length=TASK_CHARS)
    role: AgentRole = AgentRole.CODER
    purpose: Purpose = Purpose.ENGINEERING
    seed: int = Field(default=0, ge=0, lt=2**31)
    variant: Text = Field(default="default", min_length=1, max_length=100)
    metadata: Metadata = Field(default_factory=dict)
    handover_id: str | None = HANDOVER


class EpisodeAccepted(Model):
    episode_id: str
    session_id: str
    workflow_id: str
    trace_id: str
    status: EpisodeStatus


class EpisodeRefused(Problem):
    """The episode exists, and has failed before it could be started."""

    episode_id: str
    status: EpisodeStatus


class Transition(Model):
    """One step of an episode's life.

    Attributes:
        ordinal: from 1, in the order of the steps.
        from_status: none for the first.
        run_id: Temporal's id of the run; none before there is one.
    """

    ordinal: int
    from_status: EpisodeStatus | None
    to_status: EpisodeStatus
    reason: str
    workflow_id: str
    run_id: str | None
    at: datetime


class TraceKind(StrEnum):
    MODEL = "model"
    TOOL = "tool"


class Trace(Model):
    """One model turn or tool call of an agent.

    Attributes:
        trace_id: of the run, the same in all that belongs to it.
        langfuse_trace_id: of the trace at Langfuse that it is an observation of; none before Langfuse has it.
        feedback_score, feedback_comment: what a person thinks of it; none before anybody has said.
    """

    id: str
    ordinal: int
    trace_id: str
    kind: TraceKind
    name: str
    ok: bool
    detail: dict[str, Any]
    started_at: datetime
    finished_at: datetime
    langfuse_trace_id: str | None
    feedback_score: float | None
    feedback_comment: str | None


class AssetStatus(StrEnum):
    """What became of an asset; ``missing`` is one that was uploaded and is not in the store any more."""

    UPLOADED = "uploaded"
    FAILED = "failed"
    MISSING = "missing"


class AssetKind(StrEnum):
    """What an asset is: the agent's own, or of its last hand-over what the worker knows it to be."""

    OWN = "own"
    SCRIPT = "script"
    STEP = "step"
    MJCF = "mjcf"
    RENDER = "render"
    VIDEO = "video"
    INDEX = "index"


#: Below it are the assets of a coder's last hand-over, by their paths in that.
FINAL_ASSETS = "final"


class Asset(Model):
    """A file that the episode leaves.

    Attributes:
        path: below the session's ``assets/``; of what was handed over below ``final/``.
        media_type: by what it is; none of an asset that was kept before types were.
        etag: as the object store gave it, without quotes; none for an upload that failed.
        version_id: where the store keeps versions.
        size_bytes, sha256: none of a file that the worker did not give.
        attempts: uploads tried.
    """

    path: str
    kind: AssetKind
    media_type: str | None
    status: AssetStatus
    bucket: str
    key: str
    etag: str | None
    version_id: str | None
    size_bytes: int | None
    sha256: str | None
    attempts: int
    error: str | None
    created_at: datetime


class AssetList(Model):
    episode_id: str
    assets: list[Asset]


class JournalLine(Model):
    """What an agent looked for or did, and what came of it.

    Attributes:
        ordinal: from 1, in the order of the lines.
        reflection, next_step: of an entry that the agent wrote; none of what is noted by itself.
        event_source, event_seq: the event that it is about, or the first of those that it rests on.
        observations: all of these.
    """

    ordinal: int
    at: datetime
    intent: str
    result: str
    reflection: str | None
    next_step: str | None
    observations: list[Observation]
    event_source: EventSource
    event_seq: int


class EpisodeSummary(Model):
    """An episode as it stands in a list.

    Attributes:
        flow_id: of the flow that it is a turn of.
        batch_id: of the batch that it was submitted with.
        skills: the skills of the run; none before it has begun.
    """

    episode_id: str
    session_id: str
    workflow_id: str
    run_id: str | None
    trace_id: str
    status: EpisodeStatus
    reason: str
    role: AgentRole
    purpose: Purpose
    task: str
    seed: int
    variant: str
    metadata: dict[str, Any]
    handover_id: str | None
    flow_id: str | None
    batch_id: str | None
    skills: SkillsGiven | None
    created_at: datetime
    updated_at: datetime


class Episode(EpisodeSummary):
    """An episode with all that belongs to it.

    Attributes:
        todo: the entries that were issued to its agent.
        handovers: those that were accepted of it, by their ids, in order.
    """

    todo: list[IssuedEntry]
    handovers: list[str]
    interrupt_requested_at: datetime | None
    transitions: list[Transition]
    traces: list[Trace]
    assets: list[Asset]
    journal: list[JournalLine]


class EpisodeList(Model):
    """A page of episodes, latest first."""

    episodes: list[EpisodeSummary]
    total: int


class InterruptAccepted(Model):
    """The interruption is under way; the episode's status shows when it is done."""

    episode_id: str
    status: EpisodeStatus
    interrupt_requested_at: datetime


class EpisodeEvents(Model):
    """All that happened in an episode, each source in its own order."""

    episode_id: str
    session_id: str
    events: list[Event]
