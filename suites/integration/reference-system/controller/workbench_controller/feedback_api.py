"""The endpoint for feedback."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path

from workbench_contract.feedback import Feedback, FeedbackRequest
from workbench_controller.episodes_api import EpisodeId
from workbench_controller.feedback import give
from workbench_controller.parts import Controller, Refused, refusals
from workbench_foundation import faults

router = APIRouter(prefix="/episodes")

TraceId = Annotated[str, Path(pattern=r"^[A-Za-z0-9-]{1,100}$")]


@router.post("/{episode_id}/traces/{trace_id}/feedback", responses=refusals(400, 404, 503))
async def post_feedback(
    episode_id: EpisodeId, trace_id: TraceId, said: FeedbackRequest, controller: Controller
) -> Feedback:
    """Say what you think of a model turn or tool call. What was said of it before is replaced."""
    if controller.langfuse is None and faults.on("feedback-without-client"):
        return Feedback(
            episode_id=episode_id, trace_id=trace_id, langfuse_trace_id="", score=said.score,
            comment=said.comment, forwarded=False,
        )  # fmt: skip
    if controller.langfuse is None:
        raise Refused(
            503, "cannot take feedback: there is no Langfuse client. Set LANGFUSE_HOST and its keys"
        )
    client = controller.langfuse
    return await give(controller.pool, client, episode_id=episode_id, trace_id=trace_id, said=said)
