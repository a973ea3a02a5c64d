"""What a workflow is started with: the episode, and the limits that it goes by to its end."""

from __future__ import annotations

from pydantic import BaseModel

from workbench_contract.benchmark import ReviewDecision
from workbench_contract.episodes import AgentRole, AssetKind, EpisodeStatus, Purpose
from workbench_contract.flows import Cause

WORKFLOW = "episode"
FLOW = "flow"
BACKUP = "backup"
BATCH = "batch"


class Limits(BaseModel):
    """Read once when the workflow starts: a replay must see the same.

    Attributes:
        rpc_s: the longest that a database or worker request of an activity may take.
    """

    turns: int
    tool_s: float
    tool_attempts: int = 3
    tool_pause_s: float = 0.2
    heartbeat_s: float
    model_s: float
    model_attempts: int
    store_s: float
    store_attempts: int
    store_pause_s: float
    rpc_s: float


class Run(BaseModel):
    """One episode.

    Attributes:
        flow_id: of the flow that it is a turn of.
        resumed_id: the hand-over of its role in an earlier round that it goes on from.
        context_ids: the hand-overs for which it is asked once more: a review, and a refused plan before it.
        told: the same, in words.
    """

    episode_id: str
    session_id: str
    trace_id: str
    role: AgentRole
    purpose: Purpose = Purpose.ENGINEERING
    task: str
    seed: int
    variant: str
    handover_id: str | None = None
    flow_id: str | None = None
    resumed_id: str | None = None
    context_ids: list[str] = []
    told: str = ""
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
    """The result of a call, as the model gets it.

    Attributes:
        image: of a call that looked at one: its media type, and its bytes in base64.
    """

    text: str
    ok: bool
    image: tuple[str, str] | None = None


class Step(BaseModel):
    """A step of the episode's life."""

    run: Run
    status: str
    reason: str


class FoundAsset(BaseModel):
    """A file to be uploaded.

    Attributes:
        path: of the asset.
        handover_id: of what was handed over; none of a file in the folder of assets.
        handed_path: in that hand-over.
    """

    path: str
    kind: AssetKind = AssetKind.OWN
    handover_id: str | None = None
    handed_path: str = ""


class FoundAssets(BaseModel):
    """All that are to be uploaded."""

    assets: list[FoundAsset]


class AssetToKeep(BaseModel):
    """One of them."""

    run: Run
    asset: FoundAsset


class Bounds(BaseModel):
    """How often a flow goes round, see ``settings.Flows``; read once when its workflow starts."""

    rejections: int
    confirmed_refusals: int
    rejected_refusals: int


class FlowRun(BaseModel):
    """One flow.

    Attributes:
        given_id: the hand-over that its planner starts from.
        episode_s: the longest that one of its episodes may take.
    """

    flow_id: str
    purpose: Purpose
    task: str
    seed: int
    variant: str
    given_id: str | None
    bounds: Bounds
    episode_s: float
    limits: Limits


class BatchRun(BaseModel):
    """One batch; each episode is read when its turn comes.

    Attributes:
        concurrency: how many run at once.
        episode_s: the longest that one of its episodes may take.
    """

    batch_id: str
    episode_ids: list[str]
    concurrency: int
    episode_s: float
    limits: Limits


class Member(BaseModel):
    """An episode of a batch whose turn has come."""

    batch: BatchRun
    episode_id: str


class FlowStep(BaseModel):
    """A step of a flow that is no turn of a role.

    Attributes:
        handover_id: what it has come to.
    """

    flow: FlowRun
    ordinal: int
    status: EpisodeStatus
    cause: Cause
    reason: str
    handover_id: str | None = None


class StageToBegin(BaseModel):
    """The turn of a role.

    Attributes:
        ordinal: of the step; a turn that is begun again is the same.
        given_id, resumed_id, context_ids: as of its episode.
    """

    flow: FlowRun
    ordinal: int
    role: AgentRole
    round: int
    cause: Cause
    reason: str
    given_id: str | None
    resumed_id: str | None
    context_ids: list[str]


class StageEnd(BaseModel):
    """What has come of a turn.

    Attributes:
        handover_id: the last that was accepted of it.
        decision: of a reviewer's.
        said: comments of a review, or the reason of a refusal.
    """

    status: EpisodeStatus
    reason: str
    handover_id: str | None
    refuses_plan: bool
    decision: ReviewDecision | None
    said: str


class BackupRun(BaseModel):
    """A backup that is to be taken.

    Attributes:
        prefix: of the keys of all its objects.
        attempts: how often it is tried.
        pause_s: before the second attempt.
        attempt_s: the longest that one may take.
        rpc_s: the longest that a step beside it may take.
    """

    backup_id: str
    prefix: str
    attempts: int
    pause_s: float
    attempt_s: float
    heartbeat_s: float
    rpc_s: float


class BackupFailure(BaseModel):
    """Why a backup is given up."""

    backup_id: str
    reason: str
