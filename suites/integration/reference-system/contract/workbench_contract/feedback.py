"""What a person thinks of a model turn or a tool call."""

from __future__ import annotations

from pydantic import Field

from workbench_contract.base import Model, Text

#: The longest comment that is taken.
COMMENT_CHARS = 10_000


class FeedbackRequest(Model):
    """A score, and why.

    Attributes:
        score: from 0, useless, to 1, as it should be.
    """

    score: float = Field(ge=0, le=1, allow_inf_nan=False)
    comment: Text | None = Field(default=None, max_length=COMMENT_CHARS)


class Feedback(Model):
    """What is stored of a trace, the latest that was said.

    Attributes:
        trace_id: the trace's own id in its episode.
        langfuse_trace_id: of the trace at Langfuse that the score is for.
        forwarded: whether Langfuse has it; it is told later where it has not.
    """

    episode_id: str
    trace_id: str
    langfuse_trace_id: str
    score: float
    comment: str | None
    forwarded: bool
