"""What a workflow is started with: the episode, and the limits that it goes by to its end."""

from __future__ import annotations

from pydantic import BaseModel

from workbench_contract.episodes import AgentRole, Purpose

WORKFLOW = "episode"


class Limits(BaseModel):
    """Read once when the workflow starts: a replay must see the same.

    Attributes:
        rpc_s: the longest that a database or worker request of an activity may take.
    """

    turns: int
    tool_s: float
    heartbeat_s: float
    model_s: float
    model_attempts: int
    store_s: float
    store_attempts: int
    store_pause_s: float
    rpc_s: float


class Run(BaseModel):
    """One episode."""

    episode_id: str
    session_id: str
    trace_id: str
    role: AgentRole
    purpose: Purpose = Purpose.ENGINEERING
    task: str
    seed: int
    variant: str
    handover_id: str | None = None
    limits: Limits


class Turn(BaseModel):
    """A model turn to be taken."""

    run: Run
    ordinal: int
    messages: list[dict[str, object]]


class Call(BaseModel):
    """A tool call to be carried out.

    Attributes:
        job: id of its job, in every attempt.
    """

    run: Run
    ordinal: int
    job: str
    name: str
    arguments: dict[str, object]


class CallResult(BaseModel):
    """The result of a call, as the model gets it."""

    text: str
    ok: bool


class Step(BaseModel):
    """A step of the episode's life."""

    run: Run
    status: str
    reason: str


class AssetToKeep(BaseModel):
    """A file to be uploaded; its path is relative to the folder of assets."""

    run: Run
    path: str
