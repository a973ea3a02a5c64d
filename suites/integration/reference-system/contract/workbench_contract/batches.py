"""Batches: several episodes that are submitted together, and how many of them run at once."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from workbench_contract.base import Model
from workbench_contract.episodes import (
    EpisodeAccepted,
    EpisodeRequest,
    EpisodeStatus,
    EpisodeSummary,
)
from workbench_contract.problem import Problem

#: The most episodes of one batch.
BATCH_EPISODES = 50


class BatchRequest(Model):
    """Episodes in the order in which they begin.

    Attributes:
        concurrency: how many run at once; the controller's configuration says it when left out.
    """

    episodes: list[EpisodeRequest] = Field(min_length=1, max_length=BATCH_EPISODES)
    concurrency: int | None = Field(default=None, ge=1, le=BATCH_EPISODES)


class BatchAccepted(Model):
    """Each episode exists, in the order of the request."""

    batch_id: str
    concurrency: int
    episodes: list[EpisodeAccepted]


class BatchRefused(Problem):
    """Nothing could be started; every episode that exists is listed with its state."""

    batch_id: str
    episodes: list[EpisodeAccepted]


class BatchStatus(StrEnum):
    """What its episodes say together: none has begun, some are to end, all have."""

    QUEUED = "queued"
    RUNNING = "running"
    ENDED = "ended"


class Batch(Model):
    """A batch as of one moment.

    Attributes:
        counts: episodes in each status, 0 included.
        episodes: in the order of the request.
        ended_at: when the last one ended; none before.
    """

    batch_id: str
    status: BatchStatus
    concurrency: int
    counts: dict[EpisodeStatus, int]
    episodes: list[EpisodeSummary]
    interrupt_requested_at: datetime | None
    created_at: datetime
    ended_at: datetime | None


class BatchInterruptAccepted(Model):
    """The interruption of all that had not ended is under way.

    Attributes:
        episode_ids: of those that are interrupted.
    """

    batch_id: str
    interrupt_requested_at: datetime
    episode_ids: list[str]
