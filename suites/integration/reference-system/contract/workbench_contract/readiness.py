"""Whether an episode has all that a data set of runs needs of it, mark by mark."""

from __future__ import annotations

from enum import StrEnum

from workbench_contract.base import Model


class Mark(StrEnum):
    """What a data set needs of an episode.

    Attributes:
        COMPLETED: it has come to its end, by every step from the first.
        MODEL_TURNS, TOOL_CALLS: there are some, and they are on record.
        EVENTS: all that its session has recorded is stored, without a gap.
        HANDOVER: what its role has to leave was accepted.
        ASSETS: it left some, and each lies in the store with the hash of its row.
        JOURNAL: its agent has written down what it made of its results.
        LANGFUSE: each turn and call is part of one trace at Langfuse.
    """

    COMPLETED = "completed"
    MODEL_TURNS = "model_turns"
    TOOL_CALLS = "tool_calls"
    EVENTS = "events"
    HANDOVER = "handover"
    ASSETS = "assets"
    JOURNAL = "journal"
    LANGFUSE = "langfuse"


class Marked(Model):
    """One mark of an episode.

    Attributes:
        found: what there is, in words; of one that is missing, what is in its place.
    """

    mark: Mark
    present: bool
    found: str


class Readiness(Model):
    """All marks of an episode, each once.

    Attributes:
        ready: none is missing.
    """

    episode_id: str
    ready: bool
    marks: list[Marked]
